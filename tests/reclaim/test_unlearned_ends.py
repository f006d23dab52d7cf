"""An order to a pilot whose payloads are seen, and of whose ends nothing is learned: what is known bounds its price."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.journal.entries import order_event
from drainwise.journal.outcomes import open_order_of, realised_waste
from drainwise.pilotad.observation import Observation, observed_report
from drainwise.pool.facts import Ending, Pilot
from drainwise.reclaim.candidates import Candidate
from drainwise.reclaim.decide.decision import make_plan
from one_pilot import assess

from .facts import NOW, SETTINGS, STARTED, pilot, snapshot

SITE = dataclasses.replace(SETTINGS, drain_only=True, margin=60, min_grace=300, order_latency=30, vacate=30)
CORES = 8


def seen_pilot(cpu: int, busy: float = 6.0, client: str = "dirac") -> Pilot:
    """One payload that began 1000 s ago, in a pilot of 20,000 s."""
    seen = Observation(client, NOW, 1, busy, cpu, 0, (NOW - 1000,))
    return dataclasses.replace(pilot(1, None), client=client, seen=seen, report=observed_report(seen))


def ways(one: Pilot) -> Candidate:
    return assess(one, NOW, SITE)


@pytest.mark.parametrize("client", ["dirac", "none", "panda"])
def test_who_goes_on_loses_what_a_kill_loses_now_and_at_most_its_cores_until_then(client: str) -> None:
    one = ways(seen_pilot(6600, client=client))
    cut = one.drained
    stopped = cut.deadline - (600 if client == "panda" else SITE.vacate)
    assert (one.kill_waste, stopped) == (6600, NOW + SITE.min_grace + SITE.order_latency)
    assert cut.waste == 6600 + CORES * (stopped - NOW)


def test_who_drains_by_an_order_is_cut_as_soon_as_others() -> None:
    """What is known of it only grows."""
    one, other = ways(seen_pilot(6600, client="plain")), ways(seen_pilot(6600, client="dirac"))
    assert one.options == other.options


@given(st.integers(0, 10**7), st.floats(0, 2 * CORES), st.sampled_from(["dirac", "panda", "paper", "plain"]))
def test_it_is_never_dearer_than_all_that_the_pilot_has_run(cpu: int, busy: float, client: str) -> None:
    """Nor cheaper than what a kill loses now."""
    one = ways(seen_pilot(cpu, busy, client))
    for way in one.options:
        assert one.kill_waste <= way.waste <= CORES * (way.deadline - STARTED)


def test_the_plan_says_so_and_the_journal_charges_no_more() -> None:
    """Ended at its deadline it has wasted what was expected, and not its whole run."""
    plan = make_plan(snapshot(seen_pilot(6600), deficit=CORES), NOW, SITE)
    [order] = plan.orders
    assert "dirac goes on until SIGTERM; " in order.reason
    assert "at most" in order.reason and "what a kill loses now, and 8 cores until then" in order.reason
    kept = open_order_of(order_event(order, "done", "", plan, NOW))
    ended = order.deadline - SITE.vacate
    assert realised_waste(kept, Ending(kept.run, ended, vacated=True)) == (
        order.candidate.drained.waste,
        CORES * (ended - STARTED),
    )


def test_who_reports_nothing_and_is_not_seen_counts_as_before() -> None:
    plan = make_plan(snapshot(pilot(1, None), deficit=CORES), NOW, SITE)
    [order] = plan.orders
    assert "8 cores x" in order.reason
    kept = open_order_of(order_event(order, "done", "", plan, NOW))
    wasted, possible = realised_waste(kept, Ending(kept.run, order.deadline, vacated=True))
    assert wasted == possible == CORES * (order.deadline - STARTED)
