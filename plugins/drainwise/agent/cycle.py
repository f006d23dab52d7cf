"""One cycle: look, learn what has ended, finish what was left, decide, write it down, and act on it if that is wanted.

Stateless against the batch system: a cycle that was killed anywhere leaves nothing half done, since the next one looks
first, and each act is one order which the batch system has as a whole or not at all. No answer, incomplete answer or an
old one ends the cycle before anything was done.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from drainwise.agent.act import carry_out
from drainwise.agent.cycle_facts import CycleBasis, CycleOutcome, PoolView, doubted_pilots, view_of
from drainwise.common.service import Backoff
from drainwise.facts.errors import DrainwiseError, PoolError, PoolUnreachable, UsageError
from drainwise.journal.entries import decision_event, followup_event
from drainwise.journal.event import Event, Kind, Outcome, number
from drainwise.journal.file import Journal
from drainwise.journal.memory import Memory, Noted, ended_events
from drainwise.pool.abilities import ClosesNodes, Closing, TellsEnded
from drainwise.pool.facts import Pool, Snapshot
from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.plan import Plan
from drainwise.reclaim.settings import ReclaimSettings
from drainwise.reclaim.unmet_demand import UnmetDemand
from drainwise.requests.request import AdminRequest, RequestFiles

OLDEST_SNAPSHOT = 300
"""Seconds; an older answer is none."""


_MOMENT = 30
"""Seconds for which what is asked of a pilot must be too much: what a batch system shows may be so old."""


class ConfirmedWithdrawals:
    """What a loop remembers of its own cycles; losing it costs one cycle."""

    def __init__(self) -> None:
        self._found: frozenset[str] = frozenset()
        self._refused: frozenset[str] = frozenset()
        self._lowered: dict[str, int] = {}  # by run: since when fewer of its cores were needed, UNIX s

    def confirmed(self, plan: Plan) -> Plan:
        """Return the plan with only the withdrawals that the cycle before found too and that were not refused.

        A pilot that is asked for cores is asked for fewer, too, only when two cycles in a row found that, half a minute
        apart: a demand may be gone for a moment, and what a pilot has begun to free it would fill again.
        """
        plan = self._with_lowered(plan)
        found = frozenset(one.pilot.run for one in plan.withdrawals)
        ready = (found & self._found) - self._refused
        self._found = found
        self._refused &= found
        users = tuple(
            replace(one, orders=tuple(it for it in one.orders if ready.issuperset(it.instead_of))) for one in plan.users
        )
        return replace(plan, users=users, withdrawals=tuple(one for one in plan.withdrawals if one.pilot.run in ready))

    def _with_lowered(self, plan: Plan) -> Plan:
        fewer = {one.pilot.run for one in plan.returns if one.in_all < one.pilot.asked}
        fewer |= {one.run for one in plan.asked_no_more}
        self._lowered = {run: min(plan.taken, self._lowered.get(run, plan.taken)) for run in fewer}
        before = {run for run, since in self._lowered.items() if plan.taken - since >= _MOMENT}
        users = tuple(
            replace(one, returns=tuple(it if it.pilot.run in before else it.at_least_asked() for it in one.returns))
            for one in plan.users
        )
        return replace(plan, users=users, asked_no_more=tuple(one for one in plan.asked_no_more if one.run in before))

    def interrupted(self) -> None:
        """Forget what was found before a cycle that saw nothing: it must be found twice again."""
        self._found, self._lowered = frozenset(), {}

    def note(self, outcome: CycleOutcome) -> None:
        """Remember what was refused."""
        self._refused |= {one.order.pilot.run for one in outcome.withdrawn if one.outcome == Outcome.REFUSED}


_FIRST, _LONGEST = 60, 3600  # seconds


class AskAgain:
    """The times at which a loop asks how a run ended; losing them costs some queries."""

    def __init__(self) -> None:
        self._known: dict[str, Backoff] = {}

    def due(self, runs: Iterable[str], now: int) -> list[str]:
        """Return those of the ended runs to ask for at `now` (UNIX s); others than these are forgotten."""
        self._known = {run: self._known.get(run) or Backoff(_FIRST, _LONGEST) for run in runs}
        due = [run for run, backoff in self._known.items() if backoff.is_over(now)]
        for run in due:
            self._known[run].failed(now)
        return due


@dataclass(frozen=True)
class Cycle:
    """What one cycle did; `started` in UNIX s, `seconds` how long it took.

    plan: None when nothing could be decided. outcome: None when nothing was to be done: a dry run, a kill switch, a
    fault. fault: why the cycle could not be done to its end, or "". acting: whether it was to act. next_in: seconds
    until the next one begins. view: what it saw, None when it saw nothing. state: of the agent after it, and `why`; ""
    outside the loop. basis: what it decided on, None when it came to no decision. kill_switch: its path when something
    is there, else "".
    """

    started: int
    seconds: float
    plan: Plan | None
    outcome: CycleOutcome | None
    fault: str
    acting: bool
    next_in: float = 0.0
    unused: float = 0.0
    view: PoolView | None = None
    state: str = ""
    why: str = ""
    basis: CycleBasis | None = None
    kill_switch: str = ""

    @property
    def halted(self) -> str:
        """Why no further act was tried, by the batch system as a whole, or ""."""
        return "" if self.outcome is None else self.outcome.halted


_CANNOT_CLOSE = (
    "this batch system is not made to close nodes: pilots there get their orders, and what starts there from that time"
    " on is not ordered; close the nodes by its own means"
)


class NullJournal:
    """The journal of who keeps none: a look that leaves no trace."""

    def write(self, event: Mapping[str, object]) -> None:
        """Drop the event."""


@dataclass
class AgentCycle:
    """One cycle that is to be done; `clock` tells the UNIX time.

    acting: whether orders are given. stopping: called before each act; once it is true no further one is done. journal:
    None when nothing is to be written. confirmed, ask_again: what a loop remembers of its cycles. requests: what
    an administrator ordered. is_for_demand: whether the cycle is for those who wait, too, or for the requests alone,
    and for withdrawing what was ordered for one that was cancelled.
    """

    pool: Pool
    settings: ReclaimSettings
    memory: Memory
    journal: Journal | None
    clock: Callable[[], int]
    acting: bool
    stopping: Callable[[], bool] = lambda: False
    confirmed: ConfirmedWithdrawals | None = None
    ask_again: AskAgain = field(default_factory=AskAgain)
    requests: RequestFiles = field(default_factory=lambda: RequestFiles(""))
    is_for_demand: bool = True

    def run(self) -> Cycle:
        """Do the cycle; a fault is part of the result."""
        began, fault = time.monotonic(), ""
        self._done = Cycle(self.clock(), 0.0, None, None, "", self.acting)
        try:
            self._do(Noted(self.journal or NullJournal(), self.memory))
        except DrainwiseError as error:
            fault = str(error)
        return replace(self._done, seconds=time.monotonic() - began, fault=fault)

    def _note(self, **found: Any) -> None:
        """Note what is known now of what the cycle did."""
        self._done = replace(self._done, **found)

    def _do(self, noted: Noted) -> None:
        memory, settings = self.memory, self.settings
        snapshot, now = self._look()
        fault, ended = self._learn(snapshot, now, noted)
        limit = settings.heartbeat_limit
        seen = view_of(snapshot, now, limit, memory.open_orders().values(), ended)
        self._note(view=seen)
        noted.write(*memory.payloads.seen(snapshot))
        noted.write(*memory.returned.looked(snapshot, now, limit))
        self._watch(snapshot, now, noted)
        noted.write(*memory.watched_room(snapshot, now))
        noted.write(*memory.looked(snapshot, now, settings))
        requests, odd = self._requests(now)
        closings = [Closing(one.name, frozenset(one.nodes), one.by, one.in_words()) for one in requests if one.nodes]
        if closings and not isinstance(self.pool, ClosesNodes):
            odd = (*odd, f"{', '.join(one.name for one in closings)}: {_CANNOT_CLOSE}")
        earlier = CycleOutcome(())
        if self.acting and not self.stopping():
            earlier = self._follow_up(snapshot, closings, now, noted)
            self._note(outcome=earlier)
        history = replace(memory.history(now), requests=requests)
        basis = CycleBasis(snapshot, now, settings, history)
        self._note(basis=basis, view=replace(seen, doubted=doubted_pilots(snapshot, history.trust)))
        plan = make_plan(snapshot, now, settings, history, is_for_demand=self.is_for_demand)
        plan = replace(plan, notices=(*odd, *plan.notices)) if odd else plan
        plan = plan if self.confirmed is None else self.confirmed.confirmed(plan)
        self._note(plan=plan)
        noted.write(*memory.opened(plan, now))
        if self.journal is not None and (
            plan.balance.deficit > 0 or plan.withdrawals or plan.orders or plan.asked_no_more
        ):
            event = decision_event(plan, snapshot, self.acting, now, requests)
            if memory.is_news(event):  # before anything is done
                noted.write(event)
        if not self.acting:
            return
        faults = [fault, earlier.fault]
        self._note(outcome=replace(earlier, fault="; ".join(filter(None, faults))))
        if self.stopping():
            return
        noted.write(*memory.ordering(plan, snapshot, now))
        done = carry_out(plan, basis, self.pool, self.clock, noted, self.stopping)
        faults = [*faults, done.fault]
        self._note(outcome=replace(done, followups=earlier.followups, fault="; ".join(filter(None, faults))))
        if self.confirmed is not None:
            self.confirmed.note(done)

    def _watch(self, snapshot: Snapshot, now: int, noted: Noted) -> None:
        """Look at how accounts fare that orders were given for, and lift pauses that are to be lifted."""
        events = self.memory.watched(snapshot, now, self.settings, partial(self._cores_of_ended, now))
        for event in events:
            noted.write(event)
            self._note(unused=self._done.unused + number(event, "unused"))
        for account in self.requests.resumed() if self.acting else ():
            noted.write(*self.memory.resumed(account, now))

    def _requests(self, now: int) -> tuple[tuple[AdminRequest, ...], tuple[str, ...]]:
        """Return the requests that stand. Raises UsageError when an agent that acts cannot know them."""
        try:
            return self.requests.standing(now)
        except UsageError as fault:
            if self.acting:
                raise  # what was ordered for one that cannot be read would be withdrawn
            return (), (str(fault),)

    def _look(self) -> tuple[Snapshot, int]:
        now = self.clock()
        try:
            snapshot = self.pool.snapshot(now)
        except PoolError:
            self.memory.not_seen(now)
            raise
        age = now - snapshot.taken
        if age > OLDEST_SNAPSHOT:
            raise PoolUnreachable(f"an old answer from the batch system: it is {age} s old")
        return snapshot, now

    def _learn(self, snapshot: Snapshot, now: int, noted: Noted) -> tuple[str, list[Event]]:
        """Take in what became of earlier orders.

        Return why the records could not be read, or "", and the events of pilots that have ended.
        """
        running = {pilot.run for pilot in snapshot.pilots}
        gone = self.ask_again.due(self.memory.open_orders().keys() - running, now)
        fault = ""
        try:
            endings = self.pool.endings(gone, now) if gone else {}
        except PoolError as error:
            endings, fault = {}, str(error)
        events = ended_events(self.memory, endings, snapshot, now)
        noted.write(*events)
        return fault, [event for event in events if event["event"] == Kind.ENDED]

    def _cores_of_ended(self, now: int, one: UnmetDemand) -> float | None:
        """Return the cores of the jobs of a round that came and went between two looks; None where nobody tells now."""
        if not isinstance(self.pool, TellsEnded):
            return 0.0
        try:
            return self.pool.cores_of_ended(one.account, one.round.nodes, one.round.left, now)
        except PoolError:
            return None

    def _follow_up(self, snapshot: Snapshot, closings: Sequence[Closing], now: int, noted: Noted) -> CycleOutcome:
        """Have the pool finish what earlier cycles left to do and close nodes, each thing a line of the journal.

        No order is given. A batch system that cannot tell does not stop the cycle: its fault is part of the outcome.
        """
        followups, faults = list[str](), list[str]()
        steps = [partial(self.pool.follow_up, snapshot)]
        if isinstance(self.pool, ClosesNodes):
            steps.append(partial(self.pool.close_nodes, closings, snapshot, now))
        for step in steps:
            try:
                done = step()
            except PoolError as fault:
                faults.append(str(fault))
                continue
            noted.write(*(followup_event(what, self.clock()) for what in done))
            followups += done
        return CycleOutcome((), tuple(followups), "; ".join(faults))
