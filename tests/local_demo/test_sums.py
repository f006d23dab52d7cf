"""The sums: what was wasted, what youngest-first would have wasted on the same state, and who wins."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest

from drainwise.pilotad.report import PilotReport
from drainwise.pool.facts import Account, Pilot, Snapshot
from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.settings import ReclaimSettings
from local_demo.sums import Rival, Sums, leave_of, leave_without_report, verdict, youngest_first
from local_demo.timeline import Freed
from local_demo.truth import Ran

NOW = 1795249000
SETTINGS = ReclaimSettings("least-waste", 60, 60, 60, 3600, 1000, 1000, 1000, margin=5, min_grace=5, min_age=0)


def pilot(name: str, age: int, cores: int = 8, end: int = 30) -> Pilot:
    """A pilot whose one payload fills it, began with it and ends in `end` seconds."""
    said = PilotReport(
        NOW - 1,
        used_cpu=float(cores),
        last_job_start=NOW - age,
        first_exp_job_end=NOW + end,
        last_exp_job_end=NOW + end,
        add_uncom_time=0.0,
        add_final_exp_waste=0.0,
        can_postpone_last_job=True,
    )
    return Pilot(name, name, "here", "alice", "alice", cores, NOW - age, NOW + 9000, said)


def state(*pilots: Pilot, owed: int = 8) -> Snapshot:
    in_use = sum(one.cores for one in pilots)
    accounts = (Account("alice", in_use, in_use - owed, 0, 2.0), Account("bob", 0, owed, owed, 1.0, 8.0))
    return Snapshot(NOW, pilots, accounts)


def test_youngest_first_is_judged_on_the_same_state_by_what_truly_ran() -> None:
    """Not by what the pilots say: here the youngest one says 8 × 40, while 8 × 50 ran."""
    snapshot = state(pilot("old", 300), pilot("young", 40), pilot("middle", 90))
    ran = [Ran("young", "a", 8, NOW - 50.0, None), Ran("old", "b", 8, NOW - 300.0, None)]
    rival = youngest_first(snapshot, SETTINGS, ran, {name: name for name in ("old", "young", "middle")}, NOW + 0.5)
    assert rival == Rival("youngest-first", ("young",), 8, wasted=404.0, claimed=320.0)
    tail = 8 * (40 + 30 + SETTINGS.margin) / 10
    assert make_plan(snapshot, NOW, SETTINGS).waste == tail, "nothing, but one promise in ten is broken"


REPORT = {
    "cores": 4,
    "started": 100.0,
    "ended": 150.0,
    "done": 3,
    "failed": 0,
    "requeued": 1,
    "core_seconds": {"lease": 200.0, "useful": 150.5, "failed": 0.0, "lost": 9.5, "idle": 40.0},
    "drain": {"requested": 130.0, "seconds": 20.0, "source": ".site.ad", "idle": 12.0, "lost": 9.5},
}


def test_realised_waste_is_the_sum_of_the_exit_reports() -> None:
    one = leave_of("p1", json.loads(json.dumps(REPORT)))
    two = replace(one, name="p2", drain_idle=1.0, drain_lost=0.0)
    sums = Sums((one, two), 30.0, Rival("youngest-first", (), 8, 99.0, 99.0), 8, (Freed(1.0, 8),))
    assert (one.wasted, sums.wasted, sums.idle, sums.lost) == (21.5, 22.5, 13.0, 9.5)
    assert sums.adds_up
    assert not replace(one, useful=150.0).adds_up
    assert asdict(one)["ended"] == 150.0


def test_a_pilot_that_nobody_ordered_wasted_nothing_by_leaving() -> None:
    assert leave_of("p1", {**REPORT, "drain": None}).wasted == 0


def test_a_pilot_that_could_not_report_is_counted_from_the_records() -> None:
    """From 100 to 150 on 4 cores, ordered at 130: 2 × 40 done, 2 × 30 still running at the end, the rest idle."""
    ran = [Ran("p1", "a", 2, 100.0, 140.0, "done"), Ran("p1", "b", 2, 120.0, None), Ran("p2", "c", 4, 0.0, None)]
    leave = leave_without_report("p1", 4, 100.0, 150.0, 130.0, ran)
    assert (leave.lease, leave.useful, leave.lost, leave.idle) == (200.0, 80.0, 60.0, 60.0)
    assert (leave.drain_idle, leave.drain_lost, leave.wasted) == (20.0, 60.0, 80.0)
    assert leave.adds_up and not leave.reported


@pytest.mark.parametrize(
    ("wasted", "rival", "said"),
    [
        (
            30.0,
            120.0,
            "least-waste wasted 30 core-s, youngest-first would have wasted 120 core-s on the same state: 75 % less",
        ),
        (80.0, 20.0, "would have wasted only 20 core-s on the same state: 75 % less"),
        (20.2, 19.8, "youngest-first would have wasted as much on the same state"),
        (0.0, 0.0, "would have wasted as much"),
        (5.0, 0.0, "would have wasted only 0 core-s on the same state: 100 % less"),
    ],
)
def test_the_end_line_says_what_was_measured_whoever_wins(wasted: float, rival: float, said: str) -> None:
    assert said in verdict(wasted, rival)
