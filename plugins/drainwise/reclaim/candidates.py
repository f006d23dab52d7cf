"""What each way of ending one pilot would waste: its claims bounded by what the batch system knows, its options.

A pilot whose report is stale, contradictory, incomplete or missing has lost its protection: nothing it says counts, and
each option costs cores × elapsed time (SPEC §2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from drainwise.pilotad.report import CONTRADICTORY, FRESH, PilotReport, bounded, standing_and_rule
from drainwise.pool import Pilot
from drainwise.reclaim.settings import Settings
from drainwise.reclaim.words import core_hours, duration
from drainwise.waste import (
    at_least,
    at_most,
    bounded_draining_waste,
    bounded_kill_waste,
    bounded_remaining,
    uncommitted_run,
)

if TYPE_CHECKING:
    from drainwise.waste import Quantity

SILENT = "silent"
"""Standing of a pilot that reports nothing."""

LEAVE = "leave"
"""Asked to drain, it is gone by itself before the deadline."""
CUT = "cut"
"""Asked to drain, it is cut at the deadline."""
KILL = "kill"
"""Ended at once, or after the site's shortest notice."""


@dataclass(frozen=True)
class Option:
    """One way to end a pilot: expected `waste` in core-seconds; `deadline` of the order and when the cores are back."""

    kind: str
    waste: int
    deadline: int
    cores_back: int


@dataclass(frozen=True)
class Candidate:
    """One pilot with its figures: remaining in seconds, wastes in core-seconds; None = not known or not believed.

    rule: why its report is not believed, "" when it is. draining: it says itself that it takes no payload any more, so
    what idles on its cores is lost whether it is asked or not.
    """

    pilot: Pilot
    standing: str
    rule: str
    remaining: int | None
    draining_waste: int | None
    kill_waste: int
    priority_factor: int
    draining: bool
    asked: Option
    killed: Option

    @property
    def tie_break(self) -> tuple[int, str]:
        """Of equals, the one that its owner values least goes first, then by name of the run."""
        return self.priority_factor, self.pilot.run


def assess(pilot: Pilot, now: int, settings: Settings) -> Candidate:
    """The figures of one pilot at `now` (UNIX s) and what asking or killing it would waste.

    The deadline is now + grace, never more than max_grace, never after the lease's end.
    """
    deadline = now + min(settings.grace, settings.max_grace)
    if pilot.lease_end is not None and now < pilot.lease_end < deadline:
        deadline = pilot.lease_end
    standing, rule = _standing(pilot, now, settings.heartbeat_limit)
    unknown = round(at_least(uncommitted_run(pilot.cores, pilot.started, now), 0))
    if standing != FRESH or pilot.report is None:
        return Candidate(
            pilot,
            standing,
            rule,
            remaining=None,
            draining_waste=None,
            kill_waste=unknown,
            priority_factor=0,
            draining=False,
            asked=Option(CUT, unknown, deadline, deadline),
            killed=Option(KILL, unknown, now + settings.notice, now + settings.notice),
        )
    claims = bounded(pilot.report, pilot.cores, pilot.started, pilot.lease_end, now)
    return _believed(pilot, claims, now, deadline, now + settings.notice)


def _standing(pilot: Pilot, now: int, heartbeat_limit: int) -> tuple[str, str]:
    if pilot.contradictory:
        return CONTRADICTORY, "the node found that its report contradicts itself"
    if pilot.report is None:
        return SILENT, "it reports nothing"
    return standing_and_rule(pilot.report, now, heartbeat_limit, pilot.started)


def _believed(pilot: Pilot, claims: PilotReport, now: int, deadline: int, kill_deadline: int) -> Candidate:
    """The figures of a pilot whose (bounded) claims are believed: a fresh report has all that the metrics need."""
    cores, used = pilot.cores, claims.used_cpu or 0.0
    first_end = claims.first_exp_job_end or now
    last_end = claims.last_exp_job_end or claims.last_max_job_end or now
    start, uncommitted = claims.last_job_start or now, claims.add_uncom_time or 0.0
    final = claims.add_final_exp_waste or 0.0
    left = bounded_remaining(last_end, now, pilot.lease_end)
    drain = round(bounded_draining_waste(cores, used, first_end, final, now, pilot.lease_end))
    kill = round(bounded_kill_waste(cores, uncommitted, used, start, pilot.started, now))
    draining = claims.can_postpone_last_job is False
    if now + left <= deadline:
        asked = Option(LEAVE, 0 if draining else drain, deadline, now + left)
    else:
        idle, lost = cut_waste(cores, used, start, first_end, last_end, uncommitted, final, now, deadline)
        lost = at_most(lost, uncommitted_run(cores, pilot.started, deadline))
        asked = Option(CUT, round(lost if draining else idle + lost), deadline, deadline)
    return Candidate(
        pilot,
        FRESH,
        "",
        remaining=left,
        draining_waste=drain,
        kill_waste=kill,
        priority_factor=claims.priority_factor or 0,
        draining=draining,
        asked=asked,
        killed=Option(KILL, kill, kill_deadline, kill_deadline),
    )


def cut_waste(
    cores: Quantity,
    used: Quantity,
    last_start: Quantity,
    first_end: Quantity,
    last_end: Quantity,
    uncommitted: Quantity,
    final: Quantity,
    now: Quantity,
    deadline: Quantity,
) -> tuple[Quantity, Quantity]:
    """Core-seconds that idle until `deadline` when the pilot drains from now on, and those lost when it is cut there.

    Times in UNIX s, cores and used in cores, uncommitted (f × cores) and final (i × cores) in core-seconds.
    Until the first expected end (h) the `used` cores stay busy. From h to the last (g) the pilot told only the integral
    of its idle cores, i × cores; it counts as evenly spread, so cores − i·cores/(g − h) are busy in between:
        idle = (cores − used)·(min(T, h) − now) + (i·cores/(g − h))·(T − h)⁺
        lost = share·(f·cores + used·(T − e))    share = of the cores busy now, those still busy at T
    Before h all payloads are still running at T: lost is then exactly the kill waste at T.
    """
    first = at_least(first_end, now)
    last = at_least(last_end, first)
    span = at_least(last - first, 1)
    tail = at_most(at_least(deadline - first, 0), last - first)
    busy = at_most(at_least(cores - final / span, 0), used)
    idle = (cores - used) * (at_most(deadline, first) - now) + (cores - busy) * tail
    share = (deadline < first) + (deadline >= first) * (deadline < last) * busy / at_least(used, 1e-9)
    return idle, share * (uncommitted + used * at_least(deadline - last_start, 0))


def in_words(candidate: Candidate, option: Option, now: int) -> str:
    """What an option does to a pilot, with the formula's figures: the sentence that a plan shows."""
    waste = core_hours(option.waste)
    if option.kind == KILL:
        return f"killed: {waste} of running payloads lost"
    if candidate.standing != FRESH:
        elapsed = duration(max(0, now - candidate.pilot.started))
        return f"{candidate.rule}: {candidate.pilot.cores} cores x {elapsed} elapsed = {waste}"
    if option.kind == LEAVE and candidate.draining:
        return f"drains already and is gone in {duration(option.cores_back - now)}: asking it costs nothing"
    if option.kind == LEAVE:
        return f"gone by itself in {duration(option.cores_back - now)}, {waste} idle until then"
    until = duration(option.deadline - now)
    return f"not gone by itself in {until}: {waste} idle until then or lost there"
