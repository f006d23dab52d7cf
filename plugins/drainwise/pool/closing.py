"""What a pool may be able to do beyond `Pool`: keep nodes that an administrator closes from taking jobs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from drainwise.facts.errors import PoolError
from drainwise.pool.facts import Snapshot

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
