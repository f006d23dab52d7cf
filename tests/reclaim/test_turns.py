"""With equal priorities no user always pays: who gave back least lately is first, else the day decides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.pilotad.report import PilotReport
from drainwise.pool.facts import Pilot, Snapshot
from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.history import DAY, History, PastOrder
from reached_asserts import judged

from .facts import NOW, SETTINGS, account, believed, pilot, reports

USERS = ("alice", "carol", "dave")


def pool_of(said: PilotReport | None = None, priorities: Mapping[str, float] | None = None, each: int = 8) -> Snapshot:
    """Three users of one account with as many pilots each, of which one pilot is to go."""
    pilots = [
        pilot(10 * place + number, said if user == "alice" else None, user=user)
        for place, user in enumerate(USERS)
        for number in range(each)
    ]
    cores = sum(one.cores for one in pilots)
    accounts = (account("group_a", cores, cores - 8, priority=900.0), account("group_b", 0, 8, wanted=8))
    known = dict.fromkeys(USERS, 900.0) if priorities is None else dict(priorities)
    return Snapshot(NOW, tuple(pilots), accounts, 0.0, known)


def payer(seen: Snapshot, now: int = NOW, *orders: PastOrder) -> str:
    """Who gives the cores back."""
    [order] = make_plan(seen, now, SETTINGS, History(orders=orders)).orders
    return order.pilot.user


def test_over_many_cycles_each_gives_back_as_much_as_the_others() -> None:
    """Thirty cycles of a pilot each: ten of each user."""
    seen = pool_of()
    orders: list[PastOrder] = []
    for cycle in range(30):
        now = NOW + 1200 * cycle
        orders.append(PastOrder(now, payer(seen, now, *orders), 8))
    assert Counter(one.user for one in orders) == dict.fromkeys(USERS, 10)


@pytest.mark.daemons
def test_without_a_journal_the_day_decides() -> None:
    """No name is first for ever; within a day it is always the same one."""
    seen = pool_of()
    days = [(NOW // DAY + 1 + number) * DAY for number in range(40)]
    first = [payer(seen, day) for day in days]
    assert set(first) == set(USERS)
    assert first == [payer(seen, day + DAY - 1) for day in days]


@pytest.mark.parametrize("worst", USERS)
def test_the_worst_priority_is_first_whatever_it_gave_back(worst: str) -> None:
    seen = pool_of(priorities={**dict.fromkeys(USERS, 900.0), worst: 900.1})
    assert payer(seen, NOW, PastOrder(NOW - 60, worst, 800)) == worst


def test_accounts_take_turns_as_well() -> None:
    """Of two accounts with the same priority the one whose users gave back less within the day."""
    pilots: list[Pilot] = [pilot(n, user="alice") for n in range(4)]
    pilots += [pilot(10 + n, user="dave", account="group_d") for n in range(4)]
    over = [account(name, 32, 24, priority=900.0) for name in ("group_a", "group_d")]
    seen = Snapshot(NOW, tuple(pilots), (*over, account("group_b", 0, 8, wanted=8)), 0.0, {})
    assert payer(seen, NOW, PastOrder(NOW - 7200, "alice", 8)) == "dave"
    assert payer(seen, NOW, PastOrder(NOW - 7200, "dave", 8)) == "alice"
    assert payer(seen, NOW, PastOrder(NOW - DAY, "dave", 8)) == payer(seen, NOW), "a day is over"


@given(reports(), st.lists(st.sampled_from(USERS), max_size=6))
def test_no_claim_changes_whose_turn_it_is(said: PilotReport | None, gave: list[str]) -> None:
    judged("a believed report", believed(*pool_of(said).pilots) > 0, at_least=0.2)
    orders = [PastOrder(NOW - 7200, user, 8) for user in gave]
    assert payer(pool_of(said), NOW, *orders) == payer(pool_of(), NOW, *orders)
