"""What the update hook tells a pilot of a partial return, by the slot's refreshed ad."""

from __future__ import annotations

import pytest

from drainwise.htcondor.node.parts import answer, real_cores, wish
from drainwise.pilotad.partial_return import Acknowledgement, PartialReturn

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
    assert answer(ad(**more)) == Acknowledgement(SINCE, usable, held)


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
    assert answer(ad(**more)) is None


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
    assert wish(ad(PilotReturnAsked=f'"{asked}"')) == found


def test_half_of_the_cores_are_real_where_there_is_a_second_slot() -> None:
    """A startd that has not begun anew has no second one."""
    assert (real_cores(ad(), 16), real_cores(ad(slot2_ChildCpus=None), 8), real_cores(ad(), None)) == (8, 8, None)
