"""The cores that one pilot has returned: from the site's wish and the cores in use to the next statement.

No core is told from another: what counts is how many the payloads fill. Cores that are asked for get no more payloads,
and each is returned when so many are free, whichever payload has ended. What is returned is used again only when the
site has acknowledged that it is the pilot's again.
"""

from __future__ import annotations

import math

from drainwise.pilotad.partial_return import Acknowledgement, PartialReturn, ReturnedPart, asked, usable_cores


class ReturnedCores:
    """The returned part of a lease of `cores` that states it from `now` on, UNIX s. memory: MiB with each core."""

    def __init__(self, cores: int, now: float, memory: int = 0) -> None:
        self._cores, self._memory = cores, memory
        self.stated = ReturnedPart(since=math.floor(now))
        """What is stated."""
        self.usable = cores
        """Cores that payloads may use: never one that is stated as returned, nor one that others may still hold."""
        self.fillable = cores
        """Cores that payloads may use when one more starts: fewer while cores are asked for and not returned yet."""

    def settle(self, wish: PartialReturn | None, answer: Acknowledgement | None, used: int, now: float) -> bool:
        """Return what can be returned, with `used` cores in use at `now` (UNIX s); whether the statement changed.

        wish, answer: as they stand in the site notice now, None for none.
        """
        before, target = self.stated, asked(wish, self._cores, now, self.stated.cores)
        cores = _returned(before.cores, target, self._cores - used)
        if cores != before.cores:
            # A later second than that of any statement before: one that comes back is another statement.
            self.stated = ReturnedPart(cores, cores * self._memory, max(math.floor(now), before.since + 1))
        self.usable = usable_cores(self._cores, self.stated, self.usable, answer)
        self.fillable = min(self.usable, self._cores - target.cores)
        return self.stated != before


def _returned(before: int, target: PartialReturn, free: int) -> int:
    """Return how many cores are returned next: fewer at once, more as far as they are free, in whole chunks."""
    if target.cores <= before:
        return target.cores
    if free >= target.cores:
        return target.cores
    return max(before, free - free % target.chunk)
