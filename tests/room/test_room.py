"""Pilots go so that a waiting job can start, place by place; who loses what is never a matter of claims."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.made_up_room import Made, mixed_pool
from drainwise.pool.amounts import Amounts, sum_of
from drainwise.pool.job_kinds import RoomFor
from drainwise.reclaim.room import PlaceRoom, demand_left, kept_rooms, room_facts
from more_examples import most_of

from .pools import ENDLESS, SIZES, Pool, as_if_large, kind, pilot, place, pools

FULL, POOR = Amounts(32, 128 << 10), Amounts(32, 16 << 10)


def runs(made: Made) -> set[str]:
    """All pilots that go."""
    return {run for one in made.users for run in one.runs}


def facts_of(made: Made) -> list[object]:
    """What claims have no part in: who loses how many cores for which jobs, and the jobs that have room."""
    return [made.jobs, made.missing, *((one.user, one.cores) for one in made.users)]


def test_a_job_of_8_cores_and_32_gib_gets_the_room_of_one_place_not_of_four() -> None:
    """Eight cores of memory-poor places, or spread over four, are of no use to it."""
    poor = [place(f"poor{number}", POOR) for number in range(4)]
    fat = place("rich", FULL)
    pilots = [pilot(f"p{number}", f"poor{number}", 8, 4 << 10, age=10) for number in range(4)]
    pilots += [pilot(f"q{number}", "rich", 4, 16 << 10, age=9000) for number in range(8)]
    wanted = kind("k", 1, 8, 32 << 10)
    made = Pool((wanted,), (*poor, fat), tuple(pilots)).made()
    assert made.jobs == {"k": 1}
    assert {run[0] for run in runs(made)} == {"q"}
    assert len(runs(made)) == 2
    assert made.places == (PlaceRoom(RoomFor("rich", ((wanted, 1),)), tuple(sorted(runs(made)))),)


def test_a_job_that_can_run_nowhere_costs_nobody_anything() -> None:
    """It has no classes: `plan` names it."""
    nodes = tuple(place(f"n{number}", FULL) for number in range(3))
    pilots = tuple(pilot(f"p{number}", f"n{number}", 32, 128 << 10) for number in range(3))
    made = Pool((kind("nowhere", 5, 64, classes=()),), nodes, pilots).made()
    assert runs(made) == set()
    assert (made.jobs, made.missing) == ({}, {"nowhere": 5})


def test_where_all_places_close_there_is_no_room_where_a_job_is_planned() -> None:
    planned = replace(kind("k", 1, 4), at=frozenset({"n"}))
    assert demand_left(room_facts((planned,), ()), {"group_b": ENDLESS}, {}).jobs.tolist() == [1]


def test_a_job_that_waits_where_nobody_can_give_cores_back_stays_unserved() -> None:
    """All of those over their share are ordered to leave already, say."""
    made = Pool((kind("k", 2, 4),), (place("n", FULL),), (), users=()).made()
    assert (runs(made), made.jobs, made.missing) == (set(), {}, {"k": 2})


def test_memory_needs_more_cores_of_pilots_than_the_job_has() -> None:
    """One core with 32 GiB takes four pilots of 8 GiB, if that is how the memory lies."""
    pilots = tuple(pilot(f"p{number}", "n", 2, 8 << 10) for number in range(8))
    made = Pool((kind("k", 1, 1, 32 << 10),), (place("n", FULL),), pilots).made()
    assert (len(runs(made)), made.users[0].cores) == (4, 8)


def test_a_gpu_job_gets_a_gpu_and_a_partly_free_place_gives_less() -> None:
    """The pilot that holds the GPU goes; cores that are free there need not come from pilots."""
    gpu = place("g", Amounts(16, 64 << 10, 1), Amounts(4, 32 << 10), node_class="gpu")
    pilots = (pilot("with", "g", 2, 8 << 10, 1), pilot("without", "g", 10, 8 << 10), pilot("else", "n", 8))
    job = kind("k", 1, 6, 16 << 10, 1, classes=("gpu",))
    made = Pool((job,), (gpu, place("n", FULL)), pilots).made()
    assert runs(made) == {"with"}


@pytest.mark.parametrize("size", SIZES)
def test_a_whole_place_is_empty_of_everybody(size: str) -> None:
    """A place with a pilot that may get no order cannot be emptied; free cores alone are no whole place."""
    job = kind("k", 1, 4, whole=True)
    nodes = (place("a", Amounts(16), Amounts(8)), place("b", Amounts(16), Amounts(8)))
    mine = (pilot("a1", "a", 4), pilot("b1", "b", 4), pilot("b2", "b", 4))
    with SIZES[size]():
        made = Pool((job,), nodes, mine).made()
    assert runs(made) == {"b1", "b2"}


@pytest.mark.parametrize("size", SIZES)
def test_a_place_that_one_job_has_for_itself_serves_no_other(size: str) -> None:
    """Though it needs 4 of its 16 cores, and whatever is looked at anew after it was put there."""
    kinds = (kind("all", 1, 4, whole=True), kind("small", 1, 4), kind("smaller", 1, 3))
    nodes = (place("a", Amounts(16)), place("b", Amounts(32)))
    pilots = (pilot("a1", "a", 16), pilot("b1", "b", 8), pilot("b2", "b", 24))
    made = _made(Pool(kinds, nodes, pilots), size)
    assert (made.jobs, runs(made)) == ({"all": 1, "small": 1, "smaller": 1}, {"a1", "b1"})


@pytest.mark.parametrize("size", SIZES)
def test_what_one_users_pilots_make_for_a_job_alone_no_other_user_opens_again(size: str) -> None:
    """Neither for the next job, nor because a pilot there claims to be cheaper."""
    nodes = (place("a", Amounts(8), divisible=False), place("b", Amounts(8)))
    pilots = (
        pilot("a.alice", "a", 4),
        pilot("a.dave", "a", 4, user="dave", age=1),
        pilot("b.dave", "b", 4, user="dave"),
    )
    pool = Pool((kind("k", 2, 4),), nodes, pilots, users=("alice", "dave"), costs={"b.dave": 9})
    assert runs(_made(pool, size)) == {"a.alice", "b.dave"}


@pytest.mark.parametrize("size", SIZES)
def test_a_place_whose_free_part_serves_its_only_job_needs_nobody_to_go(size: str) -> None:
    nodes = (place("a", Amounts(8), Amounts(4), divisible=False), place("b", Amounts(8)))
    pilots = (pilot("a1", "a", 4), pilot("b1", "b", 5))
    assert runs(_made(Pool((kind("k", 2, 4),), nodes, pilots), size)) == {"b1"}


@pytest.mark.parametrize("size", SIZES)
def test_a_place_that_several_users_empty_for_one_job_serves_no_other(size: str) -> None:
    nodes = (place("a", Amounts(8)), place("b", Amounts(9)))
    pilots = [pilot(f"{where}.{user}", where, 4, user=user) for where in "ab" for user in ("alice", "dave")]
    pilots[3] = pilot("b.dave", "b", 5, user="dave")
    kinds = (kind("all", 1, 2, whole=True), kind("wide", 1, 6))
    made = _made(Pool(kinds, nodes, tuple(pilots), users=("alice", "dave")), size)
    assert (made.jobs, len(runs(made))) == ({"all": 1, "wide": 1}, 4)


def test_a_place_that_several_users_open_for_one_job_takes_no_second_one() -> None:
    """Eve's 4 cores there would be fewer than the 10 elsewhere."""
    nodes = (place("a", Amounts(12), divisible=False), place("b", Amounts(10)))
    users = ("alice", "dave", "eve")
    pilots = [pilot(f"a.{user}", "a", 4, user=user) for user in users]
    pilots += [pilot(f"b.{user}", "b", 5, user=user) for user in users[:2]]
    made = Pool((kind("k", 2, 6),), nodes, tuple(pilots), users=users).made()
    assert (made.jobs, runs(made)) == ({"k": 2}, {"a.alice", "a.dave", "b.alice", "b.dave"})


def test_a_job_of_several_places_gets_all_or_none() -> None:
    """Different places at once: two on one place are not two places."""
    nodes = tuple(place(f"n{number}", Amounts(16)) for number in range(2))
    pilots = (pilot("a", "n0", 16), pilot("b", "n1", 8))
    pool = Pool((kind("k", 3, 8, places=2),), nodes, pilots)
    made = pool.made()
    assert (made.jobs, made.missing) == ({"k": 1}, {"k": 2})
    assert runs(made) == {"a", "b"}
    alone = replace(pool, pilots=pilots[:1]).made()
    assert (alone.jobs, runs(alone)) == ({}, set())


def test_a_place_that_is_not_divisible_serves_one_job() -> None:
    """A static slot of HTCondor: what the job does not need of it helps nobody."""
    slots = tuple(place(f"s{number}", Amounts(8), divisible=False) for number in range(3))
    pilots = tuple(pilot(f"p{number}", f"s{number}", 8, age=number) for number in range(3))
    made = Pool((kind("k", 2, 2),), slots, pilots).made()
    assert (made.jobs, runs(made)) == ({"k": 2}, {"p0", "p1"})


def test_room_that_comes_back_anyway_is_not_made_twice() -> None:
    """Nor room that is free."""
    nodes = (place("a", Amounts(8)), place("b", Amounts(8), Amounts(8)))
    pool = Pool((kind("k", 2, 8),), nodes, (pilot("p", "a", 8),), returning={"a": Amounts(8)})
    assert runs(pool.made()) == set()
    assert runs(replace(pool, returning={}).made()) == {"p"}


def test_what_an_account_is_owed_bounds_its_jobs() -> None:
    """Whole jobs alone; a kind that finds no room leaves what is owed to the next one."""
    pilots = tuple(pilot(f"p{number}", "n", 4) for number in range(8))
    kinds = (kind("wide", 1, 16, classes=("none",)), kind("narrow", 9, 4))
    made = Pool(kinds, (place("n", FULL),), pilots, owed={"bob": 18.5}).made()
    assert (made.jobs, len(runs(made))) == ({"narrow": 4}, 4)


def test_several_users_make_room_together_where_none_can_alone() -> None:
    """The fewest cores first, then the users' order, then the shortest run time: no claim."""
    nodes = (place("a", Amounts(8)), place("b", Amounts(8)))
    pilots = (
        pilot("a.alice", "a", 4),
        pilot("a.dave", "a", 4, user="dave"),
        pilot("b.dave", "b", 3, user="dave"),
        pilot("b.eve", "b", 5, user="eve"),
    )
    pool = Pool((kind("k", 1, 8),), nodes, pilots, users=("alice", "dave", "eve"), costs={"a.alice": 9, "a.dave": 9})
    made = pool.made()
    assert runs(made) == {"a.alice", "a.dave"}
    assert made.places == (PlaceRoom(RoomFor("a", ((pool.kinds[0], 1),)), ("a.alice", "a.dave")),)
    assert runs(replace(pool, most={"alice": 3}).made()) == {"b.dave", "b.eve"}


def test_several_users_make_room_on_one_place_for_job_after_job() -> None:
    """Two pilots go for the first job, and what they leave with the third is room for the second."""
    users = ("alice", "carl", "dora")
    mine = tuple(pilot(user, "n", 4, user=user) for user in users)
    made = Pool((kind("k", 2, 6),), (place("n", Amounts(12)),), mine, users=users).made()
    assert (made.jobs, runs(made)) == ({"k": 2}, set(users))


def _made(pool: Pool, size: str) -> Made:
    with SIZES[size]():
        return pool.made()


@pytest.mark.parametrize("size", SIZES)
@given(pools(("alice", "dave", "eve")), st.randoms(use_true_random=False))
def test_claims_change_neither_who_loses_how_much_nor_what_others_lose(size: str, pool: Pool, dice: Random) -> None:
    """Whatever alice claims: dave and eve lose the same pilots, alice the same cores, and the same jobs have room."""
    told = _made(pool, size)
    claims = {run: float(dice.randint(0, 99)) for run in pool.costs if run in _of(pool, "alice")}
    other = _made(replace(pool, costs={**pool.costs, **claims}), size)
    assert facts_of(told) == facts_of(other)
    for before, after in zip(told.users[1:], other.users[1:]):
        assert before == after


def _of(pool: Pool, user: str) -> set[str]:
    return {one.run for one in pool.pilots if one.user == user}


@pytest.mark.daemons
@pytest.mark.parametrize("size", SIZES)
@given(pools(("alice", "dave")), st.randoms(use_true_random=False))
def test_the_order_in_which_places_and_pilots_are_listed_changes_nothing(size: str, pool: Pool, dice: Random) -> None:
    """The order of the kinds and of the users is theirs; all else goes by name."""
    places, pilots = list(pool.places), list(pool.pilots)
    dice.shuffle(places)
    dice.shuffle(pilots)
    assert _made(replace(pool, places=tuple(places), pilots=tuple(pilots)), size) == _made(pool, size)


@pytest.mark.parametrize("size", SIZES)
@given(pools(("alice", "dave", "eve")))
def test_all_room_is_there_when_the_pilots_have_left(size: str, pool: Pool) -> None:
    """Each place holds the jobs it is said to hold beside those served before; nobody loses more than the limit."""
    made = _made(pool, size)
    for user in made.users:
        assert user.cores <= pool.most[user.user]
        assert user.cores == sum(one.cores for one in pool.pilots if one.run in user.runs)
        assert user.cost == pytest.approx(sum(pool.costs[run] for run in user.runs))
    assert sorted(run for one in made.places for run in one.runs) == sorted(runs(made))
    several = {one.name: one.places for one in pool.kinds}
    there: Counter[str] = Counter()
    for one in made.places:
        there.update({kind.name: number for kind, number in one.room.jobs})
    assert there == {name: number * several[name] for name, number in made.jobs.items()}
    assert _lacking(pool, made) == []


def _lacking(pool: Pool, made: Made) -> list[str]:
    """The places where the jobs that have room would not fit."""
    facts = room_facts(pool.kinds, pool.places)
    left = demand_left(facts, {one.account: ENDLESS for one in pool.kinds} | dict(pool.owed), {})
    pilots = {one.run: one for one in pool.pilots}
    found = []
    for node in facts.places:
        here = [one for one in made.places if one.room.place == node.name]
        room = dict(zip(facts.resources, left.room[facts.index[node.name]].astype(int).tolist()))
        gone = sum_of([Amounts(**room), *(pilots[run].holds or Amounts() for one in here for run in one.runs)])
        jobs = [kind for one in here for kind, number in one.room.jobs for _ in range(number)]
        if not gone.covers(sum_of(one.needs for one in jobs)):
            found.append(node.name)
        if any(node.node_class not in one.classes for one in jobs):
            found.append(node.name)
        alone = not node.divisible or any(one.whole for one in jobs)
        if jobs and alone and (len(jobs) > 1 or left.closed[facts.index[node.name]]):
            found.append(node.name)
        if any(one.whole and gone.cores < node.total.cores for one in jobs):
            found.append(node.name)
    return found


def test_pieces_are_kept_where_one_of_two_kinds_needs_several_of_them() -> None:
    """Each pilot's 4 cores are enough for the first kind alone; for the second they are room together."""
    small, large = kind("small", 1, 4), kind("large", 1, 8)
    facts = room_facts((small, large), (place("n", Amounts(16)),))
    going = {"n": [(Amounts(4), 100), (Amounts(4), 300), (Amounts(4), 200)]}
    made = PlaceRoom(RoomFor("n", ((small, 1), (large, 1))), ("a", "b", "c"))
    kept = kept_rooms(facts, [made], None, going)["n"]
    assert (kept.pilots, kept.until, kept.least.cores, kept.total.cores) == (3, 300, 4, 12)
    assert kept_rooms(facts, [replace(made, room=RoomFor("n", ((small, 1),)))], None, going) == {}


@pytest.mark.daemons
@pytest.mark.parametrize("seed", range(most_of(1, 3)))
def test_on_a_large_pool_claims_choose_the_pilots_and_no_more_than_the_extra_cores(seed: int) -> None:
    """Mixed nodes and kinds: with the claims less is wasted than by facts alone, for the same jobs.

    A user's reports cost it no core more where the site grants none, or where they have cost it those lately.
    """
    pool = mixed_pool(*most_of((200, 1000), (400, 2000)), 20, 3)
    dice = Random(seed)
    wastes = {name: [float(dice.randint(0, 10**6)) for _ in some] for name, some in pool.wastes.items()}
    pool = replace(pool, kinds=tuple(replace(one, jobs=3) for one in pool.kinds), wastes=wastes)
    waste = {one.run: spent for name, some in pool.pilots.items() for one, spent in zip(some, wastes[name])}
    with as_if_large():
        blind = replace(pool, wastes={name: [0.0] * len(some) for name, some in wastes.items()}).made()
        auto = pool.made()
        strict, spent = (pool.made(**how) for how in ({"extra": 0.0}, {"extra_taken": 10**6}))
    assert blind.jobs == auto.jobs == strict.jobs
    before = sum(waste[run] for run in runs(blind))
    assert sum(one.cost for one in auto.users) < 0.6 * before
    assert sum(one.cost for one in strict.users) < before
    assert strict == spent
    for one, least, exact in zip(auto.users, blind.users, strict.users):
        by_facts = one.cores - one.extra
        assert one.cost == pytest.approx(sum(waste[run] for run in one.runs))
        assert one.extra <= max(0, one.cores - least.cores)
        assert one.extra <= max(16, by_facts / 4)
        assert (exact.cores <= by_facts, exact.extra) == (True, 0)
