"""Say what the end of a pilot with an order wasted, held against what was promised: for trust and reports.

The realised waste of an order is what idled on the pilot's cores from the order to its end, and what was lost when the
batch system ended it:

    idle   what the pilot stated of itself: from one report to the next its own figures tell how many of its cores
           were busy (`Claims.cut_waste`, the same formula as the promise); after the end that it had expected, none.
           The batch system's records bound that: with CPU time C of the whole run, cores B × run time before the order
           and cores S × time since, at least S − C and at most S − (C − B)⁺ core-seconds idled.
           A pilot that said itself that it drains idles anyway: nothing is counted.
    lost   nothing when it left by itself; when it was ended, what its last report says killing it loses at that moment:
           of a pilot that was ordered to drain, only what had not ended by then. A pilot states no end after that of
           its own lease: what should end right when it is ended by its order ran on. The records bound that as well:
           at most C was lost; and when more of its cores were busy since the order than it says, work went on that it
           did not count: at least that much. A pilot that should have left by itself before, by its report at the
           order, broke its promise: then the payloads of that report count as lost, whatever it says later.

A pilot that stops by itself before its deadline and drops what runs counts as ended then: a client that does
(`facts.clients`), and one that was to be cut, in the minute before it is begun to be ended. What such a pilot says
in that minute tells what is left, so its report before that counts.

Where the batch system has no CPU time (none could be measured, or it keeps no accounting) the reports alone count.
A pilot that was not believed at its order promised nothing and says nothing: ended, it lost cores × run time, or where
its node saw its payloads what a kill at the order would have lost and its cores since; left by itself, its cores idled
as much as they did over its whole run. No waste is above cores × run time.

A pilot that saves its work loses what it did since its last save, and what beginning again from there costs. A save
that was due before it was begun to be ended, or that its order asked for, counts as done; unless a later look shows
that it did not come.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from drainwise.facts.clients import PAPER, PROFILES
from drainwise.facts.cut_deadline import Claims
from drainwise.facts.units import CORE_H
from drainwise.facts.waste import kill_waste
from drainwise.journal.event import Event, moment, number, text, truth, values_in, whole
from drainwise.pilotad.report import OBSERVED
from drainwise.pool.facts import Ending, Pilot
from drainwise.reclaim.candidates import COMMIT, CUT, KILL, LEAVE
from drainwise.reclaim.columns import ClaimedValues, Saves, claimed_values, saves_of
from drainwise.reclaim.history import PastOrder, PilotOutcome
from drainwise.reclaim.settings import BROKEN_PROMISES

EVER = 1 << 62
"""Seconds: a heartbeat of any age."""
_SAVE_SEEN = 300
"""Seconds after a save until it is seen at the latest: a node looks for files of checkpoints that often."""
_STOPS = 60
"""Seconds before it is ended in which a pilot that was to be cut stops its payloads itself."""


@dataclass(frozen=True)
class OpenOrder:
    """One pilot with an order whose end is not yet known; times in UNIX s, wastes in core-seconds.

    predicted: what was promised, before any doubt. promised: its report at the order; claims: its last one; None when
    it was not believed at its order. draining: it said itself that it drains. idle: what idled from the order until
    `since`, by its reports before. returned: cores of its lease that it went without at its order; it may have held
    them before. seen: what a kill at the order would have lost, of a pilot of which no more was known; else None.
    vacate: seconds before its deadline at which it is begun to be ended, or ends by itself. saves: what it has saved by
    the last look; None where it saves nothing. billed, unit: see `billed_in`.
    """

    run: str
    name: str
    node: str
    account: str
    user: str
    cores: int
    started: int
    ordered: int
    deadline: int
    kind: str
    draining: bool
    predicted: int
    claims: ClaimedValues | None
    since: int
    idle: float = 0.0
    promised: ClaimedValues | None = None
    returned: int = 0
    seen: int | None = None
    vacate: int = 0
    billed: float = 1.0
    unit: str = CORE_H
    saves: Saves | None = None

    @property
    def stop(self) -> int:
        """When it is begun to be ended, UNIX s."""
        return max(self.ordered, self.deadline - self.vacate)

    def with_report_of(self, pilot: Pilot, now: int) -> OpenOrder:
        """Return the order with its pilot's report at `now` (UNIX s) in place of an older one."""
        order, saves = self, saves_of(pilot, now, EVER)
        if saves is not None and (
            self.saves is None or saves.last > self.saves.last or now > self.saves.following + _SAVE_SEEN
        ):
            order = replace(self, saves=saves)
        if self.claims is None:
            return order
        said = claimed_values(pilot, now, EVER)
        latest = self.stop - _STOPS if self.kind == CUT else EVER
        if said is None or not self.claims.heartbeat < said.heartbeat <= latest or now < self.since:
            return order
        idle = self.idle + _idle_and_lost(self.cores, self.claims, self.since, now)[0]
        return replace(order, claims=said, since=now, idle=idle)

    def lost_since_save(self, lost: float, ended: int) -> float:
        """Return what is lost by an end then (UNIX s) of so many core-seconds, as a part of them is saved."""
        if self.saves is None:
            return lost
        last, restart, following, writing = self.saves
        stop = min(self.stop, ended)
        if following + (writing if writing < math.inf else 0) <= stop:
            last = max(last, following)
        if self.ordered + writing <= stop:
            last = max(last, stop - writing)
        return min(lost + restart, self.cores * (ended - last) + restart)


def _idle_and_lost(cores: int, said: ClaimedValues, begin: float, end: float) -> tuple[float, float]:
    """Return core-seconds by one report: idle from `begin` to `end` (UNIX s), and lost by a kill at `end`."""
    end = max(begin, end)
    idle, lost = Claims(cores, *said[1:]).cut_waste(begin, end)
    gone = max(begin, said.first_exp_job_end, said.last_exp_job_end)  # by its own report nothing runs after that
    return float(idle + cores * max(0.0, end - gone)), float(lost)


def realised_waste(order: OpenOrder, ending: Ending) -> tuple[int, int]:
    """Return the core-seconds that the order's pilot wasted until its end, and the most possible: cores × run time.

    Cores that it had returned by its order count as long as it may have held them.
    """
    ended = max(order.ordered, ending.ended)
    possible = order.cores * max(0, ended - order.started) + order.returned * max(0, order.ordered - order.started)
    if order.claims is None:
        most = possible if order.seen is None else order.seen + order.cores * (ended - order.ordered)
        waste = _idle_on_average(order, ended, ending.cpu_seconds)
        if was_stopped(order, ending):
            waste = order.lost_since_save(float(most), ended)
    else:
        idle, lost = _idle_and_lost(order.cores, order.claims, order.since, ended)
        if order.kind == KILL:  # it was not ordered to drain: what ran went on running
            idle = (order.cores - order.claims.used_cpu) * (ended - order.since)
            lost = _killed(order.claims, ended)
        elif was_stopped(order, ending) and _states_its_stop(order, order.claims, ended):
            idle, lost = _cut_short(order, order.claims, ended)
        said = order.idle + idle
        idle = _by_records(order, said, ended, ending.cpu_seconds)
        lost, idle = max(lost, said - idle), 0.0 if order.draining else idle
        if order.promised is not None and is_broken(order, ending):
            lost = max(lost, _killed(order.promised, ended) - idle)  # nothing idled while they ran
        lost = order.lost_since_save(lost, ended)
        if ending.cpu_seconds is not None:
            lost = min(lost, ending.cpu_seconds)
        waste = idle + (lost if was_stopped(order, ending) else 0.0)
    return round(min(max(0.0, waste), possible)), possible


def was_stopped(order: OpenOrder, ending: Ending) -> bool:
    """Return whether its payloads were ended: by the batch system, or by its own stop before that."""
    if ending.vacated:
        return True
    if order.kind in {CUT, COMMIT}:
        return ending.ended >= order.stop - _STOPS
    return order.vacate > 0 and ending.ended >= order.stop


def _states_its_stop(order: OpenOrder, said: ClaimedValues, ended: int) -> bool:
    """Return whether the last end that a pilot stated after its order is when it was stopped, not that of a payload."""
    end, window = said.last_exp_job_end, order.stop - _STOPS
    return (
        end != (order.promised or said).last_exp_job_end and window <= min(end, ended) and end <= max(ended, order.stop)
    )


def _cut_short(order: OpenOrder, said: ClaimedValues, ended: int) -> tuple[float, float]:
    """Return what idled since its last report and was lost, of a pilot whose payloads ran on at their stated end.

    Between the ends that it states so many cores are busy on average as run at the last one, or more.
    """
    end, running = said.last_exp_job_end, said.used_cpu * (said.last_exp_job_end - said.first_exp_job_end)
    busy = order.cores * (end - said.first_exp_job_end) - said.add_final_exp_waste
    share = min(1.0, max(0.0, busy / running)) if running > 0 else 1.0
    idle, _ = _idle_and_lost(order.cores, said, order.since, min(ended, end))
    ran_on = ended - max(order.since, end)
    return idle + (order.cores - share * said.used_cpu) * max(0.0, ran_on), share * _killed(said, ended)


def is_broken(order: OpenOrder, ending: Ending) -> bool:
    """Return whether it was to leave by itself, should have by its report at the order, and was ended instead."""
    said = order.promised
    return order.kind == LEAVE and ending.vacated and said is not None and ending.ended >= said.last_exp_job_end


def _killed(said: ClaimedValues, end: float) -> float:
    return float(kill_waste(said.add_uncom_time, said.used_cpu, said.last_job_start, end))


def _by_records(order: OpenOrder, idle: float, ended: int, cpu_seconds: float | None) -> float:
    """Return what idled by the pilot's reports, within what the CPU time of the whole run leaves possible."""
    if cpu_seconds is None:
        return idle
    since = order.cores * (ended - order.ordered)
    before = (order.cores + order.returned) * max(0, order.ordered - order.started)
    least, most = since - cpu_seconds, since - max(0.0, cpu_seconds - before)
    return max(0.0, least, min(idle, most))


def _idle_on_average(order: OpenOrder, ended: int, cpu_seconds: float | None) -> float:
    """Return what idled since the order if its cores were as busy as over the whole run; 0 where that is not known."""
    run = ended - order.started
    if cpu_seconds is None or run <= 0:
        return 0.0
    return max(0.0, order.cores - cpu_seconds / run) * (ended - order.ordered)


def past_order(event: Event) -> PastOrder:
    """Return what the order of an event took of its user. Raises ValueError for an event that is not sound."""
    gpus, extra = (whole(event, name) if name in event else 0 for name in ("gpus", "extra"))
    billed, _ = billed_in(event)
    return PastOrder(moment(event, "time"), text(event, "user"), whole(event, "cores"), gpus, extra, billed)


def billed_in(event: Event) -> tuple[float, str]:
    """Return what the site billed for each core of an event's pilot, and the unit."""
    return (number(event, "billed"), text(event, "unit")) if "billed" in event else (1.0, CORE_H)


def open_order_of(event: Event) -> OpenOrder:
    """Return the open order of an order's event. Raises ValueError for an event that is not sound."""
    claims, time = event.get("claims"), moment(event, "time")
    said = None
    if isinstance(claims, dict):
        amounts = {name: number(claims, name) for name in ClaimedValues._fields if name != "heartbeat"}
        said = ClaimedValues(whole(claims, "heartbeat"), **amounts)
    whose = ("run", "name", "node", "account", "user", "cores", "started", "deadline", "kind", "draining")
    billed, unit = billed_in(event)
    kept = event.get("saves")
    saves = None
    if isinstance(kept, dict):
        ahead = (number(kept, name) if name in kept else math.inf for name in ("following", "writing"))
        saves = Saves(number(kept, "last"), number(kept, "restart"), *ahead)
    return OpenOrder(
        **values_in(event, OpenOrder, *whose),
        ordered=time,
        predicted=whole(event, "promised"),
        claims=said,
        since=time,
        promised=said,
        returned=whole(event, "returned") if "returned" in event else 0,
        seen=whole(event, "kill_waste") if said is None and event.get("standing") == OBSERVED else None,
        vacate=whole(event, "vacate")
        if "vacate" in event
        else PROFILES.get(str(event.get("client")), PAPER).stops_before,
        billed=billed,
        unit=unit,
        saves=saves,
    )


def outcome_of(event: Event) -> PilotOutcome:
    """Return the outcome of an `ended` event. Raises ValueError for an event that is not sound."""
    return PilotOutcome(
        **values_in(event, PilotOutcome, "run", "user", "ended", "predicted", "realised", "possible"),
        kept=_kept(text(event, "kind"), truth(event, "vacated"), moment(event, "ended"), moment(event, "deadline")),
    )


def is_kept(order: OpenOrder, ending: Ending) -> bool | None:
    """Return whether a pilot that was to leave by itself did so before its deadline; None when it was not."""
    return _kept(order.kind, ending.vacated, ending.ended, order.deadline)


def _kept(kind: str, vacated: bool, ended: int, deadline: int) -> bool | None:
    return not vacated and ended <= deadline if kind == LEAVE else None


WEIGHT = 10
"""Orders that `BROKEN_PROMISES` counts as."""
LEAST, MOST = 0.01, 0.75
"""The bounds of the probability."""


def broken_probability(leaving: int, broken: int) -> float:
    """Return how likely a user's pilot does not leave by itself as it says: the tail of a promise.

    leaving: its pilots that were to leave; broken: those of them that did not in time. Of a pilot whose payloads should
    have ended before its deadline some may still run then, and are lost: an order to leave costs that probability times
    what is lost. As long as little is known of a user it is drawn to `BROKEN_PROMISES`.
    """
    return min(MOST, max(LEAST, (broken + BROKEN_PROMISES * WEIGHT) / (leaving + WEIGHT)))
