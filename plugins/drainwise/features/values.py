"""From facts to the text of each key, and from planned deadlines to the two shutdown files: pure.

Results are `{key: text or None}`; None means that the file of that key must not exist.
"""

from __future__ import annotations

from drainwise.features.keys import BY_NAME, JOB, MACHINE, keys_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from drainwise.features.facts import Facts, HostFacts, JobFacts
    from drainwise.features.keys import Key

    Values = dict[str, str | None]

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


def converted(key: Key, twin: int, cpufactor: str | None) -> int | None:
    """Convert the value of a draft key's 2016 twin; None when that takes a `cpufactor_lrms` which is unknown.

    A limit of less than one of the draft's units is left out, too: told as 0 it would be another limit.
    """
    if not key.normalised:
        whole = twin // key.divisor
        return whole if whole or not twin else None
    return None if cpufactor is None else scaled_down(twin // key.divisor, cpufactor)


def _texts(directory: str, facts: Facts) -> Values:
    """All keys of one directory but the shutdown file; a draft key is made from its twin."""
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
    """The score of the whole host that goes to `hs06`: HS06 where stated, else the HEPScore23 value, 1:1."""
    return host.hs23 if host.hs06 is None else host.hs06


def machine_values(host: HostFacts) -> Values:
    """Every `$MACHINEFEATURES` key except `shutdowntime` (see `deadline_values`)."""
    texts = _texts(MACHINE, host)
    score = host_score(host)
    texts["hs06"] = None if score is None else plain(score)
    return texts


def job_score(job: JobFacts, host: HostFacts) -> float | None:
    """The job's share of the host's score: as the site states it, else by cores; None when that cannot be known."""
    if job.hs06_job is not None:
        return job.hs06_job
    score = host_score(host)
    if score is None or job.allocated_cpu is None or host.total_cpu is None or job.allocated_cpu > host.total_cpu:
        return None
    share = min(score, score * job.allocated_cpu / host.total_cpu)  # floats may end one digit above the whole
    return share if share >= BY_NAME["hs06_job"].minimum else None


def job_values(job: JobFacts, host: HostFacts) -> Values:
    """Every `$JOBFEATURES` key except `shutdowntime_job` (see `deadline_values`)."""
    texts = _texts(JOB, job)
    score = job_score(job, host)
    texts["hs06_job"] = None if score is None else plain(score)
    return texts


def earlier_deadline(machine_deadline: int | None, job_deadline: int | None, now: int) -> int | None:
    """The earlier of the planned times that still lie ahead of `now` (UNIX s); a time that has arrived is no plan."""
    ahead = [time for time in (machine_deadline, job_deadline) if time is not None and time > now]
    return min(ahead) if ahead else None


def deadline_values(machine_deadline: int | None, job_deadline: int | None, now: int) -> tuple[Values, Values]:
    """The shutdown keys of the per-job machine directory and of the job directory.

    Both files or neither, both with the earlier time: some clients act on the machine's file only, one raises when it
    finds one without the other, and the keys exist only while their time lies ahead.

    Parameters: the machine-wide and the job's own planned end and `now`, in UNIX seconds.
    Source: draft rows 1.8 and 2.2; HSF-TN-2016-02 `shutdowntime`, `shutdowntime_job`.
    """
    deadline = earlier_deadline(machine_deadline, job_deadline, now)
    text = None if deadline is None else str(deadline)
    return {"shutdowntime": text}, {"shutdowntime_job": text}


def respects_grace(proposed: int, now: int, grace_secs: int, planned: int | None = None) -> bool:
    """Say whether a shutdown time may be set now: unchanged, or at least `grace_secs` ahead.

    Parameters: `proposed`, `now` and the time `planned` so far in UNIX seconds, `grace_secs` in seconds.
    Source: HSF-TN-2016-02 `grace_secs`, `grace_secs_job`.
    """
    return proposed == planned or proposed - now >= grace_secs
