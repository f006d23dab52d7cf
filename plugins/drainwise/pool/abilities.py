"""What a batch system may be able to do beyond `Pool`: lend what pilots return, close nodes, keep room, show agents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol, runtime_checkable

from drainwise.facts.errors import PoolError
from drainwise.pilotad.partial_return import PartialReturn
from drainwise.pool.amounts import Amounts
from drainwise.pool.facts import Pilot, Snapshot


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


PREFIX = "drainwise-"
"""Begins the name of whatever a batch system closes nodes with for a request, before the request's own name."""


@dataclass(frozen=True)
class Closing:
    """Nodes that must be empty at `by` (UNIX s) and stay so. name: of the request; reason: for an administrator."""

    name: str
    nodes: frozenset[str]
    by: int
    reason: str


def carried_out(answers: Iterable[tuple[str, object]]) -> list[str]:
    """Return the sentences of what was done, each given with the answer: true, nothing to do, or why it failed.

    Raises the first PoolError where nothing was done.
    """
    found = tuple(answers)
    done = [words for words, answer in found if answer and not isinstance(answer, PoolError)]
    faults = [answer for _, answer in found if isinstance(answer, PoolError)]
    if faults and not done:
        raise faults[0]
    return done


@runtime_checkable
class ClosesNodes(Protocol):
    """A pool that can close nodes; one without this method leaves that to the administrator, and a notice says so."""

    def close_nodes(self, closings: Sequence[Closing], snapshot: Snapshot, now: int) -> list[str]:
        """Have these nodes closed, and open again what was closed for requests that are not there any more.

        A closed node starts no job from `by` on; where the batch system can, none before that would run beyond it.
        snapshot: of this cycle, at `now` (UNIX s). Called in each acting cycle as long as there are such requests, and
        until what was closed for them is open again: what is done already is not done twice. Returns a sentence for
        each thing that was done now, or that could not be. Raises PoolError when nothing can be found out.
        """


@dataclass(frozen=True)
class KeptRoom:
    """Room on a `place` of a `node` that no pilot makes alone, kept until `until` (UNIX s) at most.

    pilots: how many make it. least: of everything the least that one of the jobs needs for which the room is; total:
    what they need together.
    """

    place: str
    node: str
    pilots: int
    until: int
    least: Amounts
    total: Amounts


@runtime_checkable
class KeepsRooms(Protocol):
    """A pool whose scheduler would give the first piece to a smaller job, and that can be kept from it."""

    def keep_room(self, room: KeptRoom) -> None:
        """Let jobs that ask for less than `least` start there only beside `total`, until the ordered pilots have left.

        Called before the orders of these pilots; it replaces what was kept on that place. Running jobs are not touched.
        Raises PoolError when the room is not kept: the orders are given all the same.
        """
