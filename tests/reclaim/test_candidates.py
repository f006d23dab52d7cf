"""The figures of one pilot: the paper's metrics with SPEC §2's bounds, and what asking or killing it would waste."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drainwise.pilotad.report import PilotReport
from drainwise.reclaim.candidates import CUT, KILL, LEAVE, SILENT, Candidate, assess, cut_waste, in_words

from .facts import NOW, SETTINGS, STARTED, pilot, report, reports, sound_reports

GRACE = SETTINGS.grace

WORKED_EXAMPLE = PilotReport(
    NOW - 60,
    used_cpu=6.0,
    last_job_start=1795247961,
    first_exp_job_end=1795256000,
    last_exp_job_end=1795262000,
    last_max_job_end=1795290000,
    add_uncom_time=28800.0,
    add_final_exp_waste=60000.0,
)


def assessed(said: PilotReport | None, **facts: int) -> Candidate:
    return assess(pilot(1, said, **facts), NOW, SETTINGS)  # type: ignore[arg-type]


def test_the_worked_example_of_the_specification() -> None:
    one = assessed(WORKED_EXAMPLE)
    assert (one.standing, one.remaining, one.draining_waste, one.kill_waste) == ("fresh", 13000, 74000, 35034)


def test_without_a_good_faith_end_the_guaranteed_one_counts() -> None:
    said = PilotReport.from_values(
        NOW - 60, "x", {field: getattr(WORKED_EXAMPLE, field) for field in PilotReport.__slots__[1:-1]}
    )
    maximal = PilotReport(
        NOW - 60,
        used_cpu=6.0,
        last_job_start=said.last_job_start,
        first_exp_job_end=said.first_exp_job_end,
        last_max_job_end=said.last_max_job_end,
        add_uncom_time=28800.0,
        add_final_exp_waste=60000.0,
    )
    assert assessed(maximal).remaining == 41000


@pytest.mark.parametrize(
    ("said", "contradictory", "standing"),
    [
        (None, False, SILENT),
        (report(heartbeat=NOW - 3601), False, "stale"),
        (report(heartbeat=STARTED - 3000), False, "stale"),
        (report(heartbeat=NOW + 3600), False, "contradictory"),
        (report(first_end=NOW + 2000, last_end=NOW + 1000), False, "contradictory"),
        (PilotReport(NOW - 60), False, "incomplete"),
        (PilotReport(NOW - 60), True, "contradictory"),
    ],
    ids=["silent", "stale", "left by an earlier job", "future", "first after last", "incomplete", "the node says so"],
)
def test_a_report_that_cannot_be_believed_protects_nothing(
    said: PilotReport | None, contradictory: bool, standing: str
) -> None:
    """Such a pilot is ranked by what the batch system itself knows: cores × elapsed (HOSTILE 37, 38)."""
    one = assess(pilot(1, said, contradictory=contradictory), NOW, SETTINGS)
    elapsed = 8 * (NOW - STARTED)
    assert one.standing == standing
    assert (one.remaining, one.draining_waste, one.kill_waste) == (None, None, elapsed)
    assert (one.asked.waste, one.killed.waste, one.priority_factor, one.draining) == (elapsed, elapsed, 0, False)
    assert one.rule


def test_a_pilot_that_is_gone_in_time_costs_its_draining_waste() -> None:
    one = assessed(report(6.0, first_end=NOW + 1000, last_end=NOW + 2000, final=500.0))
    assert one.asked == dataclasses.replace(one.asked, kind=LEAVE, waste=2500, cores_back=NOW + 2000)


def test_a_pilot_that_needs_longer_costs_what_is_lost_at_the_deadline() -> None:
    """Nothing ends before: (8 − 6) cores idle for the grace, then f + 6 × (deadline − last start) is lost."""
    said = report(6.0, first_end=NOW + 50_000, last_end=NOW + 60_000, start=NOW - 1000, uncommitted=700.0)
    one = assessed(said)
    assert (one.asked.kind, one.asked.cores_back) == (CUT, NOW + GRACE)
    assert one.asked.waste == 2 * GRACE + 700 + 6 * (GRACE + 1000)


def test_an_overrun_end_counts_as_now() -> None:
    one = assessed(report(6.0, first_end=NOW - 500, last_end=NOW - 100))
    assert (one.remaining, one.draining_waste, one.asked.kind, one.asked.waste) == (0, 0, LEAVE, 0)


def test_asking_a_pilot_that_drains_already_costs_nothing() -> None:
    """CAN_POSTPONE_LAST_JOB = False: what idles is lost anyway; but payloads that the deadline cuts still count."""
    assert assessed(report(6.0, final=500.0, can_postpone=False)).asked.waste == 0
    late = report(6.0, first_end=NOW + 50_000, last_end=NOW + 60_000, start=NOW, can_postpone=False)
    assert assessed(late).asked.waste == 6 * GRACE


def test_the_deadline_is_the_grace_the_sites_limit_or_the_leases_end_whichever_is_first() -> None:
    """Whatever LAST_MAX_JOB_END says, no pilot gets more."""
    said = report(max_end=NOW + 10**6)
    assert assessed(said).asked.deadline == NOW + GRACE
    strict = dataclasses.replace(SETTINGS, max_grace=600)
    assert assess(pilot(1, said), NOW, strict).asked.deadline == NOW + 600
    assert assessed(said, lease_end=NOW + 300).asked.deadline == NOW + 300
    assert assessed(said, lease_end=NOW - 300).asked.deadline == NOW + GRACE


def test_a_kill_comes_after_the_sites_shortest_notice() -> None:
    prompt = assess(pilot(1, WORKED_EXAMPLE), NOW, dataclasses.replace(SETTINGS, notice=0)).killed
    assert (prompt.kind, prompt.waste, prompt.deadline) == (KILL, 35034, NOW)
    assert assess(pilot(1), NOW, dataclasses.replace(SETTINGS, notice=30)).killed.deadline == NOW + 30


@settings(max_examples=100)
@given(reports(), st.integers(1, 128), st.none() | st.integers(NOW - 100, NOW + 100_000))
def test_no_claim_reaches_beyond_what_the_batch_system_knows(
    said: PilotReport | None, cores: int, lease_end: int | None
) -> None:
    """SPEC §2's bounds, whatever is said (HOSTILE 36, 37, 38)."""
    one = assess(pilot(1, said, cores=cores, lease_end=lease_end), NOW, SETTINGS)
    run = cores * (NOW - STARTED)
    assert 0 <= one.kill_waste <= run
    assert NOW < one.asked.deadline <= NOW + GRACE
    assert 0 <= one.asked.waste <= max(run + cores * GRACE, one.draining_waste or 0)
    if one.remaining is not None:
        assert one.remaining >= 0
        assert lease_end is None or one.remaining <= max(0, lease_end - NOW)
    if one.draining_waste is not None:
        assert one.draining_waste >= 0
        assert lease_end is None or one.draining_waste <= cores * max(0, lease_end - NOW)
    assert isinstance(one.asked.waste, int)
    assert isinstance(one.kill_waste, int)


@settings(max_examples=100)
@given(sound_reports(8), st.integers(0, 3000))
def test_kill_waste_never_falls_while_nothing_changes(said: PilotReport, later: int) -> None:
    before, after = (assess(pilot(1, said), moment, SETTINGS).kill_waste for moment in (NOW, NOW + later))
    assert before <= after


@settings(max_examples=50)
@given(sound_reports(8), st.integers(NOW + 1, NOW + 49_999))
def test_cut_before_the_first_end_loses_exactly_the_kill_waste_there(said: PilotReport, deadline: int) -> None:
    """Until the first payload ends the formula is the paper's equations 4 and 5, not an estimate."""
    used, uncommitted = said.used_cpu or 0.0, said.add_uncom_time or 0.0
    start, last = said.last_job_start or 0, said.last_exp_job_end or 0
    idle, lost = cut_waste(8, used, start, deadline + 1, max(last, deadline + 2), uncommitted, 0.0, NOW, deadline)
    assert idle == pytest.approx((8 - used) * (deadline - NOW))
    assert lost == pytest.approx(uncommitted + used * (deadline - start))


@settings(max_examples=100)
@given(
    st.integers(0, 4), st.integers(0, 4), st.integers(1, 9000), st.integers(1, 9000), st.integers(0, 9000), st.data()
)
def test_cut_between_two_ends_is_what_happens_to_the_payloads(
    short: int, long: int, first: int, more: int, age: int, data: st.DataObject
) -> None:
    """Payloads on `short` cores end first, those on `long` cores later, all started at once."""
    cores, start, last = 8, NOW - age, NOW + first + more
    deadline = data.draw(st.integers(NOW + first, last - 1))
    idle, lost = cut_waste(
        cores, short + long, start, NOW + first, last, 0.0, float((cores - long) * more), NOW, deadline
    )
    assert idle == pytest.approx((cores - short - long) * first + (cores - long) * (deadline - NOW - first))
    assert lost == pytest.approx(long * (deadline - start))


def test_every_option_says_what_it_does_in_words() -> None:
    """A plan explains itself with the figures that it stands on."""
    quick = assessed(report(6.0, first_end=NOW + 1000, last_end=NOW + 2000, final=500.0))
    slow = assessed(report(8.0, first_end=NOW + 50_000, last_end=NOW + 60_000))
    draining, silent = assessed(report(can_postpone=False)), assessed(None)
    assert in_words(quick, quick.asked, NOW) == "gone by itself in 33m20s, 0.694 core-h idle until then"
    assert in_words(slow, slow.asked, NOW) == "not gone by itself in 2h: 18.2 core-h idle until then or lost there"
    assert in_words(draining, draining.asked, NOW) == "drains already and is gone in 33m20s: asking it costs nothing"
    assert in_words(silent, silent.asked, NOW) == "it reports nothing: 8 cores x 5h33m elapsed = 44.4 core-h"
    assert in_words(quick, quick.killed, NOW) == "killed: 1.67 core-h of running payloads lost"
