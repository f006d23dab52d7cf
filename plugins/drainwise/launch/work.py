"""One job of the launcher: what is to be done, and where it stands."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple

from drainwise.launch.bucket import bucket_of
from drainwise.launch.resources import Resources

BLOCKED, READY, STARTED, DONE, FAILED, SKIPPED = "blocked", "ready", "started", "done", "failed", "skipped"
"""The states. BLOCKED: what it comes after is not done yet. SKIPPED: it never is, as something before it failed."""

OVER = frozenset({DONE, FAILED, SKIPPED})


class Work(NamedTuple):
    """What is to be done.

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


class Job:
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

    def __init__(self, index: int, work: Work, bucket: Resources) -> None:
        self.index, self.work, self.bucket = index, work, bucket
        self.state = READY
        self.after: tuple[Job, ...] = ()
        self.dependants: list[Job] | None = None
        self.missing = 0
        """How many of those before it are not done."""
        self.ete = 0.0
        """Expected seconds, as its pressure was computed with."""
        self.last_success: float | None = None
        self.started = 0.0
        """When it began to run last, UNIX s; infinite as long as a batch system lets it wait."""
        self.seconds: float | None = None
        """How long it ran."""
        self.code: int | None = None
        self.vanished = 0
        """How often it has."""
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

    def add_dependant(self, job: Job) -> None:
        """Another job comes after this one."""
        if self.dependants is None:
            self.dependants = [job]
        else:
            self.dependants.append(job)


class Buckets:
    """The buckets that were seen, each once: jobs share them."""

    def __init__(self) -> None:
        self._known: dict[Resources, Resources] = {}

    def of(self, resources: Resources) -> Resources:
        """The bucket of such resources."""
        bucket = self._known.get(resources)
        if bucket is None:
            bucket = bucket_of(resources)
            bucket = self._known.setdefault(bucket, bucket)
            self._known[resources] = bucket
        return bucket


def digest_of(work: Work, before: Sequence[bytes]) -> bytes:
    """What decides whether a job that was done is done still: what it runs, where, with what, and after what.

    `before`: the digests of those before it. Resources and backend do not change what comes out.
    """
    said = repr((work.argv, work.cwd, work.environment))
    return blake2b(said.encode("utf-8", "surrogateescape") + b"".join(sorted(before)), digest_size=16).digest()
