"""The sums of the demonstration: the waste of the pilots that left, by their exit reports, and of killing instead.

Everything is in core-seconds of this clock, so that both can be held against each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from drainwise.pilot.queues.records import DONE, FAILED
from drainwise.pool.facts import Snapshot
from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.prices import for_comparison
from drainwise.reclaim.settings import ReclaimSettings
from local_demo.timeline import Freed
from local_demo.truth import Ran, busy, kill_waste

RIVAL = "youngest-first"


@dataclass(frozen=True)
class Leave:
    """One pilot that left, by its exit report; core-seconds, `started` and `ended` in UNIX s.

    lease = useful + failed + lost + idle over its whole life. drain_idle, drain_lost: since it was ordered to end.
    """

    name: str
    cores: int
    started: float
    ended: float
    lease: float
    useful: float
    failed: float
    lost: float
    idle: float
    drain_idle: float
    drain_lost: float
    done: int
    requeued: int
    reported: bool = True

    @property
    def wasted(self) -> float:
        """What its leaving wasted: cores idle while it drained, and payloads stopped."""
        return self.drain_idle + self.drain_lost

    @property
    def adds_up(self) -> bool:
        """Whether every core-second of its lease is accounted for, to the millisecond of each core."""
        return abs(self.useful + self.failed + self.lost + self.idle - self.lease) <= 0.001 * self.cores


def leave_of(name: str, report: Mapping[str, Any]) -> Leave:
    """The sums of a `pilot-report.json`. Raises KeyError for one that is not whole."""
    spent, drain = report["core_seconds"], report["drain"] or {"idle": 0.0, "lost": 0.0}
    return Leave(
        name=name,
        cores=int(report["cores"]),
        started=float(report["started"]),
        ended=float(report["ended"]),
        lease=float(spent["lease"]),
        useful=float(spent["useful"]),
        failed=float(spent["failed"]),
        lost=float(spent["lost"]),
        idle=float(spent["idle"]),
        drain_idle=float(drain["idle"]),
        drain_lost=float(drain["lost"]),
        done=int(report["done"]),
        requeued=int(report["requeued"]),
    )


def leave_without_report(
    name: str, cores: int, started: float, ended: float, ordered: float, ran: Iterable[Ran]
) -> Leave:
    """The same of a pilot that the batch system cut before it could report; times in UNIX s, `ran` from the records.

    Whatever had no end yet was lost. As in an exit report, a payload's whole run counts as lost, and idle is the rest.
    """
    mine = [one if one.end is not None else replace(one, end=ended) for one in ran if one.pilot == name]
    useful = _core_seconds(one for one in mine if one.how == DONE)
    failed = _core_seconds(one for one in mine if one.how == FAILED)
    stopped = [one for one in mine if one.how not in {DONE, FAILED}]
    lost, lease = _core_seconds(stopped), cores * (ended - started)
    return Leave(
        name=name,
        cores=cores,
        started=started,
        ended=ended,
        lease=lease,
        useful=useful,
        failed=failed,
        lost=lost,
        idle=lease - useful - failed - lost,
        drain_idle=cores * (ended - ordered) - busy(mine, name, ordered, ended),
        drain_lost=_core_seconds(one for one in stopped if one.end is not None and one.end >= ordered),
        done=sum(one.how == DONE for one in mine),
        requeued=len(stopped),
        reported=False,
    )


def _core_seconds(ran: Iterable[Ran]) -> float:
    return sum(one.cores * (one.end - one.start) for one in ran if one.end is not None)


@dataclass(frozen=True)
class Rival:
    """What another policy would have done on the same state: whom it would have killed, and what of theirs ran then."""

    policy: str
    pilots: tuple[str, ...]
    cores: int
    wasted: float
    claimed: float


def youngest_first(
    snapshot: Snapshot, settings: ReclaimSettings, ran: Sequence[Ran], names: Mapping[str, str], decided: float
) -> Rival:
    """Youngest first, killing, on the very snapshot that was decided on at `decided` (UNIX s); `ran` is what truly ran.

    `names` gives the pilot's name in the records for each run. `claimed` is the same by the pilots' own reports.
    """
    plan = make_plan(snapshot, snapshot.taken, for_comparison(replace(settings, policy=RIVAL)))
    pilots = tuple(names[order.pilot.run] for order in plan.orders)
    return Rival(
        policy=RIVAL,
        pilots=pilots,
        cores=sum(order.pilot.cores for order in plan.orders),
        wasted=sum(kill_waste(ran, pilot, decided) for pilot in pilots),
        claimed=float(plan.waste),
    )


@dataclass(frozen=True)
class Sums:
    """The sums at the end. predicted: the plan's figure. cores: what bob was owed. freed: since the decision."""

    leaves: tuple[Leave, ...]
    predicted: float
    rival: Rival
    cores: int
    freed: tuple[Freed, ...]

    @property
    def wasted(self) -> float:
        """Core-seconds wasted by all that left, from their exit reports."""
        return sum(one.wasted for one in self.leaves)

    @property
    def idle(self) -> float:
        """Of these, cores idle while draining."""
        return sum(one.drain_idle for one in self.leaves)

    @property
    def lost(self) -> float:
        """Of these, payloads stopped."""
        return sum(one.drain_lost for one in self.leaves)

    @property
    def adds_up(self) -> bool:
        """Whether all that left are accounted for."""
        return all(one.adds_up for one in self.leaves)


def verdict(wasted: float, rival: float) -> str:
    """The end line: what was measured, whoever wins."""
    ours = f"least-waste wasted {wasted:.0f} core-s, {RIVAL} would have wasted"
    if round(wasted) == round(rival):
        return f"{ours} as much on the same state"
    if wasted < rival:
        return f"{ours} {rival:.0f} core-s on the same state: {_percent(wasted, rival)} less"
    return f"{ours} only {rival:.0f} core-s on the same state: {_percent(rival, wasted)} less than least-waste"


def _percent(smaller: float, larger: float) -> str:
    return f"{100 * (larger - smaller) / larger:.0f} %"
