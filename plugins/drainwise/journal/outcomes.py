"""What the end of a pilot that was asked wasted, held against what was promised: one definition, for trust and reports.

The realised waste of an order is what idled on the pilot's cores from the order to its end, and what was lost when the
batch system ended it:

    idle   what the pilot said of itself, word after word: from one report to the next its own figures tell how many of
           its cores were busy (`cut_waste`, the same formula as the promise); after the end that it had expected, none.
           The batch system's records bound that: with CPU time C of the whole run, cores B × run time before the order
           and cores S × time since, at least S − C and at most S − (C − B)⁺ core-seconds idled.
           A pilot that said itself that it drains idles anyway: nothing is counted.
    lost   nothing when it left by itself; when it was ended, what its last report says killing it loses at that moment:
           of a pilot that was asked to drain, only what had not ended by then.

A pilot that was not believed when it was asked promised nothing and says nothing: ended, it lost cores × run time;
gone by itself, its cores idled as much as they did over its whole run. No waste is above cores × run time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from drainwise.pilotad.report import FRESH, PilotReport, bounded, standing_and_rule
from drainwise.pool import Ending, Pilot
from drainwise.reclaim.candidates import KILL
from drainwise.reclaim.cut import cut_waste
from drainwise.reclaim.trust import PilotOutcome
from drainwise.waste import kill_waste

_EVER = 1 << 62


@dataclass(frozen=True)
class Claims:
    """What a pilot said of itself, bounded by what the batch system knows; `heartbeat` tells when (UNIX s).

    used in cores, last_start, first_end and last_end in UNIX s, uncommitted and final in core-seconds.
    """

    heartbeat: int
    used: float
    last_start: float
    first_end: float
    last_end: float
    uncommitted: float
    final: float


def claims_of(pilot: Pilot, now: int, heartbeat_limit: int = _EVER) -> Claims | None:
    """The claims of a pilot at `now` (UNIX s); None when it says nothing, or nothing that can be used."""
    said: PilotReport | None = None if pilot.contradictory else pilot.report
    if said is None or standing_and_rule(said, now, heartbeat_limit, pilot.started)[0] != FRESH:
        return None
    said = bounded(said, pilot.cores, pilot.started, pilot.lease_end, now)
    return Claims(
        heartbeat=said.heartbeat,
        used=float(said.used_cpu or 0.0),
        last_start=float(said.last_job_start or now),
        first_end=float(said.first_exp_job_end or now),
        last_end=float(said.last_exp_job_end or said.last_max_job_end or now),
        uncommitted=float(said.add_uncom_time or 0.0),
        final=float(said.add_final_exp_waste or 0.0),
    )


@dataclass(frozen=True)
class OpenOrder:
    """One pilot that was asked and whose end is not yet known; times in UNIX s, wastes in core-seconds.

    predicted: what was promised, before any doubt. claims: its last word, None when it was not believed when asked.
    draining: it said itself that it drains. idle: what idled from the order until `since`, by its words before.
    """

    run: str
    name: str
    node: str
    principal: str
    user: str
    cores: int
    started: int
    asked: int
    deadline: int
    kind: str
    draining: bool
    predicted: int
    claims: Claims | None
    since: int
    idle: float = 0.0

    def heard(self, pilot: Pilot, now: int) -> OpenOrder:
        """The same order after what its pilot says at `now` (UNIX s): a newer report than the last takes over."""
        if self.claims is None:
            return self
        said = claims_of(pilot, now)
        if said is None or said.heartbeat <= self.claims.heartbeat or now < self.since:
            return self
        idle = self.idle + _idle_and_lost(self.cores, self.claims, self.since, now)[0]
        return replace(self, claims=said, since=now, idle=idle)


def _idle_and_lost(cores: int, said: Claims, begin: float, end: float) -> tuple[float, float]:
    """Core-seconds that idle from `begin` to `end` (UNIX s) by one report, and that a kill at `end` loses."""
    end = max(begin, end)
    idle, lost = cut_waste(
        cores, said.used, said.last_start, said.first_end, said.last_end, said.uncommitted, said.final, begin, end
    )
    gone = max(begin, said.first_end, said.last_end)  # by its own word nothing runs after that
    return float(idle + cores * max(0.0, end - gone)), float(lost)


def realised_waste(order: OpenOrder, ending: Ending) -> tuple[int, int]:
    """Core-seconds that the order's pilot wasted until its end, and the most that can have been: cores × run time."""
    ended = max(order.asked, ending.ended)
    possible = order.cores * max(0, ended - order.started)
    if order.claims is None:
        waste = float(possible) if ending.vacated else _idle_on_average(order, ended, ending.cpu_seconds)
    else:
        idle, lost = _idle_and_lost(order.cores, order.claims, order.since, ended)
        if order.kind == KILL:  # it was not asked to drain: what ran went on running
            idle = (order.cores - order.claims.used) * (ended - order.since)
            lost = kill_waste(order.claims.uncommitted, order.claims.used, order.claims.last_start, ended)
        idle = 0.0 if order.draining else _by_records(order, order.idle + idle, ended, ending.cpu_seconds)
        waste = idle + (lost if ending.vacated else 0.0)
    return round(min(max(0.0, waste), possible)), possible


def _by_records(order: OpenOrder, idle: float, ended: int, cpu_seconds: float | None) -> float:
    """What idled by the pilot's words, within what the CPU time of the whole run leaves possible."""
    if cpu_seconds is None:
        return idle
    since, before = order.cores * (ended - order.asked), order.cores * max(0, order.asked - order.started)
    least, most = since - cpu_seconds, since - max(0.0, cpu_seconds - before)
    return max(0.0, least, min(idle, most))


def _idle_on_average(order: OpenOrder, ended: int, cpu_seconds: float | None) -> float:
    """What idled since the order when its cores were as busy as over the whole run; 0 where that is not known."""
    run = ended - order.started
    if cpu_seconds is None or run <= 0:
        return 0.0
    return max(0.0, order.cores - cpu_seconds / run) * (ended - order.asked)


def pilot_outcome(order: OpenOrder, ending: Ending) -> PilotOutcome | None:
    """What its end says about its user's word; None when the pilot was not believed anyway: it promised nothing."""
    if order.claims is None:
        return None
    realised, possible = realised_waste(order, ending)
    return PilotOutcome(order.run, order.user, ending.ended, order.predicted, realised, possible)
