"""What comes to a site, as it is prepared once for all that may follow from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from drainwise.pilot.payload import Payload
from drainwise.pilot.settings import Settings
from drainwise.simulate.beliefs import payloads_of
from drainwise.simulate.job import Job
from drainwise.simulate.scenario import Scenario

BEGIN = 1_000_000_000
"""UNIX s at which every trace begins here."""


@dataclass(frozen=True)
class Feed:
    """By turn, the place in the trace: payloads, when they come (UNIX s), how long they run (s), factors of beliefs.

    sizes: cores of each place for a pilot. pilot: how every pilot behaves. dice: what names the lots that are drawn.
    """

    payloads: Sequence[Payload]
    submits: Sequence[float]
    runs: Sequence[float]
    factors: Sequence[float]
    scenario: Scenario
    sizes: Sequence[int]
    pilot: Settings
    dice: str


def feed_of(jobs: Sequence[Job], scenario: Scenario, replication: int) -> Feed:
    """The feed of these jobs, all of which can run (see `demand.fitting`)."""
    payloads, factors = payloads_of(jobs, scenario, replication)
    return Feed(
        payloads,
        [BEGIN + job.submit for job in jobs],
        [job.run for job in jobs],
        factors,
        scenario,
        scenario.pilots,
        Settings(margin=0.0, while_draining=scenario.while_draining),
        f"{scenario.seed}/{replication}",
    )
