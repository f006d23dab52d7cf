"""A need stays open until its moment: leases that end in time count, and who is dear to kill now is ordered later."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.pilotad.report import PilotReport
from drainwise.pool.facts import Pilot, Snapshot
from drainwise.reclaim.candidates import LEAVE
from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.decide.open_until import LAST_MOMENTS, rate_of_ends
from drainwise.reclaim.history import History
from drainwise.reclaim.plan import Plan
from drainwise.reclaim.reasons import LATER
from drainwise.reclaim.seen_pilots import EndsSeen
from drainwise.reclaim.settings import ReclaimSettings
from reached_asserts import judged

from .facts import NOW, SETTINGS, believed, pilot, report, reports, snapshot
from .test_replacements import on, waiting

OPEN = dataclasses.replace(SETTINGS, policy="open-need", margin=0, grace=86_400, waiting_cost=0.02)
HORIZON = OPEN.horizon


def busy(number: int, age: int, *, user: str = "alice", cores: int = 8, lease_end: int | None = None) -> Pilot:
    """One payload on all cores that has run for `age` seconds and will not end for long."""
    said = report(float(cores), start=NOW - age, first_end=NOW + 90_000, last_end=NOW + 90_000, final=0.0)
    return pilot(number, said, user=user, cores=cores, lease_end=lease_end)


OLD = [busy(number, 15_000) for number in range(9)]
YOUNG = busy(9, 60)


MANY_ENDS = {"alice": EndsSeen(7200, 7200 * 3600)}
"""A pilot of hers lived for an hour on average."""


def plan(
    seen: Snapshot,
    settings: ReclaimSettings = OPEN,
    since: int | None = None,
    ends: Mapping[str, EndsSeen] | None = None,
) -> Plan:
    return make_plan(seen, NOW, settings, History(since={} if since is None else {"group_b": since}, ends=ends or {}))


def ordered(of: Plan) -> list[str]:
    return [order.pilot.run for order in of.orders]


def test_who_is_cheap_now_goes_and_the_other_one_waits_for_a_cheaper_one() -> None:
    found = plan(snapshot(*OLD, YOUNG, deficit=16))
    assert ordered(found) == [YOUNG.run]
    [part] = found.users
    assert (part.cores, part.cores_given, part.later, len(part.held)) == (16, 8, 8, 1)
    [held] = [one.reason for one in part.spared if one.candidate.pilot.run in part.held]
    assert held.code == LATER
    assert held.startswith("not yet: now it would waste 4.17 core-h for each core, and ")
    assert "; for 8 cores it waits for pilots that cost less, until " in found.summary
    assert "missing" not in found.summary
    assert found.since == {"group_b": NOW}


def test_where_pilots_end_by_themselves_nobody_is_ended_for_little() -> None:
    """Ten pilots, six of which should end within the horizon; and those of another user say nothing of hers."""
    seen = snapshot(*OLD, YOUNG, deficit=16)
    assert ordered(plan(seen, ends=MANY_ENDS)) == []
    assert ordered(plan(seen, ends={"bob": MANY_ENDS["alice"]})) == [YOUNG.run]
    assert len(ordered(plan(seen, since=NOW - HORIZON, ends=MANY_ENDS))) == 2


def test_jobs_of_those_who_wait_that_end_count_as_well() -> None:
    """Bob's jobs end within the hour, and others of his start in their cores."""
    own = [dataclasses.replace(pilot(20 + one, None, user="bob"), account="group_b") for one in range(8)]
    seen = snapshot(*OLD, YOUNG, deficit=16)
    using = tuple(
        dataclasses.replace(one, cores_in_use=64, cores_owed=80) if one.name == "group_b" else one
        for one in seen.accounts
    )
    with_own = dataclasses.replace(seen, pilots=(*seen.pilots, *own), accounts=using)
    assert ordered(plan(with_own)) == [YOUNG.run]
    assert ordered(plan(with_own, ends={"bob": MANY_ENDS["alice"]})) == []
    assert len(ordered(plan(with_own, since=NOW - HORIZON, ends={"bob": MANY_ENDS["alice"]}))) == 2


def test_a_core_that_is_taken_serves_several_short_jobs() -> None:
    """Two of bob's jobs run, and end within the hour: so does the next one in a core that is taken."""
    pilots = [pilot(number, started=NOW - 900 * (number + 1)) for number in range(12)]
    own = [dataclasses.replace(pilot(20 + one, None, user="bob"), account="group_b") for one in range(2)]
    seen = snapshot(*pilots, deficit=64)
    using = tuple(
        dataclasses.replace(one, cores_in_use=16, cores_owed=80) if one.name == "group_b" else one
        for one in seen.accounts
    )
    with_own = dataclasses.replace(seen, pilots=(*seen.pilots, *own), accounts=using)
    long_jobs, short_jobs = (
        ordered(plan(with_own, ends={"bob": EndsSeen(7200 / hours, 7200 * 3600)})) for hours in (100, 1)
    )
    assert len(long_jobs) > 2 * len(short_jobs) > 0
    assert len(ordered(plan(with_own, since=NOW - HORIZON, ends={"bob": EndsSeen(7200, 7200 * 3600)}))) == 8


def test_what_a_limit_leaves_to_later_cycles_is_missing_too() -> None:
    """More end by themselves than may be ordered now, and fewer than are wanted."""
    seen = snapshot(*(busy(number, 60 + number) for number in range(10)), deficit=72)
    limited = dataclasses.replace(OPEN, max_cores=16)
    assert ordered(plan(seen, limited, ends=MANY_ENDS))
    own = tuple(dataclasses.replace(pilot(20 + one, None, user="bob"), account="group_b") for one in range(2))
    using = dataclasses.replace(seen.accounts[1], cores_in_use=16, cores_owed=88)
    with_own = dataclasses.replace(seen, pilots=(*seen.pilots, *own), accounts=(seen.accounts[0], using))
    assert ordered(plan(with_own, limited, ends={"bob": MANY_ENDS["alice"]})), "those of bob's that end are no more"


def test_who_is_dear_to_drain_waits_as_well() -> None:
    """Seven of its cores idle for ten minutes."""
    drains = [busy(number, 18_000) for number in range(8)]
    said = report(1.0, start=NOW - 18_000, first_end=NOW + 600, last_end=NOW + 600, uncommitted=0.0)
    drains.append(pilot(8, said, cores=8))
    [order] = plan(snapshot(*drains, deficit=8), dataclasses.replace(OPEN, policy="least-waste")).orders
    assert order.kind == "leave"
    assert ordered(plan(snapshot(*drains, deficit=8))) == [order.pilot.run]
    assert ordered(plan(snapshot(*drains, deficit=8), ends=MANY_ENDS)) == []


def test_in_the_last_moments_all_go_whatever_they_cost() -> None:
    for left, orders in ((HORIZON // 2, 1), (LAST_MOMENTS, 2), (0, 2), (-LAST_MOMENTS, 2)):
        assert len(ordered(plan(snapshot(*OLD, YOUNG, deficit=16), since=NOW - HORIZON + left))) == orders


def test_where_waiting_is_dear_all_go_at_once() -> None:
    """A waiting core-hour counts as much as five wasted ones: two hours of it are more than any of these pilots."""
    for cost, orders in ((0.02, 1), (5.0, 2)):
        dear = dataclasses.replace(OPEN, waiting_cost=cost)
        assert len(ordered(plan(snapshot(*OLD, YOUNG, deficit=16), dear))) == orders


def test_a_need_that_could_not_be_met_opens_anew() -> None:
    """No agent was there for hours: that costs time and no waste."""
    found = plan(snapshot(*OLD, YOUNG, deficit=16), since=NOW - HORIZON - LAST_MOMENTS - 1)
    assert (ordered(found), found.since) == ([YOUNG.run], {"group_b": NOW})


def test_a_moment_that_lies_ahead_counts_from_now() -> None:
    assert plan(snapshot(*OLD, YOUNG, deficit=16), since=NOW + 5000).since == {"group_b": NOW}


GENTLE = dataclasses.replace(OPEN, drain_only=True, min_grace=900, vacate=60, order_latency=40)
LEAST = 1000
"""Seconds from an order of `GENTLE` until a pilot is gone, at least."""


def test_where_every_pilot_gets_time_to_drain_the_dear_one_waits_too() -> None:
    """Until its least time is left, and five minutes."""
    assert ordered(plan(snapshot(*OLD, YOUNG, deficit=16), GENTLE)) == [YOUNG.run]
    for left, orders in ((LAST_MOMENTS + LEAST + 1, 1), (LAST_MOMENTS + LEAST, 2), (0, 2)):
        found = plan(snapshot(*OLD, YOUNG, deficit=16), GENTLE, since=NOW - HORIZON + left)
        assert [order.deadline for order in found.orders] == [NOW + LEAST] * orders


def test_where_pilots_end_by_themselves_who_has_just_begun_is_spared_its_least_time() -> None:
    """It would lose nothing now, but what it does until it is gone."""
    fresh = [busy(number, 0) for number in range(10)]
    assert len(ordered(plan(snapshot(*fresh, deficit=16), GENTLE))) == 2
    assert ordered(plan(snapshot(*fresh, deficit=16), GENTLE, ends=MANY_ENDS)) == []


@pytest.mark.parametrize("client", ["paper", "none"])
def test_who_reports_nothing_is_ordered_now_as_it_only_grows_dearer(client: str) -> None:
    """With its least time, whether it obeys or not; but where pilots end by themselves it waits as any other."""
    silent = [dataclasses.replace(pilot(number, None), client=client) for number in range(3)]
    [order] = plan(snapshot(*silent, deficit=8), GENTLE).orders
    assert order.deadline == NOW + LEAST
    assert ordered(plan(snapshot(*silent, deficit=8), GENTLE, ends=MANY_ENDS)) == []


def test_a_client_that_stops_early_has_its_least_time_in_the_last_moments_too() -> None:
    panda = dataclasses.replace(busy(1, 9000), client="panda")
    [order] = plan(snapshot(panda, deficit=8), GENTLE, since=NOW - HORIZON).orders
    assert order.deadline == NOW + 900 + 600 + 40


def test_the_default_policy_waits_for_nobody() -> None:
    found = plan(snapshot(*OLD, YOUNG, deficit=16), dataclasses.replace(OPEN, policy="least-waste"))
    assert (len(ordered(found)), found.since) == (2, None)


def test_leases_that_end_in_time_come_by_themselves() -> None:
    """And only those; the plan says so."""
    ending = busy(10, 15_000, lease_end=NOW + HORIZON)
    found = plan(snapshot(*OLD, YOUNG, ending, deficit=8))
    assert ordered(found) == []
    assert found.notices[0].startswith("8 cores come back by themselves until ")
    assert len(ordered(plan(snapshot(*OLD, YOUNG, ending, deficit=16)))) == 1
    assert len(ordered(plan(snapshot(*OLD, YOUNG, ending, deficit=8), since=NOW - 1))) == 1
    gentle = dataclasses.replace(OPEN, drain_only=True)
    assert ordered(plan(snapshot(*OLD, YOUNG, ending, deficit=8), gentle)) == []
    assert len(ordered(plan(snapshot(*OLD, ending, deficit=8), dataclasses.replace(OPEN, policy="least-waste")))) == 1


def test_room_of_several_pilots_is_made_as_a_whole() -> None:
    """bob's job needs both pilots of a node; one of them has just begun, both together are dear."""
    pairs = [on(busy(2 * node + slot, 15_000, cores=4), f"n{node}") for node in range(4) for slot in range(2)]
    pairs[0] = on(busy(0, 60, cores=4), "n0")
    found = plan(waiting(*pairs))
    assert ordered(found) == [] and "room for 0 of 1 waiting job" in found.summary
    [part] = found.users
    assert len(part.held) == 2 and {reason.partition(" for each")[0] for reason in part.held.values()} == {
        "not yet: now it would waste 2.09 core-h"
    }
    assert ordered(plan(waiting(*pairs), ends=MANY_ENDS)) == []
    young = [*pairs[2:], *(on(busy(number, 60, cores=4), "n0") for number in range(2))]
    assert len(ordered(plan(waiting(*young)))) == 2
    assert len(ordered(plan(waiting(*young), ends=MANY_ENDS))) == 2, "ends anywhere make no such room"
    assert len(ordered(plan(waiting(*pairs), since=NOW - HORIZON))) == 2


some_pilots = st.lists(
    st.sampled_from([4, 8, 16]).flatmap(
        lambda cores: st.tuples(
            reports(cores),
            st.just(cores),
            st.sampled_from(["alice", "ann"]),
            st.none() | st.integers(NOW + 1, NOW + 20_000),
        )
    ),
    max_size=8,
)


def made(these: Sequence[tuple[PilotReport | None, int, str, int | None]]) -> list[Pilot]:
    return [
        pilot(number, said, cores=cores, user=user, lease_end=end)
        for number, (said, cores, user, end) in enumerate(these)
    ]


def by_user(of: Plan) -> Counter[str]:
    found = Counter[str]()
    for part in of.users:
        sizes = {one.run: one.cores for one in part.open.pilots}
        found[part.user] += part.cores_given + sum(sizes[run] for run in part.held)
    return found


@pytest.mark.daemons
@given(some_pilots, st.integers(0, 40), st.integers(-LAST_MOMENTS, HORIZON), st.floats(0, 2), st.booleans())
def test_claims_decide_only_when_a_users_own_pilots_go(
    these: list[tuple[PilotReport | None, int, str, int | None]], cores: int, left: int, cost: float, drains: bool
) -> None:
    """Ordered now and later are together what is missing, of each user as much as with no claims at all. Where all get
    time to drain each has the least of it, and who does not leave by itself no more than until the moment."""
    settings = dataclasses.replace(GENTLE if drains else OPEN, waiting_cost=cost)
    since = NOW - HORIZON + left
    pilots = made(these)
    judged("a believed report", believed(*pilots) > 0, at_least=0.3)
    found = plan(snapshot(*pilots, deficit=cores), settings, since)
    silent = [dataclasses.replace(one, report=None) for one in pilots]
    assert by_user(found) == by_user(plan(snapshot(*silent, deficit=cores), settings, since))
    ending = sum(one.cores for one in pilots if one.lease_end is not None and one.lease_end <= NOW + left)
    assert sum(by_user(found).values()) <= max(0, cores - ending)
    if left <= LAST_MOMENTS + (LEAST if drains else 0):
        assert not any(part.held for part in found.users)
    for order in (order for order in found.orders if drains):
        lease = order.pilot.lease_end or NOW + HORIZON
        assert order.deadline >= min(NOW + LEAST, lease)
        assert order.kind == LEAVE or order.deadline <= max(NOW + LEAST, NOW + left)


def test_the_rate_of_ends_is_between_what_was_seen_and_what_began() -> None:
    """Six hours of what began within three days count as much as what was seen; no pilot lives below ten minutes."""
    cores, started = np.array([8, 4]), np.array([NOW - 3600.0, NOW - 30 * 86_400.0])

    def rate(seen: EndsSeen) -> float:
        return rate_of_ends(cores, started, NOW, seen)

    hours, window = 6 * 3600, 3 * 86_400
    assert rate(EndsSeen()) == pytest.approx(8 / window / 12)
    assert rate(EndsSeen(24.0, 12 * 10 * hours)) == pytest.approx((24 + 8 / window * hours) / (12 * 11 * hours))
    assert rate(EndsSeen(-24.0, -5.0)) == rate(EndsSeen())
    assert rate(EndsSeen(1e9, 0.0)) == 1 / 600
    assert rate_of_ends(cores[:0], started[:0], NOW, EndsSeen(8.0, 1.0)) == 0.0
