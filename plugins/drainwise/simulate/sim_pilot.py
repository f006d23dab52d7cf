"""One simulated pilot: the pilot library's own workload, decisions, orders and report, driven by a simulated clock."""

from __future__ import annotations

import math
from collections.abc import Sequence

from drainwise.pilot.decide.backlog import Backlog
from drainwise.pilot.decide.decision import Decision, decide
from drainwise.pilot.decide.estimates import RunTimeEstimates, move_overdue, renew
from drainwise.pilot.decide.lease import Lease
from drainwise.pilot.decide.orders import LEASE, SiteOrders, orders_from
from drainwise.pilot.decide.payload import Payload
from drainwise.pilot.decide.settings import HOLES, NOTHING, PilotSettings
from drainwise.pilot.decide.waste_curve import waste_curve
from drainwise.pilot.decide.workload import RunningPayload, Workload, report_of, running_since
from drainwise.pilotad.report import PilotReport
from drainwise.pilotad.site_ad import SiteAd


class SimPilot:
    """A pilot in a place of the site. run: its number, never used again.

    stuck: its payloads hang. liar: it claims to lose everything. silent: it reports nothing.
    idle, drained: core-seconds that idled before and after its order, up to the last change. empty_since:
    when its last payload ended, UNIX s.
    """

    __slots__ = (
        "_since",
        "drained",
        "empty_since",
        "idle",
        "lease",
        "liar",
        "orders",
        "place",
        "run",
        "silent",
        "stuck",
        "workload",
    )

    def __init__(
        self, run: int, place: int, lease: Lease, *, stuck: bool = False, liar: bool = False, silent: bool = False
    ) -> None:
        self.run, self.place, self.lease = run, place, lease
        self.stuck, self.liar, self.silent = stuck, liar, silent
        self.workload = Workload(lease.start)
        self.orders = _no_orders(lease)
        self.idle = self.drained = 0.0
        self._since = self.empty_since = lease.start

    def free(self, settings: PilotSettings) -> int:
        """Return the cores on which a payload could start; none while it drains and starts nothing."""
        if self.orders.draining and settings.while_draining == NOTHING:
            return 0
        return self.lease.cores - self.workload.used

    def seconds_left(self, settings: PilotSettings, now: float) -> float:
        """Return the seconds within which a payload that starts must surely have ended."""
        ends = [end for end in (self.lease.end, self.orders.deadline) if end is not None]
        if self.orders.leave and settings.while_draining == HOLES:
            ends.append(self.workload.last_end or now)
        return min(ends, default=math.inf) - now

    def decide(self, waiting: Sequence[Payload], settings: PilotSettings, now: float) -> Decision:
        """Return the pilot library's decision."""
        if self.orders.draining:
            move_overdue(self.workload, now)
        return decide(self.workload, Backlog(waiting), self.lease, self.orders, settings, now, more_may_come=True)

    def start(self, payload: Payload, now: float) -> None:
        """Start a payload."""
        self.settle(now)
        self.workload.add(running_since(payload, now))

    def end(self, name: str, now: float) -> RunningPayload:
        """End a payload, for whatever reason."""
        self.settle(now)
        return self.workload.remove(name)

    def give_order(self, deadline: int, settings: PilotSettings, now: float) -> None:
        """Order the pilot to end by `deadline`, as `.site.ad` says it."""
        self.settle(now)
        ad = SiteAd(vacate_desired=True, payload_deadline=deadline)
        self.orders = orders_from(ad, None, None, None, self.lease, settings, now)

    def withdraw_order(self, now: float) -> None:
        """Let the pilot go on until its lease ends."""
        self.settle(now)
        self.orders = _no_orders(self.lease)

    def settle(self, now: float) -> None:
        """Write down what idled since the last change."""
        idle = (self.lease.cores - self.workload.used) * (now - self._since)
        if self.orders.leave:
            self.drained += idle
        else:
            self.idle += idle
        self._since = now

    def report(self, estimates: RunTimeEstimates | None, settings: PilotSettings, now: float) -> PilotReport | None:
        """Return its report: as the library makes it, unless the pilot is silent or a liar."""
        if self.silent:
            return None
        if estimates is not None:
            renew(self.workload, now, estimates)
        move_overdue(self.workload, now, estimates)
        limit, curve = self.orders.deadline, waste_curve(self.workload, self.lease.cores, now, estimates)
        draining, factor = self.orders.draining, settings.priority_factor
        made = report_of(self.workload, self.lease, not draining, factor, now, limit, exp_waste_curve=curve)
        return _lie(made, self.lease) if self.liar else made

    def copy(self) -> SimPilot:
        """Return the same pilot, to go on by itself."""
        other = SimPilot(self.run, self.place, self.lease, stuck=self.stuck, liar=self.liar, silent=self.silent)
        for running in self.workload.running.values():
            other.workload.add(running)
        other.orders, other.idle, other.drained = self.orders, self.idle, self.drained
        other._since, other.empty_since = self._since, self.empty_since
        return other


def _no_orders(lease: Lease) -> SiteOrders:
    return SiteOrders(leave=False, deadline=lease.end, draining=False, source=LEASE)


def _lie(report: PilotReport, lease: Lease) -> PilotReport:
    """Return a report with which a pilot is never picked: nothing it runs would end, and all of it would be lost.

    Nothing in it is impossible: all its cores have been busy since its start, until a payload that starts just now.
    """
    end = math.floor(lease.end) if lease.end is not None else report.last_max_job_end
    return PilotReport(
        report.heartbeat,
        used_cpu=float(lease.cores),
        last_job_start=report.heartbeat,
        first_exp_job_end=end,
        last_exp_job_end=end,
        last_max_job_end=end,
        add_uncom_time=float(lease.cores) * (report.heartbeat - lease.start),
        add_final_exp_waste=0.0,
        priority_factor=report.priority_factor,
        can_postpone_last_job=True,
    )
