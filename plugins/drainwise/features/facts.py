"""The one table of feature keys; the facts of a host and of a job, immutable; and the text of each key they make: pure.

Sources of the keys: the WLCG draft "Environment variables for multi-core jobs" 0.99 (2014), HSF-TN-2016-02 (2016), and
`hs23`, which sites added beside `hs06` with HEPScore23. Writers, readers, the check and the server take them from here.

A fact that is not known is None. One of the wrong type or out of range becomes None as well, and is named in `refused`:
one odd number in a job's description must cost that one key, not all of them. Fields are called as the keys, and take
type and range from there.

Texts are `{key: text or None}`; None means that the file of that key must not exist.
"""

from __future__ import annotations

from drainwise.facts import fact, set_field

TYPE_CHECKING = False
if TYPE_CHECKING:
    Values = dict[str, str | None]

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


_SCALED = "the same, times cpufactor_lrms"

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
    Feature("wall_limit_secs_lrms", JOB, INTEGER, "normalised s", 0, _SCALED, twin="wall_limit_secs", normalised=True),
    Feature("cpu_limit_secs", JOB, INTEGER, "s", 0, "CPU limit over all cores, real time"),
    Feature("cpu_limit_secs_lrms", JOB, INTEGER, "normalised s", 0, _SCALED, twin="cpu_limit_secs", normalised=True),
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


LARGEST_FILE = 4096
"""Bytes of a key file; no key needs a tenth of it."""
LONGEST_TEXT = 255
"""Characters of a job id or a path."""


def sound_text(text: str) -> bool:
    """Say whether this is a value a key file may hold: printable ASCII, no blanks, not empty, not too long."""
    return 0 < len(text) <= LONGEST_TEXT and text.isascii() and text.isprintable() and " " not in text


def is_sound(key: Feature, value: object) -> bool:
    """Say whether `value` has the type and the range of `key`; booleans are not numbers here, nor is NaN."""
    if isinstance(value, bool):
        return False
    if key.kind == INTEGER:
        return isinstance(value, int) and key.minimum <= value <= LARGEST
    if key.kind == DECIMAL:
        return isinstance(value, (int, float)) and key.minimum <= value <= LARGEST_DECIMAL
    return isinstance(value, str) and sound_text(value) and (key.kind != PATH or value.startswith("/"))


def _shown(value: object) -> str:
    if isinstance(value, int) and not -LARGEST <= value <= LARGEST:
        return "an integer of more than 63 bits"  # str() of a huge one is slow, and refused by newer Pythons
    return ascii(value[:40] if isinstance(value, (str, bytes)) else value)[:40]


def _drop_unsound(facts: HostFacts | JobFacts) -> None:
    """Make each field that is not sound unknown, and name it in `refused`."""
    refused = []
    for name in type(facts).__match_args__[:-1]:
        value = getattr(facts, name)
        if value is not None and not is_sound(BY_NAME[name], value):
            refused.append(f"{name}={_shown(value)}"[:60])
            set_field(facts, name, None)
    set_field(facts, "refused", tuple(refused))


@fact
class HostFacts:
    """The host: cores, score, notice.

    Parameters: `total_cpu`, `phys_cores`, `log_cores` in cores (`log_cores` is 0 when hyper-threading is off);
    `jobslots` in slots; `hs06`, `hs23` scores of the whole host (`hs23` only when the site measured HEPScore23);
    `shutdown_command` an absolute path, on virtual machines only; `grace_secs` in seconds.
    """

    total_cpu: int | None = None
    jobslots: int | None = None
    phys_cores: int | None = None
    log_cores: int | None = None
    hs06: float | None = None
    hs23: float | None = None
    shutdown_command: str | None = None
    grace_secs: int | None = None
    refused: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _drop_unsound(self)


@fact
class JobFacts:
    """The job: its share of the host and its limits.

    Parameters: `allocated_cpu` in cores; `jobstart_secs` in UNIX seconds; `job_id` as the batch system prints it;
    `wall_limit_secs` (not multiplied by cores) and `cpu_limit_secs` (over all cores) in real seconds;
    `cpufactor_lrms` (1 = reference machine); `max_rss_bytes`, `max_swap_bytes`, `scratch_limit_bytes` in bytes;
    `grace_secs_job` in seconds; `hs06_job` only where the site computes the share otherwise than by cores.
    """

    allocated_cpu: int | None = None
    jobstart_secs: int | None = None
    job_id: str | None = None
    wall_limit_secs: int | None = None
    cpu_limit_secs: int | None = None
    cpufactor_lrms: float | None = None
    max_rss_bytes: int | None = None
    max_swap_bytes: int | None = None
    scratch_limit_bytes: int | None = None
    grace_secs_job: int | None = None
    hs06_job: float | None = None
    refused: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _drop_unsound(self)


DECIMAL_PLACES = 6


def plain(number: float) -> str:
    """Write a number in plain notation, never with an exponent: at most six decimals, no trailing zeros.

    >>> plain(187.50), plain(10), plain(1 / 3)
    ('187.5', '10', '0.333333')
    """
    if isinstance(number, int):
        return str(number)
    return f"{number:.{DECIMAL_PLACES}f}".rstrip("0").rstrip(".")


def scaled_down(whole: int, factor: str) -> int:
    """Multiply by a factor given in plain notation, exactly, and round down.

    The text is the factor that clients will read, so value and factor agree to the last digit.
    >>> scaled_down(100, "1.15")
    115
    """
    before, _, after = factor.partition(".")
    scale: int = 10 ** len(after)
    return whole * int(before + after) // scale


def converted(key: Feature, twin: int, cpufactor: str | None) -> int | None:
    """Convert the value of a draft key's 2016 twin; None when that takes a `cpufactor_lrms` which is unknown.

    A limit of less than one of the draft's units is left out, too: stated as 0 it would be another limit.
    """
    if not key.normalised:
        whole = twin // key.divisor
        return whole if whole or not twin else None
    return None if cpufactor is None else scaled_down(twin // key.divisor, cpufactor)


def _texts(directory: str, facts: HostFacts | JobFacts) -> Values:
    """Make all keys of one directory but the shutdown file; a draft key is made from its twin."""
    factor: float | None = getattr(facts, "cpufactor_lrms", None)
    cpufactor = None if factor is None else plain(factor)
    texts: Values = {}
    for key in keys_of(directory):
        if key.name in {"shutdowntime", "shutdowntime_job"}:
            continue
        value: int | float | str | None = getattr(facts, key.twin or key.name)
        if key.twin is not None and isinstance(value, int):
            value = converted(key, value, cpufactor)
        texts[key.name] = None if value is None else value if isinstance(value, str) else plain(value)
    return texts


def host_score(host: HostFacts) -> float | None:
    """Return the score of the whole host that goes to `hs06`: HS06 where stated, else the HEPScore23 value, 1:1."""
    return host.hs23 if host.hs06 is None else host.hs06


def machine_values(host: HostFacts) -> Values:
    """Make every `$MACHINEFEATURES` key except `shutdowntime` (see `deadline_values`)."""
    texts = _texts(MACHINE, host)
    score = host_score(host)
    texts["hs06"] = None if score is None else plain(score)
    return texts


def job_score(job: JobFacts, host: HostFacts) -> float | None:
    """Return the job's share of the host's score: as the site states it, else by cores; None when it is unknown."""
    if job.hs06_job is not None:
        return job.hs06_job
    score = host_score(host)
    if score is None or job.allocated_cpu is None or host.total_cpu is None or job.allocated_cpu > host.total_cpu:
        return None
    share = min(score, score * job.allocated_cpu / host.total_cpu)  # floats may end one digit above the whole
    return share if share >= BY_NAME["hs06_job"].minimum else None


def job_values(job: JobFacts, host: HostFacts) -> Values:
    """Make every `$JOBFEATURES` key except `shutdowntime_job` (see `deadline_values`)."""
    texts = _texts(JOB, job)
    score = job_score(job, host)
    texts["hs06_job"] = None if score is None else plain(score)
    return texts


def earlier_deadline(machine_deadline: int | None, job_deadline: int | None, now: int) -> int | None:
    """Return the earlier planned time that still lies ahead of `now` (UNIX s); a time that has arrived is no plan."""
    ahead = [time for time in (machine_deadline, job_deadline) if time is not None and time > now]
    return min(ahead) if ahead else None


def planned_in_lease(planned: int | None, deadline: int | None, lease_end: int | None, now: int) -> int | None:
    """Return the planned end to state beside `deadline`: no later than the lease's own, wherever one is stated.

    planned: the machine's shutdown; deadline: of an order; lease_end: when the batch system ends the job without
    either; all UNIX s. Where neither is planned, nothing is stated: a pilot knows the end of its lease. An end that has
    passed was none.
    """
    if lease_end is None or lease_end <= now or (planned is None and (deadline is None or deadline <= lease_end)):
        return planned
    return lease_end if planned is None else min(planned, lease_end)


def deadline_values(machine_deadline: int | None, job_deadline: int | None, now: int) -> tuple[Values, Values]:
    """Make the shutdown keys of the per-job machine directory and of the job directory.

    Both files or neither, both with the earlier time: some clients act on the machine's file only, one raises when it
    finds one without the other, and the keys exist only while their time lies ahead.

    Parameters: the machine-wide and the job's own planned end and `now`, in UNIX seconds.
    Source: draft rows 1.8 and 2.2; HSF-TN-2016-02 `shutdowntime`, `shutdowntime_job`.
    """
    deadline = earlier_deadline(machine_deadline, job_deadline, now)
    text = None if deadline is None else str(deadline)
    return {"shutdowntime": text}, {"shutdowntime_job": text}
