"""Choose parts beside whole pilots: a pilot that can return cores gives some back and goes on with the others.

Of one user's pilots each gives back nothing, some chunks as its payloads end, or goes as a whole in its cheapest way:
the mix that should waste least makes the total. A chunk is what a waiting job needs together on a node. What idles in a
pilot until a chunk is free is the cost of a part; a single core that comes free costs nothing.

The pilots' sizes and what they can return say how many cores go, and no claim: more than should come free may be asked
for, as the last resort. Parts are decided on again each cycle until the need's moment, beside what is asked for
already (`standing`); what did not come back by then is taken from whole pilots.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from drainwise.facts.units import clock, core_hours
from drainwise.pool.facts import Pilot, Snapshot
from drainwise.reclaim.candidates import Candidates
from drainwise.reclaim.history import History
from drainwise.reclaim.open_need.threshold import open_since
from drainwise.reclaim.parts.free_ahead import FreeAhead
from drainwise.reclaim.plan import PartOrder, UserPlan
from drainwise.reclaim.policies import BY_WASTE
from drainwise.reclaim.policy import Need
from drainwise.reclaim.quota import owed
from drainwise.reclaim.settings import ReclaimSettings
from drainwise.reclaim.totals.amounts_of_menus import cheapest_amounts
from drainwise.reclaim.totals.arrays import Real
from drainwise.reclaim.valued import cost_of

_SOONER = 1e-3
"""Wasted core-seconds that a core-second of waiting counts as: nothing but a tie is decided by it."""


@dataclass(frozen=True)
class PartsUntil:
    """Parts count until `due` (UNIX s), in chunks of so many cores. since: when each account's need opened, UNIX s."""

    due: int
    chunk: int
    since: dict[str, int]


@dataclass(frozen=True)
class Mix:
    """What one user gives back: whole pilots by their rows, and the orders for parts of others.

    price: core-seconds that each core costs of the pilots that go as a whole.
    """

    whole: tuple[int, ...]
    parts: tuple[PartOrder, ...]
    price: float = 0.0


def parts_until(snapshot: Snapshot, now: int, settings: ReclaimSettings, history: History) -> PartsUntil | None:
    """Return until when parts count; None where no pilot can return any, or the policy does not choose by waste.

    The chunk is the largest job of those who wait, on average of each account.
    """
    if settings.policy not in BY_WASTE or not any(one.can_return or one.asked for one in snapshot.pilots):
        return None
    waiting = [one for one in snapshot.accounts if owed(one) > 0]
    since = open_since(history.since, (one.name for one in waiting), now, settings.horizon)
    chunk = max((int(-(-one.cores_per_job // 1)) for one in waiting), default=1)
    return PartsUntil(min(since.values(), default=now) + settings.horizon, max(1, chunk), since)


def standing(able: Candidates, until: PartsUntil) -> list[PartOrder]:
    """Return the wishes that stand and that are counted on, as parts; those that come first have the least to return.

    What a cycle counted on counts until it is returned or the time of the wish is over, whatever a later report lets
    expect, unless by that no payload at all ends in time; what nobody counted on yet, as far as it should come free.
    """
    rows = [row for row, one in enumerate(able.pilots) if one.can_return and one.returning]
    if not rows:
        return []
    ahead, it, found = _single_cores(able, until), able.figures.columns, []
    for row in rows:
        pilot = able.pilots[row]
        cores = min(pilot.returning, pilot.can_return)
        counted = min(cores, ahead.chunks(row))
        if not it.believed[row] or it.first_exp_job_end[row] < until.due:
            counted = min(cores, max(counted, able.history.counted.get(pilot.run, 0) - pilot.returned))
        else:  # what is free by now is all that comes: in chunks of more it would stay there
            cores = counted
        if counted > 0:
            back = ahead.back(row)
            when = back[counted] if counted < len(back) else None
            one = _order(able, row, cores, 0, when, replace(until, chunk=min(until.chunk, counted)))
            found.append(replace(one, counted=counted))
    return sorted(found, key=lambda one: (one.counted, one.pilot.run))


def free_by_place(able: Candidates, until: PartsUntil) -> dict[str, int]:
    """Return by place how many cores of these pilots should come free there in time."""
    ahead, found = _single_cores(able, until), Counter[str]()
    for row, pilot in enumerate(able.pilots):
        found[pilot.place] += ahead.chunks(row)
    return dict(found)


def _single_cores(able: Candidates, until: PartsUntil) -> FreeAhead:
    can = np.array([one.can_return for one in able.pilots], dtype=np.int64)
    return FreeAhead(able.figures.columns, can, np.zeros_like(can), able.figures.now, until.due, 1)


def mix_with_standing(able: Candidates, need: Need, until: PartsUntil, settings: ReclaimSettings) -> Mix | None:
    """Return the mix for what one user has to give back, as `mix_of`: what stands counts first, the rest is chosen."""
    stands, left = [], need.cores
    for one in standing(able, until):
        whole = min(one.counted, left) // until.chunk * until.chunk
        if whole > 0:
            stands.append(one.of_these(whole))
            left -= whole
    if not stands:
        return mix_of(able, need, until, settings)
    taken = {one.pilot.run: one.counted for one in stands}
    given = need.cores - max(0, left)
    rest = Need(max(0, left), need.most - given)
    more = mix_of(able, rest, until, settings, taken) if rest.cores else None
    return Mix((), tuple(stands)) if more is None else Mix(more.whole, together((*stands, *more.parts)))


def together(parts: Iterable[PartOrder]) -> tuple[PartOrder, ...]:
    """Return the parts, those of one pilot as one: for all cores, in chunks of the largest."""
    found: dict[str, PartOrder] = {}
    for one in parts:
        known = found.get(one.pilot.run)
        found[one.pilot.run] = one if known is None else known.beside(one)
    return tuple(found.values())


def mix_of(
    able: Candidates,
    need: Need,
    until: PartsUntil,
    settings: ReclaimSettings,
    taken: Mapping[str, int] = MappingProxyType({}),
    is_sure: bool = False,
) -> Mix | None:
    """Return the cheapest mix for what one user has to give back; None where whole pilots alone can give it.

    That is so where nobody can return anything, and where whole chunks would take more cores than may go.
    taken: cores of pilots that go on which are asked for already, by run: parts are beside these. is_sure: nothing is
    asked for that is not expected in time.
    """
    before = np.array([taken.get(one.run, 0) for one in able.pilots], dtype=np.int64)
    can = np.array([one.can_return for one in able.pilots], dtype=np.int64)
    chunk, now = until.chunk, able.figures.now
    least, most = need.cores // chunk, need.most // chunk
    if least < 1 or not ((can >= chunk).any() or taken):
        return None
    ahead = FreeAhead(able.figures.columns, can, before, now, until.due, chunk)
    can = np.maximum(can - before, 0)
    sizes = np.where(before > 0, 0, able.sizes)
    cost = cost_of(able.figures, settings)
    dearest = np.inf if is_sure else 2 * chunk * (float(np.max(cost / able.sizes)) + max(0, until.due - now))
    menus = [
        _menu(_cost(ahead, row, chunk, now), int(can[row]) // chunk, int(size) // chunk, float(cost[row]), dearest)
        for row, size in enumerate(sizes)
    ]
    largest = int(sizes.max()) // chunk
    amounts, _ = cheapest_amounts(menus, least, min(most, least + largest))
    whole, parts = [], []
    for row, amount in enumerate(amounts):
        if amount and _goes(amount, int(sizes[row]), chunk, int(can[row]), menus[row], float(cost[row])):
            whole.append(row)
        elif amount:
            parts.append(_part(able, row, amount, ahead, until))
    if sum(int(able.sizes[row]) for row in whole) + sum(one.cores for one in parts) > need.most:
        return None
    price = sum(float(cost[row]) for row in whole) / max(1, sum(int(able.sizes[row]) for row in whole))
    return Mix(tuple(whole), tuple(parts), price)


def _menu(idle: Real, can: int, whole: int, cost: float, dearest: float) -> Real:
    """Return what each number of chunks of one pilot costs; what is no whole chunk of it is of no use.

    idle: until 0, 1, 2, … chunks are free. can: chunks that it can return. whole, cost: when all of it goes. dearest:
    for each chunk that is not expected in time.
    """
    menu = np.full(max(can, whole) + 1, np.inf)
    expected = len(idle) - 1
    menu[: expected + 1] = idle
    menu[expected + 1 : can + 1] = idle[expected] + dearest * np.arange(1, can - expected + 1)
    if whole:
        menu[whole] = min(menu[whole], cost)
    return menu


def _cost(ahead: FreeAhead, row: int, chunk: int, now: int) -> Real:
    """Return what idles until 0, 1, 2, … chunks of a pilot are free; of equals those that are free sooner cost less."""
    waits = np.array(ahead.back(row), dtype=float) - now
    found: Real = ahead.idle(row) + _SOONER * chunk * np.cumsum(waits)
    return found


def _goes(amount: int, size: int, chunk: int, can: int, menu: Real, cost: float) -> bool:
    """Decide whether so many chunks mean that the whole pilot goes."""
    return amount == size // chunk and (amount > can // chunk or bool(menu[amount] >= cost))


def _part(able: Candidates, row: int, chunks: int, ahead: FreeAhead, until: PartsUntil) -> PartOrder:
    idle, back, cores = ahead.idle(row), ahead.back(row), chunks * until.chunk
    should = min(chunks, len(idle) - 1)
    one = _order(able, row, cores, int(idle[should]), back[should] if should == chunks else None, until)
    return replace(one, counted=cores)


def _order(able: Candidates, row: int, cores: int, waste: int, back: int | None, until: PartsUntil) -> PartOrder:
    pilot = able.pilots[row]
    when = f"these should be back by {clock(back)}" if back is not None else f"as many as end by {clock(until.due)}"
    together = f", {until.chunk} together" if until.chunk > 1 else ""
    reason = (
        f"returns {cores} of its {pilot.cores} cores{together}, as its payloads end, and goes on: {when}, "
        f"{core_hours(waste)} idle until then"
    )
    return PartOrder(able[row], cores, until.due, until.chunk, back, waste, reason)


def with_all_asked(parts: Iterable[UserPlan], until: PartsUntil | None) -> list[UserPlan]:
    """Return each user's part; where single cores are wanted every pilot is asked for all that is missing.

    Nothing idles for that, and it does not matter whose payload ends first. Together they may be asked for more than is
    missing: each cycle asks anew for what is missing then.
    """
    if until is None or until.chunk > 1:
        return list(parts)
    return [_all_asked(part, until) if part.returns else part for part in parts]


def _all_asked(part: UserPlan, until: PartsUntil) -> UserPlan:
    going, chosen = {order.pilot.run for order in part.orders}, {one.pilot.run: one for one in part.returns}
    missing = part.need.cores - part.cores_given
    found = []
    for row, pilot in enumerate(part.open.pilots):
        order, one = order_of(part.open, row, missing, until), chosen.get(pilot.run)
        if order is None or pilot.run in going:
            continue
        if one is not None:
            order = one if one.cores >= order.cores else replace(order, counted=one.counted)
        found.append(order)
    return replace(part, returns=tuple(found))


def order_of(able: Candidates, row: int, missing: int, until: PartsUntil) -> PartOrder | None:
    """Return an order for as many of the missing single cores as a pilot can return; None for none."""
    cores = min(able.pilots[row].can_return, missing)
    return _order(able, row, cores, 0, None, until) if cores > 0 else None


def asked_no_more(pilots: Sequence[Pilot], parts: Iterable[UserPlan], demand: float) -> tuple[Pilot, ...]:
    """Return the pilots that were asked for more than is needed of them now; demand: cores owed to those who wait."""
    parts = tuple(parts)
    named = {one.pilot.run for part in parts for one in part.returns}
    named |= {order.pilot.run for part in parts for order in part.orders}
    return tuple(one for one in pilots if one.asked > still_asked(one, demand) and one.run not in named)


def still_asked(pilot: Pilot, demand: float) -> int:
    """Return the cores that a pilot of which no more is needed should have returned in all.

    As long as anybody waits what it has returned stays so; else it may have again what nobody uses.
    """
    return pilot.returned if demand > 0 else 0
