"""What is remembered of those who wait, as events: of accounts that orders were given for (`reclaim.unmet_demand`), and
of jobs that do not start where they should (`reclaim.untaken_room`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import Field, fields
from typing import Any

from drainwise.journal.event import DEMAND, UNTAKEN, VERSION, Event, moment, number, objects, text, texts, truth, whole
from drainwise.journal.read import PassedOver, events_of
from drainwise.reclaim.unmet_demand import FAILED_ROUNDS, AccountPart, Round, UnmetDemand
from drainwise.reclaim.untaken_room import UntakenRoom

_OF_DEMAND = [field for field in fields(UnmetDemand) if field.name not in {"account", "runs", "round"}]
_OF_ROUND = fields(Round)
_SINCE_KINDS = {"kind": "", "spots": 0, "unused": 0.0}
"""What earlier events have not got."""
_ROUNDED = ("back", "settled", "wasted", "vain", "unused")


def unmet_event(one: UnmetDemand, now: int) -> dict[str, object]:
    """Return the event that replaces all earlier ones of one account from `now` (UNIX s) on; cores, times in UNIX s."""
    runs = [{"run": run, **vars(part), "cores": round(part.cores, 6)} for run, part in one.runs.items()]
    facts = {field.name: getattr(one, field.name) for field in _OF_DEMAND} | vars(one.round)
    facts |= {"nodes": list(one.round.nodes), **{name: round(facts[name], 6) for name in _ROUNDED}}
    of_whom = {"account": one.account, "why": _why(one, now), "runs": runs}
    return {"event": DEMAND, "version": VERSION, "time": now, **of_whom, **facts}


def _why(one: UnmetDemand, now: int) -> str:
    back, gained = one.round.back_in_all, one.round.gained_in_all
    if one.failed >= FAILED_ROUNDS and now < one.until:
        held = "all demand" if one.closed else f"demand of {one.held:g} cores"
        return f"{held} is paused: {one.vain:g} cores came back in {one.failed} rounds and its jobs did not start"
    if back:
        return f"{back:g} cores came back for it, its use grew by {gained:g}"
    if one.runs:
        return f"{sum(part.cores for part in one.runs.values()):g} cores are to come back for it"
    if one.failed:
        return "1 round did not help" if one.failed == 1 else f"{one.failed} rounds did not help"
    return "nothing is to be remembered of it"


def unmet_of(event: Event) -> UnmetDemand:
    """Return the unmet demand of an event of `unmet_event`. Raises ValueError for an event that is not sound."""
    event = {**_SINCE_KINDS, **event}
    runs = {
        text(one, "run"): AccountPart(text(one, "node"), whole(one, "whole"), number(one, "cores"))
        for one in objects(event, "runs")
    }
    came, facts = ({field.name: _value(event, field) for field in some} for some in (_OF_ROUND, _OF_DEMAND))
    return UnmetDemand(text(event, "account"), runs, round=Round(**came), **facts)


def _value(event: Event, field: Field[Any]) -> Any:
    """Return the value of a field of a fact. Raises ValueError for what is none."""
    if field.type == "bool":
        return truth(event, field.name)
    if field.type == "str":
        return text(event, field.name)
    if field.type not in {"int", "float"}:
        return tuple(texts(event, field.name))
    value = whole(event, field.name) if field.type == "int" else number(event, field.name)
    if value < 0:
        raise ValueError(f"{field.name}: expected 0 or more")
    return value


def unused_in(paths: Iterable[str], begin: int, end: int, passed_over: PassedOver | None = None) -> float:
    """Return the cores that came back from `begin` to `end` (UNIX s) and that nobody under quota used in time.

    An event that is not sound is passed over and counted; lines of no kind count elsewhere. Raises UsageError for a
    file that cannot be read.
    """
    cores, passed_over = 0.0, passed_over or PassedOver()
    for event in events_of(paths, DEMAND, passed_over=passed_over, is_first=False):
        try:
            if begin <= moment(event, "time") <= end:
                cores += unmet_of(event).unused
        except ValueError:
            passed_over.lines += 1
    return cores


def untaken_event(one: UntakenRoom, now: int) -> dict[str, object]:
    """Return the event that replaces all earlier ones of one kind from `now` (UNIX s) on; times in UNIX s."""
    places = [{"place": name, "cores": cores, "since": since} for name, (cores, since) in one.places.items()]
    return {"event": UNTAKEN, "version": VERSION, "time": now, **vars(one), "places": places}


def untaken_of(event: Event) -> UntakenRoom:
    """Return what an event of `untaken_event` remembers. Raises ValueError for an event that is not sound."""
    event = {"made": 0, **event}
    places = {text(one, "place"): (whole(one, "cores"), whole(one, "since")) for one in objects(event, "places")}
    facts = {field.name: _value(event, field) for field in fields(UntakenRoom) if field.name != "places"}
    return UntakenRoom(places=places, **facts)
