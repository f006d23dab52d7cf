"""The one table of feature keys: name, unit and type of each, and the older key that says the same.

Sources: the WLCG draft "Environment variables for multi-core jobs" 0.99 (2014), HSF-TN-2016-02 (2016), and `hs23`,
which sites added beside `hs06` with HEPScore23. Writers, readers, the check and the server all take the keys from here.
A hook imports this file.
"""

from __future__ import annotations

from drainwise.facts import fact

MACHINE, JOB = "machine", "job"
INTEGER, DECIMAL, TOKEN, PATH = "integer", "decimal", "token", "path"

LARGEST = 2**63 - 1
"""The largest integer written or accepted: what the clients' languages can hold."""
LARGEST_DECIMAL = 1e9
SMALLEST_DECIMAL = 1e-6
"""Scores and factors lie between these two; 0 would be a division by zero in every client."""


@fact
class Feature:
    """One key of a features directory.

    `twin` is the 2016 key that a draft key repeats; its value is the twin's, divided by `divisor` (bytes to MB or GB)
    and, when `normalised`, multiplied by `cpufactor_lrms`; in both cases rounded down, since a limit must never be
    promised too high. `minimum` is the smallest sound value. `dynamic` keys may change while the job runs.
    """

    name: str
    directory: str
    kind: str
    unit: str
    minimum: float
    meaning: str
    dynamic: bool = False
    twin: str | None = None
    divisor: int = 1
    normalised: bool = False


KEYS = (
    Feature("total_cpu", MACHINE, INTEGER, "cores", 1, "processors that may be allocated to jobs on this host"),
    Feature("hs06", MACHINE, DECIMAL, "HS06", SMALLEST_DECIMAL, "score of the whole host, HEPScore23 values too"),
    Feature("hs23", MACHINE, DECIMAL, "HS23", SMALLEST_DECIMAL, "measured HEPScore23 of the whole host"),
    Feature("shutdowntime", MACHINE, INTEGER, "UNIX s", 1, "planned shutdown, while it lies ahead", dynamic=True),
    Feature("grace_secs", MACHINE, INTEGER, "s", 0, "least notice given with a shutdowntime"),
    Feature("jobslots", MACHINE, INTEGER, "slots", 0, "job slots of the host", dynamic=True),
    Feature("phys_cores", MACHINE, INTEGER, "cores", 1, "physical cores"),
    Feature("log_cores", MACHINE, INTEGER, "cores", 0, "logical cores; 0 when hyper-threading is off"),
    Feature("shutdown_command", MACHINE, PATH, "path", 0, "command that destroys this virtual machine"),
    Feature("allocated_cpu", JOB, INTEGER, "cores", 1, "cores allocated to this job"),
    Feature("allocated_CPU", JOB, INTEGER, "cores", 1, "the same", twin="allocated_cpu"),
    Feature("hs06_job", JOB, DECIMAL, "HS06", SMALLEST_DECIMAL, "the job's share of the host's score"),
    Feature("shutdowntime_job", JOB, INTEGER, "UNIX s", 1, "all processing must be finished by then", dynamic=True),
    Feature("grace_secs_job", JOB, INTEGER, "s", 0, "least notice given with a shutdowntime_job"),
    Feature("jobstart_secs", JOB, INTEGER, "UNIX s", 1, "when the batch system started the job"),
    Feature("job_id", JOB, TOKEN, "text", 0, "the batch system's job id"),
    Feature("wall_limit_secs", JOB, INTEGER, "s", 0, "elapsed limit, real time, not multiplied by cores"),
    Feature(
        "wall_limit_secs_lrms",
        JOB,
        INTEGER,
        "normalised s",
        0,
        "the same, times cpufactor_lrms",
        twin="wall_limit_secs",
        normalised=True,
    ),
    Feature("cpu_limit_secs", JOB, INTEGER, "s", 0, "CPU limit over all cores, real time"),
    Feature(
        "cpu_limit_secs_lrms",
        JOB,
        INTEGER,
        "normalised s",
        0,
        "the same, times cpufactor_lrms",
        twin="cpu_limit_secs",
        normalised=True,
    ),
    Feature("cpufactor_lrms", JOB, DECIMAL, "factor", SMALLEST_DECIMAL, "the batch system's normalisation factor"),
    Feature("max_rss_bytes", JOB, INTEGER, "bytes", 0, "resident memory limit"),
    Feature("mem_limit_MB", JOB, INTEGER, "MB", 0, "the same", twin="max_rss_bytes", divisor=1000**2),
    Feature("max_swap_bytes", JOB, INTEGER, "bytes", 0, "swap limit"),
    Feature("scratch_limit_bytes", JOB, INTEGER, "bytes", 0, "scratch limit, or the whole scratch area"),
    Feature("disk_limit_GB", JOB, INTEGER, "GB", 0, "the same", twin="scratch_limit_bytes", divisor=1000**3),
)

BY_NAME = {key.name: key for key in KEYS}


def keys_of(directory: str) -> tuple[Feature, ...]:
    """Return the keys of `MACHINE` or `JOB`, in the table's order."""
    return tuple(key for key in KEYS if key.directory == directory)
