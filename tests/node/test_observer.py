"""What is seen of a job from one round to the next, and when it is told."""

from __future__ import annotations

import pytest

from drainwise.node.payloads.observer import (
    ANEW,
    CPU_OF_A_MINUTE,
    LONGEST_PAUSE,
    ObservedRun,
    SeenJob,
    next_look,
    observe,
    seen_in,
    seen_line,
)
from drainwise.node.payloads.payload_trees import PayloadTree, PayloadTrees
from drainwise.node.payloads.process_table import TICKS
from drainwise.pilotad.observation import MOST_BEGINS, observation_in, observation_text, observed_report
from drainwise.pilotad.report import INCOMPLETE, OBSERVED, STALE, standing

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
        *("panda:1795249000:1:1:0:0:" + "1" * 400, "panda:1795249000:1:nan:0:0:1", "panda:1795249000:1:1.:0:0:x"),
    ],
)
def test_another_text_is_none(text: object) -> None:
    assert observation_in(text) is None


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
