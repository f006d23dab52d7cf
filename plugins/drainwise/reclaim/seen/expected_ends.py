"""When the payloads that a node saw should end, by how long those of their user and client ran so far.

A node tells when they began. Of those that this agent saw end it learns how long such payloads run, and each that
runs is expected to end as the reference pilot expects it of its own: `estimate.run_times`.
"""

from __future__ import annotations

from dataclasses import replace

from drainwise.estimate.run_times import Kind, RunTimes
from drainwise.pilotad.attributes import PROCESSES
from drainwise.pilotad.observation import Observation
from drainwise.pilotad.report import PilotReport
from drainwise.pool.facts import Pilot, Snapshot


def kind_of_payload(user: str, client: str) -> Kind:
    """Return what a payload is one of many of: nobody's payloads change what is expected of another user's."""
    return user, client


def with_expected_ends(snapshot: Snapshot, times: RunTimes | None, now: int) -> Snapshot:
    """Return the snapshot with ends, at `now` (UNIX s), in the reports of the pilots that are seen and nothing else.

    One without a payload could leave at once. Of one for whose payloads nothing is learned yet no end is known.
    """
    if not any(_is_seen(one) for one in snapshot.pilots):
        return snapshot
    return replace(snapshot, pilots=tuple(_with_ends(one, times, now) for one in snapshot.pilots))


def _is_seen(pilot: Pilot) -> bool:
    return pilot.seen is not None and pilot.report is not None and pilot.report.source == PROCESSES


def _with_ends(pilot: Pilot, times: RunTimes | None, now: int) -> Pilot:
    if pilot.seen is None or pilot.report is None or not _is_seen(pilot):
        return pilot
    ends = [float(now)]
    if pilot.seen.payloads:
        expected = None if times is None else _ends(pilot.user, pilot.seen, times, now)
        if not expected:
            return pilot
        ends = expected
    return replace(pilot, report=_report(pilot.report, ends, pilot.cores))


def _ends(user: str, seen: Observation, times: RunTimes, now: int) -> list[float] | None:
    kind, ends = kind_of_payload(user, seen.client), []
    for begin in seen.begins:
        lasts = times.expected(kind, max(0, now - begin))
        if lasts is None:
            return None
        ends.append(begin + lasts)
    return ends


def _report(said: PilotReport, ends: list[float], cores: int) -> PilotReport:
    """Return the report with these ends; each payload keeps as many cores busy as any other (SPEC §2 for the sum)."""
    first, last = round(min(ends)), round(max(ends))
    used = min(float(cores), said.used_cpu or 0.0)
    busy = used / len(ends) * sum(end - first for end in ends)
    idle = max(0.0, cores * (last - first) - busy)
    return PilotReport(
        said.heartbeat,
        used,
        said.last_job_start,
        first,
        last,
        None,
        said.add_uncom_time,
        idle,
        source=said.source,
    )
