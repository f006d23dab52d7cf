"""Read the orders of a journal, each with its end, and what pilots returned while they went on.

Sums per user and day: ordered, left, vacated; promised and realised waste; cores freed, and how soon.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

from drainwise.facts.units import CORE_H
from drainwise.journal.event import Event, Kind, Outcome, moment, number, objects, text, truth, values_in, whole
from drainwise.journal.explain import identity_in
from drainwise.journal.outcomes import billed_in
from drainwise.journal.read import PassedOver, events_of
from drainwise.journal.remembered import ReportedPart, named_part, part_of, unmet_of
from drainwise.pool.identity import ANYBODY, PilotIdentity

DAY = 86_400
T = TypeVar("T")
Key = TypeVar("Key", bound=Any)


OPEN = "no end known"
"""Its pilot still runs, or it is not known yet how it ended."""
IN_TIME = "left in time"
LATE = "left late"
"""By itself, and after its deadline."""
VACATED = "vacated"
"""Ended by the batch system."""
WITHDRAWN = "withdrawn"
"""The order was withdrawn."""
NOT_ORDERED = "not ordered"
"""The order was skipped or refused, or nobody answered it and nothing shows that it was carried out."""

ENDS = (IN_TIME, LATE, VACATED, WITHDRAWN, OPEN)
"""How an order that was given can end."""


@dataclass(frozen=True)
class ReportedOrder:
    """One order; times in UNIX s, wastes in core-seconds, those of an end that is not known None.

    believed: its pilot promised something; else predicted is what was expected of it. policy: by which it was chosen,
    "" where that is not known. billed, unit: as in `outcomes.billed_in`.
    """

    run: str
    name: str
    account: str
    user: str
    cores: int
    ordered: int
    deadline: int
    end: str
    believed: bool
    predicted: int
    ended: int | None = None
    realised: int | None = None
    identity: PilotIdentity = ANYBODY
    node: str = ""
    policy: str = ""
    billed: float = 1.0
    unit: str = CORE_H


class ReportedJournal:
    """What a journal tells from `begin` to `end` (UNIX s).

    orders, parts: from `begin` on, in their order. unused: cores that came back and that nobody under quota used in
    time.
    """

    def __init__(self, begin: int, end: int) -> None:
        self.orders: list[ReportedOrder] = []
        self.parts: list[ReportedPart] = []
        self.unused = 0.0
        self._begin, self._end = begin, end
        self._standing: dict[str, int] = {}  # place of the last order that was given to a run and has no end yet
        self._doubtful: dict[str, int] = {}  # place of the last order to a run of which nobody said if it was given

    @classmethod
    def read(cls, paths: Iterable[str], begin: int, end: int, passed_over: PassedOver | None = None) -> ReportedJournal:
        """Read the journal's files.

        A line that is not sound is passed over and counted. Raises UsageError for a file that cannot be read.
        """
        found, passed_over = cls(begin, end), passed_over or PassedOver()
        takes = {
            Kind.ORDER: found._order,
            Kind.WITHDRAWAL: found._end_of_order,
            Kind.ENDED: found._end_of_order,
            Kind.PART: found._wish,
            Kind.RETURNED: found._returned,
            Kind.DEMAND: found._demand,
        }
        for event in events_of(paths, *takes, passed_over=passed_over):
            try:
                takes[str(event["event"])](event)
            except ValueError:
                passed_over.lines += 1
        return found

    def _order(self, event: Event) -> None:
        run = text(event, "run")
        if moment(event, "time") < self._begin:
            self._standing.pop(run, None)  # what follows belongs to an order of before
            return
        order, place = _ordered(event), self._doubtful.pop(run, None)
        if place is None or "found" not in event or self.orders[place].ordered != order.ordered:
            place = len(self.orders)
            self.orders.append(order)
        self.orders[place] = order
        if event.get("outcome") == Outcome.DONE:
            self._standing[run] = place
        elif event.get("outcome") in (Outcome.UNANSWERED, Outcome.NOT_DONE, Outcome.FAILED):
            self._doubtful[run] = place

    def _end_of_order(self, event: Event) -> None:
        run = text(event, "run")
        if event.get("outcome", Outcome.DONE) == Outcome.DONE and run in self._standing:
            place = self._standing.pop(run)
            self.orders[place] = _ended(self.orders[place], event)

    def _wish(self, event: Event) -> None:
        if (time := moment(event, "time")) < self._begin or event.get("outcome") != Outcome.DONE:
            return
        if whole(event, "asked") > whole(event, "returned"):
            self.parts.append(replace(named_part(event, time), is_wish=True))

    def _returned(self, event: Event) -> None:
        if (time := moment(event, "time")) >= self._begin:
            self.parts += [part_of(one, time) for one in objects(event, "pilots")]

    def _demand(self, event: Event) -> None:
        if self._begin <= moment(event, "time") <= self._end:
            self.unused += unmet_of(event).unused


def _ordered(event: Event) -> ReportedOrder:
    billed, unit = billed_in(event)
    return ReportedOrder(
        **values_in(event, ReportedOrder, "run", "name", "account", "user", "cores", "deadline"),
        ordered=moment(event, "time"),
        end=OPEN if event.get("outcome") == Outcome.DONE else NOT_ORDERED,
        believed=event.get("claims") is not None,
        predicted=round(number(event, "promised")),
        identity=identity_in(event),
        node=text(event, "node") if "node" in event else "",
        policy=policy if isinstance(policy := event.get("policy"), str) else "",
        billed=billed,
        unit=unit,
    )


def _ended(order: ReportedOrder, event: Event) -> ReportedOrder:
    if event["event"] == Kind.WITHDRAWAL:
        return replace(order, end=WITHDRAWN)
    ended = moment(event, "ended")
    end = VACATED if truth(event, "vacated") else IN_TIME if ended <= order.deadline else LATE
    return replace(order, end=end, ended=ended, realised=whole(event, "realised"))


@dataclass(frozen=True)
class Sums:
    """Sums over some orders. Each order counts where it was given, with all that became of it.

    ordered: orders given; `ends`, how many ended in which way, add up to it. not_ordered: skipped or refused. Wastes
    are in core-seconds, over the pilots whose end is known; those that are billed are seconds of `unit`, in which all
    of them are. times_to_free: seconds from the order to the end of each
    of those.
    """

    ordered: int
    not_ordered: int
    ends: Mapping[str, int]
    cores_ordered: int
    cores_freed: int
    predicted_waste: int
    realised_waste: int
    times_to_free: tuple[int, ...]
    predicted_billed: int
    realised_billed: int
    unit: str

    @property
    def time_to_free_median(self) -> float | None:
        """The median, in seconds."""
        return statistics.median(self.times_to_free) if self.times_to_free else None

    @property
    def time_to_free_longest(self) -> int | None:
        """The longest time to free, in seconds."""
        return max(self.times_to_free, default=None)


@dataclass(frozen=True)
class PartSums:
    """Sums over parts of pilots that went on.

    wishes: those that asked a pilot for more than it had returned. pilots: that were asked or have returned any.
    cores_returned: of each pilot the most at one time. core_seconds_returned: for which cores were returned.
    realised_waste: core-seconds that idled in cores that were asked for until they were returned.
    """

    wishes: int
    pilots: int
    cores_returned: int
    core_seconds_returned: int
    realised_waste: int


@dataclass(frozen=True)
class Report:
    """The sums from `begin` to `end` (UNIX s): of each user and day, each user, each day, and in all.

    Days are of UTC, `2026-11-21`; users stand with their account (account). vos: by virtual organisation ("": it is not
    known), none where it is known of no pilot. unused: cores that came back and that
    nobody under quota used in time; None where that is not known, or of one user alone. parts: by user, and part_total
    in all; none where no pilot was asked for a part. passed_over: lines of the journal that could not be used.
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
    parts: tuple[tuple[str, str, PartSums], ...] = ()
    part_total: PartSums = PartSums(0, 0, 0, 0, 0)
    passed_over: int = 0


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
    parts: Iterable[ReportedPart] = (),
) -> Report:
    """Sum up the orders from `begin` to `end` (UNIX s); of one user alone, with or without its domain.

    unused: as in `Report`. identity: who must have sent the pilots, as far as it is named. parts: what the journal
    tells of pilots that return cores and go on.
    """

    def is_wanted(one: ReportedOrder | ReportedPart, time: int) -> bool:
        is_users = user in {None, one.user, one.user.partition("@")[0]}
        return begin <= time <= end and is_users and one.identity.fits(identity)

    pilots = tuple(one for one in orders if is_wanted(one, one.ordered))
    returning = [one for one in parts if is_wanted(one, one.time)]
    days = {day_of(moment): _sums(()) for moment in (*range(begin, end, DAY), end)}
    days |= {day: _sums(some) for day, some in _grouped(pilots, lambda one: day_of(one.ordered))}
    vos = _grouped(pilots, lambda one: one.identity.vo)
    rows = _grouped(pilots, lambda one: (day_of(one.ordered), one.account, one.user))
    return Report(
        begin,
        end,
        tuple((*whose, _sums(some)) for whose, some in rows),
        tuple((*whose, _sums(some)) for whose, some in _grouped(pilots, lambda one: (one.account, one.user))),
        tuple(sorted(days.items())),
        tuple((vo, _sums(some)) for vo, some in vos) if any(vo for vo, _ in vos) else (),
        _sums(pilots),
        pilots,
        unused if user is None and identity == ANYBODY else None,
        tuple((*whose, _part_sums(some)) for whose, some in _grouped(returning, lambda one: (one.account, one.user))),
        _part_sums(returning),
    )


def _grouped(some: Iterable[T], key: Callable[[T], Key]) -> list[tuple[Key, list[T]]]:
    found = defaultdict[Key, "list[T]"](list)
    for one in some:
        found[key(one)].append(one)
    return sorted(found.items(), key=lambda group: group[0])


def _sums(some: Sequence[ReportedOrder]) -> Sums:
    given = [one for one in some if one.end != NOT_ORDERED]
    ends = Counter(one.end for one in given)
    gone = [one for one in given if one.ended is not None]
    units = {one.unit for one in given}
    unit = units.pop() if len(units) == 1 else CORE_H

    def billed(name: str) -> int:
        return round(sum((getattr(one, name) or 0) * (one.billed if unit == one.unit else 1.0) for one in gone))

    return Sums(
        ordered=len(given),
        not_ordered=len(some) - len(given),
        ends={end: ends[end] for end in ENDS},
        cores_ordered=sum(one.cores for one in given),
        cores_freed=sum(one.cores for one in gone),
        predicted_waste=sum(one.predicted for one in gone),
        realised_waste=sum(one.realised or 0 for one in gone),
        times_to_free=tuple(max(0, (one.ended or 0) - one.ordered) for one in gone),
        predicted_billed=billed("predicted"),
        realised_billed=billed("realised"),
        unit=unit,
    )


def _part_sums(some: Sequence[ReportedPart]) -> PartSums:
    most = dict.fromkeys((one.run for one in some), 0)
    for one in some:
        most[one.run] = max(most[one.run], one.returned)
    return PartSums(
        wishes=sum(one.is_wish for one in some),
        pilots=len(most),
        cores_returned=sum(most.values()),
        core_seconds_returned=sum(one.core_seconds for one in some),
        realised_waste=sum(one.wasted for one in some),
    )


def as_json(report: Report) -> dict[str, object]:
    """Return the report as plain values: times in UNIX s or s, wastes in core-seconds, null where not known."""
    return {
        "from": report.begin,
        "to": report.end,
        "total": _sums_as_json(report.total),
        "cores_freed_unused": report.unused,
        "lines_passed_over": report.passed_over,
        "users": [{"account": whose, "user": user, **_sums_as_json(sums)} for whose, user, sums in report.users],
        "vos": [{"vo": vo or None, **_sums_as_json(sums)} for vo, sums in report.vos],
        "days": [{"day": day, **_sums_as_json(sums)} for day, sums in report.days],
        "users_by_day": [
            {"day": day, "account": whose, "user": user, **_sums_as_json(sums)}
            for day, whose, user, sums in report.rows
        ],
        "parts": {
            "total": asdict(report.part_total),
            "users": [{"account": whose, "user": user, **asdict(sums)} for whose, user, sums in report.parts],
        },
    }


_IN_JSON = (
    *("cores_ordered", "cores_freed", "predicted_waste", "realised_waste"),
    *("predicted_billed", "realised_billed", "unit", "time_to_free_median", "time_to_free_longest"),
)


def _sums_as_json(sums: Sums) -> dict[str, object]:
    ends = {end.replace(" ", "_"): count for end, count in sums.ends.items()}
    figures = {name: getattr(sums, name) for name in _IN_JSON}
    return {"ordered": sums.ordered, "not_ordered": sums.not_ordered, **ends, **figures}
