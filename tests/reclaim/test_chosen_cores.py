"""By cores from a snapshot: no fewer cores than today's machines give, and no dearer ones."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from drainwise.pool.facts import Pilot
from drainwise.reclaim.choose.plan import IDLE, Rules
from drainwise.reclaim.decide.chosen_cores import chosen_cores
from drainwise.reclaim.decide.core_plans import core_plans
from drainwise.reclaim.history import History
from drainwise.reclaim.quota import weigh

from .facts import NOW, SETTINGS, pilot, reports, snapshot


@st.composite
def some_pilots(draw: st.DrawFn) -> list[Pilot]:
    """Pilots of alice of several sizes, that report whatever they may."""
    sizes = draw(st.lists(st.sampled_from((1, 2, 4, 8, 16)), min_size=1, max_size=9))
    return [pilot(number, draw(reports(cores)), cores=cores) for number, cores in enumerate(sizes)]


@given(some_pilots(), st.integers(0, 60))
def test_as_many_cores_at_no_higher_price(pilots: list[Pilot], deficit: int) -> None:
    """A core beyond the least counts as if it idled for ten minutes."""
    seen = snapshot(*pilots, deficit=deficit, surplus=max(deficit, sum(one.cores for one in pilots)))
    balance = weigh(seen, NOW, SETTINGS.horizon)
    orders = [order for user in core_plans(seen, balance, NOW, SETTINGS, History(), "") for order in user.orders]
    gone = chosen_cores(seen, balance, NOW, SETTINGS, History(), Rules())
    today, ours = sum(one.pilot.cores for one in orders), sum(one.cores for one, _ in gone)
    assert ours >= min(balance.deficit, today)
    assert sum(cost for _, cost in gone) + IDLE * ours <= sum(one.waste for one in orders) + IDLE * today + 1e-6


def test_a_limit_of_a_cycle_is_kept() -> None:
    """Of four pilots of eight cores two are within it, of a user three."""
    seen = snapshot(*(pilot(number) for number in range(4)), deficit=32)
    balance = weigh(seen, NOW, SETTINGS.horizon)
    for limits, most in (({"max_cores": 20}, 2), ({"max_cores_per_user": 24}, 3), ({}, 4)):
        bounded = replace(SETTINGS, **limits)
        assert len(chosen_cores(seen, balance, NOW, bounded, History(), Rules())) == most
