"""Read the orders of a journal, each with its end, and what pilots returned while they went on, for the report."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from drainwise.journal.event import Event, Kind, Outcome, moment, number, objects, text, truth, values_in, whole
from drainwise.journal.explain import identity_in
from drainwise.journal.read import PassedOver, events_of
from drainwise.pool.identity import ANYBODY, PilotIdentity

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
    "" where that is not known.
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


def reported_orders(paths: Iterable[str], begin: int, passed_over: PassedOver | None = None) -> list[ReportedOrder]:
    """Return the orders of the journal's files from `begin` (UNIX s) on, in their order.

    A line that is not sound is passed over and counted. Raises UsageError for a file that cannot be read.
    """
    found: list[ReportedOrder] = []
    standing: dict[str, int] = {}  # place of the last order that was given to a run and has no end yet
    doubtful: dict[str, int] = {}  # place of the last order to a run of which nobody said whether it was given
    passed_over = passed_over or PassedOver()
    for event in events_of(paths, Kind.ORDER, Kind.WITHDRAWAL, Kind.ENDED, passed_over=passed_over):
        try:
            run = text(event, "run")
            if event["event"] == Kind.ORDER:
                if moment(event, "time") < begin:
                    standing.pop(run, None)  # what follows belongs to an order of before
                    continue
                order, place = _ordered(event), doubtful.pop(run, None)
                if place is None or "found" not in event or found[place].ordered != order.ordered:
                    place = len(found)
                    found.append(order)
                found[place] = order
                if event.get("outcome") == Outcome.DONE:
                    standing[run] = place
                elif event.get("outcome") in (Outcome.UNANSWERED, Outcome.NOT_DONE, Outcome.FAILED):
                    doubtful[run] = place
            elif event.get("outcome", Outcome.DONE) == Outcome.DONE and run in standing:
                place = standing.pop(run)
                found[place] = _ended(found[place], event)
        except ValueError:
            passed_over.lines += 1
    return found


def _ordered(event: Event) -> ReportedOrder:
    return ReportedOrder(
        **values_in(event, ReportedOrder, "run", "name", "account", "user", "cores", "deadline"),
        ordered=moment(event, "time"),
        end=OPEN if event.get("outcome") == Outcome.DONE else NOT_ORDERED,
        believed=event.get("claims") is not None,
        predicted=round(number(event, "promised")),
        identity=identity_in(event),
        node=_node_in(event),
        policy=policy if isinstance(policy := event.get("policy"), str) else "",
    )


def _ended(order: ReportedOrder, event: Event) -> ReportedOrder:
    if event["event"] == Kind.WITHDRAWAL:
        return replace(order, end=WITHDRAWN)
    ended = moment(event, "ended")
    end = VACATED if truth(event, "vacated") else IN_TIME if ended <= order.deadline else LATE
    return replace(order, end=end, ended=ended, realised=whole(event, "realised"))


@dataclass(frozen=True)
class ReportedPart:
    """What the journal tells of one pilot at `time`, UNIX s: a wish for cores, or what was seen of it since before.

    is_wish: it was asked for more than it had returned. returned: cores. core_seconds: returned. wasted: core-seconds.
    """

    run: str
    account: str
    user: str
    time: int
    identity: PilotIdentity = ANYBODY
    is_wish: bool = False
    returned: int = 0
    core_seconds: int = 0
    wasted: int = 0
    node: str = ""


def reported_parts(paths: Iterable[str], begin: int, passed_over: PassedOver | None = None) -> list[ReportedPart]:
    """Return the parts of the journal's files from `begin` (UNIX s) on, in their order.

    An event that is not sound is passed over and counted; lines of no kind count in `reported_orders`. Raises
    UsageError for a file that cannot be read.
    """
    found: list[ReportedPart] = []
    passed_over = passed_over or PassedOver()
    for event in events_of(paths, Kind.PART, Kind.RETURNED, passed_over=passed_over, is_first=False):
        try:
            time = moment(event, "time")
            if time < begin:
                continue
            if event["event"] == Kind.RETURNED:
                found += [part_of(one, time) for one in objects(event, "pilots")]
            elif event.get("outcome") == Outcome.DONE and whole(event, "asked") > whole(event, "returned"):
                whose = (*_names_in(event), time, identity_in(event))
                found.append(ReportedPart(*whose, is_wish=True, node=_node_in(event)))
        except ValueError:
            passed_over.lines += 1
    return found


def _names_in(one: Event) -> tuple[str, str, str]:
    return text(one, "run"), text(one, "account"), text(one, "user")


def _node_in(one: Event) -> str:
    return text(one, "node") if "node" in one else ""


def part_of(one: Event, time: int) -> ReportedPart:
    """Return what an event of `time` (UNIX s) tells of one pilot. Raises ValueError for what is not sound."""
    returned, core_seconds, wasted = whole(one, "returned"), number(one, "core_seconds"), number(one, "wasted")
    if returned < 0 or core_seconds < 0 or wasted < 0:
        raise ValueError("returned, core_seconds, wasted: expected 0 or more")
    return ReportedPart(
        *_names_in(one),
        time,
        identity_in(one),
        returned=returned,
        core_seconds=round(core_seconds),
        wasted=round(wasted),
        node=_node_in(one),
    )
