"""Which jobs of a trace can run in pilots at all, and when the other group suddenly wants cores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from drainwise.simulate.job import Job
from drainwise.simulate.scenario import Scenario

TOO_WIDE = "wider than every pilot"
TOO_LONG = "asks for more time than a lease has"
CUT_SHORT = "ran for longer than it had asked: taken as ended at its limit"


def fitting(jobs: Iterable[Job], scenario: Scenario) -> tuple[list[Job], Counter[str]]:
    """The jobs that can run, in their order, and how many cannot (or not as long as they did), by the reason.

    A pilot ends a payload at its maximum, so no job runs for longer than it asked for.
    """
    widest, able, odd = max(scenario.pilots), [], Counter[str]()
    for job in jobs:
        if job.cores > widest:
            odd[TOO_WIDE] += 1
        elif job.requested > scenario.lease:
            odd[TOO_LONG] += 1
        elif job.run > job.requested:
            odd[CUT_SHORT] += 1
            able.append(job._replace(run=job.requested))
        else:
            able.append(job)
    return able, odd


def moments(jobs: Sequence[Job], scenario: Scenario, replication: int) -> list[int]:
    """When the bursts come, whole s since the beginning of the trace: drawn within equal parts of its later time."""
    if not jobs:
        return []
    end = jobs[-1].submit
    begin = scenario.quiet * end
    dice = np.random.default_rng([scenario.seed, replication, 2])
    part = (end - begin) / scenario.moments
    return [int(begin + part * (place + share)) for place, share in enumerate(dice.random(scenario.moments))]
