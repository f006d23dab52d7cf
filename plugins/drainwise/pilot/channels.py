"""What pilot and site tell each other: the report, written to `.pilot.ad` and `$JOBSTATUS`; site notices, read.

A fault of one channel costs one log line, not the pilot. Site notices are `.site.ad`, `shutdowntime_job` and
`shutdowntime`. `.site.ad` may lie in the startup directory and in $JOBSTATUS: a site whose jobs may share a startup
directory writes it there. Where both are, the stricter counts: one that asks to leave, and the earlier deadline. One
that names the run of another job (SITE_AD_RUN) counts as none.

A notice that cannot be read or makes no sense is one log line, and the last sound one holds: only a file that says
otherwise, or has vanished, withdraws an order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

from drainwise.common.service import Faults
from drainwise.facts.errors import DrainwiseError, FeatureError
from drainwise.features.read import HTTP_PREFIXES, FeatureReader, open_features
from drainwise.pilot.decide.lease import SHUTDOWN, SHUTDOWN_JOB, Lease, SiteOrders, orders_from
from drainwise.pilot.decide.settings import PilotSettings
from drainwise.pilotad.attributes import JOBSTATUS, PILOT_AD, SITE_AD
from drainwise.pilotad.jobstatus import write_jobstatus
from drainwise.pilotad.pilot_ad import write_pilot_ad
from drainwise.pilotad.report import PilotReport
from drainwise.pilotad.site_ad import SiteAd, read_site_ad

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


SERVER_PAUSE = 30.0
"""Seconds until a features server that did not answer is asked again: each try may take 2 s."""
_VARIABLES = {SHUTDOWN_JOB: "JOBFEATURES", SHUTDOWN: "MACHINEFEATURES"}


class SiteNoticeReader:
    """The site notices of one pilot. environment: has $JOBFEATURES, $MACHINEFEATURES, $JOBSTATUS where they are."""

    def __init__(
        self,
        startup_directory: str,
        environment: Mapping[str, str],
        log: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._faults, self._clock = Faults(log), clock
        self._directories, self._job = {SITE_AD: startup_directory}, environment.get("SLURM_JOB_ID", "")
        if environment.get("JOBSTATUS"):
            self._directories[f"{JOBSTATUS}/{SITE_AD}"] = environment["JOBSTATUS"].rstrip("/")
        self._site_ads: dict[str, SiteAd | None] = {}
        self._planned: dict[str, int | None] = {}
        self._not_before: dict[str, float] = {}
        self._readers: dict[str, FeatureReader] = {}
        for key, variable in _VARIABLES.items():
            if environment.get(variable):
                try:
                    self._readers[key] = open_features(environment[variable])
                except DrainwiseError as error:
                    self._faults.set(f"${variable}", str(error))

    def orders(self, terminated: float | None, lease: Lease, settings: PilotSettings, now: float) -> SiteOrders:
        """Return the orders that hold at `now`. terminated: when SIGTERM came first; both UNIX s. Raises nothing."""
        # A site writes `.site.ad` before the shutdown files and removes it after them, so it is read after them:
        # whoever finds one of them finds it, too, unless the order has just been withdrawn, which a second look shows.
        job, machine = self._shutdowns(now)
        site_ad = stricter([self._read_site_ad(*place) for place in self._directories.items()])
        if site_ad is None and (job, machine) != (None, None):
            job, machine = self._shutdowns(now)
        return orders_from(site_ad, job, machine, terminated, lease, settings, now)

    def _read_site_ad(self, place: str, directory: str) -> SiteAd | None:
        found, reason = read_site_ad(directory)
        if found is not None and self._job and found.run and found.run.partition("@")[0] != self._job:
            found, reason = None, "absent"  # another job's, which had the same startup directory
        if reason == "absent":
            reason = ""
        elif found is None:
            found, reason = self._site_ads.get(place), f"not used: {reason}"
        self._faults.set(place, reason)
        self._site_ads[place] = found
        return found

    def _shutdowns(self, now: float) -> tuple[int | None, int | None]:
        return self._shutdown(SHUTDOWN_JOB, now), self._shutdown(SHUTDOWN, now)

    def _shutdown(self, key: str, now: float) -> int | None:
        """Return the planned time under a key. One that has arrived stands, although its file goes at that moment."""
        before = self._planned.get(key)
        reader = self._readers.get(key)
        if reader is None or self._clock() < self._not_before.get(key, 0.0):
            return before
        try:
            found = reader.integer(key)
        except DrainwiseError as error:
            if reader.location.startswith(HTTP_PREFIXES):
                self._not_before[key] = self._clock() + SERVER_PAUSE
            self._faults.set(key, f"not used: {error}")
            return before
        self._faults.set(key, "")
        if found is None and before is not None and before <= now:
            found = before
        self._planned[key] = found
        return found


def stricter(ads: Iterable[SiteAd | None]) -> SiteAd | None:
    """Combine site ads: what all ask for together; None when there is none. Pure.

    Of two parts the larger counts, of two acknowledgements the later one, and of one statement the smaller.
    """
    there = [ad for ad in ads if ad is not None]
    if not there:
        return None
    deadlines = [ad.payload_deadline for ad in there if ad.payload_deadline is not None]
    parts = [ad.part for ad in there if ad.part is not None]
    answers = [ad.answer for ad in there if ad.answer is not None]
    saves_by = [ad.checkpoint_by for ad in there if ad.checkpoint_by is not None]
    return SiteAd(
        any(ad.vacate_desired for ad in there),
        min(deadlines, default=None),
        part=max(parts, key=lambda part: part.cores, default=None),
        answer=max(answers, key=lambda answer: (answer.since, -answer.usable), default=None),
        checkpoint_by=min(saves_by, default=None),
    )
