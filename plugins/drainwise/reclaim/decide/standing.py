"""Look again at the orders of one user that stand: what each costs from now on, beside the pilots that may get one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from drainwise.pool.facts import Pilot, Snapshot
from drainwise.reclaim.candidates import Candidates, candidates_of
from drainwise.reclaim.columns import columns_of
from drainwise.reclaim.decide.by_user import Closed, Why, able_and_closed, pilots_by_user
from drainwise.reclaim.figures import figures_of
from drainwise.reclaim.history import History
from drainwise.reclaim.prices import valued
from drainwise.reclaim.settings import ReclaimSettings
from drainwise.reclaim.totals.arrays import Real


@dataclass(frozen=True)
class Standing:
    """One user's pilots with orders for those who wait, and those that may get one and are gone no later.

    spent, able_spent: what each costs from now on, in core-seconds: its expected waste and what waiting is worth. cost,
    able_cost: the same with what its user values, see `valued`.
    """

    account: str
    user: str
    ordered: Candidates
    spent: Real
    cost: Real
    able: Candidates
    able_spent: Real
    able_cost: Real
    closed: Closed


def standing_orders(
    snapshot: Snapshot, now: int, settings: ReclaimSettings, history: History, why: Why | None = None
) -> list[Standing]:
    """Return each user with orders that stand for those who wait at `now` (UNIX s); why: as in `able_and_closed`.

    An order for a request is not looked at, nor one that was not answered, nor one whose deadline has passed.
    """
    found = []
    for whose, pilots in sorted(pilots_by_user(snapshot.pilots).items()):
        ordered = [one for one in pilots if _stands(one, now, history.requested)]
        if ordered:
            found.append(_of_user(whose, ordered, pilots, now, settings, history, why))
    return [one for one in found if len(one.able)]


def _stands(pilot: Pilot, now: int, requested: Mapping[str, tuple[str, int]]) -> bool:
    is_for_others = pilot.reserved or pilot.run in requested
    return pilot.deadline is not None and pilot.deadline > now and not is_for_others


def _of_user(
    whose: tuple[str, str],
    ordered: Sequence[Pilot],
    pilots: Sequence[Pilot],
    now: int,
    settings: ReclaimSettings,
    history: History,
    why: Why | None,
) -> Standing:
    left = max((one.deadline or now) - now for one in ordered)
    able, closed = able_and_closed(pilots, now, replace(settings, horizon=left), history, why)
    if settings.drain_only:
        able = _with_time(able, left, now, history)
    stands = _as_ordered(ordered, now, left, settings, history)
    mine, others = stands.figures, able.figures
    spent = mine.drained + np.rint(settings.waiting_cost * stands.sizes * mine.drain_time)
    able_spent = others.price
    cost = valued(
        np.concatenate([spent, able_spent]),
        np.concatenate([stands.sizes, able.sizes]),
        np.concatenate([mine.priority, others.priority]),
        settings,
    )
    unprotected = np.concatenate([mine.unprotected, others.unprotected])
    cost = np.where(unprotected, 0.0, cost)
    return Standing(*whose, stands, spent, cost[: len(stands)], able, able_spent, cost[len(stands) :], closed)


def _with_time(able: Candidates, left: int, now: int, history: History) -> Candidates:
    """Return who leaves by itself within `left` seconds, or has its least time to drain in them."""
    it, site = able.figures, able.settings
    has_time = (it.leave < np.inf) | (site.min_grace + site.order_latency + it.columns.vacate <= left)
    if has_time.all():
        return able
    return candidates_of((one for one, has in zip(able.pilots, has_time) if has), now, site, history)


def _as_ordered(
    ordered: Sequence[Pilot], now: int, left: int, settings: ReclaimSettings, history: History
) -> Candidates:
    """Return the pilots with orders as what they cost when they go on draining: each until its own deadline.

    That they drain is our own doing, so what idles from now on is no waste that is lost already. The margin lies within
    the deadline that they have.
    """
    until = replace(settings, margin=0, drain_only=True, horizon=left, grace=left, max_grace=left, min_grace=left)
    rows = tuple(sorted(ordered, key=lambda one: one.run))
    columns = columns_of(rows, now, until, history)
    deadlines = np.array([one.deadline for one in rows], dtype=float)
    not_draining, ends = np.zeros(len(rows), dtype=bool), np.minimum(columns.lease_end, deadlines)
    columns = replace(columns, draining=not_draining, lease_end=ends)
    return Candidates(rows, figures_of(columns, now, until), until, history)
