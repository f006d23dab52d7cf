"""What the screen says of each pilot is what the plan says."""

from __future__ import annotations

from drainwise.pilotad.report import PilotReport
from drainwise.pool.facts import Account, Pilot, Snapshot
from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.settings import ReclaimSettings
from local_demo.frame import ORDERED, RELEASED, RUNS, SPARED, WAITS, job_row, pilot_row, released_row
from one_pilot import assess

NOW = 1795249000
SETTINGS = ReclaimSettings("least-waste", 60, 60, 60, 3600, 1000, 1000, 1000, margin=5, min_grace=5, min_age=0)


def pilot(name: str, idle: int) -> Pilot:
    said = PilotReport(
        NOW,
        used_cpu=8.0 - idle,
        last_job_start=NOW - 10,
        first_exp_job_end=NOW + 20,
        last_exp_job_end=NOW + 20,
        add_uncom_time=0.0,
        add_final_exp_waste=0.0,
        can_postpone_last_job=True,
    )
    return Pilot(name, name, "here", "alice", "alice", 8, NOW - 100, NOW + 9000, said)


def test_ordered_and_spared_with_their_figures() -> None:
    """What idles, and a tenth of what a broken promise would lose: 245 of the cheap one; the dear one is cut in 5 s."""
    pilots = (pilot("cheap", 1), pilot("dear", 5))
    accounts = (Account("alice", 16, 8, 0, 200.0), Account("bob", 0, 8, 8, 0.0, 8))
    plan = make_plan(Snapshot(NOW, pilots, accounts), NOW, SETTINGS)
    cheap, dear = (pilot_row(one.name, assess(one, NOW, SETTINGS), plan, NOW + 5) for one in pilots)
    assert (cheap.mood, cheap.word) == (ORDERED, "ordered: gone by itself, would waste 44; 20 s to go")
    assert (cheap.used, cheap.left, cheap.drain, cheap.kill) == (7.0, 20, 20, 70)
    assert (dear.mood, dear.word) == (SPARED, "spared: draining would waste 70")
    before = pilot_row("cheap", assess(pilots[0], NOW, SETTINGS), None, NOW)
    assert (before.mood, before.word) == (RUNS, "")


def test_bobs_jobs_wait_and_then_run() -> None:
    assert job_row("b1", "bob", 8, {}, NOW).mood == WAITS
    assert job_row("b1", "bob", 8, {}, NOW, 4).word == "waits: 4 of 8 cores are free for it"
    row = job_row("b1", "bob", 8, {"b1": NOW - 7.0}, NOW)
    assert (row.used, row.word) == (8.0, "runs for 7 s")


def test_a_pilot_whose_order_was_withdrawn_goes_on_with_its_figures() -> None:
    row = pilot_row("p1", assess(pilot("p1", 1), NOW, SETTINGS), None, NOW)
    released = released_row(row)
    assert (released.mood, released.used, released.kill) == (RELEASED, row.used, row.kill)
    assert "withdrawn" in released.word
