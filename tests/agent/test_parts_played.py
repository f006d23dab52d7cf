"""Many cycles of an agent that asks for parts, in a small pool in which everything takes its time."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from drainwise.agent.cycle import AgentCycle, ConfirmedWithdrawals
from drainwise.journal.memory import Memory
from more_examples import combined

from .lending_pool import Delays, LendingNodes, PlayedPilot
from .memory_pool import NOW, SETTINGS, Lines

ASK = replace(SETTINGS, horizon=2400, grace=2400, min_grace=2400, margin=20, drain_only=True)
FULL = 40  # seconds after which each pilot is full
SLOW = Delays(60, 60, 60, 60)
"""With HTCondor's default intervals."""


def lending_pool(
    nodes: str, bobs: list[int], long: int = 4, delays: Delays | None = None, smallest_first: bool = False
) -> LendingNodes:
    """A pilot of 8 cores on each of these nodes (the same one again and again, or others), `long` of them for long."""
    pilots = [
        PlayedPilot(number, node, 8, long, (15, 16, 17, 18, 19, 20, 21), NOW) for number, node in enumerate(nodes)
    ]
    cores = {node: 8 * count for node, count in Counter(nodes).items()}
    return LendingNodes(pilots, cores, bobs, NOW, delays or Delays(), smallest_first)


def play_agent(pool: LendingNodes, period: int, seconds: int) -> None:
    """Play an agent with that period until bob's jobs all run, and some cycles more."""
    memory, confirmed = Memory(), ConfirmedWithdrawals()
    pool.play(FULL)
    end = pool.now + seconds
    while pool.now < end:
        done = AgentCycle(pool, ASK, memory, Lines(), lambda: pool.now, acting=True, confirmed=confirmed).run()
        assert done.fault == ""
        pool.play(period)
        if not pool.idle:
            end = min(end, pool.now + max(60, 4 * period))


def wishes(pool: LendingNodes) -> list[list[int]]:
    """What each pilot was asked for, one wish after the other."""
    return [[cores for _, run, cores in pool.log if run == one.run] for one in pool.pilots]


KINDS = {
    "half of it": ([4, 4, 1, 1, 1, 1], 4),
    "two of three pilots": ([4, 4], 4),
    "together on a node": ([6, 2, 2, 2], 2),
    "several kinds of one pilot": ([4, 1, 1, 4, 1, 1], 2),
}
PERIODS = {"quick": (2, None, 60), "slow": (60, SLOW, 400)}


@pytest.mark.daemons
@pytest.mark.parametrize(("kinds", "nodes", "each"), combined(KINDS, ["nnn", "abc"], PERIODS))
def test_jobs_of_several_kinds_get_their_cores_and_no_pilot_goes(kinds: str, nodes: str, each: str) -> None:
    """In time, and each pilot is asked once, and for nothing when nobody waits any more."""
    (bobs, long), (period, delays, seconds) = KINDS[kinds], PERIODS[each]
    pool = lending_pool(nodes, bobs, long, delays)
    play_agent(pool, period, seconds)
    assert (pool.idle, pool.orders) == ([], [])
    assert all(sorted(one, reverse=True) == one and len(one) <= 2 for one in wishes(pool)), wishes(pool)


@pytest.mark.parametrize("bobs", [[4, 4, 1, 1, 1, 1], [6, 2, 2, 2]])
def test_what_small_jobs_took_is_completed_on_the_node(bobs: list[int]) -> None:
    """The scheduler starts the smallest first, in what came back for the large ones: no pilot goes for these."""
    pool = lending_pool("nnn", bobs, 12 // len(bobs) + 1 if bobs[0] == 6 else 4, smallest_first=True)
    play_agent(pool, 2, 120)
    assert (pool.idle, pool.orders) == ([], [])


@pytest.mark.parametrize("seed", range(6))
def test_whatever_waits_for_half_of_a_node_gets_it_from_pilots_that_go_on(seed: int) -> None:
    """Jobs of 1 to 6 cores, by chance; the scheduler starts them in any order, and all learn of all late."""
    chance, bobs = random.Random(seed), list[int]()
    while (cores := chance.choice((1, 1, 2, 4, 6))) <= 12 - sum(bobs):
        bobs.append(cores)
    late = chance.choice((2, 10, 20))
    delays = Delays(late, late, chance.choice((5, 20)), late)
    pool = lending_pool("nnn", bobs, chance.choice((2, 3, 4)), delays, smallest_first=chance.random() < 0.5)
    play_agent(pool, chance.choice((5, 20)), 400)
    assert (pool.idle, pool.orders) == ([], [])


def test_a_small_job_in_the_place_of_a_large_one_ends_no_pilot() -> None:
    """At default intervals, on three nodes: another pilot returns the rest, later."""
    pool = lending_pool("abc", [4, 1, 1], 4, SLOW, smallest_first=True)
    play_agent(pool, 60, 600)
    assert (pool.idle, pool.orders) == ([], [])


def test_one_pilot_serves_several_kinds() -> None:
    """4 + 1 + 1 of a pilot of 8 cores."""
    pool = lending_pool("n", [4, 1, 1], 2)
    pool.cores_owed = 6.0
    play_agent(pool, 2, 60)
    assert (pool.idle, pool.orders, wishes(pool)) == ([], [], [[6, 0]])
