"""The payloads that wait for a pilot, in the launcher's buckets: one for each number of cores.

They are kept from one decision to the next, so that a decision looks at the first of each bucket, however many wait
behind it. What does not fit the time that is left is put aside until there is more of it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from heapq import heappop, heappush

from drainwise.launch.choice.waiting import Waiting
from drainwise.pilot.decide.payload import Payload

_SPARE = 1000
"""This many more may have gone than wait before what is left of them is swept out."""


class Backlog:
    """The payloads that wait. Each has an `order`, a number of its own: of equal priority the smallest starts first."""

    def __init__(self, payloads: Iterable[Payload] = ()) -> None:
        self._payloads: dict[int, Payload] = {}
        self._waiting: Waiting[int, int] = Waiting(self._fits_in_time)
        self._late: list[tuple[float, int]] = []
        self._largest = self._gone = 0
        self._now = self._bound = 0.0
        for order, payload in enumerate(payloads):
            self.add(payload, order)

    def __len__(self) -> int:
        return len(self._payloads)

    def __iter__(self) -> Iterator[Payload]:
        """Return them in their order."""
        return (self._payloads[order] for order in sorted(self._payloads))

    def add(self, payload: Payload, order: int) -> None:
        """Add one more."""
        self._payloads[order] = payload
        self._largest = max(self._largest, payload.cores)
        self._put(order)

    def remove(self, order: int) -> None:
        """Remove one. Its place in its bucket is found empty later, or swept out with many others."""
        del self._payloads[order]
        self._gone += 1
        if self._gone > len(self._payloads) + _SPARE:
            self._gone = 0
            self._late.clear()
            self._waiting = Waiting(self._fits_in_time)
            for other in self._payloads:
                self._put(other)

    def larger_than(self, cores: int) -> list[Payload]:
        """Return those that need more cores than that."""
        if self._largest <= cores:
            return []
        self._largest = max((payload.cores for payload in self._payloads.values()), default=0)
        return [payload for payload in self if payload.cores > cores]

    def ending_by(self, bound: float, cores: int, now: float, most: int) -> int:
        """Return how many of at most `cores` cores would surely end by `bound` (UNIX s); counted up to `most`."""
        count = 0
        for payload in self._payloads.values():
            if count == most:
                break
            count += payload.cores <= cores and now + payload.maximum <= bound
        return count

    def highest_first(self, free: int, bound: float, now: float, running: Container[str]) -> tuple[Payload, ...]:
        """Choose as the launcher (SPEC §5) until nothing more fits; all that is chosen goes on waiting.

        Those that would not surely end by `bound` (UNIX s) are passed over. Two of one name run one after the other.
        """
        if free <= 0 or not self._payloads:
            return ()
        self._now, self._bound = now, bound
        self._bring_back()
        chosen: dict[str, Payload] = {}
        taken: list[int] = []

        def fits(cores: int, _: int) -> bool:
            return cores <= free

        while (found := self._waiting.choose(fits)) is not None:
            taken.append(self._waiting.take(found[0]))
            payload = self._payloads[found[1]]
            if payload.name not in chosen and payload.name not in running:
                chosen[payload.name] = payload
                free -= payload.cores
        for order in taken:
            self._put(order)
        return tuple(chosen.values())

    def _put(self, order: int) -> None:
        payload = self._payloads[order]
        self._waiting.add(payload.cores, -payload.priority, order, order)

    def _fits_in_time(self, _: float, order: int) -> bool:
        """Return whether one still waits and fits; one that does not fit is put aside."""
        payload = self._payloads.get(order)
        if payload is None:
            return False
        if self._now + payload.maximum <= self._bound:
            return True
        heappush(self._late, (payload.maximum, order))
        return False

    def _bring_back(self) -> None:
        while self._late and self._now + self._late[0][0] <= self._bound:
            order = heappop(self._late)[1]
            if order in self._payloads:
                self._put(order)
