"""The jobs that come to a site, prepared once for all that may follow from them, with their expected run times.

Expected is what was asked for, what its like have run, or the truth; each can be off by a factor that is drawn.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from drainwise.common.run_times import Kind, RunTimes
from drainwise.pilot.decide.payload import Payload
from drainwise.pilot.decide.settings import PilotSettings
from drainwise_simulate.scenario import EXACT, Scenario
from drainwise_simulate.trace import TraceJob

_SHORTEST = 1e-6  # a payload that is said to end at once could not be distinguished from one that says nothing


def payloads_of(jobs: Sequence[TraceJob], scenario: Scenario, replication: int) -> tuple[list[Payload], list[float]]:
    """Return the payloads by their turn, and the factor by which what is expected of each is off.

    A payload's name and task are its turn: simulated estimates know it by that.
    """
    if scenario.error:
        dice = np.random.default_rng([scenario.seed, replication, 1])
        factors = np.exp(dice.normal(0.0, scenario.error, len(jobs))).tolist()
    else:
        factors = [1.0] * len(jobs)
    payloads = []
    for turn, (job, factor) in enumerate(zip(jobs, factors)):
        known = job.run if scenario.estimates == EXACT else job.requested
        expected = min(job.requested, max(_SHORTEST, known * factor))
        payloads.append(Payload(str(turn), job.cores, (), expected, job.requested, task=str(turn)))
    return payloads, factors


class SimulatedEstimates:
    """Run times learned from the jobs of the trace that have ended; the pilot library's `Estimates`."""

    def __init__(self, jobs: Sequence[TraceJob], factors: Sequence[float]) -> None:
        self._kinds: list[Kind] = [(job.group, job.user, f"{job.requested:g}") for job in jobs]
        self._factors = factors
        self._known = RunTimes()

    def copy(self) -> SimulatedEstimates:
        """Return what is known now, to learn on by itself."""
        other = copy.copy(self)
        other._known = self._known.copy()  # noqa: SLF001 - a copy of itself
        return other

    def watch(self, running: Iterable[tuple[int, float]]) -> None:
        """Replace the turns of the payloads that run now, and for how many seconds they have."""
        self._known.watch((self._kinds[turn], elapsed) for turn, elapsed in running)

    def learn(self, turn: int, seconds: float) -> None:
        """Learn that a job has ended after `seconds`."""
        self._known.learn(self._kinds[turn], seconds)

    def look(self, now: float) -> None:
        """Take in nothing: what ends is learned at once."""

    def run_time(self, task: str, cores: int, events: float, elapsed: float) -> float | None:  # noqa: ARG002
        """See `pilot.estimates.Estimates`; what is left of the run time is off by the payload's factor."""
        turn = int(task)
        found = self._known.expected(self._kinds[turn], elapsed)
        return None if found is None else elapsed + (found - elapsed) * self._factors[turn]

    def still_running(self, task: str, elapsed: float, ages: Sequence[float]) -> list[float] | None:
        """See `pilot.estimates.RunTimeEstimates`; what is left of the run time is off by the payload's factor."""
        turn = int(task)
        shifted = [elapsed + (age - elapsed) / self._factors[turn] for age in ages]
        return self._known.still_running(self._kinds[turn], elapsed, shifted)


BEGIN = 1_000_000_000
"""UNIX s at which every trace begins here."""


@dataclass(frozen=True)
class SiteWorkload:
    """By turn, the place in the trace: payloads, when they come (UNIX s), how long they run (s), factors of estimates.

    sizes: cores of each place for a pilot. pilot: how every pilot behaves. dice: what names the lots that are drawn.
    """

    payloads: Sequence[Payload]
    submits: Sequence[float]
    runs: Sequence[float]
    factors: Sequence[float]
    scenario: Scenario
    sizes: Sequence[int]
    pilot: PilotSettings
    dice: str


def workload_of(jobs: Sequence[TraceJob], scenario: Scenario, replication: int) -> SiteWorkload:
    """Return the workload of these jobs, all of which can run (see `demand.fitting`)."""
    payloads, factors = payloads_of(jobs, scenario, replication)
    return SiteWorkload(
        payloads,
        [BEGIN + job.submit for job in jobs],
        [job.run for job in jobs],
        factors,
        scenario,
        scenario.pilots,
        PilotSettings(margin=0.0, while_draining=scenario.while_draining),
        f"{scenario.seed}/{replication}",
    )
