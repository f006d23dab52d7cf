"""The lease of a pilot: cores until some time, as the site's features say, narrowed by options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from drainwise.facts.errors import UsageError
from drainwise.features.read import FeatureReader, open_features


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
