"""The decision on a large pool: metrics, prices and choice, against one numpy sort and an integer solver.

Everything is measured in one process on one core, in turn with what it is compared to.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from benchmarks.deciding import SITE
from benchmarks.figures import Figure
from benchmarks.hard_pools import decide as choose
from benchmarks.made_up_room import NOW
from drainwise.pilotad.values import MOST_POINTS
from drainwise.reclaim.choose.problem import Real, Whole
from drainwise.reclaim.columns import Columns
from drainwise.reclaim.figures import figures_of
from drainwise.reclaim.prices import prices_of
from drainwise.reclaim.settings import BROKEN_PROMISES

PILOTS, LARGEST, CORES = 1_000_000, 128, 100_000
FEW_PILOTS, FEW_CORES = 10_000, 10_000


def pool(count: int) -> Columns:
    """Pilots of 1 to 128 cores in every state; one in ten is not believed, half have a known end of their lease."""
    dice = np.random.default_rng(20261121)
    cores = dice.integers(1, LARGEST + 1, count)
    started = NOW - dice.integers(100, 200_000, count).astype(float)
    first_end = NOW + dice.integers(0, 10_000, count).astype(float)
    last_end = first_end + dice.integers(0, 20_000, count).astype(float)
    return Columns(
        cores=cores,
        started=started,
        lease_end=np.where(dice.random(count) < 0.5, np.inf, NOW + dice.integers(1, 300_000, count)),
        believed=dice.random(count) < 0.9,
        used_cpu=np.floor(cores * dice.random(count)),
        last_job_start=NOW - np.floor((NOW - started) * dice.random(count)),
        first_exp_job_end=first_end,
        last_exp_job_end=last_end,
        add_uncom_time=np.floor(cores * 1000 * dice.random(count)),
        add_final_exp_waste=np.floor(cores * (last_end - first_end) * dice.random(count)),
        priority_factor=dice.integers(-5, 6, count).astype(float),
        draining=dice.random(count) < 0.05,
        doubt=np.zeros(count),
        vacate=np.full(count, float(SITE.vacate)),
        drains=np.ones(count, dtype=bool),
        broken=np.full(count, BROKEN_PROMISES),
        heartbeat=np.full(count, NOW - 60.0),
        seen=np.zeros(count, dtype=bool),
        saved=started,
        restart=np.zeros(count),
        next_save=np.full(count, np.inf),
        writing=np.full(count, np.inf),
        billed=np.ones(count),
        least_grace=np.full(count, float(SITE.min_grace)),
        curve=np.full((3 * MOST_POINTS, count), np.nan),
    )


def decide(pilots: Columns, cores: int) -> tuple[Whole, Real]:
    """The rows that go, and what each would waste."""
    waste = prices_of(figures_of(pilots, NOW, SITE), SITE)
    return np.flatnonzero(choose(pilots.cores, waste, cores).gone), waste


def _seconds(step: Callable[[], object]) -> float:
    begin = time.perf_counter()
    step()
    return time.perf_counter() - begin


def against_sort(runs: int) -> list[Figure]:
    """A million pilots; the sort is of as many floats."""
    pilots, numbers = pool(PILOTS), np.random.default_rng(1).random(PILOTS)
    steps = (lambda: np.sort(numbers), lambda: decide(pilots, CORES))
    rounds = [[_seconds(step) for step in steps] for _ in range(runs + 1)][1:]
    sort, whole = (statistics.median(times) for times in zip(*rounds))
    return [
        Figure(f"one numpy sort of {PILOTS:,} floats", sort, 1.0, None),
        Figure(
            f"metrics, prices and choice: {CORES:,} cores of {PILOTS:,} pilots of 1 to {LARGEST}",
            whole,
            whole / sort,
            40.0,
            limit=1.5,
        ),
    ]


def against_solver(runs: int) -> list[Figure]:
    """Ten thousand pilots; the solver is run once, as it takes that long, and must find no less by a ten-thousandth.

    It is given the finished figures and the total, and only has to choose.
    """
    pilots = pool(FEW_PILOTS)
    times = [_seconds(lambda: decide(pilots, FEW_CORES)) for _ in range(runs + 1)][1:]
    chosen, waste = decide(pilots, FEW_CORES)
    total = int(pilots.cores[chosen].sum())
    begin = time.perf_counter()
    found = milp(
        waste,
        constraints=LinearConstraint(pilots.cores[None, :], total, total),
        integrality=np.ones(FEW_PILOTS),
        bounds=Bounds(0, 1),
        options={"mip_rel_gap": 0.0},
    )
    solver = time.perf_counter() - begin
    if waste[chosen].sum() > 1.0001 * found.fun:
        raise RuntimeError(f"the solver found a waste of {found.fun}, the choice has {waste[chosen].sum()}")
    ours = statistics.median(times)
    return [
        Figure(
            f"scipy's milp (HiGHS), the choice alone: {FEW_CORES:,} cores of {FEW_PILOTS:,} pilots", solver, 1.0, None
        ),
        Figure("metrics, prices and choice of the same", ours, ours / solver, 0.001),
    ]
