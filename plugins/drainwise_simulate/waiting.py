"""Payloads that wait for a pilot, in the order in which they came, found by what they need.

Those that need the same cores for the same time differ in nothing but their turn: of each such kind only as many are
shown as could start. What a pilot decides on these is what it would decide on all.
"""

from __future__ import annotations

from bisect import bisect
from collections import deque
from itertools import islice
from operator import itemgetter

from drainwise.pilot.decide.payload import Payload

Turn = tuple[int, Payload]
_turn = itemgetter(0)


class WaitingPayloads:
    """The waiting payloads; a payload's turn is its place in the trace."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[int, float], deque[Turn]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, turn: int, payload: Payload) -> None:
        """Add a payload that comes, or comes back, into its turn."""
        kind = (payload.cores, payload.maximum)
        found = self._kinds.get(kind)
        if found is None:
            found = self._kinds[kind] = deque()
        if found and found[-1][0] > turn:
            found.insert(bisect([one for one, _ in found], turn), (turn, payload))
        else:
            found.append((turn, payload))
        self._count += 1

    def take(self, payload: Payload) -> None:
        """Remove a payload that `first` showed and that has started."""
        kind = (payload.cores, payload.maximum)
        found = self._kinds[kind]
        if found[0][1] is payload:
            found.popleft()
        else:
            self._kinds[kind] = deque(one for one in found if one[1] is not payload)
        if not self._kinds[kind]:
            del self._kinds[kind]
        self._count -= 1

    def first(self, free: int, seconds: float) -> list[Payload]:
        """Return all that could be among the next to start on `free` cores within `seconds`, in their turn.

        When nothing ends in time one payload is shown that does not, so that a pilot can tell that from an empty queue.
        """
        able: list[Turn] = []
        other: Payload | None = None
        for (cores, maximum), found in self._kinds.items():
            if cores > free:
                continue
            if maximum > seconds:
                other = found[0][1]
            elif cores + cores <= free:
                able += islice(found, free // cores)
            else:
                able.append(found[0])
        if not able:
            return [] if other is None else [other]
        if free == 1:
            return [min(able, key=_turn)[1]]
        able.sort(key=_turn)
        return [payload for _, payload in able]

    def turns(self) -> list[int]:
        """Return the turns of all that wait."""
        return [turn for found in self._kinds.values() for turn, _ in found]

    def copy(self) -> WaitingPayloads:
        """Return another queue of the same payloads."""
        other = WaitingPayloads()
        other._kinds = {kind: found.copy() for kind, found in self._kinds.items()}
        other._count = self._count
        return other
