"""By cores alone: the least total by facts, the least waste within a user's budget by claims; large pools soon."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.reclaim.choose.by_cores import CoresNeed, CoresPlan, cores_by_facts, plan_cores
from drainwise.reclaim.choose.plan import ACCOUNT, SITE, USER, Rules, price_by_facts
from drainwise.reclaim.choose.problem import KILL, Limits, Parts, Real, Rows, sums, with_parts
from reached_asserts import judged

ENDLESS = 1e12


def pool(
    sizes: list[int], *, users: int = 1, accounts: int = 1, share: float = 1.0, seed: int = 0, extra: float = np.nan
) -> tuple[Rows, Limits]:
    """Pilots of these cores; an account may lose a share of what it holds, all together without end."""
    dice = np.random.default_rng(seed)
    cores, every = np.array(sizes, dtype=float), np.arange(len(sizes))
    loss: Real = cores * dice.integers(100, 100_000, len(sizes)).astype(float)
    user, account = dice.integers(0, users, len(sizes)), np.arange(users) % accounts
    claim = np.rint(loss * dice.random(len(sizes)) ** 2)
    rows = Rows(
        every,
        np.full(len(sizes), KILL),
        user,
        np.column_stack((cores, 0 * cores)),
        loss,
        claim,
        every,
        0 * every,
        cores[:, None],
    )
    held = np.bincount(account[user], cores, accounts)
    limits = Limits(
        account,
        np.arange(users, dtype=float),
        np.column_stack((account, np.full(users, accounts))),
        np.append(np.floor(share * held), ENDLESS),
        np.zeros(accounts + 1, dtype=np.int64),
        np.full(users, extra),
    )
    return rows, limits


def given_by(rows: Rows, plan: CoresPlan, users: int) -> tuple[Real, Real]:
    """Cores that each user gives by facts and in the end."""
    cores = rows.spends[:, 0]
    facts, last = (sums(rows.user[one], cores[one], users) for one in (plan.by_facts, plan.gone))
    return facts, last


sizes = st.lists(st.integers(1, 32), min_size=1, max_size=9)


@given(sizes, st.integers(1, 300), st.sampled_from((1.0, 0.7, 0.3)), st.integers(0, 9))
def test_one_user_gives_the_least_total_by_facts_and_the_least_waste_by_claims(
    them: list[int], need: int, share: float, seed: int
) -> None:
    """As trying all sets says; where nothing is enough, as much as the limit lets."""
    rows, limits = pool(them, share=share, seed=seed)
    plan = plan_cores(rows, limits, need, Rules())
    every = [np.array(one, dtype=bool) for one in itertools.product((False, True), repeat=len(them))]
    totals = np.array([rows.spends[one, 0].sum() for one in every])
    most = limits.most[0]
    enough = totals[(totals >= need) & (totals <= most)]
    wanted = enough.min() if len(enough) else totals[totals <= most].max()
    assert rows.spends[plan.by_facts, 0].sum() == wanted
    price = rows.claim + 600 * rows.spends[:, 0]
    able = (totals >= min(need, wanted)) & (totals <= plan.budget[0])
    best = min(price[one].sum() for one, fits in zip(every, able) if fits)
    assert price[plan.gone].sum() == pytest.approx(best)


@given(
    st.lists(st.integers(0, 64), min_size=4, max_size=40),
    st.integers(0, 200),
    st.sampled_from(((1, 1), (3, 1), (6, 2), (9, 9))),
    st.sampled_from((1.0, 1.0, 0.6, 0.0)),
    st.sampled_from((USER, ACCOUNT, SITE)),
    st.sampled_from((np.nan, 0.0, 5.0)),
)
def test_limits_and_budgets_are_kept_and_the_need_is_met(
    them: list[int], need: int, who: tuple[int, int], share: float, compete: str, extra: float
) -> None:
    """Whoever competes; in all no less than by facts what was wanted, and never at a higher price."""
    users, accounts = who
    rows, limits = pool(them, users=users, accounts=accounts, share=share, seed=len(them), extra=extra)
    plan = plan_cores(rows, limits, need, Rules(compete=compete))
    facts, last = given_by(rows, plan, users)
    assert (last <= plan.budget + 1e-6).all()
    for account in range(accounts):
        assert last[limits.account == account].sum() <= limits.most[account] + 1e-6
    assert last.sum() >= min(need, facts.sum())
    price = rows.claim + 600 * rows.spends[:, 0]
    assert price[plan.gone].sum() <= price[plan.by_facts].sum() + 1e-6
    judged("claims that lower the waste", bool(price[plan.gone].sum() < price[plan.by_facts].sum()), at_least=0.05)


@given(st.lists(st.integers(1, 32), min_size=4, max_size=30), st.integers(20, 300), st.floats(0, 1e6))
def test_nobodys_report_changes_what_others_lose(them: list[int], need: int, says: float) -> None:
    """Nor how much is given by facts."""
    rows, limits = pool(them, users=3, seed=need)
    claim = np.where(rows.user == 1, says, rows.claim)
    truth, lie = (plan_cores(replace(rows, claim=one), limits, need, Rules()) for one in (rows.claim, claim))
    assert (truth.by_facts == lie.by_facts).all()
    assert (truth.gone == lie.gone)[rows.user != 1].all()


menus = st.lists(st.tuples(st.integers(1, 16), st.booleans()), min_size=1, max_size=4)


@given(menus, st.integers(1, 40), st.sampled_from((np.nan, 0.0)), st.integers(0, 99))
def test_parts_and_whole_pilots_make_the_least_total_by_facts_and_the_least_waste_by_claims(
    them: list[tuple[int, bool]], need: int, extra: float, seed: int
) -> None:
    """As trying all choices says, of at most one part of each pilot or all of it."""
    dice, (rows, limits) = np.random.default_rng(seed), pool([size for size, _ in them], seed=seed, extra=extra)
    some = [(pilot, cores) for pilot, (size, can) in enumerate(them) if can for cores in range(1, size)]
    pilot, cores = np.array(some, dtype=np.int64).reshape(-1, 2).T
    parts = Parts(pilot, cores, np.rint(cores * dice.integers(0, 9000, len(cores))).astype(float), cores < 0)
    rows = with_parts(rows, parts)
    plan = plan_cores(rows, limits, need, Rules(idle=0.0))
    assert np.bincount(rows.pilot[plan.gone], minlength=1).max() <= 1
    ways = [[None, *np.flatnonzero(rows.pilot == one).tolist()] for one in range(len(them))]
    every = [[row for row in choice if row is not None] for choice in itertools.product(*ways)]
    size, facts = rows.spends[:, 0], price_by_facts(rows, limits, 0.0)
    totals = np.array([size[one].sum() for one in every])
    enough = totals >= min(need, totals.max())
    least = min(facts[one].sum() for one, is_enough in zip(every, enough) if is_enough)
    assert facts[plan.by_facts].sum() == pytest.approx(least)
    able = enough & (totals <= plan.budget[0])
    best = min(rows.claim[one].sum() for one, fits in zip(every, able) if fits)
    assert rows.claim[plan.gone].sum() == pytest.approx(best)


def test_one_way_of_a_pilot_goes() -> None:
    """The one that gives most."""
    rows, limits = pool([4, 16, 8])
    rows = replace(rows, pilot=np.array([0, 0, 1]))
    plan = plan_cores(rows, limits, 20, Rules())
    assert plan.by_facts.tolist() == [False, True, True]


@pytest.mark.parametrize("count", [20_000, 200])
def test_a_large_place_is_covered_by_cores(count: int) -> None:
    """Many pilots of one user, of odd sizes: the total is nearly the need."""
    dice = np.random.default_rng(1)
    them = dice.integers(1, 1 << 12, count).tolist()
    rows, limits = pool(them, seed=2)
    need = float(sum(them) // 3)
    plan = plan_cores(rows, limits, need, Rules())
    facts, last = given_by(rows, plan, 1)
    assert need <= facts[0] <= need * 1.001
    assert rows.claim[plan.gone].sum() < 0.5 * rows.claim[plan.by_facts].sum()
    assert need <= last[0] <= plan.budget[0]


@pytest.mark.daemons
@pytest.mark.parametrize("accounts", [30, 90])
def test_many_users_of_many_pilots_are_decided_on_at_once(accounts: int) -> None:
    """Each within its budget and near what was wanted; what one says changes nothing for the others."""
    users, dice = 90, np.random.default_rng(5)
    rows, limits = pool(dice.integers(1, 32, 2000).tolist(), users=users, accounts=accounts, share=0.5, seed=3)
    need = float(rows.spends[:, 0].sum()) * 0.4
    plan = plan_cores(rows, limits, need, Rules())
    facts, last = given_by(rows, plan, users)
    assert need <= facts.sum() < need + 32
    assert (last <= plan.budget + 1e-6).all() and last.sum() >= need
    for account in range(accounts):
        assert last[limits.account == account].sum() <= limits.most[account]
    price = rows.claim + 600 * rows.spends[:, 0]
    assert price[plan.gone].sum() < (0.7 if accounts == users else 1.0) * price[plan.by_facts].sum()
    for liar in np.flatnonzero(facts)[::7].tolist():
        lie = plan_cores(replace(rows, claim=np.where(rows.user == liar, 0, rows.claim)), limits, need, Rules())
        assert (plan.by_facts == lie.by_facts).all()
        assert (plan.gone == lie.gone)[rows.user != liar].all()


def test_own_shares_may_cost_more_and_what_is_delayed_falls_on_nobody_else() -> None:
    """Two users with a pilot of 8 cores each: within 6 cores of the first account none goes, within 12 one."""
    rows, limits = pool([8, 8], users=2, accounts=2, seed=4)
    rows = replace(rows, user=np.array([0, 1]))
    wider, delays = np.array([12.0, 8.0, ENDLESS]), np.zeros(3, dtype=bool)
    for most, own, gives, asked in (
        ((6.0, 8.0, ENDLESS), 0.0, [0, 8], [6, 6]),
        ((6.0, 8.0, ENDLESS), 6.0, [8, 0], [6, 0]),
        ((8.0, 8.0, ENDLESS), 0.0, [8, 0], [6, 0]),
    ):
        facts = cores_by_facts(rows, replace(limits, most=np.array(most)), CoresNeed(6.0, own, wider, delays))
        assert (facts.given.tolist(), facts.asked.tolist(), facts.later.tolist()) == (gives, asked, [0, 0])
    delays[0] = True
    facts = cores_by_facts(rows, replace(limits, most=np.array([4.0, 8, ENDLESS])), CoresNeed(14.0, 0.0, wider, delays))
    assert (facts.given.tolist(), facts.later.tolist()) == ([0, 8], [8, 0])
