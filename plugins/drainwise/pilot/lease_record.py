"""The pilot's record of its lease: payloads, since when it is ordered to leave, and the report of its exit.

Core-seconds are useful, failed, lost, returned or idle, which add up to the lease exactly: times are kept in whole
milliseconds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass

from drainwise.common.local_file import replace_file
from drainwise.pilot.decide.decision import BY_MAXIMUM
from drainwise.pilot.decide.lease import Lease, ReturnedCores, SiteOrders
from drainwise.pilot.queues.records import EndedPayload, PayloadQueue

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


USEFUL = "useful"
FAILED = "failed"
LOST = "lost"
_KINDS = (USEFUL, FAILED, LOST)


@dataclass(frozen=True)
class LeaseCoreSeconds:
    """Core-seconds of one lease; lease = useful + failed + lost + idle + returned, to the millisecond.

    useful: of payloads that ended with 0. failed: of payloads that ended otherwise or ran past their maximum.
    lost: of payloads that were stopped and requeued. idle: of cores without a payload.
    returned: of cores that were given back, until the pilot could use them again.
    """

    lease: float
    useful: float
    failed: float
    lost: float
    idle: float
    returned: float = 0.0


@dataclass(frozen=True)
class Drain:
    """The order that made the pilot leave, and what it cost.

    requested: UNIX s. seconds: from then to the end. source: of the order. idle: core-seconds without a payload
    from then to the end, on cores that were not returned. lost: core-seconds, from their own start on, of the payloads
    stopped since then.
    """

    requested: float
    seconds: float
    source: str
    idle: float
    lost: float


class LeaseUse:
    """The use so far of a lease of `cores` that began at `start` (UNIX s)."""

    def __init__(self, cores: int, start: float) -> None:
        self._cores, self._start = cores, _milliseconds(start)
        self._spent = dict.fromkeys(_KINDS, 0)
        self.payloads = dict.fromkeys(_KINDS, 0)
        """How many payloads were booked under each kind."""
        self._mark = self._start
        self._busy_since = self._lost_before = 0
        self._away, self._away_since = 0, self._start
        self._returned = self._returned_before = 0

    def add(self, kind: str, cores: int, start: float, end: float) -> None:
        """Book a payload of `cores` that ran from `start` to `end` (UNIX s) under "useful", "failed" or "lost"."""
        began, ended = _milliseconds(start), _milliseconds(end)
        self._spent[kind] += cores * max(0, ended - began)
        self._busy_since += cores * max(0, ended - max(began, self._mark))
        self.payloads[kind] += 1

    def give_back(self, cores: int, now: float) -> None:
        """Note that so many cores of the lease are not the pilot's from `now` (UNIX s) on."""
        self._returned, self._away, self._away_since = self._returned_at(now), cores, _milliseconds(now)

    def _returned_at(self, now: float) -> int:
        return self._returned + self._away * max(0, _milliseconds(now) - self._away_since)

    def mark(self, now: float) -> None:
        """Ask `since_mark` to count from `now`, UNIX s."""
        self._mark, self._returned_before = _milliseconds(now), self._returned_at(now)
        self._busy_since, self._lost_before = 0, self._spent[LOST]

    def since_mark(self, end: float) -> tuple[float, float]:
        """Core-seconds without a payload from the mark to `end` (UNIX s), and those of payloads stopped since then.

        Right when all payloads that ran at the mark have been booked.
        """
        idle = self._cores * max(0, _milliseconds(end) - self._mark) - self._busy_since
        idle -= self._returned_at(end) - self._returned_before
        return idle / 1000, (self._spent[LOST] - self._lost_before) / 1000

    def shift(self, seconds: float) -> None:
        """Follow a clock that was set by so much: the lease began at another time of it."""
        self._start += _milliseconds(seconds)
        self._mark += _milliseconds(seconds)
        self._away_since += _milliseconds(seconds)

    @property
    def start(self) -> float:
        """When the lease began, UNIX s."""
        return self._start / 1000

    def at(self, end: float) -> LeaseCoreSeconds:
        """Return the core-seconds of a lease that ends at `end` (UNIX s)."""
        lease = self._cores * max(0, _milliseconds(end) - self._start)
        useful, failed, lost = (self._spent[kind] for kind in _KINDS)
        returned = self._returned_at(end)
        idle = lease - useful - failed - lost - returned
        return LeaseCoreSeconds(*(one / 1000 for one in (lease, useful, failed, lost, idle, returned)))


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
