"""A queue in buckets, each in its order: the choice looks at the first of each bucket and at nothing else.

The one choice of the house: jobs of the launcher, payloads of the reference pilot, and jobs of the local batch system.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

Bucket = TypeVar("Bucket", bound=Hashable)
Item = TypeVar("Item")


class Waiting(Generic[Bucket, Item]):
    """Items in buckets. The smallest `rank` goes first, then the smallest `order`, whatever their buckets.

    order: a number that no two items in it share. still: whether an entry still holds, asked when it comes first in its
    bucket: what was taken elsewhere, or has another rank by now, need not be searched for.
    """

    __slots__ = ("_buckets", "_still")

    def __init__(self, still: Callable[[float, Item], bool] | None = None) -> None:
        self._buckets: dict[Bucket, list[tuple[float, int, Item]]] = {}
        self._still = still

    def add(self, bucket: Bucket, rank: float, order: int, item: Item) -> None:
        """Add a waiting item. Costs the logarithm of those in its bucket."""
        heappush(self._buckets.setdefault(bucket, []), (rank, order, item))

    def fill(self, entries: Iterable[tuple[Bucket, float, int, Item]]) -> None:
        """Add many items, at a cost that grows with their number alone."""
        for bucket, rank, order, item in entries:
            self._buckets.setdefault(bucket, []).append((rank, order, item))
        for heap in self._buckets.values():
            heapify(heap)

    def heads(self) -> Iterator[tuple[Bucket, float, int, Item]]:
        """Yield the first item of each bucket; drop on the way items that no longer hold, and empty buckets."""
        still = self._still
        for bucket, heap in list(self._buckets.items()):
            while heap:
                head = heap[0]
                if still is None or still(head[0], head[2]):
                    yield (bucket, *head)
                    break
                heappop(heap)
            else:
                del self._buckets[bucket]

    def choose(self, eligible: Callable[[Bucket, Item], bool]) -> tuple[Bucket, Item] | None:
        """Return the first of all eligible items that lead a bucket; it goes on waiting until `take`.

        eligible is asked only about those that would go before the best so far.
        """
        best: tuple[float, int] | None = None
        found: tuple[Bucket, Item] | None = None
        for bucket, rank, order, item in self.heads():
            if (best is None or (rank, order) < best) and eligible(bucket, item):
                best, found = (rank, order), (bucket, item)
        return found

    def take(self, bucket: Bucket) -> Item:
        """Take the first out of a bucket that has one that holds."""
        heap = self._buckets[bucket]
        item = heappop(heap)[2]
        if not heap:
            del self._buckets[bucket]
        return item
