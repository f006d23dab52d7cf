"""Many cycles of an agent while a job waits that only a whole set of pilots serves: its orders are given once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import pytest

from drainwise.agent.cycle import run_cycle
from drainwise.agent.loop_memory import ConfirmedWithdrawals
from drainwise.journal.memory import Memory
from drainwise.reclaim.settings import ReclaimSettings

from .full_nodes import MINUTE, FullNodes
from .memory_pool import NOW, SETTINGS, Lines

SITE = replace(SETTINGS, policy="open-need", waiting_cost=0.02, min_age=60, order_latency=60)
"""What a site has that sets nothing."""
LEAST_WASTE = replace(SITE, policy="least-waste", waiting_cost=0.0)
NODES = 24
LONGEST = 180
"""Minutes of a play."""
ENDLESS, ENDING = None, (3600, 40_000)
"""Seconds that the pilots' leases have left."""
SHORT, LONG = (5, 60), (60, 360)
"""Minutes that payloads take."""


@dataclass(frozen=True)
class Played:
    """How many orders were given and withdrawn, and after how many minutes the job started; None if it did not."""

    ordered: int
    withdrawn: int
    minutes: int | None


def play(pool: FullNodes, settings: ReclaimSettings) -> Played:
    """Play an agent with a cycle each minute until bob's job starts."""
    memory, confirmed, journal = Memory(), ConfirmedWithdrawals(), Lines(100_000)
    for minute in range(LONGEST):
        pool.pass_to(NOW + MINUTE * minute)
        if pool.started:
            break
        done = run_cycle(
            pool,
            settings,
            memory,
            journal,
            lambda: pool.now,
            acting=True,
            confirmed=confirmed,
        )
        assert done.fault == ""
    acts = Counter(act for act, _ in pool.acts)
    return Played(acts["ordered"], acts["withdrawn"], (pool.started - NOW) // MINUTE if pool.started else None)


@pytest.mark.parametrize("long", [SHORT, LONG], ids=["short", "long"])
@pytest.mark.parametrize("leases", [ENDLESS, ENDING], ids=["endless", "ending"])
@pytest.mark.parametrize(("wanted", "each"), [(4, 1), (8, 1), (4, 2), (1, 2)])
def test_a_set_is_ordered_once_and_the_job_starts_as_soon_as_by_least_waste(
    wanted: int, each: int, leases: tuple[int, int] | None, long: tuple[int, int]
) -> None:
    """A job of whole nodes; each has one pilot or two. By least-waste each pilot of the set gets one order."""
    by_waste, found = (
        play(FullNodes(NOW, NODES, wanted, each, leases=leases, long=long), one) for one in (LEAST_WASTE, SITE)
    )
    assert by_waste.minutes is not None
    assert found.minutes is not None and found.minutes <= by_waste.minutes + 5
    assert found.ordered <= 1.2 * wanted * each and found.withdrawn <= 0.2 * wanted * each
