"""Pools whose sizes make the choice hard, as users may choose them: how long it takes at most, in how much memory, and
how far from the best it is.
"""

from __future__ import annotations

import os
import pickle
import resource
import statistics
import time
from collections.abc import Callable

import numpy as np

from benchmarks.figures import Figure
from drainwise.reclaim.choose.by_cores import CoresPlan, plan_cores
from drainwise.reclaim.choose.plan import IDLE, Rules
from drainwise.reclaim.choose.problem import CORES, Limits, Real, Whole, whole_pilots

PILOTS = 100_000
LARGEST = 1 << 17
MEMORY = 500 << 20
SMALL, SMALL_POOLS, SMALL_LARGEST = 60, 12, 64

Kind = Callable[[np.random.Generator, int, int], "tuple[Whole, Real]"]


def _any_waste(dice: np.random.Generator, sizes: Whole) -> Real:
    return np.rint(sizes * dice.random(len(sizes)) * 20_000)


def _by_size(dice: np.random.Generator, sizes: Whole) -> Real:
    """Waste per core follows the size: many sets cost nearly the same."""
    return np.rint(1e9 / sizes + dice.random(len(sizes)) * 100)


def _with_dear_ones(unit: int, rest: int, dear: int) -> Kind:
    """Sizes are multiples of `unit`, but for a few dear pilots of other remainders."""

    def made(dice: np.random.Generator, count: int, largest: int) -> tuple[Whole, Real]:
        sizes = unit * dice.integers(1, max(2, largest // unit), count)
        places = dice.choice(count, dear, replace=False)
        sizes[places] += rest
        waste = _any_waste(dice, sizes)
        waste[places] = sizes[places] * 1e6
        return sizes, waste

    return made


def _sized(size: Callable[[np.random.Generator, int, int], Whole], cost: Callable[..., Real]) -> Kind:
    def made(dice: np.random.Generator, count: int, largest: int) -> tuple[Whole, Real]:
        sizes = size(dice, count, largest).astype(np.int64)
        return sizes, cost(dice, sizes)

    return made


def _random(dice: np.random.Generator, count: int, largest: int) -> Whole:
    return dice.integers(1, largest + 1, count)


def _different(dice: np.random.Generator, count: int, _: int) -> Whole:
    return dice.permutation(np.arange(1, count + 1))


def _powers(dice: np.random.Generator, count: int, largest: int) -> Whole:
    return 2 ** dice.integers(0, largest.bit_length() - 1, count)


def _two_large(dice: np.random.Generator, count: int, largest: int) -> Whole:
    return largest - dice.integers(0, 2, count)


def _nearly_largest(dice: np.random.Generator, count: int, largest: int) -> Whole:
    return largest - dice.integers(0, max(2, largest // 128), count)


def _one_or_all(dice: np.random.Generator, count: int, largest: int) -> Whole:
    return np.where(dice.random(count) < 0.5, 1, largest)


def _no_common(dice: np.random.Generator, count: int, largest: int) -> Whole:
    units = np.array((6, 10, 15))[dice.integers(0, 3, count)]
    return units * dice.integers(1, max(2, largest // 15), count)


KINDS: dict[str, tuple[Kind, int]] = {
    "even sizes and one odd expensive pilot, 2 to 128 cores": (_with_dear_ones(2, 1, 1), 128),
    "even sizes and one odd expensive pilot, up to 131,072": (_with_dear_ones(2, 1, 1), LARGEST),
    "multiples of 3 and fifty expensive others": (_with_dear_ones(3, 1, 50), LARGEST),
    "multiples of 64 and fifty expensive others": (_with_dear_ones(64, 1, 50), LARGEST),
    "1 to 1024 cores": (_sized(_random, _any_waste), 1024),
    "1 to 1024 cores, waste by size": (_sized(_random, _by_size), 1024),
    "1 to 131,072 cores, waste by size": (_sized(_random, _by_size), LARGEST),
    "all sizes different": (_sized(_different, _any_waste), LARGEST),
    "all sizes different, waste by size": (_sized(_different, _by_size), LARGEST),
    "powers of two": (_sized(_powers, _any_waste), LARGEST),
    "powers of two, waste by size": (_sized(_powers, _by_size), LARGEST),
    "131,071 or 131,072 cores": (_sized(_two_large, _any_waste), LARGEST),
    "131,072 cores or few less": (_sized(_nearly_largest, _any_waste), LARGEST),
    "1 or 131,072 cores": (_sized(_one_or_all, _any_waste), LARGEST),
    "multiples of 6, 10 or 15, waste by size": (_sized(_no_common, _by_size), LARGEST),
}
"""How each pool is made, and its largest pilot."""


def pool(name: str, count: int = PILOTS) -> tuple[Whole, Real]:
    """Sizes and wastes of one of KINDS."""
    made, largest = KINDS[name]
    return made(np.random.default_rng(20261122), count, largest)


def totals(sizes: Whole) -> tuple[int, ...]:
    """Few cores, many, a tenth, half and nearly all; odd, where it matters."""
    everything = int(sizes.sum())
    return 1001, 100_001, everything // 10 | 1, everything // 2 | 1, everything - 12_345


def decide(sizes: Whole, waste: Real, cores: int) -> CoresPlan:
    """The pilots of one user that go for so many cores; all have run as long."""
    size, none = sizes.astype(float), np.zeros(1, dtype=np.int64)
    rows = whole_pilots(size, 0 * sizes, 3600 * size, waste)
    limits = Limits(none, np.zeros(1), none[:, None], np.array([2.0**53]), np.array([CORES]), np.array([np.nan]))
    return plan_cores(rows, limits, cores, Rules())


def _measured(name: str, runs: int) -> tuple[float, int]:
    """CPU seconds of the slowest total, median of `runs`, and the most memory in bytes; in a child of its own."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        sizes, waste = pool(name)
        slowest = 0.0
        for cores in totals(sizes):
            times = []
            for _ in range(runs):
                begin = time.process_time()
                decide(sizes, waste, cores)
                times.append(time.process_time() - begin)
            slowest = max(slowest, statistics.median(times))
        os.write(write_end, pickle.dumps((slowest, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10)))
        os._exit(0)
    os.close(write_end)
    with open(read_end, "rb") as stream:
        answer = stream.read()
    if os.waitpid(pid, 0)[1] != 0:
        raise RuntimeError(f"the measurement of {name!r} failed")
    seconds, memory = pickle.loads(answer)  # noqa: S301 - our own child wrote it
    return float(seconds), int(memory)


def hard(runs: int) -> list[Figure]:
    """Each of KINDS; the ratio is to one numpy sort of as many floats. Memory beyond MEMORY is an error."""
    numbers, times = np.random.default_rng(1).random(PILOTS), []
    for _ in range(11):
        begin = time.process_time()
        np.sort(numbers)
        times.append(time.process_time() - begin)
    floor = statistics.median(times)
    figures = [Figure(f"one numpy sort of {PILOTS:,} floats", floor, 1.0, None)]
    for name in KINDS:
        seconds, memory = _measured(name, runs)
        if memory > MEMORY:
            raise RuntimeError(f"{name}: {memory >> 20} MiB")
        what = f"total and choice of {PILOTS:,} pilots: {name} ({memory >> 20} MiB)"
        figures.append(Figure(what, seconds, seconds / floor, None, limit=2.0))
    return figures


def against_solver() -> list[Figure]:
    """Small pools of each of KINDS, where a solver knows the best within the same extra cores."""
    # Tests read this file, too, and only this solves.
    from scipy.optimize import Bounds, LinearConstraint, milp  # noqa: PLC0415

    ours, solver, best, beyond = [], [], 0, []
    for made, _ in KINDS.values():
        for seed in range(SMALL_POOLS):
            sizes, waste = made(np.random.default_rng(seed), SMALL, SMALL_LARGEST)
            cores, price = int(sizes.sum()) // 3, waste + IDLE * sizes
            begin = time.process_time()
            plan = decide(sizes, waste, cores)
            middle = time.process_time()
            found = milp(
                price,
                constraints=LinearConstraint(sizes[None, :], cores, plan.budget[0]),
                integrality=np.ones(SMALL),
                bounds=Bounds(0, 1),
                options={"mip_rel_gap": 0.0},
            )
            solver.append(time.process_time() - middle)
            ours.append(middle - begin)
            more = float(price[plan.gone].sum()) / found.fun - 1
            best += more < 1e-9
            beyond.append(more)
    taken = statistics.median(solver)
    what = f"{best} of {len(ours)} as good; at worst {max(beyond):.2%} more waste and idling"
    mean = statistics.median(ours)
    return [
        Figure(f"scipy's milp (HiGHS), pools of {SMALL} pilots of up to {SMALL_LARGEST} cores", taken, 1.0, None),
        Figure(what, mean, mean / taken, None),
    ]
