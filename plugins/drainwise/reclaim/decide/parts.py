"""Put parts beside whole pilots: a pilot that can return cores gives some back and goes on with the others.

Each part that a pilot could return is a row beside that of its end: its cores, and what idles in it until they are
free, by its claims. Cores that come free one by one cost nothing where jobs of one core wait. What pilots hold and can
return says how many cores go, and no claim: what should not come free in time is asked for as the last resort. Parts
are decided on again each cycle until the need's moment, beside what is asked for already; what did not come back by
then is taken from whole pilots.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from drainwise.facts.units import clock, core_hours
from drainwise.pool.facts import Pilot, Snapshot
from drainwise.reclaim.candidates import Candidates
from drainwise.reclaim.choose.problem import Mask, Parts, Real, Whole, sums
from drainwise.reclaim.choose.sets import MOST_PRODUCTS
from drainwise.reclaim.decide.open_until import OpenUntil
from drainwise.reclaim.figures import StatedCurve, claims_of, has_curve
from drainwise.reclaim.plan import PartOrder, UserPlan, still_asked
from drainwise.reclaim.prices import BY_WASTE
from drainwise.reclaim.room import DemandLeft
from drainwise.reclaim.settings import ReclaimSettings

MOST_PARTS, MOST_BY_CORES = 12, 64
"""Parts of a pilot that are looked at beside what it was asked for: on its place, and where cores are counted."""
UNEXPECTED = 1e12
"""Wasted core-seconds that a core counts as which is not expected in time: more than any whole pilot."""
_SOONER = 1e-3
"""Wasted core-seconds that a core-second of waiting counts as: nothing but a tie is decided by it."""
_LOOKS = 12
"""Times between now and the moment at which is looked for what is free."""


def parts_count(snapshot: Snapshot, settings: ReclaimSettings) -> bool:
    """Return whether parts count: some pilot can return any, and the policy chooses by waste."""
    return settings.policy in BY_WASTE and any(one.can_return or one.asked for one in snapshot.pilots)


class PartsAhead:
    """What should come free in pilots until parts count no more, if nothing new starts; n pilots.

    By the curves that pilots state, else by their other claims; of a pilot that is not believed nothing is expected.
    can: n, cores that each can return. asked, counted: n, cores that it was asked for and has not returned, and of
    these those that are counted on: what a cycle counted on counts until it is returned or the time of the wish is
    over, whatever a later report lets expect, unless by that no payload at all ends in time; what nobody counted on
    yet, as far as it should come free.
    """

    def __init__(self, able: Candidates, until: OpenUntil) -> None:
        self.able, self.until, now = able, until, able.figures.now
        it = able.figures.columns
        self.can = np.array([one.can_return for one in able.pilots], dtype=np.int64)
        self._times = np.linspace(now, max(now, until.due), _LOOKS + 1)
        stated = has_curve(it)
        curve = StatedCurve(it, now) if stated.any() else None
        claims = claims_of(it)
        shares = []
        for moment in self._times.tolist():
            share = claims.busy_share(now, moment)
            shares.append(share if curve is None else np.where(stated, curve.busy_share(moment), share))
        busy = np.minimum.accumulate(it.used_cpu * np.array(shares))
        self._free = np.where(it.believed, np.clip(it.cores - busy, 0, self.can), 0.0)
        free = np.floor(self._free[-1] + 1e-9).astype(np.int64)
        asked = np.minimum(np.array([one.returning for one in able.pilots], dtype=np.int64), self.can)
        known = np.array([able.history.counted.get(one.run, 0) - one.returned for one in able.pilots], dtype=np.int64)
        goes_on = ~it.believed | (it.first_exp_job_end < until.due)
        self.counted = np.minimum(asked, np.maximum(free, np.where(goes_on, known, 0)))
        self.asked = np.where(goes_on, asked, self.counted)  # else what is free by now is all that comes

    def look(self, row: Whole, cores: Whole, chunk: Whole, taken: Whole) -> tuple[Real, Real, Real]:
        """Return what idles until so many cores of these pilots are free, when that should be, and what a part costs.

        In core-seconds, and UNIX s, infinite where it is not to be expected. taken: of the cores those that others get,
        the first that come free; the rest is of use in chunks.
        """
        free, cores = np.maximum(self._free[:, row] - taken, 0.0) + 1e-9, cores - taken
        idle = np.where(chunk > 1, free % chunk, 0.0)[:-1] * np.diff(self._times)[:, None]
        idled = np.concatenate([np.zeros((1, len(row))), np.cumsum(idle, axis=0)])
        is_expected = free[-1] >= cores
        at = np.where(is_expected, (free >= cores).argmax(axis=0), _LOOKS)
        waste = np.rint(idled[at, np.arange(len(row))])
        missing = np.where(is_expected, 0, cores - np.floor(free[-1]))
        cost = waste + _SOONER * cores * (self._times[at] - self._times[0]) + UNEXPECTED * missing
        return waste, np.where(is_expected, self._times[at], np.inf), cost

    def order(self, row: int, counted: int, chunk: int, cores: int = 0) -> PartOrder:
        """Return an order for cores of a pilot that are counted on, or for more; chunk: of use together."""
        stands = counted <= self.counted[row]
        look = (counted, 1, 0) if stands else (counted, chunk, self.counted[row])
        wastes, moments, _ = self.look(*(np.array([one], dtype=np.int64) for one in (row, *look)))
        back = int(-(-moments[0] // 1)) if counted and np.isfinite(moments[0]) else None
        one, due, cores, waste = self.able[row], self.until.due, max(cores, counted), int(wastes[0])
        when = f"these should be back by {clock(back)}" if back is not None else f"as many as end by {clock(due)}"
        together = f", {chunk} together" if chunk > 1 else ""
        reason = (
            f"returns {cores} of its {one.pilot.cores} cores{together}, as its payloads end, and goes on: {when}, "
            f"{core_hours(waste)} idle until then"
        )
        return PartOrder(one, cores, due, chunk, back, waste, reason, counted)

    def by_cores(self, cores: int) -> Parts:
        """Return what each pilot could return of so many cores, in whole chunks, where cores are counted."""
        chunk = self.until.chunk
        most, stand = (np.minimum(some, cores) // chunk for some in (self.can, self.counted))
        step = np.maximum(1, -(-most // MOST_BY_CORES))
        pilot = np.repeat(np.arange(len(most)), -(-most // step))
        turn = np.arange(len(pilot)) - np.searchsorted(pilot, pilot)
        size = (most - stand)[pilot] - turn * step[pilot]
        pilot, size, stands = pilot[size > 0], (stand[pilot] + size)[size > 0] * chunk, np.flatnonzero(stand)
        cost = self.look(pilot, size, np.full(len(size), chunk), stand[pilot] * chunk)[2]
        both, sizes = np.concatenate((stands, pilot)), np.concatenate((stand[stands] * chunk, size))
        return Parts(both, sizes, np.append(np.zeros(len(stands)), cost), np.arange(len(both)) < len(stands))


def room_parts(ahead: PartsAhead, left: DemandLeft) -> Parts:
    """Return what pilots on one place each could return for jobs without room, by facts alone, and what that costs.

    For kind after kind that may run there: what its next job lacks beside the cores that lie free, all with the kinds
    before, as many as could have room, one job; all that the pilot can return, and less of it. Where many pilots are on
    a place less is looked at.
    """
    able, facts = ahead.able, left.facts
    jobs, pilots = enumerate(facts.kinds), Counter(place for one in able.pilots for place, _ in one.returns())
    plain = [row for row, one in jobs if one.places == 1 and not (one.whole or one.needs.gpus or one.needs.others)]
    kinds = [row for row in plain if left.jobs[row]]
    row = np.array(
        [row for row, one in enumerate(able.pilots) if one.can_return and not one.pieces and one.place in facts.index],
        dtype=np.int64,
    )
    some = [able.pilots[one] for one in row.tolist()]
    at = np.array([facts.index[one.place] for one in some], dtype=np.int64)
    amounts = [(one.cores, one.holds.memory if one.holds else 0) for one in some]
    held = np.array(amounts, dtype=float).reshape(len(some), 2)
    can, counted = ahead.can[row], ahead.counted[row]
    room = np.maximum(left.room[at, 0] + sums(at, counted, len(facts.places))[at], 0)
    there = np.array([pilots[one.place] for one in some])
    most = np.clip(MOST_PRODUCTS ** (1 / np.maximum(there, 1)) - 2, 2, MOST_PARTS).astype(np.int64)
    cores, number, every = np.zeros((MOST_PARTS, len(row)), dtype=np.int64), np.zeros_like(can), np.zeros(len(can))
    each = np.zeros((len(kinds), len(row)), dtype=np.int64)

    def add(amount: Whole, good: Mask | bool, spare: int = 1) -> None:
        new = good & (amount > counted) & (amount <= can) & (number < most - spare) & ~(cores == amount).any(axis=0)
        cores[number[new], new] = amount[new]
        number[new] += 1

    for place, kind in enumerate(kinds):
        needs, may = facts.kinds[kind].needs, facts.needs.may[kind, at]
        memory = np.ceil(needs.memory * held[:, 0] / np.maximum(held[:, 1], 1e-9) - 1e-9)
        each[place] = np.where(may, np.minimum(np.maximum(needs.cores, memory), 1e9), 0)
        lacking = (needs.cores - room % needs.cores).astype(np.int64)
        every += each[place] * left.jobs[kind]
        add(lacking, may & (lacking < needs.cores))
        add(np.minimum(every, 1e9).astype(np.int64), may)
        add(each[place] * np.minimum(can // np.maximum(each[place], 1), left.jobs[kind]), may)
        add(each[place], may)
    add(can, every > 0, 0)
    least = np.min(each, axis=0, where=each > 0, initial=1 << 30)
    for less in range(1, MOST_PARTS):
        add(can - less, (every > 0) & (can - less >= np.minimum(least, can // 2)), 0)
    stands, (slot, whose) = np.flatnonzero(counted), np.nonzero(cores)
    pilot, amount = np.concatenate((stands, whose)), np.concatenate((counted[stands], cores[slot, whose]))
    largest, first, taken = np.zeros_like(pilot), amount, counted[pilot]
    for place, kind in enumerate(kinds):
        size = each[place][pilot]
        better = (largest < size) & (size <= amount)
        largest = np.where(better, size, largest)
        first = np.where(better, np.minimum(amount // np.maximum(size, 1), left.jobs[kind]) * size, first)
    first = np.maximum(first, taken)  # of use together; the rest serves smaller jobs
    cost = ahead.look(row[pilot], first, np.where(largest, largest, amount), taken)[2]
    cost += ahead.look(row[pilot], amount, np.ones_like(amount), first)[2]
    return Parts(row[pilot], amount, cost, np.arange(len(pilot)) < len(stands))


def part_orders(
    ahead: PartsAhead, parts: Sequence[tuple[int, int, int]], left: DemandLeft | None, others: Mask
) -> list[PartOrder]:
    """Return the orders for parts of one user; with one anew for jobs of one core others where these may run get one.

    Each for all such jobs, since nothing idles for that; where all parts stand, no pilot is asked for more than it was.
    parts: of each its pilot, cores, and the cores of use together. others: n, pilots of the user that go on as a whole.
    """
    found, able = list[PartOrder](), ahead.able
    for row, cores, chunk in parts:  # what a pilot was asked for stands where all of it is needed
        stands = int(ahead.asked[row]) if cores == ahead.counted[row] else 0
        found.append(ahead.order(row, cores, min(cores, chunk or ahead.until.chunk), stands))
    if left is None:
        return found
    rows, others, facts = [row for row, *_ in parts], others.copy(), left.facts
    others[rows] = False
    at = np.array([facts.index.get(one.place, -1) for one in able.pilots], dtype=np.int64)
    stand = all(one.stands for one in found)
    for kind in np.flatnonzero((facts.needs.cores == 1) & ~facts.needs.whole & (left.jobs > 0)).tolist():
        may = facts.needs.may[kind, at] & (at >= 0)
        cores = np.minimum([one.returning for one in able.pilots] if stand else ahead.can, left.jobs[kind]) * may
        if may[rows].any():
            found += [ahead.order(row, 0, 1, int(cores[row])) for row in np.flatnonzero(others & (cores > 0)).tolist()]
            others &= cores == 0
    return found


def with_all_asked(parts: Iterable[UserPlan], until: OpenUntil | None) -> list[UserPlan]:
    """Return each user's part; where single cores are wanted every pilot is asked for all that is missing.

    Nothing idles for that, and it does not matter whose payload ends first. Together they may be asked for more than is
    missing: each cycle asks anew for what is missing then.
    """
    found = list(parts)
    if until is None or until.chunk > 1:
        return found
    for place, part in enumerate(found):
        if part.returns:
            ahead, missing = PartsAhead(part.open, until), part.need.cores - part.cores_given
            going, chosen = {one.pilot.run for one in part.orders}, {one.pilot.run: one.counted for one in part.returns}
            returns = (
                ahead.order(row, chosen.get(pilot.run, 0), 1, cores)
                for row, (pilot, cores) in enumerate(zip(part.open.pilots, np.minimum(ahead.can, missing).tolist()))
                if cores > 0 and pilot.run not in going
            )
            found[place] = replace(part, returns=tuple(returns))
    return found


def asked_no_more(pilots: Sequence[Pilot], parts: Iterable[UserPlan], demand: float) -> tuple[Pilot, ...]:
    """Return the pilots that were asked for more than is needed of them now; demand: cores owed to those who wait."""
    parts = tuple(parts)
    named = {one.pilot.run for part in parts for one in part.returns}
    named |= {order.pilot.run for part in parts for order in part.orders}
    asked = (one for one in pilots if one.asked)
    return tuple(one for one in asked if one.asked > still_asked(one, demand) and one.run not in named)
