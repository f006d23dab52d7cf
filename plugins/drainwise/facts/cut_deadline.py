"""Calculate the waste of a pilot that is ended at a cut deadline, and the deadline that wastes least: numbers, arrays.

Until the first expected end (h) all `used` cores stay busy, at the last one (g) none are. In between the pilot states
only the integral of its idle cores, i × cores. Busy cores can only become fewer, and most payloads end long before the
last one, so they count as used·(1 − y)^p at the part y of the way from h to g, with the p that makes that integral:
    used·(g − h)/(p + 1) = cores·(g − h) − i·cores
Taken as evenly spread instead, the integral hides most of what is still running soon after h.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from drainwise.facts.waste import at_least, at_most

if TYPE_CHECKING:
    from collections.abc import Sequence

    from drainwise.facts.waste import Quantity

_LEAST = 1e-6  # core-seconds and seconds; what is smaller is nothing
_TRIES = 6


class Claims(NamedTuple):
    """What a pilot claims. Times in UNIX s, cores and used in cores.

    uncommitted (f × cores) and final (i × cores) in core-seconds.
    """

    cores: Quantity
    used: Quantity
    last_start: Quantity
    first_end: Quantity
    last_end: Quantity
    uncommitted: Quantity
    final: Quantity

    def cut_waste(self, now: Quantity, deadline: Quantity) -> tuple[Quantity, Quantity]:
        """Return the core-seconds that idle until `deadline` when the pilot drains from now on, and those lost then.

            idle = (cores − used)·(min(T, h) − now) + cores·(T − h)⁺ − what is busy from h to T
            lost = share·(f·cores + used·(T − e))    share = of the cores busy now, those still busy at T
        Before h all payloads are still running at T: lost is then exactly the kill waste at T.
        """
        first, last, busy, power = self._decline(now)
        tail, left = _left(first, last, deadline)
        share = (deadline < last) * left**power
        idle = (self.cores - self.used) * (at_most(deadline, first) - now)
        idle = idle + self.cores * tail - busy * (1 - share * left)
        return idle, share * (self.uncommitted + self.used * at_least(deadline - self.last_start, 0))

    def busy_share(self, now: Quantity, moment: Quantity) -> Quantity:
        """Return the share of the cores busy `now` that are busy still at `moment`, if nothing new starts there."""
        first, last, _, power = self._decline(now)
        return (moment < last) * _left(first, last, moment)[1] ** power

    def best_cut(self, now: Quantity, broken: Quantity = 0.0) -> Quantity:
        """Return when a cut from the first expected end on wastes least (UNIX s).

        broken: the probability that what should have ended runs still: of K, what a kill would lose,
        (1 − b)·(1 − y)^p + b is lost. Each second of waiting costs `cores` core-seconds, and the payloads that end in
        it are not lost: with B busy cores in use, that is worth it as long as
            (1 − b)·p·(1 − y)^(p − 1)·K(y) > cores·(g − h) + b·B·(g − h)·(1 − (1 − y)^p)
        Where payloads end no faster in the beginning than later (p ≤ 1), waiting is worth it until g or not at all.
        K grows by B each second, so the end of that is found by trying again, from K at h with all that is busy later.
        """
        first, last, busy, power = self._decline(now)
        at_first = self.uncommitted + self.used * at_least(first - self.last_start, 0)
        waited, grown = self.cores * (last - first), self.used * (last - first)
        exponent, scale = 1 / at_least(power - 1, _LEAST), at_least((1 - broken) * power, _LEAST)
        cost, at_stake, left = waited, at_first + busy, 1.0
        for _ in range(_TRIES):
            left = at_most(cost / at_least(scale * at_stake, _LEAST), 1) ** exponent
            cost = waited + broken * grown * (1 - left**power)
            at_stake = at_first + grown * (1 - left)
        return last - (last - first) * left

    def _decline(self, now: Quantity) -> tuple[Quantity, Quantity, Quantity, Quantity]:
        """Return the first and the last end, the core-seconds that are busy in between, and the power p."""
        first = at_least(self.first_end, now)
        last = at_least(self.last_end, first)
        most = self.used * (last - first)
        busy = at_most(at_least(self.cores * (last - first) - self.final, 0), most)
        return first, last, busy, at_least(most / at_least(busy, _LEAST), 1) - 1


def between(times: Sequence[Quantity], values: Sequence[Quantity], moment: Quantity) -> Quantity:
    """Return the value at `moment` of the line through the points of a curve that a pilot states.

    Times never fall, two may be equal. Between two points it changes evenly; after the last one nothing changes.
    """
    value = values[0]
    for begin, end, low, high in zip(times, times[1:], values, values[1:]):
        value = value + at_most(at_least((moment - begin) / at_least(end - begin, 1e-6), 0), 1) * (high - low)
    return value


def _left(first: Quantity, last: Quantity, moment: Quantity) -> tuple[Quantity, Quantity]:
    """Return the seconds from the first end until `moment`, and the part of the way to the last end that is left."""
    tail = at_most(at_least(moment - first, 0), last - first)
    return tail, 1 - tail / at_least(last - first, _LEAST)
