"""Cores that nobody can use are not taken for ever: days of cycles against accounts whose jobs do not start."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Callable, Collection
from pathlib import Path

import pytest

from drainwise.agent.cycle import AgentCycle, ConfirmedWithdrawals, Cycle
from drainwise.facts.errors import PoolUnreachable
from drainwise.journal.file import JournalFile
from drainwise.journal.memory import Memory
from drainwise.journal.read import files_of
from drainwise.pool.facts import Account, Ending, Pilot, Snapshot
from drainwise.requests.request import RequestFiles
from more_examples import most_of

from .memory_pool import NOW, SETTINGS

PERIOD = 60
DAY = 86_400
SITE = dataclasses.replace(SETTINGS, max_cores_per_user_hour=1_000_000, time_to_start=180)


@dataclasses.dataclass
class Queue:
    """One account's jobs of `cores`: those that can start on freed cores, those that cannot; those that run."""

    cores: int = 8
    possible: int = 0
    impossible: int = 0
    running: list[Running] = dataclasses.field(default_factory=list)

    @property
    def use(self) -> int:
        return sum(one.cores for one in self.running)


@dataclasses.dataclass(frozen=True)
class Running:
    """A job that runs until `ends`; "" is a node on which no pilot is."""

    node: str
    started: int
    ends: float
    cores: int


class RefilledPool:
    """alice's next pilot takes whatever is free and nobody else can use; a pilot leaves `drains` s after its order."""

    def __init__(self, nodes: int = 6, drains: int = 50, **queues: Queue) -> None:
        self.nodes, self.drains, self.queues = [f"n{number}" for number in range(nodes)], drains, queues
        self.pilots: dict[str, Pilot] = {}
        self.ordered: list[int] = []  # when each order was given
        self.now, self.number = NOW, 0
        self.lasts = 1e9
        self.refill()

    def refill(self) -> None:
        for node in self.nodes:
            free = 8 - sum(one.cores for one in self.pilots.values() if one.node == node)
            free -= sum(one.cores for queue in self.queues.values() for one in queue.running if one.node == node)
            while fitting := [one for one in self.queues.values() if one.possible and one.cores <= free]:
                queue = min(fitting, key=lambda one: one.use)
                queue.possible -= 1
                queue.running.append(Running(node, self.now, self.now + self.lasts, queue.cores))
                free -= queue.cores
            if free >= 8:
                one = self.job(node, self.now, 8, "a")
                self.pilots[one.run] = one

    def job(self, node: str, started: int, cores: int, account: str) -> Pilot:
        self.number += 1
        run = f"ce#{self.number}.0#{started}@{started}"
        return Pilot(run, f"slot1_{self.number}@{node}", node, account, "alice", cores, started)

    def pass_to(self, now: int) -> None:
        self.now = now
        for run, one in list(self.pilots.items()):
            if one.deadline is not None and one.deadline <= now:
                del self.pilots[run]
        for queue in self.queues.values():
            queue.running = [job for job in queue.running if job.ends > now]
        self.refill()

    def snapshot(self, now: int) -> Snapshot:
        accounts = [Account("a", float(8 * len(self.pilots)), 0.0, 0.0, 900.0)]
        jobs = list(self.pilots.values())
        for name, queue in self.queues.items():
            wanted = queue.cores * (queue.possible + queue.impossible)
            accounts.append(Account(name, float(queue.use), 24.0, float(wanted), 500.0, float(queue.cores)))
            jobs += [self.job(one.node, one.started, one.cores, name) for one in queue.running]
        return Snapshot(now, tuple(jobs), tuple(accounts), 0.0, {"alice": 900.0})

    def give_order(self, pilot: Pilot, deadline: int, reason: str) -> None:
        self.ordered.append(self.now)
        self.pilots[pilot.run] = dataclasses.replace(pilot, deadline=self.now + self.drains)

    def withdraw_order(self, pilot: Pilot, reason: str) -> None:
        self.pilots[pilot.run] = dataclasses.replace(pilot, deadline=None)

    def endings(self, runs: Collection[str], now: int) -> dict[str, Ending]:
        return {run: Ending(run, now, vacated=False) for run in runs}

    def follow_up(self, snapshot: Snapshot) -> list[str]:
        return []


class Played:
    """Cycles against a pool; with a journal that a new memory is read from in each cycle where `anew`."""

    def __init__(self, pool: RefilledPool, place: Path, anew: bool = False) -> None:
        self.pool, self.anew = pool, anew
        self.path = str(place / "journal")
        self.journal, self.memory, self.confirmed = JournalFile(self.path), Memory(), ConfirmedWithdrawals()
        self.last: Cycle | None = None

    def until(self, end: int, change: Callable[[int], None] = lambda _: None, paused_period: int = PERIOD) -> None:
        """Cycles to `end`, UNIX s, one in PERIOD; where some demand is paused, one in `paused_period`, s."""
        while self.pool.now < end:
            now = self.pool.now + (paused_period if self.last and self.notices else PERIOD)
            self.pool.pass_to(now)
            change(now)
            memory = Memory.load(files_of(self.path), now) if self.anew else self.memory
            self.last = AgentCycle(
                self.pool, SITE, memory, self.journal, lambda: self.pool.now, True, confirmed=self.confirmed
            ).run()
            assert not self.last.fault

    @property
    def notices(self) -> tuple[str, ...]:
        assert self.last is not None and self.last.plan is not None
        return self.last.plan.notices


def test_after_two_rounds_for_nothing_it_is_no_demand_and_that_is_said(volatile: Path) -> None:
    """One job that no node can hold: once a minute a pilot would go for it."""
    played = Played(RefilledPool(b=Queue(impossible=1)), volatile)
    played.until(NOW + 900)
    assert len(played.pool.ordered) == 2
    [notice] = played.notices
    assert notice.startswith("b waits for 8 cores that do not count from 2026-11-21 ")
    assert "16 cores came back for it in 2 rounds and its jobs did not start" in notice
    assert played.last is not None and played.last.plan is not None
    assert played.last.plan.summary == "only demand that is paused waits: nothing to give back"
    [paused] = played.last.plan.paused
    assert (paused.account, paused.cores, paused.until - paused.since, paused.failed) == ("b", 8.0, 900, 2)
    lines = [json.loads(line) for line in Path(played.path).read_text().splitlines()]
    whys = [line["why"] for line in lines if line["event"] == "demand"]
    assert whys[-1] == "demand of 8 cores is paused: 16 cores came back in 2 rounds and its jobs did not start"


def test_a_look_in_which_nobody_seems_to_be_owed_anything_does_not_end_a_round(volatile: Path) -> None:
    """As on HTCondor while a slot is neither claimed nor free: the pool is smaller then, and so is every share."""
    pool = RefilledPool(drains=90, b=Queue(impossible=1))
    whole, draining = pool.snapshot, False

    def flickering(now: int) -> Snapshot:
        nonlocal draining
        seen, before = whole(now), draining
        draining = any(one.deadline is not None for one in seen.pilots)
        if draining or not before:
            return seen
        alice, bob = seen.accounts
        return dataclasses.replace(seen, accounts=(alice, dataclasses.replace(bob, cores_owed=4.0)))

    pool.snapshot = flickering  # type: ignore[method-assign]
    played = Played(pool, volatile)
    played.until(NOW + 1200)
    assert len(pool.ordered) == 2 and played.notices


@pytest.mark.daemons
def test_the_pause_doubles_up_to_a_day(volatile: Path) -> None:
    """Rounds of about 5 minutes apart: 15 min, 30, 1 h … 16 h, and then one pilot a day."""
    played = Played(RefilledPool(b=Queue(impossible=1)), volatile)
    played.until(NOW + 3 * DAY, paused_period=5 * PERIOD)
    apart = [later - sooner for sooner, later in zip(played.pool.ordered[1:], played.pool.ordered[2:])]
    pauses = [900 << number for number in range(7)] + [DAY]
    assert len(apart) == len(pauses)
    assert all(pause < found < pause + 600 for pause, found in zip(pauses, apart))


@pytest.mark.daemons
@pytest.mark.parametrize("drains", [50, 1500])
def test_an_agent_that_is_started_anew_for_each_cycle_does_the_same(volatile: Path, drains: int) -> None:
    """As cron does, with short and with long deadlines."""
    asked = []
    for anew in (False, True):
        (place := volatile / str(anew)).mkdir()
        played = Played(RefilledPool(drains=drains, b=Queue(impossible=1), c=Queue(possible=1)), place, anew)
        played.until(NOW + DAY // 8)
        asked.append(played.pool.ordered)
    assert asked[0] == asked[1]


def test_a_job_that_can_start_is_served_during_the_pause(volatile: Path) -> None:
    """It comes when the other one is paused; the other one stays so."""
    queue = Queue(impossible=1)
    played = Played(RefilledPool(b=queue), volatile)
    played.until(NOW + 600)
    assert len(played.pool.ordered) == 2
    queue.possible = 1
    played.until(NOW + 840)
    assert (len(played.pool.ordered), queue.possible, len(queue.running)) == (3, 0, 1)
    played.until(NOW + 1200)
    assert len(played.pool.ordered) == 3
    assert "b waits for 8 cores" in played.notices[0]


def test_a_small_job_that_can_start_is_served_beside_a_large_one_that_cannot(volatile: Path) -> None:
    """What counts is in jobs of its own size, not of the average with what is paused."""
    queue = Queue(cores=16, impossible=1)
    played = Played(RefilledPool(b=queue), volatile)
    played.until(NOW + 900)
    before = len(played.pool.ordered)
    assert before == 4
    small = Queue(cores=2, possible=1)
    wide = played.pool.snapshot

    def both(now: int) -> Snapshot:
        """b's two queues as one account."""
        seen = wide(now)
        alice, large, other = seen.accounts
        wanted = large.cores_wanted + other.cores_wanted
        one = dataclasses.replace(
            large,
            cores_in_use=large.cores_in_use + other.cores_in_use,
            cores_wanted=wanted,
            cores_per_job=wanted / (queue.impossible + small.possible),
        )
        pilots = tuple(dataclasses.replace(job, account=job.account.replace("small", "b")) for job in seen.pilots)
        return dataclasses.replace(seen, accounts=(alice, one), pilots=pilots)

    played.pool.queues["small"] = small
    played.pool.snapshot = both  # type: ignore[method-assign]
    played.until(NOW + 1140)
    assert (len(played.pool.ordered) - before, len(small.running)) == (1, 1)


def test_the_end_of_a_pause_is_one_more_round_and_one_that_helps_ends_all(volatile: Path) -> None:
    """Its nodes are repaired meanwhile: the job that did not start does, and the account is as any other."""
    queue = Queue(impossible=1)
    played = Played(RefilledPool(b=queue), volatile)
    played.until(NOW + 900)
    queue.impossible, queue.possible = 0, 1
    played.until(NOW + 3000)
    assert (len(played.pool.ordered), len(queue.running), played.notices) == (3, 1, ())
    assert json.loads(Path(played.path).read_text().splitlines()[-1])["why"] == "nothing is to be remembered of it"


def test_a_trickle_of_small_starts_does_not_excuse_what_came_back_for_nothing(volatile: Path) -> None:
    """One impossible job of 8 cores, and a job of a core that starts each minute on a core of its own."""
    queue = Queue(impossible=1)
    pool = RefilledPool(b=queue)
    played = Played(pool, volatile)

    def trickle(now: int) -> None:
        queue.running.append(Running("", now, now + 65.0 + now % 7 * 60, 1))

    played.until(NOW + DAY // 4, trickle)
    assert len(pool.ordered) <= 2 + 2 * 6


@pytest.mark.daemons
def test_new_jobs_that_cannot_start_are_tried_once_in_a_pause(volatile: Path) -> None:
    """An attack: one more impossible job each minute. Pilots in half a day: two, and two for each longer pause."""
    queue = Queue(impossible=1)
    played = Played(RefilledPool(b=queue), volatile)

    def more(now: int) -> None:
        queue.impossible += 1

    played.until(NOW + DAY // 2, more)
    assert len(played.pool.ordered) <= 3 * (2 + 2 * 6)  # its 24 cores at most in each round


@pytest.mark.daemons
def test_removing_and_submitting_again_does_not_help(volatile: Path) -> None:
    """An attack: the job is removed for a minute whenever it is paused."""
    queue = Queue(impossible=1)
    played = Played(RefilledPool(b=queue), volatile)

    def again(now: int) -> None:
        paused = played.last is not None and played.last.plan is not None and played.last.plan.paused
        queue.impossible = 0 if paused else 1

    played.until(NOW + DAY // 2, again)
    assert len(played.pool.ordered) <= 2 + 2 * 6


@pytest.mark.daemons
def test_removing_it_whenever_a_round_is_judged_does_not_help(volatile: Path) -> None:
    """An attack: nobody waits in the look in which the verdict is due, and a minute later the job is there again."""
    queue = Queue(impossible=1)
    played = Played(RefilledPool(b=queue), volatile)

    def hide(now: int) -> None:
        known = played.memory.history(now).unmet.get("b")
        due = known is not None and known.round.back > 0 and now >= known.round.last + SITE.time_to_start
        queue.impossible = 0 if due else 1

    played.until(NOW + DAY // 2, hide)
    assert len(played.pool.ordered) <= 3 + 2 * 6


def test_a_job_that_is_removed_when_its_cores_have_come_back_costs_nothing_once(volatile: Path) -> None:
    queue = Queue(impossible=1)
    played = Played(RefilledPool(b=queue), volatile)
    played.until(NOW + 240)
    queue.impossible = 0
    played.until(NOW + 600)
    assert (len(played.pool.ordered), played.notices) == (1, ())
    queue.possible = 1
    played.until(NOW + 900)
    assert (queue.use, played.notices) == (8, ())


def test_whose_job_went_once_as_a_round_ended_has_two_rounds_before_the_pause(volatile: Path) -> None:
    """As one whose job stays."""
    queue = Queue(impossible=1)
    played = Played(RefilledPool(b=queue), volatile)
    played.until(NOW + 240)
    queue.impossible = 0
    played.until(NOW + 600)
    queue.impossible = 1
    played.until(NOW + 1500)
    assert (len(played.pool.ordered), len(played.notices)) == (1 + 2, 1)


def test_demand_that_vanished_was_not_failed(volatile: Path) -> None:
    """The job is removed before its cores come back, again and again: nothing is held against the account."""
    queue = Queue(impossible=1)
    played = Played(RefilledPool(drains=600, b=queue), volatile)
    for number in range(4):
        queue.impossible = 1
        played.until(NOW + number * 1200 + 300)
        queue.impossible = 0
        played.until(NOW + number * 1200 + 1200)
    assert (len(played.pool.ordered), played.notices) == (4, ())
    assert not Memory.load(files_of(played.path), played.pool.now).history(played.pool.now).unmet


def test_orders_that_stand_for_paused_demand_are_withdrawn(volatile: Path) -> None:
    """Three pilots drain for an impossible job of 24 cores, one much longer than the others; no flapping afterwards."""
    queue = Queue(impossible=3)
    pool = RefilledPool(b=queue)
    played = Played(pool, volatile)
    slow = iter([50, 400, 5000, *[50] * 100])
    ask = pool.give_order

    def ask_slowly(pilot: Pilot, deadline: int, reason: str) -> None:
        pool.drains = next(slow)
        ask(pilot, deadline, reason)

    pool.give_order = ask_slowly  # type: ignore[method-assign]
    played.until(NOW + 1200)
    asked = len(pool.ordered)
    assert played.notices and not any(one.deadline for one in pool.pilots.values())
    played.until(NOW + 1500)
    assert len(pool.ordered) == asked


@pytest.mark.daemons
@pytest.mark.parametrize("seed", range(most_of(1, 4)))
@pytest.mark.parametrize("drains", [50, 1200])
def test_who_can_use_its_cores_is_never_paused(volatile: Path, drains: int, seed: int) -> None:
    """Two accounts whose jobs come when they like for six hours and take each other's cores and alice's."""
    dice = random.Random(seed)
    first, second = Queue(), Queue(cores=4)
    pool = RefilledPool(drains=drains, b=first, c=second)
    pool.lasts = 600.0
    played = Played(pool, volatile)
    seen: list[str] = []

    def come(now: int) -> None:
        for queue in (first, second):
            queue.possible += dice.random() < 0.05
            queue.possible += 3 * (dice.random() < 0.01)
        seen.extend(() if played.last is None else played.notices)

    played.until(NOW + DAY // 4, come)
    assert len(pool.ordered) > 10 and seen == []


def test_a_round_in_which_nobody_could_look_counts_for_nothing(volatile: Path) -> None:
    """Whatever started meanwhile has ended, as after a reboot of the central manager."""
    queue = Queue(impossible=1)
    pool = RefilledPool(b=queue)
    played, look = Played(pool, volatile), pool.snapshot

    def silent(now: int) -> Snapshot:
        raise PoolUnreachable("the collector does not answer")

    for number in range(4):
        played.until(pool.now + 120)
        assert len(pool.ordered) == number + 1
        pool.snapshot = silent  # type: ignore[method-assign]
        for _ in range(8):
            pool.pass_to(pool.now + PERIOD)
            assert AgentCycle(pool, SITE, played.memory, played.journal, lambda: pool.now, True).run().fault
        pool.snapshot = look  # type: ignore[method-assign]
    played.until(pool.now + 60)
    assert played.notices == ()


def test_an_administrator_lifts_a_pause(volatile: Path) -> None:
    """It is in the journal, so the next agent does not pause it either; the wish itself is forgotten."""
    played = Played(RefilledPool(b=Queue(impossible=1)), volatile)
    played.until(NOW + 900)
    assert (len(played.pool.ordered), len(played.notices)) == (2, 1)
    files = RequestFiles(str(volatile / "agent.requests"))
    files.resume("b")
    files.resume("nobody's")
    AgentCycle(
        played.pool,
        SITE,
        played.memory,
        played.journal,
        lambda: played.pool.now,
        True,
        confirmed=played.confirmed,
        requests=files,
    ).run()
    assert len(played.pool.ordered) == 3
    assert [*files.resumed()] == []
    known = Memory.load(files_of(played.path), played.pool.now).history(played.pool.now).unmet["b"]
    assert (known.failed, known.until, len(known.runs)) == (0, 0, 1)
