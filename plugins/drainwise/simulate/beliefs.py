"""What a simulated pilot believes about run times: what was asked for, what its like have run, or the truth.

Each can be off by a factor that is drawn for each payload.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence

import numpy as np

from drainwise.estimate.survival import Kind, Survival
from drainwise.pilot.payload import Payload
from drainwise.simulate.job import Job
from drainwise.simulate.scenario import EXACT, Scenario

QUANTILE = 0.75
"""A payload is expected to end by then with this probability. A pilot leaves when the last of its payloads has ended:
with medians that is promised too early."""
WINDOW = 1000
"""Run times that each kind of job keeps."""
_SHORTEST = 1e-6  # a payload that is said to end at once could not be told from one that says nothing


def payloads_of(jobs: Sequence[Job], scenario: Scenario, replication: int) -> tuple[list[Payload], list[float]]:
    """The payloads by their turn, and the factor by which what is expected of each is off.

    A payload's name and task are its turn: simulated estimates are asked by it.
    """
    if scenario.error:
        dice = np.random.default_rng([scenario.seed, replication, 1])
        factors = np.exp(dice.normal(0.0, scenario.error, len(jobs))).tolist()
    else:
        factors = [1.0] * len(jobs)
    payloads = []
    for turn, (job, factor) in enumerate(zip(jobs, factors)):
        known = job.run if scenario.beliefs == EXACT else job.requested
        expected = min(job.requested, max(_SHORTEST, known * factor))
        payloads.append(Payload(str(turn), job.cores, (), expected, job.requested, task=str(turn)))
    return payloads, factors


class Scouts:
    """Run times learned from the jobs of the trace that have ended; the pilot library's `Estimates`."""

    def __init__(self, jobs: Sequence[Job], factors: Sequence[float]) -> None:
        self._kinds: list[Kind] = [(job.group, job.user, f"{job.requested:g}") for job in jobs]
        self._factors = factors
        self._known = Survival(WINDOW)

    def copy(self) -> Scouts:
        """What is known now, to learn on by itself."""
        other = copy.copy(self)
        other._known = copy.deepcopy(self._known)
        return other

    def watch(self, running: Iterable[tuple[int, float]]) -> None:
        """The turns of the payloads that run now, and for how many seconds they have."""
        self._known.watch((self._kinds[turn], elapsed) for turn, elapsed in running)

    def learn(self, turn: int, seconds: float) -> None:
        """A job has ended after so long."""
        self._known.learn(self._kinds[turn], seconds)

    def look(self, now: float) -> None:
        """Nothing to take in: what ends is learned at once."""

    def run_time(self, task: str, cores: int, events: float, elapsed: float) -> float | None:  # noqa: ARG002
        """See `pilot.estimates.Estimates`; what is left of the run time is off by the payload's factor."""
        turn = int(task)
        found = self._known.run_time(self._kinds[turn], elapsed, QUANTILE)
        return None if found is None else elapsed + (found - elapsed) * self._factors[turn]
