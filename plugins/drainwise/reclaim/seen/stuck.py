"""Pilots in which nothing has worked for hours, as their nodes see it: named, and first to go if the site says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from drainwise.facts.units import duration
from drainwise.pilotad.attributes import PROCESSES
from drainwise.pilotad.report import PilotReport
from drainwise.pool.facts import Pilot, Snapshot

_NAMED = 3


@dataclass(frozen=True)
class StuckRules:
    """after: seconds without a payload that make a pilot stuck. first: whether such pilots go first of their user's.

    heartbeat_limit: seconds after which what a node told is too old.
    """

    after: int = 14400
    first: bool = False
    heartbeat_limit: int = 4200


def is_stuck(pilot: Pilot, now: int, rules: StuckRules) -> bool:
    """Decide whether its node has seen no payload in it for long enough, and still tells of it, at `now` (UNIX s)."""
    seen = pilot.seen
    if seen is None or seen.payloads or not 0 <= now - seen.at <= rules.heartbeat_limit:
        return False
    return min(now - pilot.started, seen.idle + now - seen.at) >= rules.after


def stuck_pilots(snapshot: Snapshot, now: int, rules: StuckRules) -> tuple[Pilot, ...]:
    """Return those that are stuck."""
    return tuple(one for one in snapshot.pilots if is_stuck(one, now, rules))


def stuck_notice(stuck: Sequence[Pilot], rules: StuckRules) -> str:
    """Return a sentence that names them, "" for none."""
    if not stuck:
        return ""
    names = ", ".join(sorted(one.name for one in stuck)[:_NAMED]) + (", ..." if len(stuck) > _NAMED else "")
    cores = sum(one.cores for one in stuck)
    who = "1 pilot is" if len(stuck) == 1 else f"{len(stuck)} pilots are"
    first = "; such pilots go first" if rules.first else ""
    return f"{who} stuck ({cores} cores): no payload for {duration(rules.after)} or more: {names}{first}"


def with_stuck(snapshot: Snapshot, now: int, rules: StuckRules) -> Snapshot:
    """Return the snapshot with a notice that names those that are stuck at `now` (UNIX s).

    Where the site wants them to go first, an order to one of them wastes nothing: it is the cheapest of its user's,
    whatever it reports of itself.
    """
    stuck = stuck_pilots(snapshot, now, rules)
    if not stuck:
        return snapshot
    snapshot = replace(snapshot, notices=(*snapshot.notices, stuck_notice(stuck, rules)))
    if not rules.first:
        return snapshot
    runs = {one.run for one in stuck}
    idle = PilotReport(now, 0.0, now, now, now, None, 0.0, 0.0, source=PROCESSES)
    pilots = (replace(one, report=idle, contradictory=False) if one.run in runs else one for one in snapshot.pilots)
    return replace(snapshot, pilots=tuple(pilots))
