"""Parts of pilots where the batch system tells what waits by kind: what is returned makes room for whole jobs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.pool.amounts import Amounts
from drainwise.pool.facts import Piece, Pilot
from drainwise.pool.job_kinds import JobKind
from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.history import History
from drainwise.reclaim.plan import Plan
from reached_asserts import judged

from .facts import NOW, SETTINGS, believed, pilot, report, reports
from .test_room_plans import GIB, alices, kind, place, plan, pool


def able(number: int, node: str, cores: int = 16, memory: int = 32 * GIB) -> Pilot:
    """One of alice's pilots, all of whose payloads end within 2000 s, that can return all cores but one."""
    said = report(float(cores), final=float(number * 400), uncommitted=cores * 9e3)
    return replace(alices(number, node, cores, memory), report=said, can_return=cores - 1)


def asked(of: Plan) -> dict[int, int]:
    return {int(one.pilot.run.split("#")[1].split(".")[0]): one.cores for one in of.returns}


def test_each_waiting_job_is_served_by_one_pilot_of_its_place() -> None:
    """Three jobs of 4 cores: chunks of 4, no pilot goes, and the plan says so."""
    found = plan(pool([able(1, "n0"), able(2, "n1")], [kind(3, Amounts(4, GIB))], [place("n0"), place("n1")]))
    assert found.orders == () and sum(asked(found).values()) == 12
    assert all(one.chunk == 4 and one.cores % 4 == 0 for one in found.returns)
    assert found.summary == "no pilot has to go; 1 pilot returns 12 cores as payloads end, and goes on"
    assert found.users[0].cores_returned == 12


def test_single_cores_are_asked_of_all_pilots_of_the_places_where_they_are_of_use() -> None:
    """Nobody on a place where the jobs may not run is asked, nor who is on several places."""
    pieces = tuple(Piece(name, name, Amounts(8, GIB)) for name in ("n0", "n1"))
    others = [able(3, "n9"), replace(able(4, "n0"), place="", holds=None, pieces=pieces)]
    places = [place("n0"), place("n1"), place("n9", of="special")]
    found = plan(pool([able(1, "n0"), able(2, "n1"), *others], [kind(5, Amounts(1, GIB), "plain")], places))
    assert asked(found) == {1: 5, 2: 5} and found.orders == ()
    assert found.users[0].cores_returned == 5


def test_where_more_stands_than_is_needed_nobody_goes() -> None:
    """Both were asked for 15 of the 18 cores that are missing: together that is more than alice is over by."""
    there = [replace(able(one, f"n{one}"), asked=15) for one in (0, 1)]
    seen = pool(there, [kind(18, Amounts(1, GIB), "plain")], [place("n0"), place("n1")])
    accounts = tuple(replace(one, cores_owed=max(one.cores_owed, one.cores_in_use - 18)) for one in seen.accounts)
    found = plan(replace(seen, accounts=accounts))
    assert found.orders == () and found.users[0].cores_returned == 18


def test_memory_comes_back_in_proportion_to_the_cores() -> None:
    """4 of 16 cores bring a quarter of the memory; half of it takes 8 cores, and all of it the whole pilot."""
    for memory, cores in ((8, 4), (16, 8), (30, 15)):
        found = plan(pool([able(1, "n0")], [kind(1, Amounts(4, memory * GIB))], [place("n0")]))
        assert asked(found) == {1: cores} and found.orders == ()
    found = plan(pool([able(1, "n0")], [kind(1, Amounts(4, 31 * GIB))], [place("n0")]))
    assert asked(found) == {} and len(found.orders) == 1


def test_a_job_that_needs_a_gpu_or_several_places_gets_no_part() -> None:
    """GPUs stay with the pilot, and a part makes no room on two places at once."""
    for one in (kind(1, Amounts(4, GIB, 1)), kind(1, Amounts(4, GIB), places=2)):
        at = [place("n0", gpus=1), place("n1", gpus=1)]
        found = plan(pool([able(1, "n0"), able(2, "n1")], [one], at))
        assert found.returns == ()


def test_no_disk_comes_back_with_a_part() -> None:
    """Where the place has none free, what is returned would serve nobody: nobody is asked."""
    needs = replace(Amounts(4, GIB), disk=500)
    no_disk = replace(place("n0"), total=Amounts(32, 64 * GIB, 0, 1000))
    assert plan(pool([able(1, "n0")], [kind(1, needs)], [no_disk])).returns == ()
    with_disk = replace(no_disk, free=Amounts(0, 0, 0, 1000))
    assert asked(plan(pool([able(1, "n0")], [kind(1, needs)], [with_disk]))) == {1: 4}


def test_a_wish_that_was_counted_on_counts_until_its_time_is_over() -> None:
    """Its last short payload runs still, and between both ends its report lets one expect too little: nobody goes."""
    said = report(5.0, first_end=NOW + 10, last_end=NOW + 13_000, final=4.0 * 12_990)
    asked_for = replace(able(1, "n0", 8, 16 * GIB), report=said, asked=4)
    others = [alices(number, "n0", 4, 8 * GIB) for number in (2, 3)]
    seen = pool([asked_for, *others], [kind(1, Amounts(4, GIB))], [place("n0")])
    assert len(plan(seen).orders) == 1
    counted = plan(seen, history=History(counted={asked_for.run: 4}))
    assert counted.orders == () and [one.stands for one in counted.returns] == [True]
    refuted = pool([replace(asked_for, contradictory=True), *others], [kind(1, Amounts(4, GIB))], [place("n0")])
    assert plan(refuted, history=History(counted={asked_for.run: 4})).orders == ()
    over = pool([replace(asked_for, asked=0), *others], [kind(1, Amounts(4, GIB))], [place("n0")])
    assert len(plan(over, history=History(counted={asked_for.run: 4})).orders) == 1


def test_where_no_payload_ends_in_time_what_is_free_is_all_that_comes() -> None:
    """Asked for 6 together, a pilot has 5 free and no more: these are asked for, and another one returns the rest."""
    long = report(3.0, first_end=NOW + 12_000, last_end=NOW + 12_000, final=0.0, uncommitted=5e4)
    first = replace(able(1, "n0", 8, 16 * GIB), report=long, asked=6)
    seen = pool([first, able(2, "n0", 4, 8 * GIB)], [kind(1, Amounts(6, GIB))], [place("n0")])
    found = plan(seen, history=History(counted={first.run: 6}))
    assert asked(found) == {1: 5, 2: 1} and found.orders == ()
    assert max(one.chunk for one in found.returns) == 5


def test_what_stands_stays_with_its_pilot_where_another_one_would_be_cheaper() -> None:
    """It has begun to free its cores; who has none free now seems to idle less."""
    half = report(6.0, first_end=NOW + 1500, last_end=NOW + 1500, final=0.0, uncommitted=9e4)
    full = report(8.0, first_end=NOW + 10, last_end=NOW + 10, final=0.0, uncommitted=9e4)
    begun, other = (replace(able(one, "n0", 8, 16 * GIB), report=said) for one, said in ((1, half), (2, full)))
    kinds, places = [kind(1, Amounts(4, GIB))], [place("n0")]
    assert asked(plan(pool([begun, other], kinds, places))) == {2: 4}
    assert asked(plan(pool([replace(begun, asked=4), other], kinds, places))) == {1: 4}
    nobody = plan(pool([replace(begun, asked=4), replace(other, asked=4)], kinds, places))
    assert len(nobody.returns) == 1 and len(nobody.asked_no_more) == 1


def test_what_no_report_lets_expect_is_the_last_resort() -> None:
    """A pilot goes in its place, which costs its user more by its own reports: not where that may cost it nothing."""
    long = report(16.0, first_end=NOW + 50_000, last_end=NOW + 50_000, final=0.0, uncommitted=9e4)
    busy, short = replace(able(1, "n0"), report=long), able(2, "n1")
    kinds, places = [kind(3, Amounts(4, GIB))], [place("n0"), place("n1")]
    assert asked(plan(pool([busy, short], kinds, places))) == {2: 12}
    alone = plan(pool([busy], kinds, places))
    assert asked(alone) == {} and len(alone.orders) == 1 and alone.orders[0].extra == 4
    bound = plan(pool([busy], kinds, places), replace(SETTINGS, extra_cores=0))
    assert asked(bound) == {1: 12} and bound.orders == () and bound.returns[0].cores_back is None


def test_one_pilot_returns_cores_for_several_kinds() -> None:
    """A job of 4 cores and two of one: 6 of the only pilot, the 4 of the largest job together."""
    found = plan(pool([able(1, "n0")], [kind(1, Amounts(4, GIB)), kind(2, Amounts(1, GIB))], [place("n0")]))
    assert asked(found) == {1: 6} and found.orders == ()
    [part] = found.returns
    assert (part.chunk, part.counted) == (4, 6)


@pytest.mark.parametrize(
    ("idle", "free", "kinds"),
    [
        pytest.param(9, 0, [kind(3, Amounts(2, GIB)), kind(1, Amounts(3, GIB))], id="all jobs of both kinds"),
        pytest.param(6, 0, [kind(3, Amounts(2, GIB))], id="all jobs of one kind"),
        pytest.param(50, 0, [kind(3, Amounts(25, GIB))], id="as many jobs as it can make room for"),
        pytest.param(1, 1, [kind(1, Amounts(2, GIB))], id="one job, in part in what is free"),
    ],
)
def test_a_pilot_returns_what_idles_in_it_where_that_is_just_what_jobs_need(
    idle: int, free: int, kinds: list[JobKind]
) -> None:
    """Nothing else of the 64 cores comes free in time."""
    said = report(64.0 - idle, first_end=NOW + 50_000, last_end=NOW + 50_000, final=0.0)
    large, there = replace(able(1, "n0", 64, 64 * GIB), report=said), Amounts(free, free * GIB)
    found = plan(pool([large], kinds, [replace(place("n0", 64 + free), free=there)]))
    assert asked(found) == {1: idle} and found.orders == ()


def test_each_of_two_pilots_returns_what_one_job_needs_where_no_more_idles_in_it() -> None:
    said = report(39.0, first_end=NOW + 50_000, last_end=NOW + 50_000, final=0.0)
    two = [replace(able(one, f"n{one}", 64, 64 * GIB), report=said) for one in (0, 1)]
    found = plan(pool(two, [kind(2, Amounts(25, GIB))], [place("n0", 64), place("n1", 64)]))
    assert asked(found) == {0: 25, 1: 25} and found.orders == ()


def test_of_two_that_cannot_return_all_in_time_the_one_is_asked_of_which_more_comes() -> None:
    busy, half = (
        replace(able(one, f"n{one}"), report=report(used, first_end=NOW + 50_000, last_end=NOW + 50_000, final=0.0))
        for one, used in ((0, 16.0), (1, 8.0))
    )
    seen = pool([busy, half], [kind(1, Amounts(12, GIB))], [place("n0"), place("n1")])
    found = plan(seen, replace(SETTINGS, extra_cores=0))
    assert asked(found) == {1: 12} and found.returns[0].cores_back is None


def test_what_lies_free_on_the_place_is_a_part_of_a_job() -> None:
    """3 of 4 cores are free there: one more is asked for, where a pilot could not return 4."""
    small = able(1, "n0", 4, 8 * GIB)
    with_free = replace(place("n0"), free=Amounts(3, 8 * GIB))
    found = plan(pool([small], [kind(1, Amounts(4, GIB))], [with_free]))
    assert asked(found) == {1: 1} and found.orders == ()


def test_pilots_of_a_place_return_together_what_none_can_alone() -> None:
    """A job of 6 cores and two pilots of 4: 3 of each; on two places it would be of no use."""
    two = [able(1, "n0", 4, 8 * GIB), able(2, "n0", 4, 8 * GIB)]
    found = plan(pool(two, [kind(1, Amounts(6, GIB))], [place("n0")]))
    assert asked(found) == {1: 3, 2: 3} and found.orders == ()
    apart = plan(pool([two[0], able(3, "n1", 4, 8 * GIB)], [kind(1, Amounts(6, GIB))], [place("n0"), place("n1")]))
    assert asked(apart) == {}


def test_limits_hold_for_parts_too() -> None:
    """No more is counted on than a cycle allows, and no more than the account holds beyond what it is owed."""
    seen = pool([able(1, "n0"), able(2, "n1")], [kind(6, Amounts(4, GIB))], [place("n0"), place("n1")])
    assert plan(seen, replace(SETTINGS, max_cores=9)).users[0].cores_returned == 8
    beyond = pool([able(1, "n0"), able(2, "n1")], [kind(6, Amounts(4, GIB))], [place("n0"), place("n1")], beyond=5)
    assert plan(beyond).users[0].cores_returned == 4


pilots = st.lists(
    st.sampled_from((4, 8, 16)).flatmap(
        lambda size: st.tuples(st.just(size), reports(size), st.booleans(), st.sampled_from(("n0", "n1")))
    ),
    min_size=1,
    max_size=6,
)


@pytest.mark.daemons
@given(pilots, st.integers(1, 6), st.sampled_from((1, 4, 8)), st.sampled_from(("least-waste", "open-need")))
def test_nobody_both_goes_and_returns_and_nothing_is_asked_twice(
    rows: list[tuple[int, object, bool, str]], jobs: int, cores: int, policy: str
) -> None:
    """Each pilot has one order at most; what returns on a node that nobody leaves makes whole jobs.

    One pilot may return a whole share of one job and a part of the next: the larger of both is what it frees together.
    """
    there = [
        replace(
            pilot(number, said, cores=size),  # type: ignore[arg-type]
            node=node,
            place=node,
            holds=Amounts(size, size * GIB),
            can_return=(size - 1) * can,
        )
        for number, (size, said, can, node) in enumerate(rows)
    ]
    judged("a believed report", believed(*there) > 0, at_least=0.3)
    seen = pool(there, [kind(jobs, Amounts(cores, cores * GIB))], [place("n0", 64), place("n1", 64)])
    found = make_plan(seen, NOW, replace(SETTINGS, policy=policy))
    runs = [one.pilot.run for one in found.orders] + [one.pilot.run for one in found.returns]
    assert len(runs) == len(set(runs))
    assert all(1 <= one.chunk <= one.cores <= one.pilot.can_return for one in found.returns)
    for node in {one.pilot.node for one in found.returns} - {one.pilot.node for one in found.orders}:
        assert sum(one.cores for one in found.returns if one.pilot.node == node) % cores == 0
    assert sum(part.cores_returned for part in found.users) <= jobs * cores
