"""The demonstration's workload: alice's pilots of mixed sizes, their payloads, bob's jobs; decided by the seed alone.

Times of the log are divided by the speed. The log's jobs are single-core; here each pilot runs payloads of one width,
as productions of a real pilot system do, so that some pilots could leave without idle cores and others not.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from drainwise.pilot.decide.payload import Payload
from local_demo.excerpt import LoggedJob

SIZES = (8, 4, 4, 16, 8, 8, 4, 4, 8)
"""Cores of the pilots, again and again until the machine is full."""
LEAST_CORES, MOST_CORES = 16, 512
BOBS_SHARE = 3 / 8
"""Of all cores; alice is owed the rest and uses all."""
BOBS_JOB = 8
"""Cores of one of bob's jobs."""

# Seconds of the log's time.
FILLING = 2 * 3600.0
"""Alice's pilots come within this time, so that their ages differ."""
ARRIVAL = 3.5 * 3600.0
"""When bob comes."""
GRACE = 4 * 3600.0
"""From the order to leave to the deadline."""
MARGIN = 0.125
"""Of the grace: what a pilot must have left of it when it is to be gone by itself."""
BOBS_RUN = 1 * 3600.0
LONGEST = 172800.0
"""The log's longest requested time."""

_TOO_LONG = 0.25  # share of its run time by which an estimate is too long at most
START_UP = 0.5  # seconds that a payload may take to start on a busy machine


@dataclass(frozen=True)
class PilotPart:
    """One pilot of alice's: submitted `after` so many seconds, running payloads of `width` cores each."""

    name: str
    cores: int
    width: int
    after: float


@dataclass(frozen=True)
class DemoWorkload:
    """The whole workload, in seconds of this clock (the log's divided by the speed).

    payloads: by the width of the pilots that take them. arrival: when bob comes. The others are lengths.
    """

    cores: int
    pilots: tuple[PilotPart, ...]
    payloads: dict[int, tuple[Payload, ...]]
    alices_quota: int
    bobs_quota: int
    bobs_jobs: int
    arrival: float
    grace: int
    margin: int
    lease: int
    bobs_run: float


def seconds_of(workload: DemoWorkload) -> dict[str, float]:
    """Return how many seconds each payload sleeps, by its name."""
    return {one.name: float(one.command[1]) for some in workload.payloads.values() for one in some}


def draw_workload(jobs: Sequence[LoggedJob], cores: int, speed: float, seed: int) -> DemoWorkload:
    """Draw the workload. `cores`: a multiple of 8 from 16; `speed`: seconds of the log in one second here."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    sizes = _sizes(cores)
    chance.shuffle(sizes)
    afters = sorted(chance.uniform(0, FILLING / speed) for _ in sizes)
    pilots = tuple(
        PilotPart(f"p{number}", size, chance.choice(_widths(size)), after)
        for number, (size, after) in enumerate(zip(sizes, afters), 1)
    )
    grace = math.ceil(GRACE / speed)
    seconds = (ARRIVAL + 2 * GRACE) / speed
    needed = dict.fromkeys(sorted({pilot.width for pilot in pilots}), 0.0)
    for pilot in pilots:
        needed[pilot.width] += pilot.cores / pilot.width * seconds
    bobs = max(1, int(cores * BOBS_SHARE) // BOBS_JOB)
    return DemoWorkload(
        cores=cores,
        pilots=pilots,
        payloads={width: _payloads(jobs, width, busy, speed, chance) for width, busy in needed.items()},
        alices_quota=cores - bobs * BOBS_JOB,
        bobs_quota=bobs * BOBS_JOB,
        bobs_jobs=bobs,
        arrival=ARRIVAL / speed,
        grace=grace,
        margin=math.ceil(MARGIN * grace),
        lease=math.ceil(LONGEST / speed) + 2 * grace + 120,
        bobs_run=BOBS_RUN / speed,
    )


def _sizes(cores: int) -> list[int]:
    """Pilots that fill the cores exactly."""
    sizes: list[int] = []
    while sum(sizes) < cores:
        left = cores - sum(sizes)
        size = SIZES[len(sizes) % len(SIZES)]
        sizes.append(size if size <= left else left)
    return sizes


def _widths(cores: int) -> list[int]:
    return [width for width in (1, 2, 4, 8) if cores // 8 <= width <= cores]


def _payloads(
    jobs: Sequence[LoggedJob], width: int, busy: float, speed: float, chance: random.Random
) -> tuple[Payload, ...]:
    """Payloads for more than `busy` seconds, drawn from the log without putting back until it is empty."""
    payloads: list[Payload] = []
    pack: list[LoggedJob] = []
    total = 0.0
    while total <= busy or len(payloads) < 64:
        if not pack:
            pack = list(jobs)
            chance.shuffle(pack)
        job = pack.pop()
        payloads.append(_payload(job, f"w{width}-{len(payloads):04}", width, speed, chance))
        total += job.run / speed
    return tuple(payloads)


def _payload(job: LoggedJob, name: str, width: int, speed: float, chance: random.Random) -> Payload:
    """A sleep as long as the job ran. Its estimate is in good faith and, as a careful one is, rather too long."""
    run = job.run / speed
    expected = run * (1 + chance.uniform(0, _TOO_LONG)) + START_UP
    return Payload(
        name, width, ("sleep", f"{run:.3f}"), expected, max(expected, job.requested / speed), task=f"job {job.number}"
    )
