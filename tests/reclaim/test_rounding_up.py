"""A pilot larger than what is lent out goes for those below their own share, and no account loses its own share."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.pool.facts import Account, Pilot, Snapshot
from drainwise.pool.shares import shared_out
from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.plan import Plan
from drainwise.reclaim.prices import POLICIES
from drainwise.reclaim.quota import WhatIf, own_share, weigh
from drainwise.reclaim.settings import OPEN_NEED
from more_examples import more_examples

from .facts import NOW, SETTINGS, account, pilot


def alice_holds_48_of_48(wanted: float, per_job: float, cores: int = 8, share: float = 24.0) -> Snapshot:
    """alice has all cores in pilots of `cores`; bob, who uses none of his share, waits: the rest is lent to her."""
    pilots = tuple(pilot(number, cores=cores) for number in range(48 // cores))
    lent = 48 - min(wanted, 48 - share)
    accounts = (
        dataclasses.replace(account("group_a", 48, lent, priority=900.0), cores_share=share),
        dataclasses.replace(account("group_b", 0, min(wanted, 48 - share), wanted, 1.0, per_job), cores_share=24.0),
    )
    return Snapshot(NOW, pilots, accounts, 0.0, {"alice": 900.0})


def given_back(seen: Snapshot, policy: str = "least-waste") -> int:
    return sum(order.pilot.cores for order in planned(seen, policy).orders)


def planned(seen: Snapshot, policy: str = "least-waste") -> Plan:
    # Where pilots may be killed, the open need waits for one that costs less.
    return make_plan(seen, NOW, dataclasses.replace(SETTINGS, policy=policy, drain_only=policy == OPEN_NEED))


def test_four_cores_come_from_a_pilot_of_eight_and_twelve_from_two() -> None:
    for policy in POLICIES:
        for wanted, cores in ((4, 8), (12, 16)):
            plan = planned(alice_holds_48_of_48(wanted, 4.0), policy)
            later = sum(part.later for part in plan.users)  # what ends by itself may be waited for
            assert sum(order.pilot.cores for order in plan.orders) + later == cores
            assert not later or policy == OPEN_NEED
    assert planned(alice_holds_48_of_48(4, 4.0)).summary.startswith("1 pilot gives back 8 of 4 cores at")


def test_no_more_than_the_next_whole_pilot_goes() -> None:
    assert given_back(alice_holds_48_of_48(1, 1.0)) == 8
    assert given_back(alice_holds_48_of_48(4, 4.0, cores=4)) == 4
    assert given_back(alice_holds_48_of_48(4, 4.0, cores=3)) == 6


def test_an_account_keeps_its_own_share() -> None:
    """Of 48 cores 41 are alice's own: a pilot of 8 would leave her 40."""
    assert given_back(alice_holds_48_of_48(4, 4.0, share=41.0)) == 0
    assert given_back(alice_holds_48_of_48(4, 4.0, share=40.0)) == 8


def test_what_is_wanted_beyond_ones_own_share_makes_nobody_go_below_what_is_lent() -> None:
    """bob uses his own 24 and may have 4 more, as carol leaves hers: alice has but 4 beyond what she is owed."""
    alice, bob = alice_holds_48_of_48(4, 4.0).accounts
    bob = dataclasses.replace(bob, cores_in_use=24.0, cores_owed=28.0, cores_share=24.0)
    seen = dataclasses.replace(alice_holds_48_of_48(4, 4.0), accounts=(alice, bob))
    assert weigh(seen, NOW, SETTINGS.horizon).deficit == 4
    assert given_back(seen) == 0


def test_a_question_is_rounded_up_as_the_cycle_would() -> None:
    plan = make_plan(alice_holds_48_of_48(4, 4.0), NOW, SETTINGS, what_if=WhatIf(4))
    assert sum(order.pilot.cores for order in plan.orders) == 8


def test_parts_of_a_core_make_a_whole_one() -> None:
    """Two accounts hold 0.6 and 0.4 of a core beyond what they are owed: bob's one core comes from the first."""
    pilots = [pilot(number, cores=1) for number in range(24)]
    pilots += [pilot(100 + number, cores=1, account="group_c", user="carol") for number in range(24)]
    accounts = (
        Account("group_a", 24.0, 23.4, 0.0, 900.0, 1.0, 16.0),
        Account("group_b", 0.0, 1.0, 1.0, 1.0, 1.0, 16.0),
        Account("group_c", 24.0, 23.6, 0.0, 800.0, 1.0, 16.0),
    )
    assert given_back(Snapshot(NOW, tuple(pilots), accounts)) == 1


CORES = 48


class FairPool:
    """Accounts with pilots of one size each, and then jobs of one core; none ever ends by itself.

    Free cores go to who uses least of its own share, as batch systems do.
    """

    def __init__(self, accounts: Sequence[tuple[float, int, int, int]]) -> None:
        """accounts: weight, cores of a pilot, pilots, jobs that wait; each takes its pilots from what is left."""
        self.weights = {f"account{place}": one[0] for place, one in enumerate(accounts)}
        self.left = {f"account{place}": one[3] for place, one in enumerate(accounts)}
        self.running: list[Pilot] = []
        self.number = 0
        for name, (_, cores, pilots, _) in zip(self.weights, accounts):
            for _ in range(min(pilots, self.free() // cores)):
                self.start(name, cores)
        self.fill()

    def start(self, name: str, cores: int) -> None:
        self.number += 1
        self.running.append(pilot(self.number, cores=cores, account=name, user=name))

    def use(self, name: str) -> int:
        return sum(one.cores for one in self.running if one.account == name)

    def free(self) -> int:
        return CORES - sum(one.cores for one in self.running)

    def fill(self) -> None:
        while self.free() and any(self.left.values()):
            waiting = [name for name, jobs in self.left.items() if jobs]
            name = min(waiting, key=lambda one: self.use(one) / self.weights[one])
            self.left[name] -= 1
            self.start(name, 1)

    def snapshot(self) -> Snapshot:
        needs = {name: float(self.use(name) + self.left[name]) for name in self.weights}
        owed = shared_out(CORES, self.weights, needs)
        own = shared_out(CORES, self.weights, {name: math.inf if need else 0.0 for name, need in needs.items()})
        accounts = tuple(
            Account(
                name, float(self.use(name)), owed[name], float(self.left[name]), self.use(name) / weight, 1.0, own[name]
            )
            for name, weight in self.weights.items()
        )
        return Snapshot(NOW, tuple(self.running), accounts, float(self.free()))


@pytest.mark.daemons
@given(
    st.lists(
        st.tuples(st.sampled_from([1.0, 1.0, 2.0, 3.5]), st.integers(1, 12), st.integers(0, 48), st.integers(0, 48)),
        min_size=2,
        max_size=4,
    )
)
@more_examples(3.75)
def test_accounts_do_not_make_each_other_give_back_in_turns(accounts: list[tuple[float, int, int, int]]) -> None:
    """Orders come to an end, nobody goes below its own share, and of what a user gives no pilot could be left out."""
    pool = FairPool(accounts)
    for _ in range(CORES):
        seen = pool.snapshot()
        plan = planned(seen)
        if not plan.orders:
            break
        for user in plan.users:
            [account] = [one for one in seen.accounts if one.name == user.account]
            cores = [one.pilot.cores for one in user.orders]
            assert not cores or account.cores_in_use - sum(cores) >= own_share(account) - 1e-6
            assert not cores or sum(cores) - min(cores) < user.cores
        gone = {one.pilot.run for one in plan.orders}
        pool.running = [one for one in pool.running if one.run not in gone]
        pool.fill()
    else:
        raise AssertionError("orders are given for ever")
    below = [one for one in pool.snapshot().accounts if one.cores_wanted and one.cores_in_use + 1 <= own_share(one)]
    above = [one for one in pool.snapshot().pilots if _may_go(pool.snapshot(), one)]
    assert not (below and above)


def _may_go(seen: Snapshot, one: Pilot) -> bool:
    """Whether its account has more than it is owed, and its own share without it."""
    [account] = [each for each in seen.accounts if each.name == one.account]
    return (
        account.cores_in_use > account.cores_owed + 1e-6
        and account.cores_in_use - one.cores >= own_share(account) - 1e-6
    )
