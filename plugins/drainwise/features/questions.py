"""What a job asks its site: use cases 1 to 8 of the draft, each as one number from the keys.

Parameters: `machine` and `job` are the readers of the two directories, `now` is UNIX s. Each raises FeatureError, which
names the keys, where the site does not say.
"""

from __future__ import annotations

from drainwise.facts.errors import FeatureError
from drainwise.features.read import FeatureReader


def known(reader: FeatureReader, key: str) -> int:
    """Return an integer key that must be there."""
    found = reader.integer(key)
    if found is None:
        raise FeatureError(f"not known: no {key} in {reader.location}")
    return found


def planned_shutdown_time(machine: FeatureReader, job: FeatureReader, now: int) -> int:
    """Return when this job must be gone, or its host shuts down, whichever is earlier; UNIX s. Use case 4.

    A time that has passed is no plan: the draft has its key removed then.
    """
    planned = [job.integer("shutdowntime_job"), machine.integer("shutdowntime")]
    ahead = [one for one in planned if one is not None and one > now]
    if not ahead:
        raise FeatureError("no shutdown is planned")
    return min(ahead)


def time_left(machine: FeatureReader, job: FeatureReader, now: int) -> int:
    """Return the seconds that the job may still run, 0 at the end. Use case 1.

    By its start and limit, cut short by both shutdown times. The CPU limit is not in it: nobody here knows what the job
    has used.
    """
    start, limit = job.integer("jobstart_secs"), job.integer("wall_limit_secs")
    ends = [] if start is None or limit is None else [start + limit]
    ends += [one for one in (job.integer("shutdowntime_job"), machine.integer("shutdowntime")) if one is not None]
    if not ends:
        raise FeatureError(f"not known: no jobstart_secs and wall_limit_secs in {job.location}, no shutdown is planned")
    return max(0, min(ends) - now)


def time_since_start(job: FeatureReader, now: int) -> int:
    """Return the seconds since the batch system started the job. Use case 2."""
    return max(0, now - known(job, "jobstart_secs"))


def power(job: FeatureReader) -> float:
    """Return the HS06 of all the job's cores. Use case 3."""
    found = job.decimal("hs06_job")
    if not found:
        raise FeatureError(f"not known: no hs06_job in {job.location}")
    return found


def slots(machine: FeatureReader, job: FeatureReader) -> int:
    """Return the job slots of the host that the job holds, by its share of the cores. Use case 6."""
    total = known(machine, "total_cpu")
    if total == 0:
        raise FeatureError(f"not known: total_cpu is 0 in {machine.location}")
    return known(job, "allocated_cpu") * known(machine, "jobslots") // total
