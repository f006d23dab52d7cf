"""Take one user's pilots together, and part those that may get an order from those that may not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from drainwise.pool.facts import Pilot
from drainwise.reclaim.candidates import Candidates, candidates_of
from drainwise.reclaim.history import History, why_closed
from drainwise.reclaim.reasons import Reason
from drainwise.reclaim.settings import ReclaimSettings

Closed = tuple[Candidates, Mapping[str, Reason]]
"""The pilots of one user that may get no order, with why by run."""
Why = Callable[[Pilot, int, ReclaimSettings, History], Reason]


def pilots_by_user(pilots: Iterable[Pilot]) -> Mapping[tuple[str, str], Sequence[Pilot]]:
    """Return the pilots by account and user; none where there are none."""
    found: dict[tuple[str, str], list[Pilot]] = defaultdict(list)
    for pilot in pilots:
        found[pilot.account, pilot.user].append(pilot)
    return found


def able_and_closed(
    pilots: Sequence[Pilot], now: int, settings: ReclaimSettings, history: History, why: Why = why_closed
) -> Mapping[tuple[str, str], tuple[Candidates, Closed]]:
    """Return the pilots of each user that may get an order at `now` (UNIX s), and the others, by account and user.

    The figures of all pilots are calculated at once, when they are looked at first. why: tells why one may get none.
    """
    every = candidates_of(pilots, now, settings, history)
    closed = [why(one, now, settings, history) for one in every.pilots]
    rows: dict[tuple[str, str], tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for row, (pilot, reason) in enumerate(zip(every.pilots, closed)):
        rows[pilot.account, pilot.user][bool(reason)].append(row)
    return {
        whose: (every.some(able), (every.some(others), {every.pilots[row].run: closed[row] for row in others}))
        for whose, (able, others) in rows.items()
    }
