"""What a batch system may be able to do besides: lend what pilots return, show the agent beside its own daemons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol, runtime_checkable

from drainwise.pilotad.partial_return import PartialReturn
from drainwise.pool.facts import Pilot


@runtime_checkable
class LendsParts(Protocol):
    """A pool that lends what pilots return. It alone says of a pilot that it `can_return` any."""

    def ask_for_part(self, pilot: Pilot, wish: PartialReturn, reason: str) -> None:
        """Let exactly this run know how many cores of its lease it is to have returned in all, as `.site.ad` says it.

        It replaces an earlier wish; with 0 cores there is none any more, and the pilot may have again what nobody uses.
        A snapshot shows the wish as `asked` as long as it stands. Raises as `Pool.give_order`.
        """


@runtime_checkable
class TellsEnded(Protocol):
    """A pool that tells of jobs which came and went between two snapshots."""

    def cores_of_ended(self, account: str, nodes: Sequence[str], since: int, now: int) -> float:
        """Return the most cores that an account had at a time in jobs that began on these nodes since then and ended.

        since, now: UNIX s. Raises PoolError when nobody tells.
        """


@runtime_checkable
class TellsSteps(Protocol):
    """A pool that knows the parts of jobs that run one after the other."""

    def steps_since(self, now: int) -> Mapping[str, int]:
        """Return since when the longest-running part of each job that has some runs, UNIX s, by the job's name.

        Raises PoolUnreachable.
        """


def most_at_once(runs: Iterable[tuple[int, int, int]]) -> int:
    """Return the most cores that runs (start and end in UNIX s, cores) had at a time."""
    changes = sorted(change for start, end, cores in runs for change in ((start, cores), (end, -cores)))
    return max(accumulate((cores for _, cores in changes), initial=0))


@dataclass(frozen=True)
class AgentNotice:
    """An agent after a cycle; times in UNIX s.

    name: of the agent in its pool. machine, pid: where it runs. started: its first cycle's begin. cycle, next_cycle:
    when the last cycle began, and when the next one will. period: s from one to the next. acting: whether it gives
    orders. state and why: as `agent.loop` has them. error: of the last cycle that failed, which began at `error_time`;
    "" and 0 when none has. lifetime: s after which the notice counts no more.
    """

    name: str
    machine: str
    pid: int
    version: str
    policy: str
    started: int
    cycle: int
    next_cycle: int
    period: int
    acting: bool
    state: str
    why: str
    error: str
    error_time: int
    lifetime: int


@runtime_checkable
class ShowsAgent(Protocol):
    """A pool that can show its agent; nothing depends on it."""

    def show_agent(self, notice: AgentNotice) -> None:
        """Have it shown in place of an earlier notice of the same name. Raises PoolError when it is not taken."""
