"""The protocol of a batch system that starts jobs: start, poll, kill, re-prioritise, and find again. Source: SPEC §5.

Every method raises PoolUnreachable when the batch system gives no answer, half of one or garbage, and it does so within
seconds: the launcher waits a while and asks again, and takes nothing from it about any job. That a job has vanished is
only said by an answer.
"""

from __future__ import annotations

import math
import re
import shlex
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from drainwise.common.bounded_command import Answer, Running
from drainwise.facts.errors import PoolUnreachable, UsageError
from drainwise_launch.choice.resources import Resources

WAITING, RUNNING, DONE, VANISHED = "waiting", "running", "done", "vanished"
"""The states of what was started. WAITING: in the batch system's queue. VANISHED: it does not know how it ended, or
lost it through no doing of the job's (its node failed, others took its place)."""

SIGNALLED = 128
"""A code of 128 + N: signal N ended it, as a shell says it."""

UNSEEN = "unseen.jsonl"
"""The file in a launch's directory that says which jobs succeeded while no launcher was there to see it."""

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
    priority: UNIX s, ETA − pressure: when it should start; the earlier goes first.
    stdout: absolute path of the file for stdout and stderr, which exists or can be made.
    wall_limit: seconds after which it may be ended; 0: nobody says.
    inputs, outputs: names of files in `cwd` that it reads and leaves there. A batch system that carries files runs a
    job that names any in a directory of the node's own, takes the inputs along, and brings the outputs back into `cwd`
    when it has ended. Everywhere else the nodes see `cwd` itself.
    """

    name: str
    tag: str
    argv: tuple[str, ...]
    cwd: str
    resources: Resources
    stdout: str
    environment: Mapping[str, str] = field(default_factory=dict)
    priority: float = 0.0
    wall_limit: int = 0
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()


@dataclass(frozen=True)
class JobState:
    """The state of one job. `code` is the exit code of one that is DONE, 128 + N after signal N.

    wall: seconds it ran, cpu: CPU seconds, both None where nobody says. why: why it waits, was ended or vanished.
    DONE by an order from outside (qdel, scancel, condor_rm) has a code other than 0, and says so in `why`.
    """

    state: str
    code: int = 0
    wall: float | None = None
    cpu: float | None = None
    why: str = ""

    @property
    def has_ended(self) -> bool:
        """Tell whether it has ended, or vanished: there is nothing left of it to come."""
        return self.state in {DONE, VANISHED}


class Backend(Protocol):
    """A batch system, or this machine."""

    @property
    def name(self) -> str:
        """As users call it: local, slurm, sge, htcondor."""

    @property
    def max_queued(self) -> int | None:
        """The most jobs of one bucket that may be WAITING there (n_max_queued_jobs); None: `free` decides."""

    def fits(self, resources: Resources) -> str:
        """Return why it could never run this; empty when it could, or when only the batch system knows."""

    def free(self) -> Mapping[str, int] | None:
        """Return what is free now, by name of the resource; None: the batch system queues and decides by itself.

        A resource that is not named is not there. A job starts only when all it counts is free.
        """

    def start(self, job: Start) -> str:
        """Submit a job and return its id there, for `poll` and `kill`.

        Raises ActionRefused when it will not have it, ever: the job fails with that reason. PoolFull when a limit on
        jobs is reached: nothing was handed over, and nothing is until one there has ended or a while has passed.
        PoolUnreachable for no answer: before it is tried again `find` is asked, as it may have begun.
        """

    def find(self, tags: Collection[str]) -> Mapping[str, str]:
        """Return the ids of those of the tags that were ever started there, ended or not; the others are left out.

        Asked after a start that nobody saw the end of, so that nothing is started twice.
        """

    def poll(self, ids: Collection[str]) -> Mapping[str, JobState]:
        """Return the states of jobs by id, in one query for all. One that is left out is as it was before."""

    def kill(self, ids: Collection[str]) -> None:
        """End them, those that wait too; one that has ended already is no fault. `poll` says when they have ended."""

    def reprioritise(self, priorities: Mapping[str, float]) -> None:
        """Set new priorities (UNIX s, as in `Start`) of jobs by id; those that are running keep theirs."""

    def wait(self, seconds: float) -> None:
        """Sleep until something may have ended, at most so long. Those who cannot know just sleep."""

    def close(self) -> None:
        """Release what is held; what was started stays where it is."""


class Queueing:
    """The base of backends whose batch system queues, and decides by itself when a job starts."""

    def free(self) -> Mapping[str, int] | None:
        """See `Backend`."""
        return None

    def wait(self, seconds: float) -> None:
        """See `Backend`."""
        time.sleep(seconds)

    def close(self) -> None:
        """See `Backend`."""


_TAG = re.compile(r"\.([A-Za-z0-9_-]{1,64})\Z")


def tag_of(name: str) -> str:
    """Return the tag with which a job's name in a batch system ends, as `NAME.TAG`; "" for another's."""
    match = _TAG.search(name)
    return match[1] if match else ""


class Commands:
    """The commands of a batch system in the directory `place`, each of which has `seconds` for its answer.

    is_none: whether one that ended did so for want of an answer, and was not refused. Each raises PoolUnreachable for a
    command that is not there, hangs, or prints without end.
    """

    def __init__(
        self, place: str, environment: Mapping[str, str], seconds: float, is_none: Callable[[Answer], bool]
    ) -> None:
        self._place, self._environment, self._seconds, self._is_none = place, environment, seconds, is_none

    def answer(self, name: str, *words: str, stdin: str = "", until: str = "", ends: float = math.inf) -> Answer:
        """Run a command. until: see `Running`. ends: when it has to have answered, of the monotonic clock."""
        seconds = max(0.0, min(self._seconds, ends - time.monotonic()))
        return Running([f"{self._place}/{name}", *words], self._environment, seconds, stdin, until=until).answer()

    def ask(self, name: str, *words: str, ends: float = math.inf) -> str:
        """Return the answer to a query. Raises PoolUnreachable where it failed."""
        answer = self.answer(name, *words, ends=ends)
        if answer.code != 0:
            raise PoolUnreachable(f"{name} failed: {answer.complaint}")
        return answer.text

    def order(self, name: str, *words: str, stdin: str = "") -> Answer:
        """Give an order; how it ended, well or refused. Raises PoolUnreachable for no answer."""
        answer = self.answer(name, *words, stdin=stdin)
        if answer.code < 0 or self._is_none(answer):
            raise PoolUnreachable(f"{name} failed: {answer.complaint}")
        return answer


def option_words(options: str, backend: str) -> list[str]:
    """Return the words of a backend's options on the command line. Raises UsageError."""
    try:
        return shlex.split(options)
    except ValueError as fault:
        raise UsageError(f"options for {backend}: {fault}") from None


def in_parts(ids: Collection[str], most: int) -> Iterator[list[str]]:
    """Yield ids in lists of at most `most`: a command has no room for more."""
    ordered = list(ids)
    for first in range(0, len(ordered), most):
        yield ordered[first : first + most]


@dataclass(frozen=True)
class LaunchPlace:
    """The place that a backend is opened for. file: of its settings. key: put before its names ([A-Za-z0-9_.-]+).

    directory: absolute, of this user alone, for what the backend must keep (event logs, scripts). state: what every tag
    from here begins with, now and when the same launch goes on later. say: tells the user a line.
    """

    file: str
    key: str
    directory: str
    state: str = ""
    say: Callable[[str], object] = field(default=lambda _: None, compare=False)
