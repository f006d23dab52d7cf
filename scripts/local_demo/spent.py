"""What a scene cost the machine until bob had his cores: cores that did nothing, and payloads that were stopped."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from drainwise.pilot.queues.records import REQUEUED
from local_demo.truth import Ran, busy


@dataclass(frozen=True)
class Spent:
    """From the decision until bob had his cores. seconds: how long that took. idle: core-seconds of all cores of the
    machine on which neither a payload nor one of bob's jobs ran. lost: core-seconds of payloads stopped in that time.
    """

    seconds: float
    idle: float
    lost: float

    @property
    def wasted(self) -> float:
        """Both together."""
        return self.idle + self.lost


def spent(cores: int, ran: Iterable[Ran], bobs: Iterable[tuple[int, float]], begin: float, end: float) -> Spent:
    """Return it for a machine of so many cores between two times, UNIX s.

    ran: alice's payloads by their records. bobs: cores and start of each of bob's jobs.
    """
    ran = list(ran)
    worked = sum(busy(ran, pilot, begin, end) for pilot in {one.pilot for one in ran})
    worked += sum(width * max(0.0, end - max(begin, start)) for width, start in bobs)
    stopped = [one for one in ran if one.how == REQUEUED and one.end is not None and begin <= one.end <= end]
    lost = sum(one.cores * ((one.end or end) - one.start) for one in stopped)
    return Spent(end - begin, cores * (end - begin) - worked, lost)


def side_by_side(draining: Spent, parts: Spent) -> list[str]:
    """Return the comparison for a person; core-seconds of this clock."""
    rows = (("whole pilots drain", draining), ("pilots return parts", parts))
    lines = ["", "the same scene twice: what it cost the machine until bob had his cores (core-seconds)"]
    lines += [
        f"  {name:<20} {one.wasted:6.0f} wasted: {one.idle:.0f} idle, {one.lost:.0f} in payloads stopped;"
        f" {one.seconds:.0f} s"
        for name, one in rows
    ]
    return lines
