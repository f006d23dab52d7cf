"""Sum the journal up, per user and day: ordered, left, vacated; promised and realised waste; cores freed, and
how soon.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from drainwise.identity.identity import ANYBODY, PilotIdentity
from drainwise.journal.history import ENDS, IN_TIME, LATE, NOT_ORDERED, OPEN, VACATED, WITHDRAWN, ReportedOrder

DAY = 86_400


@dataclass(frozen=True)
class Sums:
    """Sums over some orders. Each order counts where it was given, with all that became of it.

    ordered: orders given; the ends add up to it. not_ordered: skipped or refused. cores_ordered, cores_freed in cores.
    predicted and realised in core-seconds, over the pilots whose end is known. times_to_free: seconds from the order to
    the end of each of those.
    """

    ordered: int
    not_ordered: int
    ends: tuple[int, ...]
    cores_ordered: int
    cores_freed: int
    predicted: int
    realised: int
    times_to_free: tuple[int, ...]

    def ended_as(self, end: str) -> int:
        """Return the number of orders that ended so, one of ENDS."""
        return self.ends[ENDS.index(end)]

    @property
    def time_to_free(self) -> float | None:
        """The median, in seconds."""
        return statistics.median(self.times_to_free) if self.times_to_free else None

    @property
    def longest(self) -> int | None:
        """The longest time to free, in seconds."""
        return max(self.times_to_free, default=None)


@dataclass(frozen=True)
class Report:
    """The sums from `begin` to `end` (UNIX s): of each user and day, each user, each day, and in all.

    Days are of UTC, `2026-11-21`; users stand with their account (account). vos: by virtual organisation ("": it is not
    known), none where it is known of no pilot. unused: cores that came back and that
    nobody under quota used in time; None where that is not known, or of one user alone.
    """

    begin: int
    end: int
    rows: tuple[tuple[str, str, str, Sums], ...]
    users: tuple[tuple[str, str, Sums], ...]
    days: tuple[tuple[str, Sums], ...]
    vos: tuple[tuple[str, Sums], ...]
    total: Sums
    pilots: tuple[ReportedOrder, ...]
    unused: float | None = None


def day_of(moment: int) -> str:
    """Return the day of a UNIX time, in UTC."""
    return time.strftime("%Y-%m-%d", time.gmtime(moment))


def report_on(
    orders: Iterable[ReportedOrder],
    begin: int,
    end: int,
    user: str | None = None,
    unused: float | None = None,
    identity: PilotIdentity = ANYBODY,
) -> Report:
    """Sum up the orders from `begin` to `end` (UNIX s); of one user alone, with or without its domain.

    unused: as in `Report`. identity: who must have sent the pilots, as far as it is named.
    """
    pilots = tuple(
        one
        for one in orders
        if begin <= one.ordered <= end
        and user in {None, one.user, one.user.partition("@")[0]}
        and one.identity.fits(identity)
    )
    rows: dict[tuple[str, str, str], list[ReportedOrder]] = defaultdict(list)
    users: dict[tuple[str, str], list[ReportedOrder]] = defaultdict(list)
    vos: dict[str, list[ReportedOrder]] = defaultdict(list)
    days: dict[str, list[ReportedOrder]] = {day_of(moment): [] for moment in (*range(begin, end, DAY), end)}
    for one in pilots:
        day = day_of(one.ordered)
        rows[day, one.account, one.user].append(one)
        users[one.account, one.user].append(one)
        vos[one.identity.vo].append(one)
        days[day].append(one)
    return Report(
        begin,
        end,
        tuple((*whose, _sums(some)) for whose, some in sorted(rows.items())),
        tuple((*whose, _sums(some)) for whose, some in sorted(users.items())),
        tuple((day, _sums(some)) for day, some in sorted(days.items())),
        tuple((vo, _sums(some)) for vo, some in sorted(vos.items())) if any(vos) else (),
        _sums(pilots),
        pilots,
        unused if user is None and identity == ANYBODY else None,
    )


def _sums(some: Sequence[ReportedOrder]) -> Sums:
    given = [one for one in some if one.end != NOT_ORDERED]
    ends = Counter(one.end for one in given)
    gone = [one for one in given if one.freed]
    return Sums(
        ordered=len(given),
        not_ordered=len(some) - len(given),
        ends=tuple(ends[end] for end in ENDS),
        cores_ordered=sum(one.cores for one in given),
        cores_freed=sum(one.cores for one in gone),
        predicted=sum(one.predicted for one in gone),
        realised=sum(one.realised or 0 for one in gone),
        times_to_free=tuple(max(0, (one.ended or 0) - one.ordered) for one in gone),
    )


def as_json(report: Report) -> dict[str, object]:
    """Return the report as plain values: times in UNIX s or s, wastes in core-seconds, null where not known."""
    return {
        "from": report.begin,
        "to": report.end,
        "total": _sums_as_json(report.total),
        "cores_freed_unused": report.unused,
        "users": [{"account": whose, "user": user, **_sums_as_json(sums)} for whose, user, sums in report.users],
        "vos": [{"vo": vo or None, **_sums_as_json(sums)} for vo, sums in report.vos],
        "days": [{"day": day, **_sums_as_json(sums)} for day, sums in report.days],
        "users_by_day": [
            {"day": day, "account": whose, "user": user, **_sums_as_json(sums)}
            for day, whose, user, sums in report.rows
        ],
    }


def _sums_as_json(sums: Sums) -> dict[str, object]:
    return {
        "ordered": sums.ordered,
        "not_ordered": sums.not_ordered,
        "left_in_time": sums.ended_as(IN_TIME),
        "left_late": sums.ended_as(LATE),
        "vacated": sums.ended_as(VACATED),
        "withdrawn": sums.ended_as(WITHDRAWN),
        "no_end_known": sums.ended_as(OPEN),
        "cores_ordered": sums.cores_ordered,
        "cores_freed": sums.cores_freed,
        "predicted_waste": sums.predicted,
        "realised_waste": sums.realised,
        "time_to_free_median": sums.time_to_free,
        "time_to_free_longest": sums.longest,
    }
