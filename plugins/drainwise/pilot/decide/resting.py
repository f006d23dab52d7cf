"""After CAN_POSTPONE_LAST_JOB went back from False to True, the other values rest for a while.

A site that has counted on the cores of a draining pilot decides again; meanwhile figures that move at each event would
have it decide on another pilot each time. Source: draft row 3.8.
"""

from __future__ import annotations

from drainwise.pilotad.report import PilotReport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_NEVER = float("-inf")


class RestingValues:
    """The values of one pilot's reports. `rest`: how long they rest, in seconds."""

    def __init__(self, rest: float) -> None:
        self._rest = rest
        self._stated: PilotReport | None = None
        self.until = _NEVER
        """When a rest is over, UNIX s; a time that is past for none."""

    def stated(self, report: PilotReport, now: float) -> PilotReport:
        """Return what is to be stated at `now` (UNIX s) where `report` is how it is.

        A pilot that drains, again or still, states everything as it is: its cores come back sooner than was said. So
        does one that has returned other cores than before.
        """
        before = self._stated
        if not report.can_postpone_last_job:
            self.until = _NEVER
        elif before is not None and before.can_postpone_last_job is False:
            self.until = now + self._rest
        if before is not None and report.returned_since != before.returned_since:
            self.until = _NEVER  # cores have come back: what is in use fits no more what was said
        if before is not None and now < self.until:
            report = _with_values_of(before, report)
        self._stated = report
        return report

    def end(self) -> None:
        """End a rest: the clock was set, and the times that are stated belong to another one."""
        self.until = _NEVER


def _with_values_of(held: PilotReport, report: PilotReport) -> PilotReport:
    moving = {"heartbeat", "can_postpone_last_job", "source"}
    stated: list[Any] = [getattr(report if name in moving else held, name) for name in PilotReport.__match_args__]
    return PilotReport(*stated)
