"""What a pool may be able to do beyond `Pool`: keep room that comes back in pieces for the jobs that need all of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from drainwise.pool.amounts import Amounts


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
