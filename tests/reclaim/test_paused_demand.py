"""What of the demand counts while some of it is paused, and while cores that have just come back may serve it."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.pool.amounts import Amounts
from drainwise.pool.facts import Account, Pilot, Snapshot
from drainwise.pool.job_kinds import JobKind, Place, kind_name
from drainwise.reclaim.counted_demand import paused, weighed
from drainwise.reclaim.decide.decision import look_at, make_plan
from drainwise.reclaim.decide.standing import withdrawals
from drainwise.reclaim.history import History
from drainwise.reclaim.unmet_demand import AccountPart, Round, UnmetDemand, for_whom, kind_as_account, watched

from .facts import NOW, SETTINGS, account, pilot

SITE = dataclasses.replace(SETTINGS, time_to_start=180)
PAUSED = UnmetDemand("group_b", failed=2, vain=16.0, since=NOW - 60, until=NOW + 840, held=8.0, held_jobs=1.0)


def waits(wanted: float, per_job: float = 8.0, in_use: float = 0.0, free: float = 0.0) -> Snapshot:
    """alice has 48 cores and is owed 24, bob's group waits and is owed 24."""
    accounts = (
        account("group_a", 48, 24, priority=900.0),
        Account("group_b", in_use, 24.0, wanted, 500.0, per_job),
    )
    return Snapshot(NOW, tuple(pilot(number) for number in range(6)), accounts, free)


def deficit(seen: Snapshot, known: UnmetDemand, now: int = NOW) -> int:
    return weighed(seen, {"group_b": known}, now, SITE)[2].deficit


def test_what_is_paused_does_not_count_until_the_pause_is_over() -> None:
    assert deficit(waits(8), PAUSED) == 0
    assert deficit(waits(8), PAUSED, NOW + 839) == 0
    assert deficit(waits(8), PAUSED, NOW + 840) == 8
    assert [one.cores for one in paused(waits(8), {"group_b": PAUSED}, NOW)] == [8.0]
    assert [one.cores for one in paused(waits(1), {"group_b": PAUSED}, NOW)] == [1.0]
    assert paused(waits(8), {"group_b": PAUSED}, NOW + 840) == ()
    assert paused(waits(0), {"group_b": PAUSED}, NOW) == ()


def test_jobs_that_came_since_count_in_their_own_size() -> None:
    assert deficit(waits(16), PAUSED) == 8
    assert deficit(waits(9, per_job=4.5), PAUSED) == 1
    assert deficit(waits(16), dataclasses.replace(PAUSED, closed=True)) == 0


@pytest.mark.parametrize(("seconds", "counts"), [(None, True), (179, True), (180, False), (181, False)])
def test_a_round_counts_unless_nobody_looked_for_time_to_start(seconds: int | None, counts: bool) -> None:
    known = {"group_b": UnmetDemand("group_b", round=Round(back=8.0, whole=8.0, first=NOW - 60, last=NOW - 60))}
    after = watched(known, waits(8), NOW, SITE, None if seconds is None else NOW - seconds)
    assert {name: one.round.back for name, one in after.items()} == ({"group_b": 8.0} if counts else {})


def test_cores_that_have_just_come_back_are_not_asked_for_again() -> None:
    """For as long as its jobs are given to start: what it used since, or what is free, is counted already."""
    back = UnmetDemand("group_b", round=Round(back=8.0, last=NOW - 60, base=4.0, peak=4.0))
    assert deficit(waits(8), back) == 0
    summary = make_plan(waits(8), NOW, SITE, History(unmet={"group_b": back})).summary
    assert summary == "cores that have just come back may serve those who wait: nothing to give back for now"
    assert deficit(waits(8), back, NOW + 120) == 8
    assert deficit(waits(100), back) == 16
    assert deficit(waits(8), dataclasses.replace(back, round=dataclasses.replace(back.round, peak=12.0))) == 8
    assert deficit(waits(16, free=8.0), back) == 8


ROOM = Amounts(8, 16_384)
KIND = kind_name("group_b", ROOM, "")


def test_a_kind_waits_with_the_cores_of_all_its_jobs() -> None:
    """As an account that is owed them all; where none of its jobs may run, it is owed nothing."""
    kind = JobKind(KIND, "group_b", 3, ROOM, frozenset({"cpu"}))
    assert kind_as_account(kind) == Account(KIND, 0.0, 24.0, 24.0, 0.0, 8.0)
    assert kind_as_account(dataclasses.replace(kind, classes=frozenset())).cores_wanted == 0.0


def waits_for_room(free: Amounts, *pilots: Pilot, jobs: int = 1) -> Snapshot:
    """A job of 8 cores waits for all of node n0."""
    places = (Place("n0", "n0", "a", free, ROOM),)
    kinds = (JobKind(KIND, "group_b", jobs, ROOM, frozenset({"a"}), example="9.0"),)
    seen = waits(8.0 * jobs)
    return dataclasses.replace(seen, kinds=kinds, places=places, pilots=(*seen.pilots, *pilots))


@pytest.mark.parametrize("by_kind", [False, True])
def test_room_whose_last_piece_has_just_come_back_is_not_made_again(by_kind: bool) -> None:
    """The first piece lies free, longer than the time to start; the last one has gone and no slot shows it yet."""
    seen = waits_for_room(Amounts(4, 8192)) if by_kind else waits(8, free=4.0)
    name = KIND if by_kind else "group_b"
    came = Round(settled=4.0, wasted=4.0, back=4.0, last=NOW - 5, nodes=("n0",))
    history = History(unmet={name: UnmetDemand("group_b", kind=KIND if by_kind else "", round=came)})
    assert look_at(seen, history, NOW, SITE).balance.deficit == 0
    assert make_plan(seen, NOW, SITE, history).orders == ()
    assert look_at(seen, history, NOW + 180, SITE).balance.deficit > 0


def test_an_order_stands_while_no_slot_shows_the_piece_that_has_just_come_back() -> None:
    """Without that piece the other one is room for nobody; it loses its reason when the job no longer waits."""
    other = dataclasses.replace(pilot(7), node="n0", place="n0", cores=4, deadline=NOW + 400, holds=Amounts(4, 8192))
    came = Round(back=4.0, last=NOW - 3, nodes=("n0",))
    known = UnmetDemand("group_b", {other.run: AccountPart("n0", 4, 4.0)}, NOW - 30, kind=KIND, round=came)
    history = History(unmet={KIND: known})
    assert make_plan(waits_for_room(Amounts(), other), NOW, SITE, history).withdrawals == ()
    assert make_plan(waits_for_room(Amounts(), other, jobs=0), NOW, SITE, history).withdrawals != ()
    assert make_plan(waits_for_room(Amounts(), other), NOW + 180, SITE, history).withdrawals != ()


def test_no_order_is_given_or_withdrawn_for_a_job_that_starts_in_an_idle_claim() -> None:
    """It may run already as its access point has it, and another one waits: so no order loses its reason."""
    full = dataclasses.replace(pilot(6), node="n0", place="n0", holds=ROOM)

    def starts(of: Pilot) -> Snapshot:
        seen = waits_for_room(Amounts(), of)
        return dataclasses.replace(seen, kinds=tuple(dataclasses.replace(one, starting=1) for one in seen.kinds or ()))

    assert make_plan(waits_for_room(Amounts(), full), NOW, SITE).orders != ()
    assert make_plan(starts(full), NOW, SITE).orders == ()
    ordered = dataclasses.replace(full, deadline=NOW + 400)
    assert make_plan(starts(ordered), NOW, SITE).withdrawals == ()


def test_no_request_is_withdrawn_for_cores_that_have_just_come_back() -> None:
    seen = waits(16)
    asked = dataclasses.replace(
        seen, pilots=(pilot(0, deadline=NOW + 60), pilot(1, deadline=NOW + 60), *seen.pilots[2:])
    )
    back = UnmetDemand("group_b", round=Round(back=8.0, last=NOW - 60))
    assert make_plan(asked, NOW, SITE, History(unmet={"group_b": back})).withdrawals == ()


def test_requests_for_paused_demand_are_withdrawn() -> None:
    seen = waits(8)
    asked = dataclasses.replace(seen, pilots=(pilot(0, deadline=NOW + 60), *seen.pilots[1:]))
    [one] = make_plan(asked, NOW, SITE, History(unmet={"group_b": PAUSED})).withdrawals
    assert one.pilot == asked.pilots[0]


amount = st.floats(0, 60)
known = st.builds(
    UnmetDemand,
    st.just("group_b"),
    round=st.builds(Round, back=amount, base=amount, peak=amount, last=st.integers(NOW - 400, NOW)),
    until=st.integers(NOW - 400, NOW + 400),
    held=amount,
    held_jobs=amount,
    closed=st.booleans(),
)


@given(st.floats(0, 100), st.floats(1, 24), st.floats(0, 24), amount, known)
def test_nobody_gives_back_more_for_what_is_remembered(
    wanted: float, per_job: float, in_use: float, free: float, one: UnmetDemand
) -> None:
    """And what an account was watched for makes it neither over its quota nor richer in demand."""
    seen = waits(wanted, per_job, in_use, free)
    seen = dataclasses.replace(seen, pilots=tuple(dataclasses.replace(it, deadline=NOW + 60) for it in seen.pilots))
    counts, _, balance = weighed(seen, {"group_b": one}, NOW, SITE)
    before = weighed(seen, {}, NOW, SITE)[2]
    assert balance.deficit <= max(before.deficit, balance.demand)
    assert balance.surplus == before.surplus
    assert counts.accounts[1].cores_wanted <= wanted
    assert balance.deficit <= balance.demand + 1e-6
    for result in withdrawals(counts, balance, NOW, SITE, History()):
        assert result.pilot.deadline is not None


@given(
    st.lists(st.tuples(amount, st.sampled_from([1.0, 4.0, 8.0])), min_size=1, max_size=4),
    st.integers(1, 6),
    st.integers(1, 48),
)
def test_the_parts_of_those_who_wait_are_what_is_asked_for(
    facts: list[tuple[float, float]], number: int, missing: int
) -> None:
    """In all the cores of the pilots, and not more than was to be given back."""
    accounts = tuple(Account(f"b{n}", 0.0, 24.0, wanted, 1.0, size) for n, (wanted, size) in enumerate(facts))
    chosen = [pilot(place) for place in range(number)]
    parts = for_whom(Snapshot(NOW, (), accounts), chosen, missing, {})
    total = sum(part.cores for mine in parts.values() for part in mine.values())
    assert not parts or total == pytest.approx(min(missing, 8 * number))


def test_an_order_is_for_those_for_whom_none_stands_yet() -> None:
    accounts = (Account("b", 0.0, 24.0, 8.0, 1.0, 8.0), Account("c", 0.0, 24.0, 8.0, 1.0, 8.0))
    stands = {"b": UnmetDemand("b", runs={"before": AccountPart("n", 8, 8.0)})}
    parts = for_whom(Snapshot(NOW, (), accounts), [pilot(1)], 8, stands)
    assert {name: sum(one.cores for one in mine.values()) for name, mine in parts.items()} == {"c": 8.0}
