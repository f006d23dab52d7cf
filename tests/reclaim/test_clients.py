"""What the end of a client costs that does not drain by an order: a cut at its own stop, or at the deadline."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.clients import PROFILES
from drainwise.journal.entries import order_event
from drainwise.journal.explain import Explained, ExplainedOrder, in_words
from drainwise.journal.outcomes import open_order_of, realised_waste
from drainwise.pilotad.report import PilotReport
from drainwise.pool.facts import Ending, Pilot
from drainwise.reclaim.candidates import CUT, KILL, LEAVE, Candidate
from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.plan_json import candidate_as_json
from drainwise.reclaim.settings import ReclaimSettings
from one_pilot import assess
from reached_asserts import judged

from .facts import NOW, SETTINGS, believed, pilot, report, reports, snapshot

SITE = dataclasses.replace(SETTINGS, drain_only=True, margin=60, min_grace=60, order_latency=30, vacate=30)
PANDA_STOP = 600
BUSY = 8.0


def of(client: str, said: PilotReport | None, number: int = 1) -> Pilot:
    return dataclasses.replace(pilot(number, said), client=client)


def one_payload(since: int, left: int) -> PilotReport:
    """All eight cores in one payload that began so long ago and should end so soon (seconds)."""
    end = NOW + left
    return report(BUSY, start=NOW - since, first_end=end, last_end=end, max_end=end)


def ways(client: str, said: PilotReport | None, settings: ReclaimSettings = SITE) -> Candidate:
    return assess(of(client, said), NOW, settings)


def test_pandas_stop_falls_behind_the_end_of_a_payload_that_soon_ends() -> None:
    """The deadline is 600 s behind that: the payload has the margin, and what is lost began since."""
    way = ways("panda", one_payload(since=40_000, left=900)).drained
    assert (way.kind, way.deadline - PANDA_STOP) == (CUT, NOW + 900 + SITE.margin)
    begun_since, tail = 8 * SITE.margin, 0.1 * 8 * 40_900
    assert begun_since <= way.waste <= begun_since + tail


def test_pandas_stop_comes_at_once_where_a_payload_has_just_begun() -> None:
    """As soon as the site lets it; all that ran until the stop is lost."""
    way = ways("panda", one_payload(since=100, left=50_000)).drained
    assert (way.kind, way.deadline) == (CUT, NOW + SITE.min_grace + SITE.order_latency + PANDA_STOP)
    assert way.waste == 8 * (100 + way.deadline - PANDA_STOP - NOW)


@pytest.mark.parametrize("client", ["dirac", "alice", "none"])
def test_who_hears_sigterm_alone_loses_what_runs_when_the_batch_system_begins(client: str) -> None:
    way = ways(client, one_payload(since=100, left=50_000)).drained
    assert (way.kind, way.deadline) == (CUT, NOW + SITE.min_grace + SITE.order_latency + SITE.vacate)
    assert way.waste == 8 * (100 + way.deadline - SITE.vacate - NOW)


@pytest.mark.parametrize("client", [name for name, one in PROFILES.items() if not one.drains])
def test_who_does_not_drain_never_leaves_by_an_order(client: str) -> None:
    """Unless it says itself that it starts nothing any more."""
    said = one_payload(since=1000, left=900)
    assert LEAVE in {one.kind for one in ways("paper", said).options}
    assert {one.kind for one in ways(client, said).options} == {CUT}
    last = report(BUSY, first_end=NOW + 900, last_end=NOW + 900, max_end=NOW + 900, can_postpone=False)
    assert LEAVE in {one.kind for one in ways(client, last).options}


def test_a_silent_client_gets_its_least_time_whether_it_drains_or_not() -> None:
    """With more it would only lose more."""
    assert ways("paper", None).drained.deadline == NOW + SITE.min_grace + SITE.order_latency + SITE.vacate
    assert ways("panda", None).drained.deadline == NOW + SITE.min_grace + SITE.order_latency + PANDA_STOP


def test_a_glidein_costs_what_the_paper_s_pilot_costs() -> None:
    said = report()
    assert ways("glideinwms", said).options == ways("paper", said).options


@given(reports(), st.sampled_from(["panda", "dirac"]), st.booleans())
def test_who_goes_on_is_never_cheaper_than_who_drains(said: PilotReport | None, client: str, is_gentle: bool) -> None:
    """But who reports nothing may go sooner. A cut a second before the end is that of a second of its cores less; who
    does not end within the horizon is not compared, as its stop is sooner.
    """
    known = [end for end in (said.last_exp_job_end, said.last_max_job_end) if end] if said is not None else []
    if any(end + PANDA_STOP + SITE.margin >= NOW + SITE.horizon for end in known):
        return
    site = dataclasses.replace(SITE, drain_only=is_gentle)
    drains = assess(pilot(1, said), NOW, site)
    judged("a believed report", believed(pilot(1, said)) > 0, at_least=0.2)
    if said is not None:
        assert ways(client, said, site).drained.waste >= drains.drained.waste - BUSY
    assert ways(client, said, site).kill_waste == drains.kill_waste


def test_of_two_like_pilots_the_one_goes_that_drains() -> None:
    said = report(4.0, start=NOW - 5000, first_end=NOW + 600, last_end=NOW + 900, max_end=NOW + 900)
    pool = snapshot(of("panda", said, 1), of("paper", said, 2), deficit=8)
    [order] = make_plan(pool, NOW, SITE).orders
    assert order.pilot.client == "paper"


def test_the_client_stands_in_words_and_figures() -> None:
    """Of the paper's kind nothing is said."""
    pool = snapshot(of("panda", one_payload(100, 50_000)), deficit=8)
    plan = make_plan(pool, NOW, SITE)
    [order] = plan.orders
    assert "panda stops by itself 10m before its deadline; cut in" in order.reason
    assert candidate_as_json(order.candidate)["client"] == "panda"
    event = order_event(order, "done", "", plan, NOW)
    explained = Explained(order.pilot.run, [ExplainedOrder(event, {}, {})])
    assert in_words(explained)[1].endswith(", client panda")
    [usual] = make_plan(snapshot(of("paper", one_payload(100, 50_000)), deficit=8), NOW, SITE).orders
    assert "drains;" not in usual.reason


@pytest.mark.parametrize(
    ("client", "before", "is_lost"), [("panda", 590, True), ("panda", 700, False), ("paper", 590, False)]
)
@pytest.mark.parametrize("tells_vacate", [True, False], ids=["", "an earlier journal"])
def test_its_own_stop_counts_as_lost_work(client: str, before: int, is_lost: bool, tells_vacate: bool) -> None:
    """It has left by itself, and dropped what ran; one that had ended before its stop lost nothing."""
    pool = snapshot(of(client, one_payload(100, 50_000)), deficit=8)
    plan = make_plan(pool, NOW, dataclasses.replace(SITE, min_grace=900))
    [order] = plan.orders
    event = order_event(order, "done", "", plan, NOW)
    kept = open_order_of(event if tells_vacate else {name: event[name] for name in event if name != "vacate"})
    ended = order.deadline - before
    wasted, _ = realised_waste(kept, Ending(kept.run, ended, vacated=False))
    assert wasted == (8 * (ended - NOW + 100) if is_lost else 0)


def test_a_kill_is_the_same_for_all() -> None:
    site = dataclasses.replace(SITE, drain_only=False)
    kills = {
        client: next(one for one in ways(client, report(), site).options if one.kind == KILL) for client in PROFILES
    }
    assert len(set(kills.values())) == 1
