"""One chooser: what facts and claims decide, that its plans can be carried out, that it ends, and how good they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_mock import MockerFixture

from drainwise.reclaim.choose import choose as choosing
from drainwise.reclaim.choose.choose import GROUP_LABELS, LABELS_OF_A_LOOK, choose, improve, turn
from drainwise.reclaim.choose.fill import fill, reprieve
from drainwise.reclaim.choose.plan import ACCOUNT, SITE, USER, Plan, Rules, make_plan, price_by_facts
from drainwise.reclaim.choose.problem import PART, Mask, Places, Problem, Real, State, sums
from drainwise.reclaim.choose.resolve import resolve
from exact_choice import Exact
from more_examples import combined, most_of
from random_pools import random_problem, with_parts, with_spanning
from reached_asserts import judged
from small_pool import problem

JOIN = (True, False)
SMALL = ("small", "users", "full", "full-users", "wide")
BY_CORES = Rules(rank_factor=0.0)
numbers = st.integers(0, 10**6)
pools = st.builds(random_problem, st.sampled_from((*SMALL, "crowd")), numbers)
several_users = st.builds(random_problem, st.sampled_from(("crowd", "crowd", "users", "full-users")), numbers)


def lost(it: Problem, gone: Mask) -> Real:
    """Cores and devices that each user loses."""
    users = len(it.limits.rank)
    return np.column_stack([sums(it.rows.user[gone], it.rows.spends[gone, one], users) for one in (0, 1)])


def faults(it: Problem, plan: Plan | State) -> Iterator[str]:
    """What keeps a plan from being carried out."""
    rows, needs = it.rows, it.needs
    room = it.places.free.copy()
    going = plan.gone[rows.row]
    np.add.at(room, rows.place[going], rows.gives[going])
    every = np.arange(len(room))
    used = np.zeros(room.shape, dtype=bool)
    for kind in range(len(needs.jobs)):
        jobs = plan.jobs[:, kind]
        room -= jobs[:, None] * it.needed(kind, every)
        used |= jobs[:, None] * it.needed(kind, every) > 0
        if (jobs[~needs.may[kind]] > 0).any() or (jobs > needs.most[kind]).any():
            yield f"kind {kind} where it may not be"
        if jobs.sum() != plan.served[kind] * needs.several[kind] or plan.served[kind] > needs.jobs[kind]:
            yield f"{plan.served[kind]} jobs of kind {kind} have {jobs.sum()} places"
        if needs.several[kind] > 1 and jobs.max() > plan.served[kind]:
            yield f"a job of kind {kind} twice in a place"
        alone = jobs > 0 if needs.whole[kind] else (jobs > 0) & ~it.places.shared
        if (plan.jobs[alone].sum(axis=1) > 1).any():
            yield f"kind {kind} is not alone"
    short = room[used] < -1e-6 * np.maximum(1, np.abs(it.places.free[used]))
    if short.any():
        yield f"no room: {room[used][short]}"
    if plan.gone.any() and np.bincount(rows.pilot[plan.gone]).max() > 1:
        yield "two ways of a pilot"
    for limit, most in enumerate(np.maximum(it.limits.most, 0)):
        bound = (it.limits.binds[rows.user] == limit).any(axis=1) & plan.gone
        if rows.spends[bound, it.limits.counts[limit]].sum() > most * (1 + 1e-12) + 1e-6:
            yield f"limit {limit}"
    for account, owed in enumerate(needs.owed):
        mine = needs.account == account
        if (plan.served[mine] * needs.cores[mine]).sum() > max(0, owed) + 1e-6:
            yield f"account {account} gets more than it is owed"


def test_the_cheapest_pilots_that_make_the_room_go() -> None:
    """Two nodes could serve the job; what is free counts; of equal cores the report decides."""
    it = problem({"a": 2, "b": 0}, [("a", 6, 50), ("b", 8, 10), ("b", 8, 90)], [(1, 8)])
    plan = make_plan(it, Rules())
    assert plan.by_facts.tolist() == [True, False, False]
    assert plan.gone.tolist() == [True, False, False]  # two cores more idle for longer than the report gains
    far = problem({"a": 2, "b": 0}, [("a", 6, 50_000), ("b", 8, 10), ("b", 8, 90)], [(1, 8)])
    assert make_plan(far, Rules()).gone.tolist() == [False, True, False]


def test_reports_cost_a_user_no_more_than_its_extra_cores() -> None:
    """With none the dear pilot goes, as facts say."""
    it = problem({"a": 2, "b": 0}, [("a", 6, 50_000), ("b", 8, 10)], [(1, 8)], extra=0)
    assert make_plan(it, Rules()).gone.tolist() == [True, False]


def test_who_gives_back_first_loses_first() -> None:
    """A rank makes a core dearer; the report of the second user is no help to the first."""
    it = problem({"a": 0, "b": 0}, [("a", 8, 90_000), ("b", 8, 0)], [(1, 8)], users=[1, 0])
    assert make_plan(it, Rules()).gone.tolist() == [False, True]
    other = problem({"a": 0, "b": 0}, [("a", 8, 0), ("b", 8, 90_000)], [(1, 8)], users=[1, 0])
    assert make_plan(other, Rules()).gone.tolist() == [False, True]
    assert make_plan(other, Rules(compete=SITE)).gone.tolist() == [False, True]  # user 1 loses nothing by facts


def test_reports_that_compete_move_the_loss_within_extra_cores() -> None:
    """Both lose one pilot by facts; the one whose report is cheaper gives the next, when the site trusts them."""
    pilots = [("a", 8, 90_000), ("a", 8, 90_000), ("b", 8, 0), ("b", 8, 0)]
    it = problem({"a": 0, "b": 0}, pilots, [(2, 8)], users=[0, 0, 1, 1], most=[8, 16])
    assert lost(it, make_plan(it, Rules()).gone)[:, 0].tolist() == [8, 8]
    assert lost(it, make_plan(it, Rules(compete=SITE)).gone)[:, 0].tolist() == [0, 16]


def test_ways_of_a_pilot_exclude_each_other() -> None:
    """A part of four cores is enough; for two jobs the whole pilot goes."""
    ways = [("a", 4, 40), ("a", 16, 10)]
    assert make_plan(problem({"a": 0}, ways, [(1, 4)], ways=[0, 0]), Rules()).gone.tolist() == [True, False]
    assert make_plan(problem({"a": 0}, ways, [(2, 4)], ways=[0, 0]), Rules()).gone.tolist() == [False, True]


def test_jobs_on_several_nodes_are_served_by_a_whole_set() -> None:
    """Three nodes, one of them held by a user that may lose nothing."""
    pilots = [("a", 8, 10), ("b", 8, 30), ("c", 8, 20)]
    two = problem({"a": 0, "b": 0, "c": 0}, pilots, [(1, 8)], several=2)
    assert make_plan(two, Rules()).gone.tolist() == [True, False, True]
    none = problem({"a": 0, "b": 0, "c": 0}, pilots, [(1, 8)], several=2, users=[0, 1, 1], most=[8, 0])
    assert not make_plan(none, Rules()).gone.any()


def test_a_whole_node_has_no_free_rest() -> None:
    """A job that shares its node with none needs all pilots to go."""
    it = problem({"a": 4, "b": 0}, [("a", 2, 10), ("a", 2, 10), ("b", 6, 5)], [(1, 4)], whole=True)
    assert make_plan(it, Rules()).gone.tolist() == [True, True, False]


@given(pools, st.sampled_from((USER, ACCOUNT, SITE)), st.booleans())
def test_a_plan_can_be_carried_out_within_every_limit(it: Problem, compete: str, join: bool) -> None:
    """Room, limits, what accounts are owed, the budget of each user; no order that nobody needs by facts."""
    plan = make_plan(it, Rules(compete=compete, join=join))
    assert list(faults(it, plan)) == []
    assert (lost(it, plan.gone) <= plan.budget + 1e-6).all()
    auto = np.maximum(lost(it, plan.by_facts)[:, 0] / 4, np.bincount(it.rows.user, minlength=len(plan.budget)) * 0)
    largest = np.zeros(len(plan.budget))
    np.maximum.at(largest, it.rows.user, it.rows.spends[:, 0])
    assert (plan.budget[:, 0] <= lost(it, plan.by_facts)[:, 0] + np.maximum(auto, largest) + 1e-6).all()
    assert (plan.budget[:, 1] == lost(it, plan.by_facts)[:, 1]).all()


@pytest.mark.daemons
@given(several_users, st.lists(st.sampled_from((0.0, 1.0, 1e3, 1e9)), min_size=2), st.booleans())
def test_nobodys_report_makes_another_user_lose_more(it: Problem, says: list[float], join: bool) -> None:
    """Nor does it change which jobs are served; what is spared in the end may be another's."""
    truth = make_plan(it, Rules(join=join))
    mine = it.rows.user == int(lost(it, truth.by_facts)[:, 0].argmax())
    claim = it.rows.claim.copy()
    claim[mine] = np.resize(np.array(says), int(mine.sum()))
    lie = make_plan(replace(it, rows=replace(it.rows, claim=claim)), Rules(join=join))
    assert (truth.served == lie.served).all()
    assert (truth.by_facts == lie.by_facts).all()
    assert ((truth.gone | truth.spared)[~mine] == (lie.gone | lie.spared)[~mine]).all()
    judged(
        "a user whose report changes which of its pilots go", bool((truth.gone != lie.gone)[mine].any()), at_least=0.1
    )
    extra = lost(it, lie.gone)[:, 0] - lost(it, lie.by_facts)[:, 0]
    assert (extra <= lie.budget[:, 0] - lost(it, lie.by_facts)[:, 0] + 1e-6).all()


@given(pools, st.integers(0, 3), st.floats(1, 100))
def test_more_to_take_from_serves_no_fewer_jobs(it: Problem, which: int, more: float) -> None:
    """Facts: a limit that grows, more that is free, one row more."""
    if which == 0:
        other = replace(it, limits=replace(it.limits, most=it.limits.most + more))
    elif which == 1:
        other = replace(it, places=Places(it.places.free + np.floor(more), it.places.cores, it.places.shared))
    elif which == 2:
        other = replace(it, needs=replace(it.needs, owed=it.needs.owed + more))
    else:
        loss = it.rows.loss.copy()
        loss[int(more) % len(loss)] = np.inf
        it, other = replace(it, rows=replace(it.rows, loss=loss)), it
    assert make_plan(it, BY_CORES).served.tolist() <= make_plan(other, BY_CORES).served.tolist()


HOSTILE = (0.0, 1.0, 7.0, 1e6, 1e15)


@st.composite
def hostile_pools(draw: st.DrawFn) -> Problem:
    """Sizes of nothing and without end, limits that refuse all, endless jobs, closed places."""
    it = draw(pools)
    dice = np.random.default_rng(draw(st.integers(0, 10**6)))

    def some(like: Real, values: tuple[float, ...] = HOSTILE) -> Real:
        changed = dice.random(like.shape) < draw(st.sampled_from((0.0, 0.2, 1.0)))
        found: Real = np.where(changed, dice.choice(values, like.shape), like.astype(float))
        return found

    rows = replace(
        it.rows,
        gives=some(it.rows.gives),
        spends=some(it.rows.spends),
        loss=some(it.rows.loss, (*HOSTILE, np.inf)),
        claim=some(it.rows.claim, (*HOSTILE, 1e300)),
    )
    jobs = some(it.needs.jobs.astype(float), (0, 1, 10**9)).astype(np.int64)
    needs = replace(
        it.needs,
        needs=some(it.needs.needs),
        jobs=jobs,
        cores=some(it.needs.cores),
        owed=some(it.needs.owed, (-5.0, 0.0, *HOSTILE)),
        most=jobs,
    )
    shared = dice.random(len(it.places.cores)) < draw(st.sampled_from((0.5, 1.0)))
    places = Places(some(it.places.free, (-1e15, 0.0, 1e15)), it.places.cores, shared)
    limits = replace(it.limits, most=some(it.limits.most, (-3.0, 0.0, 1.0, 8.0, 1e15)))
    return Problem(rows, places, needs, limits)


@given(hostile_pools(), st.sampled_from((USER, SITE)), st.booleans())
def test_it_ends_whatever_the_sizes_are(it: Problem, compete: str, join: bool) -> None:
    """A round of filling serves a job, bars a row or brings in places; looks are counted; the plan can be done."""
    plan = make_plan(it, Rules(compete=compete, join=join, looks=50))
    assert list(faults(it, plan)) == []
    assert np.isfinite(it.rows.loss[plan.gone]).all()
    judged("a plan in which something goes", bool(plan.gone.any()), at_least=0.1)


spanning_pools = st.builds(with_spanning, pools, numbers)
pools_with_parts = st.builds(with_parts, pools, numbers)


@given(spanning_pools, st.sampled_from((USER, ACCOUNT, SITE)), st.booleans())
def test_a_pilot_of_several_nodes_goes_as_a_whole(it: Problem, compete: str, join: bool) -> None:
    """What it gives back on each node counts, by facts and where claims decide."""
    plan = make_plan(it, Rules(compete=compete, join=join))
    assert list(faults(it, plan)) == []
    judged("a pilot of several nodes that goes", bool((plan.gone & it.wide).any()), at_least=0.02)


@pytest.mark.daemons
@given(pools_with_parts, st.sampled_from((USER, ACCOUNT, SITE)), st.booleans())
def test_a_pilot_gives_one_part_or_goes(it: Problem, compete: str, join: bool) -> None:
    """A larger part may be taken in place of a smaller one."""
    plan = make_plan(it, Rules(compete=compete, join=join))
    assert list(faults(it, plan)) == []
    judged("a part", bool((plan.gone & (it.rows.way == PART)).any()), at_least=0.1)


def test_a_pilot_of_two_nodes_makes_room_on_both() -> None:
    """One job on each."""
    it = problem({"a": 0, "b": 0}, [("a", 8, 10), ("b", 8, 10)], [(2, 8)])
    wide = replace(
        it.rows,
        pilot=np.array([0]),
        way=it.rows.way[:1],
        user=it.rows.user[:1],
        spends=np.array([[16.0, 0.0]]),
        loss=it.rows.loss[:1],
        claim=it.rows.claim[:1],
        row=np.array([0, 0]),
    )
    plan = make_plan(replace(it, rows=wide), Rules())
    assert plan.gone.tolist() == [True]
    assert plan.jobs.tolist() == [[1], [1]]


def test_a_limit_counts_a_pilot_of_two_nodes_once() -> None:
    """Each of ten pilots makes room on two nodes for a job each; six of them may go."""
    names = [f"n{number:02}" for number in range(20)]
    it = problem(dict.fromkeys(names, 0.0), [(name, 8.0, 5.0) for name in names], [(20, 8)], most=[100])
    rows, pilots = it.rows, np.arange(10)
    wide = replace(
        rows,
        pilot=pilots,
        way=rows.way[:10],
        user=rows.user[:10],
        spends=np.column_stack((np.full(10, 16.0), np.zeros(10))),
        loss=rows.loss[:10],
        claim=rows.claim[:10],
        row=np.repeat(pilots, 2),
    )
    it = replace(it, rows=wide)
    state = State(it, price_by_facts(it.rows, it.limits, 1.0))
    fill(state, [0])
    assert (state.gone.sum(), state.served.tolist()) == (6, [12])


def test_without_pilots_nothing_goes() -> None:
    """Nor without jobs, nor where no pilot may go."""
    for it in (
        problem({"a": 8, "b": 0}, [], [(1, 8)]),
        problem({"a": 0}, [("a", 8, 10)], []),
        problem({"a": 0}, [("a", 8, 10)], [(0, 8)]),
        problem({"a": 0}, [("a", 8, 10)], [(1, 8)], most=[0]),
    ):
        for compete in (USER, ACCOUNT, SITE):
            assert not make_plan(it, Rules(compete=compete)).gone.any()


def test_no_more_is_looked_at_than_is_allowed() -> None:
    """A look at many labels counts as several: one may go beyond."""
    it = random_problem("middle", 1)
    state = State(it, price_by_facts(it.rows, it.limits, 1.0))
    fill(state, range(len(it.needs.jobs)))
    assert improve(deepcopy(state), 0) == 0
    assert 0 < improve(state, 9) <= 9 + GROUP_LABELS // LABELS_OF_A_LOOK


@pytest.mark.parametrize("most", [0, 1, 7])
def test_looks_are_counted_by_their_labels(mocker: MockerFixture, most: int) -> None:
    """To the last look: nothing is looked at when they are used up, and not before."""
    it = with_spanning(random_problem("middle", 1), 1)
    looks = mocker.patch.object(choosing, "resolve", autospec=True, return_value=(False, 3 * LABELS_OF_A_LOOK - 1))
    for better in (improve, partial(turn, every=False)):
        looks.reset_mock()
        state = State(it, price_by_facts(it.rows, it.limits, 1.0))
        fill(state, range(len(it.needs.jobs)))
        calls = -(-most // 3)
        assert (better(state, most), looks.call_count) == (3 * calls, calls)


def test_a_turn_of_a_small_pool_looks_at_all_that_waits(mocker: MockerFixture) -> None:
    """Every place, and each kind of which a job waits."""
    it = with_spanning(random_problem("crowd", 5), 5)
    it = replace(it, needs=replace(it.needs, jobs=np.arange(len(it.needs.jobs)) % 2))
    looks = mocker.spy(choosing, "resolve")
    turn(State(it, price_by_facts(it.rows, it.limits, 1.0)), 1, every=True)
    _, places, kinds, *_ = looks.call_args.args
    assert (list(places), kinds) == ([*range(len(it.places.free))], np.flatnonzero(it.needs.jobs == 1).tolist())
    assert kinds


def test_no_look_is_at_all_places_of_a_large_pool(mocker: MockerFixture) -> None:
    it = with_spanning(random_problem("middle", 1), 1)
    looks = mocker.spy(choosing, "resolve")
    choose(it, price_by_facts(it.rows, it.limits, 1.0), 12)
    sizes = [len(call.args[1]) for call in looks.call_args_list]
    assert sizes and max(sizes) < len(it.places.free) / 2


def test_a_look_is_at_different_places(mocker: MockerFixture) -> None:
    it = random_problem("middle", 1)
    state = State(it, price_by_facts(it.rows, it.limits, 1.0))
    fill(state, range(len(it.needs.jobs)))
    looks = mocker.spy(choosing, "resolve")
    improve(state, 200)
    groups = [call.args[1] for call in looks.call_args_list]
    assert {len(group) for group in groups} >= {2, 3}
    assert all(len(set(group)) == len(group) for group in groups)


def test_a_place_that_a_job_has_for_itself_is_closed_until_the_job_is_given_up() -> None:
    """Also to jobs that would share it."""
    it = problem({"a": 16.0, "b": 16.0}, [], [(1, 8)], whole=True)
    state = State(it, price_by_facts(it.rows, it.limits, 1.0))
    for parts, closed in ((1, [False, True]), (-1, [False, False])):
        state.serve(0, np.array([1]), np.array([parts]))
        assert state.closed.tolist() == closed


def test_places_that_serve_the_same_are_one_label() -> None:
    """After k places there are k + 1: no job, one, … k, each at its least price; each place has an entry for two."""
    names = ("a", "b", "c", "d", "e")
    it = problem(dict.fromkeys(names, 0.0), [(name, 8.0, 5.0) for name in names], [(5, 8)])
    state = State(it, price_by_facts(it.rows, it.limits, 1.0))
    assert resolve(state, range(5), [0]) == (True, 2 * (1 + 2 + 3 + 4 + 5))
    assert state.served.tolist() == [5]


def test_limits_that_refuse_everything_end_soon() -> None:
    """Hundreds of rows, each of which fits its limit alone, and no two of which fit together."""
    pilots = [(f"n{number % 40}", 4.0, float(number)) for number in range(400)]
    it = problem(dict.fromkeys([f"n{number}" for number in range(40)], 0.0), pilots, [(50, 8)], most=[7])
    state = State(it, price_by_facts(it.rows, it.limits, 1.0))
    fill(state, [0])
    assert not state.gone.any()


@pytest.mark.parametrize(("family", "join", "kind"), combined(SMALL, JOIN, [with_spanning, with_parts]))
def test_small_pools_with_other_pilots_are_solved_as_the_solver_does(
    family: str, join: bool, kind: Callable[[Problem, int], Problem]
) -> None:
    """Pilots of several nodes, and pilots that can return parts. Several users may find less where they share nodes."""
    fewer, facts, least, ours, best = 0, 1.0, 1.0, 0.0, 0.0
    for seed in range(8):
        it = kind(random_problem(family, seed), seed)
        plan, exact = make_plan(it, replace(BY_CORES, join=join)), Exact(it)
        jobs, price = exact.jobs(), price_by_facts(it.rows, it.limits, 0.0)
        if plan.served.tolist() == jobs.tolist():
            facts, least = facts + float(price[plan.by_facts].sum()), least + exact.least(price)
        else:
            fewer += 1
        claims = np.minimum(it.rows.claim, 1e8) + 600 * it.rows.spends[:, 0]
        exact = Exact(it)
        exact.fix(plan.served)
        exact.budget(plan.budget)
        ours, best = ours + float(claims[plan.gone].sum()), best + exact.least(claims)
    assert fewer == 0
    assert facts <= 1.02 * least
    assert ours <= best * (1.01 if len(it.limits.rank) == 1 else 1.25)


@pytest.mark.parametrize("join", JOIN, ids=["as a whole", "by groups"])
@pytest.mark.parametrize("family", SMALL)
def test_small_pools_are_solved_as_the_solver_does(family: str, join: bool) -> None:
    """The jobs of the optimum at its cores, and with one user at its waste; by groups nearly so."""
    worse, ours, best = 0, 0.0, 0.0
    for seed in range(most_of(4, 10)):
        it = random_problem(family, seed)
        plan, exact = make_plan(it, replace(BY_CORES, join=join)), Exact(it)
        jobs = exact.jobs()
        cores = exact.least(it.rows.spends[:, 0])
        worse += plan.served.tolist() != jobs.tolist() or lost(it, plan.by_facts)[:, 0].sum() > cores + 1e-6
        price = it.rows.claim + 600 * it.rows.spends[:, 0]
        exact = Exact(it)
        exact.fix(plan.served)
        exact.budget(plan.budget)
        ours, best = ours + float(price[plan.gone].sum()), best + exact.least(price)
    assert worse == 0
    assert ours <= best * (1.001 if len(it.limits.rank) == 1 else 1.1)


@pytest.mark.daemons
def test_a_pool_of_forty_nodes_comes_close_to_the_solver() -> None:
    """Chosen by filling and bettering groups of places."""
    it = random_problem("middle", 2)
    plan, exact = make_plan(it, BY_CORES), Exact(it)
    assert plan.served.tolist() == exact.jobs().tolist()
    assert lost(it, plan.by_facts)[:, 0].sum() <= 1.02 * exact.least(it.rows.spends[:, 0])
    assert list(faults(it, plan)) == []


@given(pools)
def test_bettering_never_makes_it_worse(it: Problem) -> None:
    """From what filling finds."""
    price = it.rows.claim + 1.0
    state = State(it, price)
    fill(state, range(len(it.needs.jobs)))
    reprieve(state)
    found = choose(it, price, 30, deepcopy(state), join=False)
    assert not state.better(found)
    assert list(faults(it, found)) == []
