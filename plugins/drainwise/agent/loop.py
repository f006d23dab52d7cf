"""The loop: a cycle each period, later and later while the batch system does not answer, until somebody ends it."""

from __future__ import annotations

import math
import os
import re
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from drainwise.agent.cycle import AgentCycle, AskAgain, ConfirmedWithdrawals, Cycle
from drainwise.agent.cycle_facts import Act, CycleOutcome
from drainwise.agent.lock import AgentLock
from drainwise.agent.settings import AgentSettings
from drainwise.agent.signals import AgentSignals
from drainwise.common.service import Notifier, delay
from drainwise.facts.errors import DrainwiseError
from drainwise.facts.units import duration
from drainwise.journal.entries import state_event
from drainwise.journal.event import Outcome, State
from drainwise.journal.file import Journal
from drainwise.journal.memory import Memory

_LOOK_FOR_LOCK = 0.1  # seconds between two looks of one that stands by
_LONGEST_SLEEP = 3600.0


@dataclass
class Loop:
    """One agent. `read` gives the settings and raises UsageError for one that is wrong; `say` takes a line of the log.

    remember: reads the memory of earlier cycles; called when the lock has been taken, since only then nobody else adds
    to it. observers are shown each cycle when it has ended. clock: the UNIX time.
    """

    read: Callable[[], AgentSettings]
    lock: AgentLock
    remember: Callable[[], Memory]
    journal: Journal
    signals: AgentSignals
    notifier: Notifier
    say: Callable[[str], None]
    observers: Sequence[Callable[[Cycle], None]] = ()
    clock: Callable[[], int] = lambda: int(time.time())

    def __post_init__(self) -> None:
        self._memory, self._state = Memory(), StateLog(self.say, self.journal)
        self._confirmed, self._ask_again, self._failures = ConfirmedWithdrawals(), AskAgain(), 0
        self._lines: list[str] = []
        self._notices: frozenset[str] = frozenset()

    def run(self, standby: bool = False) -> None:
        """Run until TERM or INT comes.

        An agent that acts takes the lock first; `standby`: it waits for it as long as another agent lives. Raises
        PoolError when another one acts or the lock was taken away, UsageError for settings that are wrong at the start.
        """
        current = self.read()
        if current.acting and not self._take_lock(standby):
            return
        self._memory = self.remember()
        self.say(f"begins: a cycle every {duration(int(current.period))}, pid {os.getpid()}")
        self.notifier.ready("the first cycle")
        while not self.signals.stopping:
            if self.signals.take_reload():
                current = self._reload(current)
            if current.acting:
                self.lock.must_hold("another agent could act")
            self._sleep(self._cycle(current).next_in)
        self.notifier.stopping()
        self.say("ends")

    def _take_lock(self, standby: bool) -> bool:
        """Take the lock; False when a signal ended the wait for it."""
        if not standby:
            self.lock.must_take()
            return True
        waits = ""
        while not self.signals.stopping:
            if self.lock.take():
                return True
            holder = self.lock.holder()
            if holder != waits:
                waits = holder
                self.say(f"stands by: another agent acts ({holder})")
                self.notifier.ready(f"stands by: another agent acts ({holder})")
            self.notifier.alive()
            self.signals.sleep(_LOOK_FOR_LOCK)
        return False

    def _reload(self, current: AgentSettings) -> AgentSettings:
        """Return the settings as the site file says now; as before when that is wrong, or forbids itself."""
        self.notifier.reloading()
        try:
            read = self.read()
            if read.acting and not self.lock.is_held():
                self.lock.must_take()
                try:
                    self._memory = self.remember()
                except DrainwiseError:
                    self.lock.release()  # the next reload reads it, or does not act either
                    raise
        except DrainwiseError as fault:
            self.say(f"the new settings are refused and the old ones stay: {fault}")
        else:
            current = read
            self.say("the settings were read again")
        self._failures = 0
        self.notifier.ready("the settings were read again")
        return current

    def _cycle(self, current: AgentSettings) -> Cycle:
        switch = current.kill_switch if is_thrown(current.kill_switch) else ""
        cycle = self._guarded(current, current.acting and not switch)
        self._failures = self._failures + 1 if cycle.fault or cycle.halted else 0
        if cycle.fault:
            self._confirmed.interrupted()
        waits = rest(current.period, self._failures, cycle.seconds)
        cycle = replace(cycle, next_in=min(waits, until_due(cycle, self.clock())))
        state = state_of(cycle, switch, current.acting)
        self._state.tell(state, self.clock())
        lines = [] if cycle.outcome is None else list(_done(cycle.outcome))
        for line in lines:
            if line not in self._lines:  # what fails in each cycle is said once
                self.say(line)
        self._lines = lines
        self._say_notices(cycle)
        summary = f"{cycle.plan.summary}; " if cycle.plan and not cycle.fault else ""
        self.notifier.status(f"{state.name}: {summary or f'{cycle.fault}; '}next in {duration(int(cycle.next_in))}")
        cycle = replace(cycle, state=state.name, why=state.why, kill_switch=switch)
        for observer in self.observers:
            observer(cycle)
        return cycle

    def _say_notices(self, cycle: Cycle) -> None:
        """Say each notice of the decision once, until it has gone; one whose figures alone have changed is the same."""
        if cycle.plan is None:
            return
        whose = {one.sentence: one.account for one in cycle.plan.paused}  # accounts may differ in a figure alone
        known = {whose.get(notice, "") + without_figures(notice): notice for notice in cycle.plan.notices}
        for kind, notice in known.items():
            if kind not in self._notices:
                self.say(notice)
        self._notices = frozenset(known)

    def _guarded(self, current: AgentSettings, acting: bool) -> Cycle:
        def stopping() -> bool:
            self.notifier.alive()
            lost = acting and not self.lock.is_held()
            return self.signals.stopping or lost or is_thrown(current.kill_switch)

        started = self.clock()
        try:
            told = self._memory, self.journal, self.clock, acting, stopping, self._confirmed, self._ask_again
            return AgentCycle(current.pool, current.settings, *told, current.requests).run()
        except Exception as fault:  # the outermost guard: no order is given then, and the next cycle is tried
            [where] = traceback.extract_tb(fault.__traceback__)[-1:]
            place = f"{os.path.basename(where.filename)}:{where.lineno}"
            return Cycle(started, 0.0, None, None, f"a fault of drainwise itself: {fault!r} ({place})", acting)

    def _sleep(self, seconds: float) -> None:
        """Sleep until the next cycle or a signal, with a sign of life as often as the service manager wants it."""
        ends = time.monotonic() + seconds
        longest = _LONGEST_SLEEP if self.notifier.watchdog is None else self.notifier.watchdog / 2
        while (left := ends - time.monotonic()) > 0:
            self.notifier.alive()
            if self.signals.sleep(min(left, longest)):
                return


def _done(outcome: CycleOutcome) -> Iterator[str]:
    """Yield a line for each act of a cycle, done or failed."""
    acts: list[Act[Any]] = [*outcome.acts, *outcome.withdrawn]
    for act in acts:
        if act.outcome != Outcome.SKIPPED:
            pilot = act.order.pilot
            yield f"{pilot.name} of {pilot.user}, {pilot.cores} cores: {act.outcome}: {act.detail}"
    yield from outcome.followups
    if outcome.fault:
        yield outcome.fault


_LEAST_REST = 0.1  # of the period, also when a cycle took longer than that
LONGEST_PAUSE = 600.0
"""Seconds between two tries at most while the batch system does not answer; no less than a period."""


def rest(period: float, failures: int, seconds: float) -> float:
    """Return the seconds from the end of a cycle, which took `seconds`, to the next.

    failures: how many cycles in a row have failed, this one included. Without one, the next begins a `period` after
    this one did. After the first the pause is a period, and it doubles with each further one, up to `LONGEST_PAUSE`.
    """
    return delay(failures, period, max(period, LONGEST_PAUSE)) or max(period - seconds, period * _LEAST_REST)


def until_due(cycle: Cycle, now: int) -> float:
    """Return the seconds from `now` (UNIX s) until a run with an order is to be warned or requeued, infinite for none.

    A cycle that acts does both; after its deadline the run would be ended for good.
    """
    if cycle.basis is None or not cycle.acting:
        return math.inf
    ordered = [(one, one.deadline) for one in cycle.basis.snapshot.pilots if one.deadline is not None]
    if cycle.outcome is not None:
        ordered += [(it.order.pilot, it.order.deadline) for it in cycle.outcome.acts if it.outcome == Outcome.DONE]
    return min((due - now for one, end in ordered for due in one.due(end) if due > now), default=math.inf)


def is_thrown(path: str) -> bool:
    """Return whether anything is at `path`; True also when that cannot be found out: then better no act."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


_FIGURES = re.compile("[0-9]+")


@dataclass(frozen=True)
class AgentState:
    """One of the states of `journal.event`, and why."""

    name: str
    why: str

    def __str__(self) -> str:
        return f"{self.name}: {self.why}"


def state_of(cycle: Cycle, kill_switch: str, wanted: bool) -> AgentState:
    """Return the state after a cycle; kill_switch: its path when it is there, else "". wanted: whether it is to act."""
    fault = cycle.fault or cycle.halted
    if fault:
        return AgentState(State.BACKING_OFF, fault)
    if not wanted:
        return AgentState(State.DRY_RUN, "no order is given until [agent] act = yes, or --act")
    if kill_switch:
        return AgentState(State.PAUSED, f"no order is given while {kill_switch} is there")
    return AgentState(State.OK, "gives the orders of each plan")


def without_figures(text: str) -> str:
    """Return the text with `#` for each number, to compare sentences without their figures."""
    return _FIGURES.sub("#", text)


class StateLog:
    """Says each change once, in a line and in the journal. A fault whose figures alone have changed is the same."""

    def __init__(self, say: Callable[[str], None], journal: Journal | None) -> None:
        self._say, self._journal = say, journal
        self._known = ("", "")

    def tell(self, state: AgentState, now: int) -> None:
        """Log the state at `now` (UNIX s) if it has changed. A journal that cannot be written is a state itself."""
        known = state.name, without_figures(state.why)
        if known == self._known:
            return
        self._known = known
        self._say(str(state))
        if self._journal is not None:
            with suppress(DrainwiseError):
                self._journal.write(state_event(state.name, state.why, now))
