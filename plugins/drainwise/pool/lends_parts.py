"""What the agent may have a batch system do that can start other jobs on cores that a running job has returned."""

from __future__ import annotations

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
