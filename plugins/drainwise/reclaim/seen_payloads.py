"""What follows from the payloads that nodes see: when they should end, and which pilots are stuck. Pure.

A node tells when they began. Of those that this agent saw end it learns how long such payloads run, and each that
runs is expected to end as the reference pilot expects it of its own: `estimate.run_times`. Pilots in which nothing has
worked for hours are named.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from drainwise.estimate.run_times import Kind, RunTimes
from drainwise.facts.units import duration
from drainwise.pilotad.attributes import PROCESSES
from drainwise.pilotad.report import PilotReport
from drainwise.pool.facts import Pilot, Snapshot

_NAMED = 3


def kind_of_payload(user: str, client: str) -> Kind:
    """Return what a payload is one of many of: nobody's payloads change what is expected of another user's."""
    return user, client


def with_expected_ends(snapshot: Snapshot, times: RunTimes | None, now: int) -> Snapshot:
    """Return the snapshot with ends, at `now` (UNIX s), in the reports of the pilots that are seen and nothing else.

    One without a payload could leave at once. Of one for whose payloads nothing is learned yet no end is known.
    """
    if all(one.seen is None for one in snapshot.pilots):
        return snapshot
    times = times or RunTimes()
    return replace(snapshot, pilots=tuple(_with_ends(one, times, now) for one in snapshot.pilots))


def _with_ends(pilot: Pilot, times: RunTimes, now: int) -> Pilot:
    """Return a pilot with ends in its report; each payload keeps as many cores busy as any other (SPEC §2)."""
    seen, said = pilot.seen, pilot.report
    if seen is None or said is None or said.source != PROCESSES:
        return pilot
    kind, ends = kind_of_payload(pilot.user, seen.client), [] if seen.payloads else [float(now)]
    for begin in seen.begins if seen.payloads else ():
        lasts = times.expected(kind, max(0, now - begin))
        if lasts is None:
            return pilot
        ends.append(begin + lasts)
    if not ends:
        return pilot
    first, last = round(min(ends)), round(max(ends))
    used = min(float(pilot.cores), said.used_cpu or 0.0)
    busy = used / len(ends) * sum(end - first for end in ends)
    idle = max(0.0, pilot.cores * (last - first) - busy)
    known = (said.heartbeat, used, said.last_job_start, first, last, None, said.add_uncom_time, idle)
    return replace(pilot, report=PilotReport(*known, source=said.source))


@dataclass(frozen=True)
class StuckRules:
    """after: seconds without a payload that make a pilot stuck. heartbeat_limit: for which what a node told counts."""

    after: int = 14400
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


def with_stuck(snapshot: Snapshot, now: int, rules: StuckRules) -> Snapshot:
    """Return the snapshot with a notice that names those that are stuck at `now` (UNIX s)."""
    stuck = stuck_pilots(snapshot, now, rules)
    if not stuck:
        return snapshot
    names = ", ".join(sorted(one.name for one in stuck)[:_NAMED]) + (", ..." if len(stuck) > _NAMED else "")
    who = "1 pilot is" if len(stuck) == 1 else f"{len(stuck)} pilots are"
    what = f"stuck ({sum(one.cores for one in stuck)} cores): no payload for {duration(rules.after)} or more"
    return replace(snapshot, notices=(*snapshot.notices, f"{who} {what}: {names}"))
