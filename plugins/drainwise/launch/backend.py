"""What the launcher needs of a batch system: start, poll, kill, re-prioritise, and find again. Source: SPEC §5.

Every method raises PoolUnreachable when the batch system gives no answer, half of one or garbage, and it does so within
seconds: the launcher waits a while and asks again, and takes nothing from it about any job. That a job has vanished is
only said by an answer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from drainwise.launch.resources import Resources

WAITING, RUNNING, DONE, VANISHED = "waiting", "running", "done", "vanished"
"""The states of what was started. WAITING: in the batch system's queue. VANISHED: it does not know how it ended, or
lost it through no doing of the job's (its node failed, others took its place)."""

SIGNALLED = 128
"""A code of 128 + N: signal N ended it, as a shell says it."""

DEFAULT_MAX_QUEUED = 10
"""n_max_queued_jobs where nobody says."""


@dataclass(frozen=True)
class Start:
    """One job to start.

    name: what people call it, any printable text; to be mangled where a batch system takes less.
    tag: ours, [A-Za-z0-9_-]{1,64}, of this one start of this one job and of no other: by it `find` finds it again.
    argv: the program (found by PATH) and its arguments: never through a shell of ours. cwd: absolute.
    environment: all of it; nothing is added but what the batch system itself sets.
    resources: the exact amounts to reserve.
    priority: UNIX s, ETA − pressure: when it should start; the earlier goes first. pressure: s, its part in that.
    stdout: absolute path of the file for stdout and stderr, which exists or can be made.
    wall_limit: seconds after which it may be ended; 0: nobody says. expected: ETE in seconds.
    """

    name: str
    tag: str
    argv: tuple[str, ...]
    cwd: str
    resources: Resources
    stdout: str
    environment: Mapping[str, str] = field(default_factory=dict)
    priority: float = 0.0
    pressure: float = 0.0
    wall_limit: int = 0
    expected: float = 0.0


@dataclass(frozen=True)
class State:
    """How one fares. `code` is the exit code of one that is DONE, 128 + N after signal N.

    wall: seconds it ran, cpu: CPU seconds, both None where nobody says. why: why it waits, was ended or vanished.
    DONE by an order from outside (qdel, scancel, condor_rm) has a code other than 0, and says so in `why`.
    """

    state: str
    code: int = 0
    wall: float | None = None
    cpu: float | None = None
    why: str = ""


class Backend(Protocol):
    """A batch system, or this machine."""

    @property
    def name(self) -> str:
        """As users call it: local, slurm, sge, htcondor."""

    @property
    def max_queued(self) -> int | None:
        """At most so many of one bucket may be WAITING there (n_max_queued_jobs); None: `free` decides."""

    def fits(self, resources: Resources) -> str:
        """Why it could never run this, in words; empty when it could, or when only the batch system knows."""

    def free(self) -> Mapping[str, int] | None:
        """What is free now, by name of the resource; None: the batch system queues and decides by itself.

        A resource that is not named is not there. A job starts only when all it counts is free.
        """

    def start(self, job: Start) -> str:
        """Hand over a job; its id there, for `poll` and `kill`.

        Raises ActionRefused when it will not have it, ever: the job fails with that reason. PoolFull when a limit on
        jobs is reached: nothing was handed over, and nothing is until one there has ended or a while has passed.
        PoolUnreachable for no answer: before it is tried again `find` is asked, as it may have begun.
        """

    def find(self, tags: Collection[str]) -> Mapping[str, str]:
        """The ids of those of the tags that were ever started there, ended or not; the others are left out.

        Asked after a start that nobody saw the end of, so that nothing is started twice.
        """

    def poll(self, ids: Collection[str]) -> Mapping[str, State]:
        """How they fare, in one question for all. One that is left out is as it was before."""

    def kill(self, ids: Collection[str]) -> None:
        """End them, those that wait too; one that has ended already is no fault. `poll` says when they have ended."""

    def reprioritise(self, priorities: Mapping[str, float]) -> None:
        """New priorities (UNIX s, as in `Start`) of jobs by id; those that run are left as they are."""

    def wait(self, seconds: float) -> None:
        """Sleep until something may have ended, at most so long. Those who cannot know just sleep."""

    def close(self) -> None:
        """Let go of whatever is held; what was started stays where it is."""


@dataclass(frozen=True)
class Place:
    """Where a backend is opened from. file: whose settings they are. key: put before its names ([A-Za-z0-9_.-]+).

    directory: absolute, of this user alone, for what the backend must keep (event logs, scripts). state: what every tag
    from here begins with, now and when the same launch goes on later.
    """

    file: str
    key: str
    directory: str
    state: str = ""
