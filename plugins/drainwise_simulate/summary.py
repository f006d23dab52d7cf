"""Sums of many decisions under one policy: waste, times, restarts, with intervals over the replications.

All sums are taken within a replication first, since its bursts are of one run of the site; replications are what is
independent. Policies are held against each other on the same states only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from drainwise_simulate.intervals import Interval, mean, quantile, ratio
from drainwise_simulate.outcome import HOUR, Outcome
from drainwise_simulate.policies.meanings import CLAIRVOYANT

YOUNGEST_FIRST = "youngest-first"


@dataclass(frozen=True)
class PolicyLine:
    """One policy's figures over all bursts.

    core_hours_per_core: wasted for each core given; killed, drained: the parts of it. to_clairvoyant,
    to_youngest_first: its waste as a multiple of these policies'; None where they were not run, or wasted nothing.
    time_p50, time_p95: seconds until 50 % and 95 % of the cores were there, over all bursts; infinite where they never
    came. cores_asked, cores_given: in all. restarted_per_burst: payloads. killed_pilots_share: of the pilots those that
    were killed and not drained. predicted: core-hours for each core given that the plans said they would waste.
    """

    policy: str
    bursts: int
    replications: int
    cores_asked: int
    cores_given: int
    core_hours_per_core: Interval
    killed: Interval
    drained: Interval
    predicted: Interval
    to_clairvoyant: Interval | None
    to_youngest_first: Interval | None
    time_p50: float
    time_p95: float
    restarted_per_burst: Interval
    killed_pilots_share: float


def lines_of(outcomes: Iterable[Outcome], arrivals: bool = False) -> tuple[PolicyLine, ...]:
    """Return a line for each policy among the outcomes, the least waste first.

    arrivals: the demand were jobs of their own, and times are those for which these waited.
    """
    groups: dict[str, dict[int, list[Outcome]]] = {}
    for one in outcomes:
        groups.setdefault(one.policy, {}).setdefault(one.replication, []).append(one)
    best, usual = groups.get(CLAIRVOYANT), groups.get(YOUNGEST_FIRST)
    lines = [_line(policy, found, best, usual, arrivals) for policy, found in groups.items()]
    return tuple(
        sorted(lines, key=lambda line: (line.core_hours_per_core.value, line.policy != CLAIRVOYANT, line.policy))
    )


Replications = dict[int, list[Outcome]]


def _line(
    policy: str, found: Replications, best: Replications | None, usual: Replications | None, arrivals: bool
) -> PolicyLine:
    every = [one for part in found.values() for one in part]
    parts = [found[number] for number in sorted(found)]
    given = [float(sum(one.given for one in part)) for part in parts]

    def per_core(value: Callable[[Outcome], float]) -> Interval:
        hours = [math.fsum(map(value, part)) / HOUR for part in parts]
        return ratio(hours, given) or Interval(0.0)

    pilots = sum(one.pilots for one in every)
    waits = [wait for one in every for wait in waits_of(one, arrivals)]
    return PolicyLine(
        policy,
        bursts=len(every),
        replications=len(parts),
        cores_asked=sum(one.asked for one in every),
        cores_given=sum(one.given for one in every),
        core_hours_per_core=per_core(lambda one: one.waste),
        killed=per_core(lambda one: one.killed),
        drained=per_core(lambda one: one.drained),
        predicted=per_core(lambda one: one.predicted),
        to_clairvoyant=_against(found, best),
        to_youngest_first=_against(found, usual),
        time_p50=quantile(waits, 0.5),
        time_p95=quantile(waits, 0.95),
        restarted_per_burst=mean([sum(one.restarted for one in part) / len(part) for part in parts]),
        killed_pilots_share=sum(one.ended_at_once for one in every) / pilots if pilots else 0.0,
    )


def _against(found: Replications, other: Replications | None) -> Interval | None:
    """Return this policy's waste as a multiple of another's, over the replications that both have."""
    both = sorted(found.keys() & other.keys()) if other else []
    if other is None or not both:
        return None
    return ratio([_waste(found[number]) for number in both], [_waste(other[number]) for number in both])


def _waste(part: Sequence[Outcome]) -> float:
    return math.fsum(one.waste for one in part)


def waits_of(one: Outcome, arrivals: bool = False) -> list[tuple[float, float]]:
    """Return (seconds, cores): when the demanded cores came; infinite for those given that never came.

    What pilots of these sizes could not give (see `given`) is nobody's wait, save where jobs arrive and wait for it.
    """
    missing = float(one.asked if arrivals else min(one.asked, one.given))
    waits: list[tuple[float, float]] = []
    for seconds, cores in one.waits:
        used = min(missing, float(cores))
        if used > 0:
            waits.append((seconds, used))
            missing -= used
    if missing > 0:
        waits.append((math.inf, missing))
    return waits
