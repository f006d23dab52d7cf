"""The loop of the reference pilot: it sleeps until something happens, decides, acts, and tells the site."""

from __future__ import annotations

import os
import selectors
import time
from collections.abc import Callable

from drainwise.pilot.account import FAILED, LOST, USEFUL, Account
from drainwise.pilot.backlog import Backlog
from drainwise.pilot.channels import Channels
from drainwise.pilot.clock_step import moved_lease, moved_moment, moved_workload
from drainwise.pilot.decide import Decision, decide
from drainwise.pilot.drain_record import DrainRecord
from drainwise.pilot.endings import Endings
from drainwise.pilot.estimates import Estimates
from drainwise.pilot.exit_report import ExitReport
from drainwise.pilot.lease import Lease
from drainwise.pilot.orders import LEASE, Orders
from drainwise.pilot.overrun import move_overdue, renew
from drainwise.pilot.payload_queue import PayloadQueue
from drainwise.pilot.pilot_clock import PilotClock
from drainwise.pilot.processes import Ended, Processes
from drainwise.pilot.settings import Settings
from drainwise.pilot.signals import Signals
from drainwise.pilot.watch import Watch
from drainwise.pilot.workload import Workload, report_of, running_since

START_PAUSE = 30.0
"""Seconds without a start after one that failed for want of space, directories or processes."""
AT_ONCE = "asked twice to end"
AT_END = "the pilot ended"
START_BATCH = 0.5
"""Seconds of starting in a row, after which the pilot tells what runs and listens before it starts more."""
_SLACK = 0.05
"""Seconds by which a timer is late on purpose: a payload that ends just when it should is reaped, not re-estimated."""


class Runner:
    """One pilot: what it holds, where its payloads come from and go to, and whom it tells.

    pilot: its id. deaf: it takes no notice of what the site asks, signals included (for rehearsals).
    estimates: what was learned of run times; None: payloads are taken at their word.
    """

    def __init__(
        self,
        pilot: str,
        lease: Lease,
        settings: Settings,
        queue: PayloadQueue,
        processes: Processes,
        channels: Channels,
        watch: Watch,
        log: Callable[[str], None],
        clock: PilotClock,
        deaf: bool = False,
        estimates: Estimates | None = None,
    ) -> None:
        self._pilot, self._lease, self._settings, self._queue = pilot, lease, settings, queue
        self._processes, self._channels, self._watch = processes, channels, watch
        self._log, self._clock, self._deaf, self._estimates = log, clock, deaf, estimates
        now = clock.now()
        self._workload, self._account = Workload(now), Account(lease.cores, lease.start)
        self._orders = Orders(leave=False, deadline=lease.end, draining=False, source=LEASE)
        self._drain, self._endings = DrainRecord(self._account, log), Endings(queue, self._account, log)
        self._requests = 0
        self._terminated: float | None = None
        self._at_once = self._again = False
        self._idle_since: float | None = None
        self._poll_at = self._heartbeat_at = self._start_at = now
        self._published = 0

    def run(self) -> ExitReport:
        """Run until there is nothing left to do or to wait for; nothing of the payloads is left behind."""
        with Signals() as signals:
            why = "the pilot failed"
            try:
                why = self._loop(signals)
            finally:
                report = self._end(why)
        return report

    def _loop(self, signals: Signals) -> str:
        with selectors.DefaultSelector() as selector:
            selector.register(signals, selectors.EVENT_READ)
            while True:
                now = self._follow_clock()
                changed = self._listen(signals.requests, now)
                # What ended meanwhile frees its cores for this decision.
                changed = self._reap(now) or changed
                changed = move_overdue(self._workload, now, self._estimates) or changed
                decision = self._decide(now)
                changed = self._act(decision, now) or changed
                why = decision.why_done if decision.done else self._idle(now)
                if changed or why or now >= self._heartbeat_at:
                    self._publish(decision.can_postpone and not why)
                if why:
                    return why
                self._sleep(selector, signals, decision.wake)

    def _follow_clock(self) -> float:
        """The time; when the machine's clock was set, every time that is kept here moves with it."""
        step = self._clock.step()
        if step:
            self._log(f"the clock was set by {step:+.0f} s")
            self._lease, self._workload = moved_lease(self._lease, step), moved_workload(self._workload, step)
            if self._orders.source == LEASE:
                self._orders = Orders(leave=False, deadline=self._lease.end, draining=False, source=LEASE)
            for keeper in (self._account, self._processes, self._drain):
                keeper.shift(step)
            self._terminated = moved_moment(self._terminated, step)
            self._idle_since = moved_moment(self._idle_since, step)
            self._start_at += step
            self._poll_at = self._heartbeat_at = self._clock.now()
        return self._clock.now()

    def _listen(self, requests: int, now: float) -> bool:
        """Take in what the site and the queue say when it is time to look; whether an order changed."""
        asked = requests > self._requests and not self._deaf
        if asked and (self._terminated is not None or requests - self._requests > 1):
            self._at_once = True
            for name in self._workload.running:
                self._processes.stop(name, AT_ONCE, now)
        self._requests = requests
        if asked and self._terminated is None:
            self._terminated = now
        due = now >= self._poll_at
        if due or self._queue.fileno() is not None:
            self._queue.look(now)
        if due:
            self._poll_at = now + self._settings.poll
            if self._estimates is not None:
                self._estimates.look(now)
        if self._deaf or not (due or asked):
            return False
        before = self._orders
        self._orders = self._watch.orders(self._terminated, self._lease, self._settings, now)
        return self._drain.note(before, self._orders, now)

    def _reap(self, now: float) -> bool:
        ended = self._processes.reap(now)
        for each in ended:
            self._book(each, now)
        return bool(ended)

    def _book(self, ended: Ended, now: float) -> None:
        if ended.payload.name in self._workload.running:
            self._workload.remove(ended.payload.name)
        self._endings.book(ended, now)

    def _decide(self, now: float) -> Decision:
        may_start = now >= self._start_at and not self._at_once
        waiting = self._queue.waiting() if may_start else Backlog()
        more_may_come = not may_start or self._queue.more_may_come()
        return decide(self._workload, waiting, self._lease, self._orders, self._settings, now, more_may_come)

    def _act(self, decision: Decision, now: float) -> bool:
        """Stop, refuse and start; whether anything runs that did not."""
        for name, reason in decision.stop:
            self._processes.stop(name, reason, now)
        if decision.unfit:
            waiting = {payload.name: payload for payload in self._queue.waiting()}
            for name, reason in decision.unfit:
                self._queue.refuse(waiting[name], reason, now)
        started = False
        for payload in decision.start:
            if self._clock.now() - now > START_BATCH:
                self._again = True
                break
            if not self._queue.claim(payload, now):
                self._again = True  # there may be another for these cores
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
            self._workload.add(running_since(payload, began))
            started = True
        if started and self._estimates is not None:
            renew(self._workload, now, self._estimates)
            self._again = True  # ends have moved, and with them the time to wake up
        return started

    def _idle(self, now: float) -> str:
        """Why a pilot in which nothing runs waits no longer; "" while it does."""
        if self._workload.running or self._again:
            self._idle_since = None
            return ""
        if self._idle_since is None:
            self._idle_since = now
        limit = self._settings.idle_limit
        return f"nothing to run for {limit:g} s" if now - self._idle_since >= limit else ""

    def _publish(self, can_postpone: bool) -> None:
        settings, now = self._settings, self._clock.now()
        if self._estimates is not None:
            renew(self._workload, now, self._estimates)
        limit = self._orders.deadline
        if limit is not None:
            limit = max(now, limit - settings.margin) + settings.kill_wait
        factor, wait = settings.priority_factor, settings.kill_wait
        self._channels.publish(report_of(self._workload, self._lease, can_postpone, factor, now, limit, wait))
        self._published += 1
        self._heartbeat_at = now + settings.heartbeat

    def _sleep(self, selector: selectors.BaseSelector, signals: Signals, wake: float | None) -> None:
        now = self._clock.now()
        idle_until = None if self._idle_since is None else self._idle_since + self._settings.idle_limit
        paused = self._start_at if self._start_at > now else None
        times = (self._poll_at, self._heartbeat_at, wake, self._processes.next_kill, idle_until, paused)
        until = now if self._again else _SLACK + min(moment for moment in times if moment is not None)
        self._again = False
        queue = self._queue.fileno()
        if queue is not None:
            selector.register(queue, selectors.EVENT_READ)
        selector.select(max(0.0, until - now))
        if queue is not None:
            selector.unregister(queue)
        signals.clear()

    def _end(self, why: str) -> ExitReport:
        """Leave nothing running and nothing claimed; the account."""
        deadline = time.monotonic() + self._settings.kill_wait + 1.0
        while self._workload.running and time.monotonic() < deadline:
            now = self._clock.now()
            for name in self._workload.running:
                self._processes.stop(name, AT_END, now)
            if not self._reap(now):
                time.sleep(_SLACK)
        stuck = self._processes.clear()
        now = self._clock.now()
        for name, running in list(self._workload.running.items()):
            self._book(Ended(running.payload, 0, running.start, AT_END), now)
            self._log(f"payload {name} could not be ended: processes {stuck}")
        self._queue.close(now)
        self._publish(can_postpone=False)
        ended, spent, count = self._clock.now(), os.times(), self._account.payloads
        return ExitReport(
            pilot=self._pilot,
            cores=self._lease.cores,
            started=self._account.start,
            ended=round(ended, 3),
            why=why,
            done=count[USEFUL],
            failed=count[FAILED],
            requeued=count[LOST],
            published=self._published,
            cpu_seconds=round(spent.user + spent.system, 3),
            core_seconds=self._account.at(ended),
            drain=self._drain.until(ended),
        )
