"""What is seen of a job from one round to the next, and when it is told."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pytest
from pytest_mock import MockerFixture

from drainwise.node.payloads import observer as observer_module
from drainwise.node.payloads.observer import (
    ANEW,
    CPU_OF_A_MINUTE,
    LONGEST_PAUSE,
    KeptCores,
    ObservedRun,
    Observer,
    SeenJob,
    claimed_cores,
    is_weak,
    is_wrong,
    next_look,
    observe,
    seen_in,
    seen_line,
)
from drainwise.node.payloads.payload_trees import PayloadTree, PayloadTrees, job_processes, payload_trees
from drainwise.node.payloads.process_table import TICKS, ProcessTable
from drainwise.node.settings import DEFAULT_CONTRADICTORY_AFTER
from drainwise.pilotad.attributes import GLIDEIN_AD
from drainwise.pilotad.observation import MOST_BEGINS, is_client, observation_in, observation_text, observed_report
from drainwise.pilotad.report import INCOMPLETE, OBSERVED, STALE, PilotReport, standing
from made_up_processes import MadeUpTable, Row

NOW, UP, CORES = 1795249000, 90_000 * TICKS, 8


def trees(*payloads: tuple[int, float, float], client: str = "plain") -> PayloadTrees:
    """Payloads of (pid, when they began in s before NOW, CPU seconds)."""
    return PayloadTrees(
        client, (), tuple(PayloadTree(pid, UP - round(age * TICKS), round(cpu * TICKS)) for pid, age, cpu in payloads)
    )


def seen(found: PayloadTrees, before: SeenJob | None = None, later: int = 0, begun: int = NOW - 5000) -> SeenJob:
    return observe(found, before, ObservedRun(CORES, begun), UP + later * TICKS, NOW + later)


def test_the_first_round_takes_the_average_since_the_begin() -> None:
    told = seen(trees((1, 100, 50), (2, 200, 300))).told
    assert told is not None
    assert (told.payloads, told.cores_busy, told.cpu_seconds) == (2, 0.5 + 1.5, 350)
    assert told.begins == (NOW - 100, NOW - 200)


def test_later_rounds_take_what_was_used_in_between() -> None:
    first = seen(trees((1, 100, 0)))
    told = seen(trees((1, 100, 240)), first, later=60).told
    assert told is not None and told.cores_busy == 4


def test_another_process_of_the_same_pid_is_another_payload() -> None:
    """A pid that is used again must not inherit what the last one had used."""
    first = seen(trees((1, 100, 90)))
    told = seen(trees((1, -30, 15)), first, later=60).told
    assert told is not None and (told.cores_busy, told.cpu_seconds) == (0.5, 15)


def test_nothing_counts_beyond_the_cores_and_the_time_of_the_job() -> None:
    told = seen(trees((1, 100, 1e6)), begun=NOW - 40).told
    assert told is not None
    assert (told.cores_busy, told.cpu_seconds, told.begins) == (CORES, 40 * CORES, (NOW - 40,))


def test_a_job_is_idle_since_its_last_payload_ended() -> None:
    busy = seen(trees((1, 100, 90)))
    idle = seen(trees(), busy, later=60)
    still = seen(trees(), idle, later=60 + ANEW)
    assert busy.idle == 0 and idle.idle == still.idle == NOW + 60
    assert still.told is not None and still.told.idle == ANEW
    assert idle.has_worked and not seen(trees()).has_worked


def test_what_was_to_be_expected_is_not_told_again() -> None:
    first = seen(trees((1, 100, 100)))
    same = seen(trees((1, 100, 160)), first, later=60)
    assert same.told == first.told
    assert seen(trees((1, 100, 100 + ANEW)), first, later=ANEW).told != first.told
    assert seen(trees((1, 100, 100)), first, later=60).told != first.told, "it works no more"
    assert seen(trees((1, 100, 160), (2, 10, 9)), first, later=60).told != first.told, "another one has begun"


def test_a_round_is_remembered() -> None:
    job = seen(PayloadTrees("panda", ((7, 9),), trees((1, 100, 50), (2, 200, 300)).payloads))
    assert seen_in(seen_line("ap#17.0#1795240000", job)) == ("ap#17.0#1795240000", job)
    assert seen_in(seen_line("x", SeenJob(5))) == ("x", SeenJob(5))
    for line in ("", "a b c", "x 1 plain 1.2.3 - 0 - 0", "x 1 plain - 1.2 0 - 0", "x y plain - - 0 - 0"):
        assert seen_in(line) is None


def test_an_observation_is_one_text() -> None:
    told = seen(trees(*((n, 100 + n, 50) for n in range(2 * MOST_BEGINS)), client="dirac")).told
    assert told is not None and len(told.begins) == MOST_BEGINS
    assert observation_in(observation_text(told)) == told
    empty = seen(trees()).told
    assert empty is not None and observation_in(observation_text(empty)) == empty


@pytest.mark.parametrize(
    "text",
    [
        *("", None, 7, "panda", "panda:1:1:1:1:0:", "Panda:1795249000:0:0:0:0:", "a b:1795249000:0:0:0:0:"),
        *("panda:1795249000:1:-1:0:0:", "panda:1795249000:1:1e9:0:0:", "panda:1795249000:1:1:0:0:1,2", "\u0661" * 7),
        *("panda:1795249000:\u0661:1:0:0:", "panda:1795249000:1:1.\u00b2:0:0:", "pand\u00e4:1795249000:0:0:0:0:"),
        *("panda:1795249000:1:1:0:0:" + "1" * 400, "panda:1795249000:1:nan:0:0:1", "panda:1795249000:1:1.:0:0:x"),
    ],
)
def test_another_text_is_none(text: object) -> None:
    assert observation_in(text) is None


@pytest.mark.parametrize(
    ("text", "is_read"),
    [
        (f"{'p' * 16}:1795249000:0:0:0:0:", True),
        (f"{'p' * 17}:1795249000:0:0:0:0:", False),
        ("panda:1795249000:0:0:9999999999:0:", True),
        ("panda:1795249000:0:0:10000000000:0:", False),
        ("panda:946684800:0:0:0:0:", True),
        ("panda:946684799:0:0:0:0:", False),
        ("panda:4102444800:0:0:0:0:", True),
        ("panda:4102444801:0:0:0:0:", False),
        (f"panda:1795249000:30:0:0:0:{','.join('1' * 24)}", True),
        (f"panda:1795249000:30:0:0:0:{','.join('1' * 25)}", False),
    ],
)
def test_an_observation_is_read_within_bounds(text: str, is_read: bool) -> None:
    assert (observation_in(text) is not None) is is_read


def test_its_report_says_what_a_kill_loses_and_no_end() -> None:
    told = seen(trees((1, 100, 50), (2, 200, 300))).told
    assert told is not None
    report = observed_report(told)
    assert (report.used_cpu, report.last_job_start, report.add_uncom_time) == (2, NOW - 100, 150)
    assert told.cpu_seconds == 150 + 2 * (NOW - (NOW - 100))
    assert report.last_exp_job_end is None and standing(report, NOW, 3600, NOW - 5000, CORES) == OBSERVED
    assert standing(report, NOW + 3601, 3600) == STALE


def test_a_payload_that_has_waited_loses_no_more_than_it_used() -> None:
    first = seen(trees((1, 1000, 0.0)))
    told = seen(trees((1, 1000, 60)), first, later=60).told
    assert told is not None and (told.cores_busy, told.cpu_seconds) == (1, 60)
    report = observed_report(told)
    assert (report.last_job_start, report.add_uncom_time) == (told.at - 60, 0)
    assert INCOMPLETE != standing(report, told.at, 3600) == OBSERVED


@pytest.mark.parametrize("spent", [0.0, 0.002, 0.04, 0.3, 2.0])
def test_looking_takes_no_more_of_a_minute_than_it_may(spent: float) -> None:
    pause = next_look(NOW, spent) - NOW
    assert spent * 60 <= CPU_OF_A_MINUTE * pause <= spent * 60 + CPU_OF_A_MINUTE
    assert next_look(NOW, 1e9) == NOW + LONGEST_PAUSE


# ---- what a pilot claims against what its node sees: only what cannot be so is wrong, and only when it stays so ----

AFTER = DEFAULT_CONTRADICTORY_AFTER


@pytest.mark.parametrize(
    ("claimed", "busy", "active", "wrong"),
    [
        (8.0, 0.0, False, True),
        (8.0, 0.07, False, True),
        (8.0, 0.1, False, False),  # it copies something
        (8.0, 0.0, True, False),  # it waits for a disk
        (1.0, 0.0, False, False),  # a small claim
        (0.0, 8.0, True, True),
        (0.4, 4.0, True, True),
        (0.0, 3.9, True, False),
        (0.5, 8.0, True, False),
        (6.0, 2.0, True, False),
    ],
)
def test_only_what_cannot_be_so_is_wrong(claimed: float, busy: float, active: bool, wrong: bool) -> None:
    assert is_wrong(claimed, busy, active, CORES) is wrong
    assert bool(looks([claimed] * 2, busy, active).wrong) is wrong
    assert not looks([claimed] * 2, busy, active, elsewhere=True).wrong


def looks(
    claims: Sequence[float | None], busy: float, active: bool = False, every: int = 60, elsewhere: bool = False
) -> SeenJob:
    """Look at a job of eight cores each minute; `busy` cores work all the time."""
    seen = None
    for number, claimed in enumerate(claims):
        later = number * every
        found = PayloadTrees("plain", (), (), round(busy * later * TICKS), active, elsewhere)
        seen = observe(found, seen, ObservedRun(CORES, NOW - 5000, claimed), UP + later * TICKS, NOW + later)
    assert seen is not None
    return seen


def test_a_claim_contradicts_after_minutes() -> None:
    enough = AFTER // 60 + 2
    for claimed, busy in ((8.0, 0.0), (0.0, 8.0)):
        seen = looks([claimed] * enough, busy)
        assert seen.contradicts(NOW + (enough - 1) * 60, AFTER)
        assert not looks([claimed] * (enough - 1), busy).contradicts(NOW + (enough - 2) * 60, AFTER)


def test_one_look_alone_contradicts_nothing() -> None:
    """However long ago the last one was."""
    seen = looks([8.0] * 2, 0.0, every=86400)
    assert seen.wrong and not seen.contradicts(NOW + 86400, AFTER)


def test_an_honest_claim_in_between_begins_anew() -> None:
    assert looks([8.0] * 9 + [0.0], 0.0).wrong == 0
    assert looks([8.0] * 9 + [None], 0.0).wrong == 0
    assert looks([None] * 9, 0.0).wrong == 0


def test_a_job_that_waits_for_a_disk_or_a_container_is_not_held_against_its_claim() -> None:
    assert looks([8.0] * 9, 0.0, active=True).wrong == 0
    table = MadeUpTable(Row(10, 1, age=900), Row(20, 10, age=900), Row(30, 20, age=800, name="docker"))
    processes = job_processes(table, (10,))
    assert processes is not None and payload_trees(processes, table).elsewhere


# ---- cores that a pilot returned ----


def over(kept: Sequence[KeptCores | None], busy: float, elsewhere: bool = False) -> int:
    """Look at a job of eight cores each minute, of which `busy` work; return the looks in a row that were too many."""
    seen = None
    for number, one in enumerate(kept):
        later = number * 60
        found = PayloadTrees("plain", (), (), round(busy * later * TICKS), True, elsewhere)
        seen = observe(found, seen, ObservedRun(CORES, NOW - 5000, None, one), UP + later * TICKS, NOW + later)
    assert seen is not None
    return seen.over


def test_who_goes_on_using_what_it_returned_is_seen_at_each_look() -> None:
    """Only what was stated for the whole time between two looks counts, and a helper's work does not."""
    three = KeptCores(3, NOW)
    assert over([three] * 3, busy=8.0) == over([three] * 3, busy=3.6) == 2
    assert over([three] * 3, busy=3.5) == over([three] * 3, busy=8.0, elsewhere=True) == 0
    assert over([three], busy=8.0) == 0, "nothing is measured yet"
    assert over([three, three, KeptCores(3, NOW + 61)], busy=8.0) == 0, "it has just stated so"
    assert over([three, None, three, three], busy=8.0) == 2
    assert over([three, three, None], busy=8.0) == 0
    assert over([KeptCores(7, NOW)] * 3, busy=7.6) == 0


class Machine:
    """A machine's processes, which a test changes, and an observer that looks at them."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.rows: list[Row] = []
        self.looks, self.is_hidden = 0, False
        self.table: ProcessTable | None = None
        self.spent = mocker.patch.object(time, "process_time", autospec=True, return_value=0.0)
        mocker.patch.object(observer_module, "read_processes", autospec=True, side_effect=self.read)
        self.observer = Observer()

    def read(self) -> ProcessTable | None:
        self.looks += 1
        return None if self.is_hidden else self.table

    def has_looked(self) -> bool:
        return self.observer.has_looked

    def look(self, now: int, *rows: Row, jobs: tuple[str, ...] = ("17",), patterns: str | None = None) -> list[str]:
        """Look at jobs whose supervisors are the processes of their numbers; who was seen, with what was told."""
        self.table = MadeUpTable(*rows, now=UP + (now - NOW) * TICKS)
        runs = dict.fromkeys(jobs, ObservedRun(CORES, NOW - 5000))
        above = {job: [int(job)] for job in ("17", "18")}
        self.observer.look(runs, lambda _: (above, {17, 18}), patterns, now)
        return [f"{job} {one.client} {len(one.payloads)}" for job, one in self.observer.seen.items()]


SUPERVISORS = (Row(17, 1), Row(18, 1, group="/job_17"))
WORKS = Row(171, 17, age=100, cpu=50)


def test_a_look_sees_each_job_that_has_processes_and_says_when_the_next_is_due(mocker: MockerFixture) -> None:
    """Later where it took long; another observer goes on by the record."""
    machine = Machine(mocker)
    assert not machine.has_looked() and machine.observer.record() == ["0"]
    assert machine.look(NOW, *SUPERVISORS, WORKS, jobs=("17", "18")) == ["17 plain 1"]
    assert machine.has_looked()
    record = machine.observer.record()
    assert record[0] == str(NOW + 1) and [seen_in(line) for line in record[1:]] == [*machine.observer.seen.items()]
    machine.observer = Observer(record, least=50)
    assert machine.look(NOW, *SUPERVISORS) == ["17 plain 1"] and machine.looks == 1
    assert not machine.has_looked(), "nothing was due"
    assert machine.look(NOW + 1, *SUPERVISORS, WORKS) == ["17 plain 1"] and machine.looks == 2
    assert machine.look(NOW + 50, *SUPERVISORS) == ["17 plain 1"]
    assert machine.look(NOW + 51, *SUPERVISORS) == [] and machine.observer.record() == [str(NOW + 101)]
    machine.spent.side_effect = [1.0, 3.0]
    assert machine.look(NOW + 101, jobs=()) == [] and machine.looks == 3, "without jobs nothing is read"
    assert machine.observer.record() == [str(NOW + 101 + 3001)]


def test_a_clock_that_was_set_back_far_keeps_no_look_away(mocker: MockerFixture) -> None:
    machine = Machine(mocker)
    for due, is_due in ((NOW + LONGEST_PAUSE, False), (NOW + LONGEST_PAUSE + 1, True)):
        machine.observer = Observer([str(due)])
        machine.look(NOW, *SUPERVISORS)
        assert machine.has_looked() is is_due
    for first in ("", "x", "1" * 11):
        assert Observer([first]).record() == ["0"]
    assert Observer([str(NOW), "rubbish"]).record() == [str(NOW)]


def test_who_lost_its_parents_is_of_its_jobs_group_and_no_process_of_the_batch_system_is(mocker: MockerFixture) -> None:
    """By a site's own pattern as by the built-in ones."""
    machine = Machine(mocker)
    rows = [row._replace(group="/job_17") for row in (*SUPERVISORS, WORKS)]
    lost = Row(999, 1, age=100, cpu=50, group="/job_17", line="my-payload 1")
    assert machine.look(NOW, *rows, lost, patterns="mine=my-payload") == ["17 mine 1"]
    assert sum(len(one.payloads) for one in machine.observer.seen.values()) == 1
    assert machine.observer.seen["17"].total == 100 * TICKS
    machine.observer = Observer()
    machine.is_hidden = True
    assert machine.look(NOW, *rows) == [] and machine.has_looked(), "what is hidden is not seen"


@pytest.mark.parametrize(
    ("saved", "each", "last", "following"),
    [(0, 0, None, None), (NOW - 5, 0, NOW - 5, None), (NOW - 5, 60, NOW - 5, NOW + 55)],
)
def test_its_report_says_when_it_saves(saved: int, each: int, last: int | None, following: int | None) -> None:
    told = seen(trees((1, 100, 50))).told
    assert told is not None
    report = observed_report(told, saved, each)
    assert (report.last_checkpoint, report.next_checkpoint) == (last, following)


def report_with(heartbeat: int = NOW, **changed: Any) -> PilotReport:
    """A sound report of 6 cores in use, or one that is not."""
    said: dict[str, Any] = {"used_cpu": 6.0, "last_job_start": NOW - 100}
    said |= {"first_exp_job_end": NOW + 100, "last_exp_job_end": NOW + 200}
    said |= {"add_uncom_time": 50.0, "add_final_exp_waste": 300.0, **changed}
    return PilotReport(heartbeat, **said)


@pytest.mark.parametrize(
    ("report", "is_seen_first", "claimed"),
    [
        (None, True, None),
        (report_with(), False, 6.0),
        (report_with(NOW - 3601), True, None),
        (report_with(last_job_start=None), True, None),
        (report_with(add_uncom_time=1e12), False, 6.0),
        (report_with(source=GLIDEIN_AD), False, None),
    ],
    ids=["none", "fresh", "stale", "incomplete", "contradictory", "glidein"],
)
def test_what_is_seen_comes_before_a_report_that_is_no_use(
    report: PilotReport | None, is_seen_first: bool, claimed: float | None
) -> None:
    assert is_weak(report, CORES, NOW - 5000, NOW, 3600) is is_seen_first
    assert claimed_cores(report, CORES, NOW - 5000, NOW, 3600) == claimed


@pytest.mark.parametrize(
    ("claimed", "works", "is_active", "cores", "wrong"),
    [
        (1.0, 0.0, False, 2, True),
        (0.9, 0.0, False, 2, False),
        (1.9, 0.0, False, 8, False),
        (2.0, 0.0, False, 8, True),
        (2.0, 0.0, True, 8, False),
        (2.0, 0.02, False, 8, False),
        (0.0, 1.0, True, 2, True),
        (0.0, 0.9, True, 1, False),
        (0.4, 4.0, True, 8, True),
        (0.4, 3.9, True, 8, False),
        (0.5, 8.0, True, 8, False),
    ],
)
def test_a_claim_is_held_to_a_core_at_least_and_a_part_of_all(
    claimed: float, works: float, is_active: bool, cores: int, wrong: bool
) -> None:
    assert is_wrong(claimed, works, is_active, cores) is wrong


@pytest.mark.parametrize(
    ("name", "is_one"), [("a" * 16, True), ("a" * 17, False), ("", False), ("a", True), ("A b", False)]
)
def test_the_name_of_a_client_is_short(name: str, is_one: bool) -> None:
    assert is_client(name) is is_one
