"""The lease of a pilot, what the site orders it to do with it, and the cores of it that it has returned.

No core is told from another: what counts is how many the payloads fill. Cores that are asked for get no more payloads,
and each is returned when so many are free, whichever payload has ended. What is returned is used again only when the
site has acknowledged that it is the pilot's again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from drainwise.facts.errors import UsageError
from drainwise.features.read import FeatureReader, open_features
from drainwise.pilot.decide.settings import PilotSettings
from drainwise.pilotad.attributes import SITE_AD
from drainwise.pilotad.partial_return import Acknowledgement, PartialReturn, ReturnedPart, asked, usable_cores
from drainwise.pilotad.site_ad import SiteAd


@dataclass(frozen=True)
class Lease:
    """`cores` from `start` (when the batch system started the job) to `end` (None: no end is known), UNIX s."""

    cores: int
    start: float
    end: float | None

    def moved(self, seconds: float) -> Lease:
        """Return the lease by a clock that was set by so much: as long as before."""
        return Lease(self.cores, self.start + seconds, None if self.end is None else self.end + seconds)


def lease_from(
    environment: Mapping[str, str], cores: int | None, seconds: float | None, now: float, open_ended: bool = False
) -> Lease:
    """Read the lease of this job from the features in `environment`, narrowed by the options that are given.

    `cores` and `seconds` (from `now`, UNIX s) are options: each narrows what $JOBFEATURES says (allocated_cpu,
    jobstart_secs, wall_limit_secs) and replaces what it does not say. `open_ended`: an end need not be known.
    Raises: UsageError when neither says the cores or the length, FeatureError when a feature is garbage.
    Source: HSF-TN-2016-02; for `allocated_CPU` the WLCG draft.
    """
    if cores is not None and cores < 1:
        raise UsageError(f"cores = {cores}: expected 1 or more")
    if seconds is not None and not 0 < seconds < float("inf"):
        raise UsageError(f"seconds = {seconds}: expected more than 0")
    location = environment.get("JOBFEATURES")
    reader = open_features(location) if location else None
    told_cores = _integer(reader, "allocated_cpu") or _integer(reader, "allocated_CPU")
    started = _integer(reader, "jobstart_secs")
    limit = _integer(reader, "wall_limit_secs")
    begin = now if started is None else float(started)
    known_cores = [count for count in (told_cores, cores) if count]
    ends = [] if not limit else [begin + limit]
    if seconds is not None:
        ends.append(now + seconds)
    place = f"{location}/" if location else "$JOBFEATURES/"
    if not known_cores:
        raise UsageError(f"how many cores? {place}allocated_cpu does not say: give --cores N")
    if not ends and not open_ended:
        raise UsageError(f"for how long? {place}wall_limit_secs does not say: give --seconds DURATION, such as 2h")
    # The batch system's clock may be a little ahead of this one.
    return Lease(min(known_cores), min(begin, now), min(ends) if ends else None)


def _integer(reader: FeatureReader | None, key: str) -> int | None:
    return None if reader is None else reader.integer(key)


SIGTERM = "SIGTERM"
SHUTDOWN_JOB = "shutdowntime_job"
SHUTDOWN = "shutdowntime"
LEASE = "lease"


@dataclass(frozen=True)
class SiteOrders:
    """The orders that hold now.

    leave: give the cores back as soon as the running payloads have ended. deadline: when everything must have ended,
    UNIX s; None: never. draining: the end of this pilot is ordered, so it does not postpone it. source: of them.
    part, answer: what the site asks and acknowledges of a partial return, whatever the orders are. checkpoint_by: until
    when payloads are to save their work, UNIX s; None where it does not ask for that.
    """

    leave: bool
    deadline: float | None
    draining: bool
    source: str
    part: PartialReturn | None = None
    answer: Acknowledgement | None = None
    checkpoint_by: int | None = None


def orders_from(
    site_ad: SiteAd | None,
    shutdowntime_job: int | None,
    shutdowntime: int | None,
    terminated: float | None,
    lease: Lease,
    settings: PilotSettings,
    now: float,
) -> SiteOrders:
    """Combine site notices; all times UNIX s, None for none (garbage is none). Pure.

    terminated: when SIGTERM came first. The earliest deadline holds, the lease's end among them; one in the past counts
    as now.
    * `.site.ad` with VACATE_DESIRED, or SIGTERM: leave. SIGTERM's own deadline is `term_grace` after it, unless the
      site has set when it ends this job: it ends it then and not before.
    * a shutdown file without a `.site.ad` that says VACATE_DESIRED = False: drain, the lease is shorter.
    * VACATE_DESIRED = False with a deadline (the machine's planned shutdown): the lease is shorter, nothing else.
    A machine's shutdown before this lease began was survived and says nothing.
    Source: the paper's table 2; HSF-TN-2016-02 `shutdowntime`, `shutdowntime_job`.
    """
    if shutdowntime is not None and shutdowntime < lease.start:
        shutdowntime = None
    ad_deadline = None if site_ad is None else site_ad.payload_deadline
    vacate = site_ad is not None and site_ad.vacate_desired
    planned = site_ad is not None and not vacate
    shut = shutdowntime_job is not None or shutdowntime is not None
    # What ends this job, unlike what only ends its machine some day.
    order = None if planned else _earliest(ad_deadline, shutdowntime_job)
    term = None if terminated is None or order is not None else terminated + settings.term_grace
    deadline = _earliest(ad_deadline, shutdowntime_job, shutdowntime, term, lease.end)
    leave = vacate or terminated is not None
    sources = (
        (vacate or ad_deadline is not None, SITE_AD),
        (terminated is not None, SIGTERM),
        (shutdowntime_job is not None, SHUTDOWN_JOB),
        (shutdowntime is not None, SHUTDOWN),
    )
    return SiteOrders(
        leave=leave,
        deadline=None if deadline is None else max(now, deadline),
        draining=leave or (shut and not planned),
        source=", ".join(name for holds, name in sources if holds) or LEASE,
        part=None if site_ad is None else site_ad.part,
        answer=None if site_ad is None else site_ad.answer,
        checkpoint_by=None if site_ad is None else site_ad.checkpoint_by,
    )


def _earliest(*moments: float | None) -> float | None:
    return min((moment for moment in moments if moment is not None), default=None)


class ReturnedCores:
    """The returned part of a lease of `cores` that states it from `now` on, UNIX s. memory: MiB with each core."""

    def __init__(self, cores: int, now: float, memory: int = 0) -> None:
        self._cores, self._memory = cores, memory
        self.stated = ReturnedPart(since=math.floor(now))
        """What is stated."""
        self.usable = cores
        """Cores that payloads may use: never one that is stated as returned, nor one that others may still hold."""
        self.fillable = cores
        """Cores that payloads may use when one more starts: fewer while cores are asked for and not returned yet."""

    def settle(self, wish: PartialReturn | None, answer: Acknowledgement | None, used: int, now: float) -> bool:
        """Return what can be returned, with `used` cores in use at `now` (UNIX s); whether the statement changed.

        wish, answer: as they stand in the site notice now, None for none.
        """
        before, target = self.stated, asked(wish, self._cores, now, self.stated.cores)
        cores = _returned(before.cores, target, self._cores - used)
        if cores != before.cores:
            # A later second than that of any statement before: one that comes back is another statement.
            self.stated = ReturnedPart(cores, cores * self._memory, max(math.floor(now), before.since + 1))
        self.usable = usable_cores(self._cores, self.stated, self.usable, answer)
        self.fillable = min(self.usable, self._cores - target.cores)
        return self.stated != before


def _returned(before: int, target: PartialReturn, free: int) -> int:
    """Return how many cores are returned next: fewer at once, more as far as they are free, in whole chunks."""
    if target.cores <= before:
        return target.cores
    if free >= target.cores:
        return target.cores
    return max(before, free - free % target.chunk)
