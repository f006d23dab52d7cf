"""The pilot's record of its lease: payloads, since when it is ordered to leave, and the report of its exit."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass

from drainwise.common.local_file import replace_file
from drainwise.pilot.decide.decision import BY_MAXIMUM
from drainwise.pilot.decide.lease import Lease
from drainwise.pilot.decide.lease_use import FAILED, LOST, USEFUL, Drain, LeaseCoreSeconds, LeaseUse
from drainwise.pilot.decide.orders import SiteOrders
from drainwise.pilot.decide.returned_cores import ReturnedCores
from drainwise.pilot.queues.protocol import PayloadQueue
from drainwise.pilot.queues.records import EndedPayload

REPORT = "pilot-report.json"


@dataclass(frozen=True)
class ExitReport:
    """The use of a lease.

    started, ended: UNIX s; started is the lease's start. done, failed, requeued: payloads; one that was requeued and
    taken again counts each time. published: how often the channels were written. cpu_seconds: of the pilot itself.
    drain: None when nobody ordered it to leave.
    """

    pilot: str
    cores: int
    started: float
    ended: float
    why: str
    done: int
    failed: int
    requeued: int
    published: int
    cpu_seconds: float
    core_seconds: LeaseCoreSeconds
    drain: Drain | None

    def as_json(self) -> str:
        """Return the content of `pilot-report.json`."""
        return json.dumps(asdict(self), indent=2, allow_nan=False) + "\n"

    def as_line(self) -> str:
        """Return one line for a person."""
        spent = self.core_seconds
        held = spent.lease - spent.returned
        share = f" ({100 * spent.useful / held:.1f} %)" if held > 0 else ""
        returned = f", {spent.returned:.0f} returned" if spent.returned else ""
        line = (
            f"{self.why}: {self.done} payloads done, {self.failed} failed, {self.requeued} requeued; "
            f"of {spent.lease:.0f} core-s {spent.useful:.0f} useful{share}, {spent.failed:.0f} failed, "
            f"{spent.lost:.0f} lost, {spent.idle:.0f} idle{returned}"
        )
        if self.drain is not None:
            line += f"; gone {self.drain.seconds:.1f} s after the order ({self.drain.source})"
        return line


def write_exit_report(directory: str, report: ExitReport) -> str:
    """Put `pilot-report.json` into the startup directory; what went wrong in a few words, "" when nothing did."""
    try:
        replace_file(REPORT, report.as_json().encode("ascii"), directory)
    except OSError as error:
        return error.strerror or "cannot be written"
    return ""


class LeaseRecord:
    """The record of a lease; the queue and the log get the same."""

    def __init__(self, lease: Lease, queue: PayloadQueue, log: Callable[[str], None]) -> None:
        self._cores, self._queue, self._log = lease.cores, queue, log
        self._use = LeaseUse(lease.cores, lease.start)
        self._drains_since: float | None = None
        self._source = ""

    def book(self, ended: EndedPayload, now: float) -> None:
        """Book an end at `now` (UNIX s). What the pilot stopped goes back, unless it ran past its own maximum."""
        payload, seconds = ended.payload, now - ended.start
        if ended.stopped and ended.stopped != BY_MAXIMUM:
            kind = LOST
            self._log(f"payload {payload.name} stopped after {seconds:.0f} s and requeued: {ended.stopped}")
            self._queue.requeue(payload, ended.stopped, seconds, now)
        else:
            kind = FAILED if ended.failed else USEFUL
            if ended.stopped:
                self._log(f"payload {payload.name} failed: it ran past its maximum of {payload.maximum:.0f} s")
            elif ended.code:
                how = f"with {ended.code}" if ended.code > 0 else f"by signal {-ended.code}"
                self._log(f"payload {payload.name} failed: it ended {how} after {seconds:.0f} s")
            self._queue.finished(ended, now)
        self._use.add(kind, payload.cores, ended.start, now)

    def note(self, before: SiteOrders, orders: SiteOrders, now: float) -> bool:
        """Note the orders that hold at `now` (UNIX s); whether they differ from those before.

        Another wish for a part is logged, and is no other order.
        """
        if orders.part != before.part:
            cores = 0 if orders.part is None else orders.part.cores
            self._log(f"the site asks to have returned {cores} of {self._cores} cores")
        overdue = orders.deadline == now and before.deadline is not None and before.deadline <= now
        if (orders.leave, orders.draining, orders.source) == (before.leave, before.draining, before.source) and (
            overdue or orders.deadline == before.deadline
        ):
            return False
        by = "" if orders.deadline is None else f", everything ends within {max(0.0, orders.deadline - now):.0f} s"
        if orders.draining:
            if self._drains_since is None:
                self._drains_since, self._source = now, orders.source
                self._use.mark(now)
            self._log(f"draining ({orders.source}){by}")
        elif before.draining:
            self._drains_since = None
            self._log(f"no longer ordered to drain{by}")
        else:
            self._log(f"the lease has another end ({orders.source}){by}")
        return True

    def note_returned(self, part: ReturnedCores, now: float) -> None:
        """Note how many cores the pilot may use from `now` (UNIX s) on."""
        self._use.give_back(self._cores - part.usable, now)

    def shift(self, seconds: float) -> None:
        """Follow a clock that was set by so much."""
        self._use.shift(seconds)
        if self._drains_since is not None:
            self._drains_since += seconds

    def report(self, pilot: str, ended: float, why: str, published: int) -> ExitReport:
        """Return the report of a pilot that ended at `ended`, UNIX s. published: how often it wrote its channels."""
        count, spent = self._use.payloads, os.times()
        return ExitReport(
            pilot=pilot,
            cores=self._cores,
            started=self._use.start,
            ended=round(ended, 3),
            why=why,
            done=count[USEFUL],
            failed=count[FAILED],
            requeued=count[LOST],
            published=published,
            cpu_seconds=round(spent.user + spent.system, 3),
            core_seconds=self._use.at(ended),
            drain=self._drain(ended),
        )

    def _drain(self, end: float) -> Drain | None:
        if self._drains_since is None:
            return None
        idle, lost = self._use.since_mark(end)
        since, seconds = round(self._drains_since, 3), round(max(0.0, end - self._drains_since), 3)
        return Drain(since, seconds, self._source, idle, lost)
