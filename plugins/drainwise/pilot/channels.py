"""Both channels of a pilot's report, `.pilot.ad` and `$JOBSTATUS`: a fault of one costs one log line, not the pilot."""

from __future__ import annotations

from collections.abc import Callable

from drainwise.common.service import Faults
from drainwise.facts.errors import FeatureError
from drainwise.pilotad.attributes import JOBSTATUS, PILOT_AD
from drainwise.pilotad.jobstatus import write_jobstatus
from drainwise.pilotad.pilot_ad import write_pilot_ad
from drainwise.pilotad.report import PilotReport

LOCK_TIMEOUT = 1.0
"""Seconds to wait for the lock on `used_CPU`."""
IMPATIENT = 0.05
"""Seconds to wait when it could not be had the last time: who holds it for ever must not slow every event."""
_LINES_AN_HOUR = 20


class Channels:
    """The two channels of one pilot.

    startup_directory: where `.pilot.ad` belongs. jobstatus: the value of $JOBSTATUS, None or "" when there is none.
    cores: of the lease. log: takes one line.
    """

    def __init__(self, startup_directory: str, jobstatus: str | None, cores: int, log: Callable[[str], None]) -> None:
        self._startup_directory, self._jobstatus, self._cores = startup_directory, jobstatus, cores
        self._faults = Faults(log, _LINES_AN_HOUR)
        self._timeout = LOCK_TIMEOUT

    def publish(self, report: PilotReport) -> bool:
        """Write the report to both, each whole or not at all; True when all was written.

        Never raises. A fault is logged once, and once more when it has ended. Waits for a lock for 1 s, and then, as
        long as it is held, for 50 ms at each event.
        """
        written = self._attempt(PILOT_AD, lambda: write_pilot_ad(self._startup_directory, report, self._cores))
        directory = self._jobstatus
        if not directory:
            return written
        stated = self._attempt(JOBSTATUS, lambda: write_jobstatus(directory, report, self._timeout))
        self._timeout = LOCK_TIMEOUT if stated else IMPATIENT
        return stated and written

    def _attempt(self, channel: str, write: Callable[[], None]) -> bool:
        fault = ""
        try:
            write()
        except (FeatureError, OSError) as error:
            fault = f"not written: {error}"
        self._faults.set(f"report to {channel}", fault, "written again")
        return not fault
