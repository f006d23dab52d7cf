"""What the batch system itself means to close: a maintenance reservation of Slurm, for example."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Closure:
    """Nodes on which nothing may run from `start` to `end` (UNIX s; None: for good), as the batch system plans it.

    name: by which the batch system knows it; places: the nodes; reason: what it is, for an administrator.
    """

    name: str
    places: frozenset[str]
    start: int
    end: int | None = None
    reason: str = ""
