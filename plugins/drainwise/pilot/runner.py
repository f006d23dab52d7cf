"""The loop of the reference pilot: it sleeps until something happens, decides, acts, and reports; signals and clock.

Deadlines are UNIX seconds, so a machine's clock that is set must be followed. A payload's run time is not: set forward
by a day, the clock would end every payload at its maximum.
"""

from __future__ import annotations

import selectors
import signal
import time
from collections.abc import Callable
from functools import partial
from types import FrameType

from drainwise.common.wake import Wake
from drainwise.pilot.channels import Channels, SiteNoticeReader
from drainwise.pilot.decide.decision import Decision, decide
from drainwise.pilot.decide.estimates import RunTimeEstimates, move_overdue, renew, waste_curve
from drainwise.pilot.decide.lease import LEASE, Lease, ReturnedCores, SiteOrders
from drainwise.pilot.decide.payload import Backlog
from drainwise.pilot.decide.settings import PilotSettings
from drainwise.pilot.decide.workload import (
    Checkpoint,
    RestingValues,
    RunningPayload,
    Workload,
    report_of,
    running_since,
)
from drainwise.pilot.lease_record import ExitReport, LeaseRecord
from drainwise.pilot.processes import Processes
from drainwise.pilot.queues.records import EndedPayload, PayloadQueue

START_PAUSE = 30.0
"""Seconds without a start after one that failed for want of space, directories or processes."""
AT_ONCE = "ordered twice to end"
AT_END = "the pilot ended"
START_BATCH = 0.5
"""Seconds of starting in a row, after which the pilot reports what runs and looks for orders before it starts more."""
_SLACK = 0.05
"""Seconds by which a timer is late on purpose: a payload that ends just when it should is reaped, not re-estimated."""


class PilotRunner:
    """One pilot: its lease, where its payloads come from and go to, and its reports.

    pilot: its id. ignores_orders: it takes no notice of the site, signals included (for rehearsals).
    estimates: run times that were learned; None: a payload's own are taken. part: the cores that it returns; None: it
    returns none before it ends.
    """

    def __init__(
        self,
        pilot: str,
        lease: Lease,
        settings: PilotSettings,
        queue: PayloadQueue,
        processes: Processes,
        channels: Channels,
        notices: SiteNoticeReader,
        log: Callable[[str], None],
        clock: PilotClock,
        ignores_orders: bool = False,
        estimates: RunTimeEstimates | None = None,
        part: ReturnedCores | None = None,
    ) -> None:
        self._pilot, self._lease, self._settings, self._queue = pilot, lease, settings, queue
        self._processes, self._channels, self._notices = processes, channels, notices
        self._log, self._clock, self._ignores_orders, self._estimates = log, clock, ignores_orders, estimates
        self._part = part
        now = clock.now()
        self.workload = Workload(now)
        self._orders = _until_the_end_of(lease)
        self._record = LeaseRecord(lease, queue, log)
        self._signals = 0
        self._terminated: float | None = None
        self._at_once = self._again = self._unsaid = self._is_contested = False
        self._idle_since: float | None = None
        self._poll_at = self._heartbeat_at = self._start_at = now
        self._published = 0
        self._saves_asked: dict[str, int] = {}
        self._resting = RestingValues(settings.rest)
        self._why = "the pilot failed"

    def run(self) -> ExitReport:
        """Run until there is nothing left to do or to wait for; nothing of the payloads is left behind."""
        with Signals() as signals, selectors.DefaultSelector() as selector:
            selector.register(signals, selectors.EVENT_READ)
            try:
                while (until := self.step(signals.requests)) is not None:
                    self._sleep(selector, until)
                    signals.clear()
            finally:
                report = self.end(self._why)
        return report

    def step(self, signals: int = 0) -> float | None:
        """Decide and act once; until when to sleep, UNIX s; None: the pilot can end.

        signals: those received so far that ask the pilot to go.
        """
        now = self._follow_clock()
        changed = self._look(signals, now)
        # What ended meanwhile frees its cores for this decision.
        changed = self._reap(now) or changed
        changed = move_overdue(self.workload, now, self._estimates) or changed
        changed = self._settle(now) or changed
        decision = self._decide(now)
        self._save(now)
        changed = self._act(decision, now) or changed or self._unsaid or now >= self._heartbeat_at
        why = decision.why_done if decision.done else self._idle(now)
        # Cores whose payload another pilot took first get the next one at once: stated as idle they would cost least.
        self._unsaid = changed and self._is_contested and not why and now < self._heartbeat_at + START_BATCH
        if (changed or why) and not self._unsaid:
            self._publish(decision.can_postpone and not why)
        if why:
            self._why = why
            return None
        return self._next(decision.wake)

    def _follow_clock(self) -> float:
        """Return the time; when the machine's clock was set, every time that is kept here moves with it."""
        step = self._clock.step()
        if step:
            self._log(f"the clock was set by {step:+.0f} s")
            self._lease, self.workload = self._lease.moved(step), self.workload.moved(step)
            if self._orders.source == LEASE:
                self._orders = _until_the_end_of(self._lease)
            self._record.shift(step)
            self._processes.shift(step)
            self._resting.end()
            self._start_at += step
            if self._terminated is not None:
                self._terminated += step
            if self._idle_since is not None:
                self._idle_since += step
            self._poll_at = self._heartbeat_at = self._clock.now()
        return self._clock.now()

    def _look(self, signals: int, now: float) -> bool:
        """Take in what the site and the queue say when it is time to look; whether an order changed."""
        asked = signals > self._signals and not self._ignores_orders
        if asked and (self._terminated is not None or signals - self._signals > 1):
            self._at_once = True
            for name in self.workload.running:
                self._processes.stop(name, AT_ONCE, now)
        self._signals = signals
        if asked and self._terminated is None:
            self._terminated = now
        due = now >= self._poll_at
        if due or self._queue.fileno() is not None:
            self._queue.look(now)
        if due:
            self._poll_at = now + self._settings.poll
            if self._estimates is not None:
                self._estimates.look(now)
        if self._ignores_orders or not (due or asked):
            return False
        before = self._orders
        self._orders = self._notices.orders(self._terminated, self._lease, self._settings, now)
        return self._record.note(before, self._orders, now)

    def _reap(self, now: float) -> bool:
        ended = self._processes.reap(now)
        for each in ended:
            if each.payload.name in self.workload.running:
                self.workload.remove(each.payload.name)
            self._record.book(each, now)
        return bool(ended)

    def _settle(self, now: float) -> bool:
        """Give back what can be given back, and use again what is acknowledged; whether another number is stated."""
        part = self._part
        if part is None:
            return False
        usable = part.usable
        changed = part.settle(self._orders.part, self._orders.answer, self.workload.used, now)
        if part.usable != usable:
            self._record.note_returned(part, now)
        if changed:
            self._log(f"returned {part.stated.cores} of {self._lease.cores} cores, payloads may use {part.usable}")
        elif part.usable > usable:
            self._log(f"payloads may use {part.usable} of {self._lease.cores} cores again")
        return changed

    def _decide(self, now: float) -> Decision:
        may_start = now >= self._start_at and not self._at_once
        waiting = self._queue.waiting() if may_start else Backlog()
        more_may_come = not may_start or self._queue.more_may_come()
        fillable = None if self._part is None else self._part.fillable
        return decide(self.workload, waiting, self._lease, self._orders, self._settings, now, more_may_come, fillable)

    def _act(self, decision: Decision, now: float) -> bool:
        """Stop, refuse and start; whether anything runs that did not."""
        for name, reason in decision.stop:
            self._processes.stop(name, reason, now)
        if decision.unfit:
            waiting = {payload.name: payload for payload in self._queue.waiting()}
            for name, reason in decision.unfit:
                self._queue.refuse(waiting[name], reason, now)
        started = self._is_contested = False
        for payload in decision.start:
            if self._clock.now() - now > START_BATCH:
                self._again = True
                break
            if not self._queue.claim(payload, now):
                self._again = self._is_contested = True  # there may be another for these cores
                continue
            began = self._clock.now()
            try:
                self._processes.start(payload, began)
            except OSError as error:
                reason = error.strerror or type(error).__name__
                self._log(f"payload {payload.name} cannot be started now: {reason}; next try in {START_PAUSE:.0f} s")
                self._queue.unclaim(payload, f"not started: {reason}", now)
                self._start_at = now + START_PAUSE
                break
            self.workload.add(running_since(payload, began))
            started = True
        if started and self._estimates is not None:
            renew(self.workload, now, self._estimates)
            self._again = True  # ends have moved, and with them the time to wake up
        return started

    def _save_at(self, running: RunningPayload) -> float | None:
        """Return when the payload's work is to be saved, so that it is done before it is stopped; None: not at all."""
        by, payload = self._orders.checkpoint_by, running.payload
        if by is None or not payload.checkpoint or self._saves_asked.get(payload.name) == by:
            return None
        return by - self._settings.margin - payload.checkpoint_seconds

    def _save(self, now: float) -> None:
        """Run the commands that save the payloads' work as late as the site's order allows; a report follows each."""
        for running in self.workload.running.values():
            if (moment := self._save_at(running)) is not None and now >= moment:
                payload = running.payload
                self._saves_asked[payload.name] = self._orders.checkpoint_by or 0
                try:
                    self._processes.save(payload.name, partial(self._saved, running, now))
                except OSError as error:
                    self._log(f"payload {payload.name} is not saved: {error.strerror or type(error).__name__}")

    def _saved(self, running: RunningPayload, begun: float, code: int) -> None:
        """Take in that the command has ended with this code."""
        payload = running.payload
        if code:
            self._log(f"payload {payload.name} is not saved: its checkpoint command ended with {code}")
        elif payload.name in self.workload.running:
            self.workload.save(payload.name, Checkpoint(begun, None, payload.checkpoint_seconds))
            self._unsaid = True

    def _idle(self, now: float) -> str:
        """Say why a pilot in which nothing runs waits no longer; "" while it does."""
        if self.workload.running or self._again:
            self._idle_since = None
            return ""
        if self._idle_since is None:
            self._idle_since = now
        limit = self._settings.idle_limit
        return f"nothing to run for {limit:g} s" if now - self._idle_since >= limit else ""

    def _publish(self, can_postpone: bool) -> None:
        settings, now = self._settings, self._clock.now()
        if self._estimates is not None:
            renew(self.workload, now, self._estimates)
        part = None if self._part is None else self._part.stated
        held = self._lease.cores - (0 if part is None else part.cores)
        curve = waste_curve(self.workload, held, now, self._estimates)
        limit = self._orders.deadline
        if limit is not None:
            limit = max(now, limit - settings.margin) + settings.kill_wait
        factor, wait = settings.priority_factor, settings.kill_wait
        report = report_of(self.workload, self._lease, can_postpone, factor, now, limit, wait, curve, part)
        self._channels.publish(self._resting.stated(report, now))
        self._published += 1
        rested = self._resting.until  # then the values are stated as they are
        self._heartbeat_at = min(now + settings.heartbeat, rested if rested > now else float("inf"))

    def _next(self, wake: float | None) -> float:
        """Return until when there is nothing to do unless something happens, UNIX s."""
        now = self._clock.now()
        idle_until = None if self._idle_since is None else self._idle_since + self._settings.idle_limit
        paused = self._start_at if self._start_at > now else None
        saves = (self._save_at(running) for running in self.workload.running.values())
        times = (self._poll_at, self._heartbeat_at, wake, self._processes.next_kill, idle_until, paused, *saves)
        until = now if self._again else _SLACK + min(moment for moment in times if moment is not None)
        self._again = False
        return until

    def _sleep(self, selector: selectors.BaseSelector, until: float) -> None:
        queue = self._queue.fileno()
        if queue is not None:
            selector.register(queue, selectors.EVENT_READ)
        selector.select(max(0.0, until - self._clock.now()))
        if queue is not None:
            selector.unregister(queue)

    def end(self, why: str) -> ExitReport:
        """Leave nothing running and nothing claimed; return the report."""
        deadline = time.monotonic() + self._settings.kill_wait + 1.0
        while self.workload.running and time.monotonic() < deadline:
            now = self._clock.now()
            for name in self.workload.running:
                self._processes.stop(name, AT_END, now)
            if not self._reap(now):
                time.sleep(_SLACK)
        stuck = self._processes.clear()
        now = self._clock.now()
        for name, running in list(self.workload.running.items()):
            self.workload.remove(name)
            self._record.book(EndedPayload(running.payload, 0, running.start, AT_END), now)
            self._log(f"payload {name} could not be ended: processes {stuck}")
        self._queue.close(now)
        self._publish(can_postpone=False)
        return self._record.report(self._pilot, self._clock.now(), why, self._published)


_REQUESTS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Signals:
    """Use as a context. `fileno()` is readable when a signal came; `requests` counts those that ask the pilot to go.

    SIGHUP that is ignored already (nohup) stays so. Children start with the default actions all the same.
    """

    def __init__(self) -> None:
        self.requests = 0
        self._wake = Wake()

    def __enter__(self) -> Signals:
        self._before = {number: signal.getsignal(number) for number in (*_REQUESTS, signal.SIGCHLD)}
        self._wakeup_before = signal.set_wakeup_fd(self._wake.writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _nothing)
        for number in _REQUESTS:
            if number != signal.SIGHUP or self._before[number] != signal.SIG_IGN:
                signal.signal(number, self._asked)
        return self

    def __exit__(self, *_: object) -> None:
        for number, action in self._before.items():
            signal.signal(number, action)
        signal.set_wakeup_fd(self._wakeup_before)
        self._wake.close()

    def _asked(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self.requests += 1

    def fileno(self) -> int:
        """Return the descriptor to wait for."""
        return self._wake.fileno()

    def clear(self) -> None:
        """Make the descriptor wait for the next signal."""
        self._wake.clear()


def _nothing(number: int, frame: FrameType | None) -> None:
    """Do nothing: the wake-up is all that is wanted, which an ignored signal would not give."""


STEP = 2.0
"""Seconds by which the two clocks must differ to be a step, and not the moment between two readings."""


def _since_boot() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class PilotClock:
    """wall: UNIX s. steady: s from any origin, which nobody sets and which counts while the machine sleeps."""

    def __init__(self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = _since_boot) -> None:
        self._wall, self._steady = wall, steady
        self._offset = wall() - steady()

    def now(self) -> float:
        """UNIX s; never goes back except by what `step` tells."""
        return self._steady() + self._offset

    def step(self) -> float:
        """Return by how many seconds the machine's clock was set since the last call; `now` follows it."""
        offset = self._wall() - self._steady()
        step = offset - self._offset
        if abs(step) < STEP:
            return 0.0
        self._offset = offset
        return step


def _until_the_end_of(lease: Lease) -> SiteOrders:
    return SiteOrders(leave=False, deadline=lease.end, draining=False, source=LEASE)
