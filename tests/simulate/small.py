"""A small study of real jobs, run once for the tests of what is shown of it."""

from __future__ import annotations

import functools
from pathlib import Path

from drainwise_simulate.outcome import CoreSeconds, Outcome
from drainwise_simulate.scenario import Scenario
from drainwise_simulate.study import Study, study
from drainwise_simulate.trace import Trace, read_trace

EXCERPT = Path(__file__).parents[2] / "traces" / "lcg-cnaf.swf.gz"
POLICIES = ("least-waste", "paper", "youngest-first", "clairvoyant")


@functools.cache
def excerpt(count: int = 1500) -> Trace:
    """The first jobs of the LCG excerpt."""
    whole = read_trace(str(EXCERPT))
    return Trace(whole.name, whole.jobs[:count], whole.header, whole.skipped)


@functools.cache
def swept() -> Study:
    """Two replications of three bursts, with all that is varied."""
    return study(excerpt(), Scenario(cores=64, moments=3), POLICIES, replications=2, sweeps=True, dominant=0.99)


def unexplained(sums: CoreSeconds) -> float:
    """Return the core-seconds that are left over: 0 but for rounding."""
    return sums.total - (sums.useful + sums.killed + sums.draining + sums.idle)


def wait_for(outcome: Outcome, share: float) -> float:
    """Return the seconds until `share` (0 to 1) of the demanded cores was free; infinite when it never was."""
    wanted, there = share * min(outcome.asked, outcome.given), 0
    for seconds, cores in outcome.waits:
        there += cores
        if there >= wanted:
            return seconds
    return 0.0 if wanted <= 0 else float("inf")
