"""What pilots returned while they went on: seen by the agent, remembered over its restarts, and in the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from drainwise.cli.main import main
from drainwise.journal.entries import part_event
from drainwise.journal.event import Outcome
from drainwise.journal.file import journal_line
from drainwise.journal.memory import Memory
from drainwise.journal.read import PassedOver
from drainwise.journal.remembered import LONGEST_UNWRITTEN, MOST_WRITTEN_AT_ONCE
from drainwise.journal.report import DAY, PartSums, ReportedJournal, as_json, report_on
from drainwise.journal.report_html import page
from drainwise.pilotad.partial_return import PartialReturn
from drainwise.pool.facts import Pilot
from drainwise.pool.identity import PilotIdentity

from .facts import NOW, Lines, pilot, report, snapshot


def part_of(number: int, *, returned: int = 0, asked: int = 0, used: float | None = None, user: str = "alice") -> Pilot:
    """A pilot of 8 cores that has returned some; all that it holds are in use."""
    held = 8 - returned
    said = report(held if used is None else used, heartbeat=NOW)
    return replace(pilot(number, said, user, held), returned=returned, asked=asked, can_return=held - 1)


class Looks:
    """An agent that looks, and its journal."""

    def __init__(self) -> None:
        self.memory, self.lines = Memory(), Lines()

    def look(self, after: int, *pilots: Pilot) -> list[Mapping[str, object]]:
        """What one look, so many seconds later, tells of pilots."""
        told: list[Mapping[str, object]] = []
        for event in self.memory.returned.looked(snapshot(*pilots), NOW + after, 3600):
            self.lines.write(event)
            self.memory.note(event)
            told += event["pilots"]  # type: ignore[arg-type]
        return told

    def restart(self, folder: Path, after: int) -> None:
        """Killed, and started again."""
        (folder / "journal").write_text(self.lines.text)
        self.memory = Memory.load([str(folder / "journal")], NOW + after)


def sums(one: Mapping[str, object]) -> tuple[object, ...]:
    return one["returned"], one["core_seconds"], one["wasted"]


def test_who_returns_nothing_leaves_no_trace() -> None:
    agent = Looks()
    assert agent.look(0, part_of(1), part_of(2, used=3.0)) == agent.look(60, part_of(1)) == []


def test_a_return_is_counted_from_when_it_was_seen_and_what_idled_before_is_its_waste() -> None:
    """Asked for 4 of 8 with one idle core; it returns them after 100 s, and takes them back 300 s later."""
    agent = Looks()
    assert agent.look(0, part_of(1, asked=4, used=7.0)) == []
    assert agent.look(60, part_of(1, asked=4, used=5.0)) == []
    [first] = agent.look(100, part_of(1, returned=4, asked=4))
    assert sums(first) == (4, 0, 1 * 60 + 3 * 40)
    assert agent.look(300, part_of(1, returned=4)) == []
    [second] = agent.look(400, part_of(1))
    assert sums(second) == (0, 4 * 200, 0), "at least so many for so long"
    assert agent.look(500, part_of(1)) == []


def test_what_idles_counts_for_one_cause_alone() -> None:
    """A pilot with an order drains: its waste is the order's; one that is not believed has none that is known."""
    going, unknown = replace(part_of(1, asked=4, used=2.0), deadline=NOW + 900), part_of(2, asked=4, used=2.0)
    agent = Looks()
    agent.look(0, going, replace(unknown, report=None))
    told = agent.look(100, part_of(1, returned=4), part_of(2, returned=4))
    assert [sums(one) for one in told] == [(4, 0, 0)] * 2


def test_a_wish_that_is_over_tells_what_idled_for_nothing() -> None:
    agent = Looks()
    agent.look(0, part_of(1, asked=4, used=6.0))
    assert [sums(one) for one in agent.look(50, part_of(1, used=6.0))] == [(0, 0, 2 * 50)]
    assert agent.look(90, part_of(1, used=6.0)) == []


def test_a_long_return_is_told_now_and_then_and_its_end_once() -> None:
    agent, one = Looks(), part_of(1, returned=4)
    times = range(0, 3 * LONGEST_UNWRITTEN + 61, 60)
    told = [entry for after in times for entry in agent.look(after, one)]
    assert [sums(entry) for entry in told] == [(4, 0, 0)] + [(4, 4 * LONGEST_UNWRITTEN, 0)] * 3
    assert [sums(entry) for entry in agent.look(times[-1] + 60)] == [(0, 4 * 60, 0)]
    assert agent.look(times[-1] + 120) == []


def test_an_agent_that_starts_anew_counts_on(tmp_path: Path) -> None:
    """What stood in its journal, and not what it has not seen: of a pilot that went meanwhile nothing more counts."""
    agent = Looks()
    agent.look(0, part_of(1, returned=4), part_of(2, returned=6))
    agent.restart(tmp_path, 100)
    told = {str(one["name"]): sums(one) for one in agent.look(400, part_of(1, returned=1))}
    assert told == {"slot1_1@node1": (1, 400, 0), "slot1_2@node1": (0, 0, 0)}
    agent.restart(tmp_path, 500)
    assert agent.look(700, part_of(1, returned=1)) == []


def test_very_many_pilots_are_told_over_some_cycles() -> None:
    agent, number = Looks(), MOST_WRITTEN_AT_ONCE + 50
    everyone = [part_of(one, returned=2) for one in range(number)]
    found = [len(agent.look(after, *everyone)) for after in (0, 60, 120)]
    assert found == [MOST_WRITTEN_AT_ONCE, 50, 0]
    gone = [len(agent.look(after)) for after in (180, 240, 300)]
    assert gone == found


@pytest.fixture
def journal(tmp_path: Path) -> str:
    """Two of alice's pilots were asked, one refused; bea's returned cores in two steps and took some back."""
    agent = Looks()
    bea: dict[str, Any] = {"user": "bea@pool"}
    sent = PilotIdentity(vo="cms")
    for number, outcome in ((1, Outcome.DONE), (2, Outcome.DONE), (3, Outcome.REFUSED)):
        wish = PartialReturn(4, NOW + 7200, 4)
        agent.lines.write(part_event(part_of(number), wish, outcome, "", "bob waits", 60, NOW))
    agent.lines.write(
        part_event(replace(part_of(4, **bea), identity=sent), PartialReturn(6), Outcome.DONE, "", "", 0, NOW)
    )
    agent.lines.write(part_event(part_of(1, returned=4), PartialReturn(0), Outcome.DONE, "", "enough", 0, NOW + 700))
    for after, first, last in ((0, 0, 0), (100, 4, 3), (200, 4, 6), (1100, 0, 2), (1200, 0, 2)):
        hers = replace(part_of(4, returned=last, asked=6, used=7.0 - last, **bea), identity=sent)
        agent.look(after, part_of(1, returned=first), part_of(2), hers)
    agent.look(1300)
    (tmp_path / "journal").write_text(agent.lines.text)
    return str(tmp_path / "journal")


ALICE = PartSums(2, 2, 4, 400, 0)
BEA = PartSums(1, 1, cores_returned=6, core_seconds_returned=300 + 1800 + 200, realised_waste=100 + 100 + 0 + 100)


def test_the_report_has_what_each_user_returned(journal: str) -> None:
    """Cores are those returned at one time; wishes for less, and those that were not taken, are none."""
    found = report_on([], NOW - DAY, NOW + DAY, parts=ReportedJournal.read([journal], NOW - DAY, NOW).parts)
    assert found.parts == (("group_a", "alice", ALICE), ("group_a", "bea@pool", BEA))
    total = as_json(found)["parts"]["total"]  # type: ignore[index]
    assert total == {
        "wishes": 3,
        "pilots": 3,
        "cores_returned": 10,
        "core_seconds_returned": ALICE.core_seconds_returned + BEA.core_seconds_returned,
        "realised_waste": BEA.realised_waste,
    }
    for more in ({"user": "bea"}, {"identity": PilotIdentity(vo="cms")}):
        of_one = report_on(
            [], NOW - DAY, NOW + DAY, parts=ReportedJournal.read([journal], NOW - DAY, NOW).parts, **more
        )
        assert of_one.part_total == BEA
    assert ReportedJournal.read([journal], NOW + 1301, NOW).parts == []


def test_the_page_shows_parts_where_there_are_any(journal: str) -> None:
    heading = "Cores returned by pilots that went on"
    found = report_on([], NOW - DAY, NOW + DAY, parts=ReportedJournal.read([journal], 0, NOW).parts)
    assert heading in page(found, NOW) and "<td>0.639</td>" in page(found, NOW)
    assert heading not in page(report_on([], NOW - DAY, NOW + DAY), NOW)


def test_the_command_shows_parts_also_where_no_order_was_given(
    journal: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "--days", "3650", "--journal", journal]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["no order was given", "", "Cores returned by pilots that went on"]
    assert lines[-1].split() == ["all", "3", "3", "10", "0.750", "core-h", "0.083", "core-h"]


@pytest.mark.parametrize(("name", "value"), [("returned", -1), ("core_seconds", "x"), ("run", 5), ("wasted", None)])
def test_an_event_that_is_not_sound_is_passed_over(journal: str, name: str, value: object) -> None:
    """By the report, and by the agent's memory."""
    entry = {"run": "r", "account": "a", "user": "u", "returned": 2, "core_seconds": 1, "wasted": 1, name: value}
    line = journal_line({"event": "returned", "version": 2, "time": NOW, "pilots": [entry]})
    Path(journal).write_text(Path(journal).read_text() + line)
    counted = PassedOver()
    assert (
        len(ReportedJournal.read([journal], 0, NOW, counted).parts)
        == len(ReportedJournal.read([journal], 0, NOW).parts)
        > 0
    )
    assert counted.lines == Memory.load([journal], NOW + 9999).passed_over.lines == 1
