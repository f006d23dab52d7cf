"""The use of a lease's core-seconds: useful, failed, lost, returned or idle, which add up to the lease exactly.

Pure. Times are kept in whole milliseconds, so that the sum is exact and not merely near.
"""

from __future__ import annotations

from dataclasses import dataclass

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
