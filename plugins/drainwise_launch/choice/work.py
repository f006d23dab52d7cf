"""One job of the launcher: what is to be done, where it stands, and how long it is expected to take (its ETE).

Source of the ETE: SPEC §5; open-lmake: "a moving average of the execution times of the jobs sharing the same rule".
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple

from drainwise_launch.choice.resources import Resources, bucket_of

BLOCKED, READY, STARTED, DONE, FAILED, SKIPPED = "blocked", "ready", "started", "done", "failed", "skipped"
"""The states. BLOCKED: what it comes after is not done yet. SKIPPED: it never is, as something before it failed."""

OVER = frozenset({DONE, FAILED, SKIPPED})

WEIGHT = 100
"""The average is of all up to this number; from then on each new time moves it by a 101st of the difference."""
UNKNOWN = 1.0
"""Seconds of what nobody knows anything of: all such are alike, and the longest chain is that of most jobs."""
SHORTEST = 0.001
"""Seconds that anything takes at least, so that who stands before another always has the higher pressure."""


class Work(NamedTuple):
    """The work of a job.

    after: the names of the jobs that must be done before. reserved: what is reserved where that differs from
    `resources`, which is what it asked for: a job that was mapped to another backend. environment: (name, value) beside
    what every job has. expected: seconds its author states, None when nobody does. wall_limit: seconds, 0: none.
    """

    name: str
    argv: tuple[str, ...]
    after: tuple[str, ...] = ()
    resources: Resources = Resources()
    rule: str = ""
    backend: str = "local"
    cwd: str = "/"
    environment: tuple[tuple[str, str], ...] = ()
    expected: float | None = None
    wall_limit: int = 0
    reserved: Resources | None = None


class LaunchJob:
    """A node of the graph; a million of them must fit into memory."""

    __slots__ = (
        "after",
        "bucket",
        "code",
        "dependants",
        "digest",
        "ete",
        "index",
        "last_success",
        "missing",
        "seconds",
        "started",
        "state",
        "vanished",
        "why",
        "work",
    )

    def __init__(self, index: int, work: Work) -> None:
        self.index, self.work, self.bucket = index, work, bucket_of(work.reserved or work.resources)
        self.state = READY
        self.after: tuple[LaunchJob, ...] = ()
        self.dependants: list[LaunchJob] | None = None
        self.missing = 0
        """The number of those before it that are not done."""
        self.ete = 0.0
        """Expected seconds, as its pressure was computed with."""
        self.last_success: float | None = None
        self.started = 0.0
        """Its last start, UNIX s; infinite as long as a batch system lets it wait."""
        self.seconds: float | None = None
        """Its run time, seconds."""
        self.code: int | None = None
        self.vanished = 0
        """The number of times it has vanished."""
        self.why = ""
        self.digest = b""

    @property
    def name(self) -> str:
        """Its name, which no other job has."""
        return self.work.name

    @property
    def reserved(self) -> Resources:
        """The exact amounts that are reserved for it."""
        return self.work.reserved or self.work.resources

    def add_dependant(self, job: LaunchJob) -> None:
        """Note that another job comes after this one."""
        if self.dependants is None:
            self.dependants = [job]
        else:
            self.dependants.append(job)


def digest_of(work: Work, before: Sequence[bytes]) -> bytes:
    """Return the digest of a job that was done: its command, directory, environment, and the jobs before it.

    `before`: the digests of those before it. Resources and backend do not change what comes out.
    """
    said = repr((work.argv, work.cwd, work.environment))
    return blake2b(said.encode("utf-8", "surrogateescape") + b"".join(sorted(before)), digest_size=16).digest()


class MovingAverage:
    """The average of a rule's times in seconds; `weight`: of how many, WEIGHT at most."""

    __slots__ = ("seconds", "weight")

    def __init__(self, seconds: float = 0.0, weight: int = 0) -> None:
        self.seconds, self.weight = seconds, weight

    def add(self, seconds: float) -> None:
        """Note one more success, after so long."""
        self.seconds += (seconds - self.seconds) / (self.weight + 1)
        self.weight = min(self.weight + 1, WEIGHT)


def expected_time(last_success: float | None, rule: MovingAverage | None, stated: float | None) -> float:
    """Return the ETE in s: the last success, else the rule's average, else what the author stated, else UNKNOWN."""
    if last_success is not None:
        seconds = last_success
    elif rule is not None and rule.weight:
        seconds = rule.seconds
    else:
        seconds = UNKNOWN if stated is None else stated
    return max(seconds, SHORTEST)
