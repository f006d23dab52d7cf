"""Waiting jobs with a rule that nobody has told: named, given room where they are planned, and never for ever."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import pytest

from drainwise.agent.cycle import AgentCycle, Cycle
from drainwise.journal.memory import Memory
from drainwise.journal.remembered import untaken_event, untaken_of
from drainwise.pool.amounts import amounts
from drainwise.pool.facts import Account, Ending, Pilot, Snapshot
from drainwise.pool.job_kinds import JobKind, Place, kind_name
from drainwise.reclaim.counted_demand import UntakenRoom, watched_room, with_untaken
from drainwise.reclaim.settings import ReclaimSettings
from drainwise.reclaim.unmet_demand import UnmetDemand
from memory_pool import MemoryPool
from more_examples import most_of

BEGIN, CORES, HOUR, DAY = 1_795_249_000, 8, 3600, 86_400
SETTINGS = ReclaimSettings(
    policy="least-waste",
    horizon=7200,
    grace=7200,
    max_grace=7200,
    heartbeat_limit=3600,
    min_grace=0,
    max_cores=1000,
    max_cores_per_user=1000,
    max_cores_per_user_hour=1000,
    min_age=0,
    drain_only=False,
)
CLUSTERS = most_of(6, 500)
"""Each runs for a day and a half, if its jobs' kind has no places."""


@dataclass
class HiddenRule(MemoryPool):
    """alice has pilots on all nodes; bob waits with jobs that start by `starts` alone, whatever they ask.

    A node that is empty for bob's job takes it. knows: whether the job's kind has places where it should do; planned:
    the node where the batch system means to start it.
    """

    nodes: list[str]
    sizes: dict[str, list[int]]
    each: int
    jobs: int
    starts: Callable[[HiddenRule, str], bool]
    knows: bool
    planned: str
    now: int = BEGIN
    running: dict[str, Pilot] = field(default_factory=dict)
    started: dict[str, int] = field(default_factory=dict)
    leaves: dict[str, int] = field(default_factory=dict)
    gone: list[tuple[int, str]] = field(default_factory=list)
    changed: int = BEGIN

    def __post_init__(self) -> None:
        super().__init__()
        for node, sizes in self.sizes.items():
            for number, cores in enumerate(sizes):
                name = f"{node}-{number}"
                holds = amounts(cores)
                pilot = Pilot(f"{name}@{BEGIN}", name, node, "a", "alice", cores, BEGIN - HOUR * (1 + number))
                self.running[pilot.run] = replace(pilot, place=node, holds=holds)

    def free(self, node: str) -> int:
        """The free cores of a node."""
        held = sum(one.cores for one in self.running.values() if one.node == node)
        return CORES - held - self.each * (self.started.get(node, 0) > 0)

    def pass_to(self, now: int) -> None:
        """Pilots with orders end, and bob's jobs start where the rule lets them."""
        self.now = now
        for run, at in list(self.leaves.items()):
            if at <= now:
                del self.leaves[run]
                pilot = self.running.pop(run)
                self.ended[run] = Ending(run, at, False)
                self.gone.append((now, pilot.node))
                self.changed = now
        for node in self.nodes:
            if self.jobs and node not in self.started and self.free(node) >= self.each and self.starts(self, node):
                self.started[node] = now
                self.jobs -= 1
                self.changed = now

    def kind(self) -> JobKind:
        needs = amounts(self.each)
        classes, planned = frozenset({"all"} if self.knows else ()), frozenset({self.planned} - {""})
        return JobKind(kind_name("b", needs, ""), "b", self.jobs, needs, classes, planned=planned)

    def snapshot(self, now: int) -> Snapshot:
        total, used = CORES * len(self.nodes), sum(one.cores for one in self.running.values())
        own = sum(1 for _ in self.started) * self.each
        wanted = float(self.jobs * self.each) if self.knows else 0.0
        idle = float(sum(self.free(node) for node in self.nodes))
        owed = min(total, own + wanted)
        accounts = (
            Account("a", float(used), max(0.0, used - wanted), 0.0, 2.0, cores_share=0.0),
            Account("b", float(own), owed, wanted, 0.5, float(self.each), cores_share=float(total)),
        )
        places = tuple(Place(one, one, "all", amounts(self.free(one)), amounts(CORES)) for one in self.nodes)
        jobs = tuple(self.jobs_running())
        return Snapshot(
            now,
            (*self.running.values(), *jobs),
            accounts,
            idle,
            {"alice": 2.0},
            (),
            (self.kind(),) if self.jobs else (),
            places,
        )

    def jobs_running(self) -> list[Pilot]:
        return [
            replace(
                Pilot(f"b-{node}@{at}", f"b-{node}", node, "b", "bob", self.each, at),
                place=node,
                holds=amounts(self.each),
            )
            for node, at in self.started.items()
        ]

    def give_order(self, pilot: Pilot, deadline: int, reason: str) -> None:
        super().give_order(pilot, deadline, reason)
        self.running[pilot.run] = replace(self.running[pilot.run], deadline=deadline)
        self.leaves[pilot.run] = min(deadline, self.now + 300)

    def withdraw_order(self, pilot: Pilot, reason: str) -> None:
        super().withdraw_order(pilot, reason)
        self.running[pilot.run] = replace(self.running[pilot.run], deadline=None)
        self.leaves.pop(pilot.run, None)


RULES: dict[str, Callable[[HiddenRule, str], bool]] = {
    "an empty node": lambda pool, node: not any(one.node == node for one in pool.running.values()),
    "one node": lambda pool, node: node == pool.nodes[-1],
    "the planned node, empty": lambda pool, node: (
        node == pool.planned and not any(one.node == node for one in pool.running.values())
    ),
    "none": lambda _pool, _node: False,
}


def cluster(seed: int) -> HiddenRule:
    """Make up a cluster with a rule."""
    draw = random.Random(seed)
    nodes = [f"n{number}" for number in range(draw.randint(2, 5))]
    sizes = {node: draw.choice([[8], [4, 4], [4], [2, 2, 2], [6], [2, 2, 2, 2]]) for node in nodes}
    knows = draw.random() < 0.6
    planned = draw.choice(nodes) if draw.random() < 0.7 else ""
    rule = draw.choice(list(RULES))
    return HiddenRule(nodes, sizes, draw.choice([1, 2, 4, 8]), draw.randint(1, 3), RULES[rule], knows, planned)


def is_named(cycle: Cycle) -> bool:
    """Whether a cycle says of bob's job what becomes of it, or gives an order for it, or one stands."""
    plan = cycle.plan
    assert plan is not None
    standing = plan.balance.leaving > 0 or bool(plan.orders)
    named = any(" b " in f" {text} " or "of b" in text for text in plan.notices)
    return standing or named or "just come back" in plan.summary or bool(plan.paused)


def play(pool: HiddenRule, until: int = 36 * HOUR) -> list[Cycle]:
    """Run the agent's cycles on a cluster: each minute for two hours, then each quarter of an hour."""
    memory, done = Memory(), list[Cycle]()
    for second in (*range(0, 2 * HOUR, 60), *range(2 * HOUR, until, 900)):
        now = BEGIN + second
        pool.pass_to(now)
        done.append(AgentCycle(pool, SETTINGS, memory, None, partial(int, now), acting=True).run())
        assert done[-1].plan is not None, done[-1].fault
        is_owed = (len(pool.started) + 1) * pool.each <= CORES * len(pool.nodes)
        if pool.jobs and is_owed and now > pool.changed + 3 * SETTINGS.time_to_start and not pool.leaves:
            assert is_named(done[-1]), (second, done[-1].plan)
            assert "nobody" not in done[-1].plan.summary, (second, done[-1].plan)
    return done


@pytest.mark.daemons
@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", range(10))
def test_no_job_waits_for_ever_unnamed(part: int) -> None:
    """Three times the time to start after a change each cycle says what becomes of a job, never that nobody waits.

    Pilots go at most once a day for a kind of jobs that fits no place.
    """
    for seed in range(part, CLUSTERS, 10):
        pool = cluster(seed)
        play(pool, most_of(12, 36) * HOUR if pool.knows else 36 * HOUR)
        if not pool.knows:
            times = sorted({time for time, _ in pool.gone})
            rounds = [time for index, time in enumerate(times) if not index or time - times[index - 1] > HOUR]
            assert all(later - earlier >= DAY - HOUR for earlier, later in zip(rounds, rounds[1:])), (seed, rounds)
            assert len(rounds) <= 2


def unplaced_cluster(starts: str, planned: str = "n1") -> HiddenRule:
    sizes = {"n0": [4, 4], "n1": [4, 4], "n2": [8]}
    return HiddenRule(list(sizes), sizes, 4, 1, RULES[starts], False, planned)


def test_a_job_that_nobody_can_place_gets_the_whole_node_where_it_is_planned() -> None:
    """After twice the time to start; only what is there goes, and the job starts."""
    pool = unplaced_cluster("the planned node, empty")
    done = play(pool, 3 * HOUR)
    ordered = [cycle for cycle in done if cycle.plan and cycle.plan.orders]
    assert ordered[0].started - BEGIN == 2 * SETTINGS.time_to_start
    assert [node for _, node in pool.gone] == ["n1", "n1"]
    assert list(pool.started) == ["n1"]


def test_nothing_goes_for_a_job_that_is_planned_nowhere() -> None:
    """It is named with the fact that decided, in the plan and by its sentence."""
    pool = unplaced_cluster("none", planned="")
    done = play(pool, 3 * HOUR)
    assert not pool.gone
    plan = done[-1].plan
    assert plan is not None
    [found] = plan.unplaced
    assert (found.account, found.jobs, found.since) == ("b", 1, BEGIN)
    assert found.sentence in plan.notices and found.sentence.endswith("4 cores: it fits no node")
    assert plan.summary == "1 waiting job of b waits for room, and it is not known where: nothing to give back"


def test_room_that_is_not_taken_is_none() -> None:
    """Four free cores on n0 are no room after the time to start; then a pilot goes elsewhere."""
    sizes = {"n0": [4], "n1": [8]}
    pool = HiddenRule(list(sizes), sizes, 4, 1, RULES["one node"], True, "")
    done = play(pool, 3 * HOUR)
    first = next(cycle for cycle in done if cycle.plan and cycle.plan.orders)
    assert first.started - BEGIN == SETTINGS.time_to_start
    assert list(pool.started) == ["n1"]


def test_where_no_free_core_can_be_taken_none_is_free() -> None:
    pool = HiddenRule(["n0"], {"n0": [4]}, 4, 1, RULES["none"], True, "")
    known = watched_room({}, {}, pool.snapshot(BEGIN), BEGIN)
    for later, free in ((SETTINGS.time_to_start - 1, 4.0), (SETTINGS.time_to_start, 0.0)):
        seen = pool.snapshot(BEGIN + later)
        assert with_untaken(seen, known, {}, BEGIN + later, SETTINGS).free_cores == free


def test_a_change_ends_what_is_remembered() -> None:
    """Other free cores, or a job that started, begin the time anew; what ended is forgotten."""
    pool = HiddenRule(["n0"], {"n0": [4]}, 4, 2, RULES["none"], True, "")
    known = watched_room({}, {}, pool.snapshot(BEGIN), BEGIN)
    [name] = known
    assert known[name] == UntakenRoom("b", name, 2, BEGIN, {"n0": (4, BEGIN)})
    later = watched_room(known, {}, pool.snapshot(BEGIN + 60), BEGIN + 60)
    assert later == known
    pool.jobs = 1
    started = watched_room(later, {}, pool.snapshot(BEGIN + 120), BEGIN + 120)
    assert started[name].places == {"n0": (4, BEGIN + 120)}
    pool.jobs = 0
    assert watched_room(started, {}, pool.snapshot(BEGIN + 180), BEGIN + 180) == {}


@pytest.mark.parametrize("knows", [False, True])
def test_room_counts_as_made_for_jobs_that_nobody_can_place(knows: bool) -> None:
    """When orders were given for them after they were first seen; never after now, and never forgotten."""
    sizes = {"n0": [4, 4], "n1": [4]}
    pool = HiddenRule(list(sizes), sizes, 4, 1, RULES["none"], knows, "n0")
    known = watched_room({}, {}, pool.snapshot(BEGIN), BEGIN)
    [name] = known
    unmet = {name: UnmetDemand("b", ordered=BEGIN + 50, kind=name)}
    made = [
        watched_room(before, unmet, pool.snapshot(now), now)[name].made
        for before, now in (({}, BEGIN + 60), (known, BEGIN + 60), (known, BEGIN + 40))
    ]
    assert made == ([0, 0, 0] if knows else [0, BEGIN + 50, BEGIN + 40])
    past = {name: replace(known[name], made=BEGIN - 9)}
    assert watched_room(past, {}, pool.snapshot(BEGIN + 60), BEGIN + 60)[name].made == BEGIN - 9


def test_the_journal_keeps_it() -> None:
    """As an event of each change; the last one tells that nothing is to be remembered."""
    one = UntakenRoom("b", "b:4c-1", 3, BEGIN, {"n0": (4, BEGIN), "n1": (6, BEGIN + 5)}, BEGIN - 7)
    memory = Memory()
    memory.note(untaken_event(one, BEGIN))
    assert untaken_of(untaken_event(one, BEGIN)) == one
    assert dict(memory.history(BEGIN).untaken) == {one.kind: one}
    memory.note(untaken_event(UntakenRoom("b", one.kind), BEGIN + 1))
    assert not memory.history(BEGIN).untaken
