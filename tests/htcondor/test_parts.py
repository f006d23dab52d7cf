"""What the update hook tells a pilot of a partial return, by the slot's refreshed ad."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from pytest_mock import MockerFixture

from drainwise.htcondor.node import startd_cron
from drainwise.htcondor.node.job_directories import JobSandbox
from drainwise.htcondor.node.parts import (
    OwnersRecord,
    real_cores,
    returned_by,
    stated_part,
    wish_and_answer,
)
from drainwise.node.payloads.observer import KeptCores, ObservedRun, Observer, SeenJob
from drainwise.node.settings import NodeSettings
from drainwise.pilotad.partial_return import NOTHING_RETURNED, Acknowledgement, PartialReturn, ReturnedPart
from drainwise.pilotad.report import PilotReport

JOB, START, SINCE = "ce#7.0#1795250000", 1795250010, 1795260000
RUN = f"{JOB}@{START}"
NONE = "undefined"


def ad(**more: object) -> bytes:
    """The ad of a pilot of 8 cores that has returned 5, of which 3 are borrowed, as the startd writes it."""
    values: dict[str, object] = {
        "Cpus": 8,
        "TotalCpus": "16.0",
        "GlobalJobId": f'"{JOB}"',
        "JobStart": START,
        "PilotReportedBy": f'"{RUN}"',
        "PilotReturnedCpus": 5,
        "PilotReturnedSince": SINCE,
        "slot1_ChildCpus": "{ 8 }",
        "slot1_ChildPilotLentCpus": "{ 5 }",
        "slot1_ChildPilotReturnedSince": f"{{ {SINCE} }}",
        "slot2_ChildCpus": "{ 2,1 }",
        "slot2_ChildPilotLentCpus": "{ 0,0 }",
        "slot2_ChildPilotReturnedSince": "{ undefined,undefined }",
        **more,
    }
    return "".join(f"{name} = {value}\n" for name, value in values.items() if value is not None).encode()


@pytest.mark.parametrize(
    ("more", "usable", "held"),
    [
        pytest.param({}, 3, 3, id="what it kept"),
        pytest.param({"slot2_ChildCpus": "{ }"}, 3, 0, id="nobody has borrowed"),
        pytest.param(
            {"PilotReturnedCpus": 2, "slot1_ChildPilotLentCpus": "{ 2 }"}, 5, 3, id="one core is not free yet"
        ),
        pytest.param({"PilotReturnedCpus": 0, "slot1_ChildPilotLentCpus": "{ 0 }"}, 5, 3, id="it wants all again"),
        pytest.param({"PilotReturnedCpus": 3, "slot1_ChildPilotLentCpus": "{ 3 }"}, 5, 3, id="just enough"),
        pytest.param(
            {
                "TotalCpus": 32,
                "slot1_ChildCpus": "{ 8,8 }",
                "slot1_ChildPilotLentCpus": "{ 0,3 }",
                "PilotReturnedCpus": 0,
            },
            8,
            0,
            id="others have borrowed from another pilot",
        ),
    ],
)
def test_a_pilot_may_use_what_is_neither_returned_nor_held(more: dict[str, object], usable: int, held: int) -> None:
    """By the same lists as START: never a core that others have."""
    assert wish_and_answer(ad(**more))[1] == Acknowledgement(SINCE, usable, held)


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"slot1_ChildPilotReturnedSince": f"{{ {SINCE - 9} }}"}, id="the startd has not looked yet"),
        pytest.param({"PilotReportedBy": f'"{JOB}@{START - 90}"'}, id="of the run before"),
        pytest.param({"PilotReturnedSince": NONE}, id="it states nothing"),
        pytest.param({"slot2_ChildCpus": None}, id="no second slot yet"),
        pytest.param({"slot1_ChildCpus": NONE, "slot2_ChildCpus": NONE}, id="no lists"),
        pytest.param({"Cpus": "8 + 1"}, id="no number of cores"),
    ],
)
def test_what_is_not_known_is_not_acknowledged(more: dict[str, object]) -> None:
    """The pilot keeps what it has."""
    assert wish_and_answer(ad(**more))[1] is None


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (f"ce#8.0#1@1=9:0:1 {RUN}=4:1795267200:2", PartialReturn(4, 1795267200, 2)),
        (f"{RUN}=4:0:0", PartialReturn(4)),
        (f"{RUN}=4:0:1 {RUN}=0:0:1", PartialReturn(0)),
        (f"{RUN}=4:0", None),
        (f"{RUN}=-4:0:1", None),
        (f"{JOB}@{START}9=4:0:1", None),
        ("", None),
    ],
)
def test_a_run_is_asked_by_its_name(asked: str, found: PartialReturn | None) -> None:
    """The last entry counts; another run's or a broken one says nothing."""
    assert wish_and_answer(ad(PilotReturnAsked=f'"{asked}"', slot2_ChildCpus="{ }"))[0] == found


@pytest.mark.parametrize(
    ("asked", "more", "found"),
    [
        (f"{RUN}=0:0:1", {}, PartialReturn(3)),
        ("", {}, PartialReturn(3)),
        (f"{RUN}=4:0:2", {}, PartialReturn(4, None, 2)),
        ("", {"PilotReturnedCpus": 2}, PartialReturn(2)),
        ("", {"PilotReturnedCpus": 0}, None),
        ("", {"slot2_ChildCpus": "{ }"}, None),
        ("", {"slot1_ChildPilotReturnedSince": f"{{ {SINCE - 9} }}"}, None),
    ],
)
def test_what_others_hold_stays_returned(asked: str, more: dict[str, object], found: PartialReturn | None) -> None:
    """3 of its 8 cores are borrowed: when nobody asks any more, it does not pay for them."""
    assert wish_and_answer(ad(PilotReturnAsked=f'"{asked}"', **more))[0] == found


def test_half_of_the_cores_are_real_where_there_is_a_second_slot() -> None:
    """A startd that has not begun anew has no second one."""
    assert (real_cores(ad(), 16), real_cores(ad(slot2_ChildCpus=None), 8), real_cores(ad(), None)) == (8, 8, None)


SANDBOX = JobSandbox(3, 54321, "slot1_1@n1", JOB, 8, START, 0)
PART = ReturnedPart(5, 0, SINCE)


def test_what_a_report_states_and_what_it_keeps() -> None:
    """None of a pilot that cannot return a part: its slot shows nothing of it."""
    states = PilotReport(SINCE + 9, used_cpu=3.0, returned_cores=5, returned_since=SINCE)
    assert stated_part(states, SANDBOX, SINCE + 10, 3600) == PART
    assert stated_part(states, SANDBOX, SINCE + 9999, 3600) == NOTHING_RETURNED
    assert stated_part(PilotReport(SINCE), SANDBOX, SINCE, 3600) is stated_part(None, SANDBOX, SINCE, 3600) is None


def test_whoever_broke_its_word_lends_nothing_any_more(tmp_path: Path) -> None:
    """After two looks in a row; all jobs of that owner, also in later rounds; nobody else's."""
    record = OwnersRecord(f"{tmp_path}/owners")
    assert [record.since(SANDBOX, seen, SINCE) for seen in (None, SeenJob(1), SeenJob(1, over=1))] == [None] * 3
    assert record.since(SANDBOX, SeenJob(1, over=2), SINCE) == SINCE
    record.remember()
    later = OwnersRecord(f"{tmp_path}/owners")
    next_job = JobSandbox(4, 54321, "slot1_2@n1", "ce#8.0#1795250000", 8, START, 0)
    other = JobSandbox(4, 54322, "slot1_3@n1", "ce#9.0#1795250000", 8, START, 0)
    assert (later.since(next_job, None, SINCE + 60), later.since(other, None, SINCE + 60)) == (SINCE, None)
    trusted = "PilotLendsNoMore = undefined"
    assert returned_by(PART, SANDBOX, None, 30).splitlines()[:2] == [f'PilotReturnedBy = "{RUN}"', trusted]
    assert returned_by(None, SANDBOX, None, 30).splitlines()[:2] == ["PilotReturnedBy = undefined", trusted]
    said = returned_by(PART, SANDBOX, SINCE, 30).splitlines()
    assert said[:2] == ["PilotReturnedBy = undefined", f"PilotLendsNoMore = {SINCE}"]


@pytest.mark.parametrize("text", ["", "x y\n", "54321\n", "54321 -5\n", "\xff\n"])
def test_a_broken_record_says_nothing(tmp_path: Path, text: str) -> None:
    """It is only this node's memory."""
    (tmp_path / "owners").write_text(text, encoding="latin-1")
    assert OwnersRecord(f"{tmp_path}/owners").since(SANDBOX, None, SINCE) is None


class Refuting(Observer):
    """A look at the processes by which the cores in use, as they are stated, cannot be so since ten minutes."""

    def look(self, runs: Mapping[str, ObservedRun], *_: object) -> None:
        """What is seen of a job that has returned a part."""
        assert runs == {JOB: ObservedRun(8, START, 3.0, KeptCores(3, SINCE))}
        self.seen = {JOB: SeenJob(1, wrong=SINCE + 60)}


def test_who_states_more_in_use_than_works_has_returned_what_it_says(tmp_path: Path, mocker: MockerFixture) -> None:
    """Payloads that only sleep: of the report nothing else counts, what is lent stays lent, and nobody is in debt."""
    said = PilotReport(
        *(SINCE + 650, 3.0, SINCE, SINCE + 700, SINCE + 700, SINCE + 700, 90.0, 0.0, 1, True),
        returned_cores=5,
        returned_memory=900,
        returned_since=SINCE,
    )
    sandbox = JobSandbox(os.open(tmp_path, os.O_RDONLY), 54321, SANDBOX.slot, JOB, 8, START, 0)
    mocker.patch.object(startd_cron, "read_report", autospec=True, return_value=(said, ""))
    node = startd_cron.CronNode(1, SINCE + 660, NodeSettings({"partial_return": "1", "heartbeat_limit_secs": "3600"}))
    seen = startd_cron.collect([sandbox], node, Refuting(), OwnersRecord(f"{tmp_path}/owners"))
    lines = seen[sandbox.slot][0].splitlines()
    assert 'PilotReportStanding = "contradictory"' in lines and "PilotUsedCpu = undefined" in lines
    assert {"PilotReturnedCpus = 5", "PilotReturnedMemory = 900", f"PilotReturnedSince = {SINCE}"} <= set(lines)
    assert f'PilotReturnedBy = "{RUN}"' in lines
