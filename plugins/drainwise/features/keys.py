"""The one table of feature keys: what each is called, counted in, read as, and which older key says the same.

Sources: the WLCG draft "Environment variables for multi-core jobs" 0.99 (2014), HSF-TN-2016-02 (2016), and `hs23`,
which sites added beside `hs06` with HEPScore23. Writers, readers, the check and the server all take the keys from here.
A hook imports this file: nothing else is imported by it.
"""

from __future__ import annotations

MACHINE, JOB = "machine", "job"
HSF_2016, DRAFT, HEPSCORE = "2016", "draft", "hepscore23"
INTEGER, DECIMAL, TOKEN, PATH = "integer", "decimal", "token", "path"

LARGEST = 2**63 - 1
"""The largest integer written or accepted: what the clients' languages can hold."""
LARGEST_DECIMAL = 1e9
SMALLEST_DECIMAL = 1e-6
"""Scores and factors lie between these two; 0 would be a division by zero in every client."""


class Key:
    """One key of a features directory.

    `twin` is the 2016 key that a draft key repeats; its value is the twin's, divided by `divisor` (bytes to MB or GB)
    and, when `normalised`, multiplied by `cpufactor_lrms`; in both cases rounded down, since a limit must never be
    promised too high. `minimum` is the smallest sound value. `dynamic` keys may change while the job runs.
    """

    __slots__ = (
        "directory",
        "divisor",
        "dynamic",
        "generations",
        "kind",
        "meaning",
        "minimum",
        "name",
        "normalised",
        "twin",
        "unit",
    )

    def __init__(
        self,
        name: str,
        directory: str,
        generations: tuple[str, ...],
        kind: str,
        unit: str,
        minimum: float,
        meaning: str,
        *,
        dynamic: bool = False,
        twin: str | None = None,
        divisor: int = 1,
        normalised: bool = False,
    ) -> None:
        self.name, self.directory, self.generations = name, directory, generations
        self.kind, self.unit, self.minimum, self.meaning = kind, unit, minimum, meaning
        self.dynamic, self.twin, self.divisor, self.normalised = dynamic, twin, divisor, normalised

    def __repr__(self) -> str:
        return f"Key({self.name!r})"


_NEW, _OLD, _BOTH = (HSF_2016,), (DRAFT,), (HSF_2016, DRAFT)

KEYS = (
    Key("total_cpu", MACHINE, _NEW, INTEGER, "cores", 1, "processors that may be allocated to jobs on this host"),
    Key("hs06", MACHINE, _BOTH, DECIMAL, "HS06", SMALLEST_DECIMAL, "score of the whole host, HEPScore23 values too"),
    Key("hs23", MACHINE, (HEPSCORE,), DECIMAL, "HS23", SMALLEST_DECIMAL, "measured HEPScore23 of the whole host"),
    Key("shutdowntime", MACHINE, _BOTH, INTEGER, "UNIX s", 1, "planned shutdown, while it lies ahead", dynamic=True),
    Key("grace_secs", MACHINE, _NEW, INTEGER, "s", 0, "least notice given with a shutdowntime"),
    Key("jobslots", MACHINE, _OLD, INTEGER, "slots", 0, "job slots of the host", dynamic=True),
    Key("phys_cores", MACHINE, _OLD, INTEGER, "cores", 1, "physical cores"),
    Key("log_cores", MACHINE, _OLD, INTEGER, "cores", 0, "logical cores; 0 when hyper-threading is off"),
    Key("shutdown_command", MACHINE, _OLD, PATH, "path", 0, "command that destroys this virtual machine"),
    Key("allocated_cpu", JOB, _NEW, INTEGER, "cores", 1, "cores allocated to this job"),
    Key("allocated_CPU", JOB, _OLD, INTEGER, "cores", 1, "the same", twin="allocated_cpu"),
    Key("hs06_job", JOB, _NEW, DECIMAL, "HS06", SMALLEST_DECIMAL, "the job's share of the host's score"),
    Key("shutdowntime_job", JOB, _BOTH, INTEGER, "UNIX s", 1, "all processing must be finished by then", dynamic=True),
    Key("grace_secs_job", JOB, _NEW, INTEGER, "s", 0, "least notice given with a shutdowntime_job"),
    Key("jobstart_secs", JOB, _BOTH, INTEGER, "UNIX s", 1, "when the batch system started the job"),
    Key("job_id", JOB, _NEW, TOKEN, "text", 0, "the batch system's job id"),
    Key("wall_limit_secs", JOB, _BOTH, INTEGER, "s", 0, "elapsed limit, real time, not multiplied by cores"),
    Key(
        "wall_limit_secs_lrms",
        JOB,
        _OLD,
        INTEGER,
        "normalised s",
        0,
        "the same, times cpufactor_lrms",
        twin="wall_limit_secs",
        normalised=True,
    ),
    Key("cpu_limit_secs", JOB, _BOTH, INTEGER, "s", 0, "CPU limit over all cores, real time"),
    Key(
        "cpu_limit_secs_lrms",
        JOB,
        _OLD,
        INTEGER,
        "normalised s",
        0,
        "the same, times cpufactor_lrms",
        twin="cpu_limit_secs",
        normalised=True,
    ),
    Key("cpufactor_lrms", JOB, _OLD, DECIMAL, "factor", SMALLEST_DECIMAL, "the batch system's normalisation factor"),
    Key("max_rss_bytes", JOB, _NEW, INTEGER, "bytes", 0, "resident memory limit"),
    Key("mem_limit_MB", JOB, _OLD, INTEGER, "MB", 0, "the same", twin="max_rss_bytes", divisor=1000**2),
    Key("max_swap_bytes", JOB, _NEW, INTEGER, "bytes", 0, "swap limit"),
    Key("scratch_limit_bytes", JOB, _NEW, INTEGER, "bytes", 0, "scratch limit, or the whole scratch area"),
    Key("disk_limit_GB", JOB, _OLD, INTEGER, "GB", 0, "the same", twin="scratch_limit_bytes", divisor=1000**3),
)

BY_NAME = {key.name: key for key in KEYS}


def keys_of(directory: str) -> tuple[Key, ...]:
    """The keys of `MACHINE` or `JOB`, in the table's order."""
    return tuple(key for key in KEYS if key.directory == directory)
