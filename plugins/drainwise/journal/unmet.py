"""The event of an account that orders were given for: what `reclaim.unmet_demand` remembers of it, as plain values."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from drainwise.journal.event import DEMAND, VERSION, Event, number, objects, text, texts, truth, whole
from drainwise.journal.read import events_of
from drainwise.reclaim.unmet_demand import FAILED_ROUNDS, Part, Unmet


def unmet_event(one: Unmet, now: int) -> dict[str, object]:
    """What is remembered of one account from `now` (UNIX s) on, in place of all before; cores, times in UNIX s."""
    return {
        "event": DEMAND,
        "version": VERSION,
        "time": now,
        "principal": one.principal,
        "why": _why(one, now),
        "runs": [
            {"run": run, "node": part.node, "whole": part.whole, "cores": round(part.cores, 6)}
            for run, part in one.runs.items()
        ],
        "ordered": one.ordered,
        "use": one.use,
        "looked": one.looked,
        "back": round(one.back, 6),
        "whole": one.whole,
        "nodes": list(one.nodes),
        "left": one.left,
        "base": one.base,
        "peak": one.peak,
        "others": one.others,
        "first": one.first,
        "last": one.last,
        "settled": round(one.settled, 6),
        "served": one.served,
        "wasted": round(one.wasted, 6),
        "failed": one.failed,
        "vain": round(one.vain, 6),
        "since": one.since,
        "until": one.until,
        "held": one.held,
        "held_jobs": one.held_jobs,
        "closed": one.closed,
    }


def _why(one: Unmet, now: int) -> str:
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


def unmet_of(event: Event) -> Unmet:
    """The inverse of `unmet_event`. Raises ValueError for an event that is not sound."""

    def cores(name: str) -> float:
        return _not_negative(name, number(event, name))

    def count(name: str) -> int:
        return int(_not_negative(name, whole(event, name)))

    return Unmet(
        text(event, "principal"),
        {
            text(one, "run"): Part(text(one, "node"), whole(one, "whole"), number(one, "cores"))
            for one in objects(event, "runs")
        },
        ordered=count("ordered"),
        use=cores("use"),
        looked=count("looked"),
        back=cores("back"),
        whole=cores("whole"),
        nodes=tuple(texts(event, "nodes")),
        left=count("left"),
        base=cores("base"),
        peak=cores("peak"),
        others=cores("others"),
        first=count("first"),
        last=count("last"),
        settled=cores("settled"),
        served=cores("served"),
        wasted=cores("wasted"),
        failed=count("failed"),
        vain=cores("vain"),
        since=count("since"),
        until=count("until"),
        held=cores("held"),
        held_jobs=cores("held_jobs"),
        closed=truth(event, "closed"),
    )


def unmet_in(paths: Iterable[str]) -> dict[str, Unmet]:
    """What the journal's files, the oldest first, remember last of each account: without reading their other events.

    Raises UsageError for a file that cannot be read.
    """
    found: dict[str, Unmet] = {}
    for event in events_of(paths, DEMAND):
        with suppress(ValueError):
            one = unmet_of(event)
            found[one.principal] = one
    return found


def _not_negative(name: str, value: float) -> float:
    if value < 0:
        raise ValueError(f"{name}: expected 0 or more")
    return value
