"""The event of an account that orders were given for: what `reclaim.unmet_demand` remembers of it, as plain values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any, TypeVar

from drainwise.journal.event import DEMAND, VERSION, Event, moment, number, objects, text, texts, truth, whole
from drainwise.journal.read import PassedOver, events_of
from drainwise.reclaim.unmet_demand import FAILED_ROUNDS, AccountPart, UnmetDemand

N = TypeVar("N", int, float)

_NAMES = [field.name for field in fields(UnmetDemand) if field.name not in {"account", "runs"}]
_SINCE_KINDS = {"kind": "", "spots": 0, "unused": 0.0}
"""What earlier events have not got."""
_COUNTS = [field.name for field in fields(UnmetDemand) if field.type == "int"]
_CORES = [field.name for field in fields(UnmetDemand) if field.type == "float"]
_ROUNDED = ("back", "settled", "wasted", "vain", "unused")


def unmet_event(one: UnmetDemand, now: int) -> dict[str, object]:
    """Return the event that replaces all earlier ones of one account from `now` (UNIX s) on; cores, times in UNIX s."""
    return {
        "event": DEMAND,
        "version": VERSION,
        "time": now,
        "account": one.account,
        "why": _why(one, now),
        "runs": [
            {"run": run, "node": part.node, "whole": part.whole, "cores": round(part.cores, 6)}
            for run, part in one.runs.items()
        ],
        **{name: _plain(name, getattr(one, name)) for name in _NAMES},
    }


def _plain(name: str, value: object) -> object:
    if isinstance(value, tuple):
        return list(value)
    return round(value, 6) if name in _ROUNDED and isinstance(value, float) else value


def _why(one: UnmetDemand, now: int) -> str:
    if one.failed >= FAILED_ROUNDS and now < one.until:
        held = "all demand" if one.closed else f"demand of {one.held:g} cores"
        return f"{held} is paused: {one.vain:g} cores came back in {one.failed} rounds and its jobs did not start"
    if one.back or one.settled:
        back, gained = one.settled + one.back, one.served + one.gained
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
    values: dict[str, Any] = {name: _not_negative(name, whole(event, name)) for name in _COUNTS}
    values |= {name: _not_negative(name, number(event, name)) for name in _CORES}
    nodes, closed = tuple(texts(event, "nodes")), truth(event, "closed")
    return UnmetDemand(text(event, "account"), runs, nodes=nodes, closed=closed, kind=text(event, "kind"), **values)


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


def _not_negative(name: str, value: N) -> N:
    if value < 0:
        raise ValueError(f"{name}: expected 0 or more")
    return value
