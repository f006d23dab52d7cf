"""One simulated pilot: the pilot library's own workload, decisions, orders and report, driven by a simulated clock."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import replace

from drainwise.pilot.decide.decision import Decision, decide
from drainwise.pilot.decide.estimates import RunTimeEstimates, move_overdue, renew, waste_curve
from drainwise.pilot.decide.lease import LEASE, Lease, SiteOrders, orders_from
from drainwise.pilot.decide.payload import Backlog, Payload
from drainwise.pilot.decide.settings import HOLES, NOTHING, PilotSettings
from drainwise.pilot.decide.workload import Checkpoint, RunningPayload, Workload, report_of, running_since
from drainwise.pilotad.partial_return import PartialReturn, asked
from drainwise.pilotad.report import PilotReport
from drainwise.pilotad.site_ad import SiteAd
from drainwise_simulate.scenario import Checkpoints


class SimPilot:
    """A pilot in a place of the site. run: its number, never used again.

    stuck: its payloads hang. liar: it claims to lose everything. silent: it reports nothing. can_return: it can return
    a part of its cores. saves: how often it saves the work of all its payloads, None where it does not; saves_since:
    an interval before it first does, UNIX s. asked: cores that it is to return in all; returned: those that it has
    returned.
    idle, drained: core-seconds that idled without an order and because of one, up to the last change. lent: of cores
    that it had returned. empty_since: when its last payload ended, UNIX s.
    """

    def __init__(
        self,
        run: int,
        place: int,
        lease: Lease,
        *,
        stuck: bool = False,
        liar: bool = False,
        silent: bool = False,
        can_return: bool = False,
        saves: Checkpoints | None = None,
        saves_since: float = 0.0,
    ) -> None:
        self.run, self.place, self.lease = run, place, lease
        self.stuck, self.liar, self.silent, self.can_return = stuck, liar, silent, can_return
        self.saves, self.saves_since = saves, saves_since
        self.asked = self.returned = 0
        self.lent = 0.0
        self.workload = Workload(lease.start)
        self.orders = _no_orders(lease)
        self.idle = self.drained = 0.0
        self._since = self.empty_since = lease.start

    def free(self, settings: PilotSettings) -> int:
        """Return the cores on which a payload could start; none while it drains and starts nothing."""
        if self.orders.draining and settings.while_draining == NOTHING:
            return 0
        return max(0, self.lease.cores - self.asked - self.workload.used)

    @property
    def cores(self) -> int:
        """The cores that it holds: those that it has not returned."""
        return self.lease.cores - self.returned

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
        lease = self.lease
        if self.asked:
            lease = replace(lease, cores=max(self.workload.used, lease.cores - self.asked))
        return decide(self.workload, Backlog(waiting), lease, self.orders, settings, now, more_may_come=True)

    def start(self, payload: Payload, now: float) -> None:
        """Start a payload."""
        self.settle(now)
        self.workload.add(running_since(payload, now))

    def end(self, name: str, now: float) -> RunningPayload:
        """End a payload, for whatever reason."""
        self.settle(now)
        return self.workload.remove(name)

    def saved(self, running: RunningPayload, now: float) -> float:
        """Return until when the work of a payload is saved, UNIX s: its start where it is not."""
        if self.saves is None:
            return running.start
        last, asked = self.saves.last(self.saves_since, now), self.orders.checkpoint_by
        if asked is not None and asked <= now:
            last = max(last, asked - self.saves.seconds)
        return max(running.start, last)

    def give_order(self, deadline: int, settings: PilotSettings, now: float) -> None:
        """Order the pilot to end by `deadline`, as `.site.ad` says it; and to save by then, if there is time for it."""
        self.settle(now)
        in_time = self.saves is not None and self.saves.on_demand and now + self.saves.seconds <= deadline
        ad = SiteAd(vacate_desired=True, payload_deadline=deadline, checkpoint_by=deadline if in_time else None)
        self.orders = orders_from(ad, None, None, None, self.lease, settings, now)

    def ask(self, cores: int, now: float) -> None:
        """Ask for `cores` of its cores in all, at most all but one; what it has returned stays returned."""
        self.settle(now)
        request = PartialReturn(cores)
        self.asked = max(self.returned, asked(request, self.lease.cores, now, self.returned).cores)

    def give_back(self, chunk: int, most: int, now: float) -> int:
        """Return the idle cores that it is asked for, in whole chunks and `most` at most; say how many these are."""
        self.settle(now)
        idle = min(self.cores - self.workload.used, self.asked - self.returned, most)
        given = max(0, idle // chunk * chunk)
        self.returned += given
        return given

    def withdraw_order(self, now: float) -> None:
        """Let the pilot go on until its lease ends."""
        self.settle(now)
        self.orders = _no_orders(self.lease)

    def settle(self, now: float) -> None:
        """Write down what idled since the last change."""
        seconds, cores = now - self._since, self.cores - self.workload.used
        ordered = cores if self.orders.leave else min(cores, self.asked - self.returned)
        self.drained += ordered * seconds
        self.idle += (cores - ordered) * seconds
        self.lent += self.returned * seconds
        self._since = now

    def report(self, estimates: RunTimeEstimates | None, settings: PilotSettings, now: float) -> PilotReport | None:
        """Return its report: as the library makes it, unless the pilot is silent or a liar."""
        if self.silent:
            return None
        if estimates is not None:
            renew(self.workload, now, estimates)
        move_overdue(self.workload, now, estimates)
        lease = replace(self.lease, cores=self.cores) if self.returned else self.lease
        work = self._with_saves(now)
        limit, curve = self.orders.deadline, waste_curve(work, lease.cores, now, estimates)
        draining, factor = self.orders.draining, settings.priority_factor
        made = report_of(work, lease, not draining, factor, now, limit, exp_waste_curve=curve)
        return _lie(made, lease) if self.liar else made

    def _with_saves(self, now: float) -> Workload:
        """Return the payloads with what each has saved: at its start nothing is lost."""
        if self.saves is None:
            return self.workload
        following = self.saves.last(self.saves_since, now) + self.saves.interval + self.saves.seconds
        on_demand, work = self.saves.seconds if self.saves.on_demand else None, Workload(self.lease.start)
        for running in self.workload.running.values():
            work.add(replace(running, saved=Checkpoint(self.saved(running, now), following, on_demand)))
        return work

    def copy(self) -> SimPilot:
        """Return the same pilot, to go on by itself."""
        other = copy.copy(self)
        other.workload = Workload(self.lease.start)
        for running in self.workload.running.values():
            other.workload.add(running)
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
