"""Many cycles of an agent while a job waits that only a whole set of pilots serves, or a request stands: each order is
given once.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import pytest

from drainwise.agent.cycle import AgentCycle, ConfirmedWithdrawals
from drainwise.journal.memory import Memory
from drainwise.reclaim.settings import ReclaimSettings
from drainwise.requests.request import AdminRequest, RequestFiles
from more_examples import combined, most_of

from .full_nodes import MINUTE, FullNodes
from .memory_pool import NOW, SETTINGS, Lines

SITE = replace(SETTINGS, policy="open-need", waiting_cost=0.02, min_age=60, order_latency=60)
"""What a site has that sets nothing."""
LEAST_WASTE = replace(SITE, policy="least-waste", waiting_cost=0.0)
NODES, FEW = most_of((9, 6), (24, 24))
LONGEST, EACH = 180, most_of(2, 1)
"""Minutes of a play, and between two cycles."""
LEASES = {"endless": None, "ending": (3600, 40_000)}
"""Seconds that the pilots' leases have left."""
LONG = {"short": (5, 60), "long": (60, 360)}
"""Minutes that payloads take."""


@dataclass(frozen=True)
class Played:
    """How many orders were given and withdrawn, and after how many minutes the job started; None if it did not."""

    ordered: int
    withdrawn: int
    minutes: int | None


def play(pool: FullNodes, settings: ReclaimSettings, *requests: AdminRequest) -> Played:
    """Play an agent until bob's job starts; requests: that stand until their time."""
    memory, confirmed, journal = Memory(), ConfirmedWithdrawals(), Lines(100_000)
    for minute in range(LONGEST):
        pool.pass_to(NOW + MINUTE * minute)
        if pool.started:
            break
        if minute % EACH:
            continue
        done = AgentCycle(
            pool,
            settings,
            memory,
            journal,
            lambda: pool.now,
            acting=True,
            confirmed=confirmed,
            requests=RequestFiles("", requests),
        ).run()
        assert done.fault == ""
    acts = Counter(act for act, _ in pool.acts)
    return Played(acts["ordered"], acts["withdrawn"], (pool.started - NOW) // MINUTE if pool.started else None)


@pytest.mark.daemons
@pytest.mark.parametrize(("size", "leases", "long"), combined(["2x1", "4x1", "8x1", "4x2", "1x2"], LEASES, LONG))
def test_a_set_is_ordered_once_and_the_job_starts_as_soon_as_by_least_waste(size: str, leases: str, long: str) -> None:
    """A job of whole nodes; each has one pilot or two. By least-waste each pilot of the set gets one order."""
    wanted, each = map(int, size.split("x"))
    by_waste, found = (
        play(FullNodes(NOW, NODES, wanted, each, leases=LEASES[leases], long=LONG[long]), one)
        for one in (LEAST_WASTE, SITE)
    )
    assert by_waste.minutes is not None
    assert found.minutes is not None and found.minutes <= by_waste.minutes + 5
    assert found.ordered <= 1.2 * wanted * each and found.withdrawn <= 0.2 * wanted * each


@pytest.mark.parametrize("each", [1, 2])
def test_a_node_that_comes_free_for_some_minutes_takes_none_of_the_set_its_order(each: int) -> None:
    """A node beside the pilots' is up for three minutes."""
    pool = FullNodes(NOW, NODES, 4, each, long=LONG["long"])
    pool.up = range(NOW + 3 * MINUTE, NOW + 6 * MINUTE)
    found = play(pool, SITE)
    assert found.minutes is not None and (found.ordered, found.withdrawn) == (4 * each, 0)


REQUESTS = {
    "drain": AdminRequest("d", NOW, NOW + 7200, nodes=("n00", "n01", "n02", "n03")),
    "cores": AdminRequest("c", NOW, NOW + 7200, cores=32, user="alice"),
}


@pytest.mark.daemons
@pytest.mark.parametrize(("request_", "each", "leases"), combined(REQUESTS, [1, 2], LEASES))
def test_the_orders_for_a_request_are_given_once_and_stand(request_: str, each: int, leases: str) -> None:
    """Nobody waits: each pilot of four nodes, or of 32 cores, gets one."""
    found = play(FullNodes(NOW, FEW, 0, each, leases=LEASES[leases], long=LONG["long"]), SITE, REQUESTS[request_])
    assert (found.ordered, found.withdrawn) == (4 * each, 0)
