"""One cycle: look, learn what has ended, finish what was left, decide, write it down, and act on it if that is wanted.

Stateless against the batch system: a cycle that was killed anywhere leaves nothing half done, since the next one looks
first, and each act is one order which the batch system has as a whole or not at all. No answer, half an answer or an
old one ends the cycle before anything was done.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from drainwise.agent.inquiry import Inquiry
from drainwise.agent.releases import Releases
from drainwise.errors import DrainwiseError, PoolError, PoolUnreachable
from drainwise.journal.entries import decision_event
from drainwise.journal.file import Journal
from drainwise.journal.memory import Memory, Noted, ended_events
from drainwise.pool import Pool, Snapshot
from drainwise.reclaim.action import Outcome, carry_out, finish_earlier
from drainwise.reclaim.plan import Plan, make_plan
from drainwise.reclaim.settings import Settings

OLDEST_SNAPSHOT = 300
"""Seconds; an older answer is none."""


@dataclass(frozen=True)
class Cycle:
    """What one cycle did; `started` in UNIX s, `seconds` how long it took.

    plan: None when nothing could be decided. outcome: None when nothing was to be done: a dry run, a kill switch, a
    fault. fault: why the cycle could not be done to its end, or "". acting: whether it was to act. next_in: seconds
    until the next one begins.
    """

    started: int
    seconds: float
    plan: Plan | None
    outcome: Outcome | None
    fault: str
    acting: bool
    next_in: float = 0.0


class Nowhere:
    """The journal of who keeps none: a look that leaves no trace."""

    def write(self, event: Mapping[str, object]) -> None:
        """Drop it."""


def run_cycle(
    pool: Pool,
    settings: Settings,
    memory: Memory,
    journal: Journal | None,
    clock: Callable[[], int],
    acting: bool,
    stopping: Callable[[], bool] = lambda: False,
    releases: Releases | None = None,
    inquiry: Inquiry | None = None,
) -> Cycle:
    """Do one cycle; `clock` tells the UNIX time.

    acting: whether pilots are asked. stopping: asked before each act; when it says so no further one is done. journal:
    None when nothing is to be written. releases, inquiry: what a loop remembers of its own cycles. A fault is part of
    the result.
    """
    work = _Work(pool, settings, memory, journal, clock, acting, stopping, releases, inquiry or Inquiry())
    began, started, fault = time.monotonic(), clock(), ""
    try:
        work.do()
    except DrainwiseError as error:
        fault = str(error)
    return Cycle(started, time.monotonic() - began, work.plan, work.outcome, fault, acting)


@dataclass
class _Work:
    """The steps of a cycle, and how far it came."""

    pool: Pool
    settings: Settings
    memory: Memory
    journal: Journal | None
    clock: Callable[[], int]
    acting: bool
    stopping: Callable[[], bool]
    releases: Releases | None
    inquiry: Inquiry
    plan: Plan | None = None
    outcome: Outcome | None = None

    def do(self) -> None:
        noted = Noted(self.journal or Nowhere(), self.memory)
        snapshot, now = self._look()
        fault = self._learn(snapshot, now, noted)
        for event in self.memory.watched(snapshot, now, self.settings):
            noted.write(event)
        earlier = Outcome(())
        if self.acting and not self.stopping():
            earlier = self.outcome = finish_earlier(self.pool, snapshot, self.clock, noted)
        record = self.memory.record(now, self.settings)
        plan = make_plan(snapshot, now, self.settings, record)
        plan = self.plan = plan if self.releases is None else self.releases.confirmed(plan)
        self._write_down(plan, snapshot, now, noted)
        if not self.acting:
            return
        self.outcome = Outcome((), earlier.tended, "; ".join(part for part in (fault, earlier.fault) if part))
        if self.stopping():
            return
        for event in self.memory.ordering(plan, snapshot, now):
            noted.write(event)
        done = carry_out(plan, self.pool, self.settings, self.clock, noted, record, self.stopping)
        faults = "; ".join(part for part in (self.outcome.fault, done.fault) if part)
        self.outcome = replace(self.outcome, acts=done.acts, released=done.released, fault=faults)
        if self.releases is not None:
            self.releases.note(done)

    def _look(self) -> tuple[Snapshot, int]:
        now = self.clock()
        snapshot = self.pool.snapshot(now)
        age = now - snapshot.taken
        if age > OLDEST_SNAPSHOT:
            raise PoolUnreachable(f"an old answer from the batch system: it is {age} s old")
        return snapshot, now

    def _learn(self, snapshot: Snapshot, now: int, noted: Noted) -> str:
        """Take in what became of earlier orders; why the records could not be had, or "": nothing else needs them."""
        running = {pilot.run for pilot in snapshot.pilots}
        gone = self.inquiry.due(self.memory.open_orders().keys() - running, now)
        fault = ""
        try:
            endings = self.pool.endings(gone, now) if gone else {}
        except PoolError as error:
            endings, fault = {}, str(error)
        for event in ended_events(self.memory, endings, snapshot, now):
            noted.write(event)
        return fault

    def _write_down(self, plan: Plan, snapshot: Snapshot, now: int, noted: Noted) -> None:
        """The decision, before anything is done, if there was anything to decide."""
        if self.journal is None or not (plan.balance.deficit > 0 or plan.cancels):
            return
        event = decision_event(plan, snapshot, self.acting, now)
        if self.memory.is_news(event):
            noted.write(event)
