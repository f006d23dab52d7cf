"""Tasks by chance, the same ones wherever they are made: the input of the recorded figures of panda-server.

Only `Random.random` is drawn from, whose values no version of Python changes. Sizes and times are whole numbers, as in
PanDA's tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from drainwise_tasks.estimate.parameters import Parameters
from drainwise_tasks.estimate.quantities import MB
from drainwise_tasks.estimate.records.record import Finished
from drainwise_tasks.estimate.settings import Settings

from .jobs import T0

COUNT = 1000


@dataclass(frozen=True)
class RandomTask:
    """One task: what it states, what gdpconfig says, and its finished jobs."""

    parameters: Parameters
    settings: Settings
    jobs: tuple[Finished, ...]


class Chance:
    """Draws from one stream of numbers."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def happens(self, share: float) -> bool:
        return self._random.random() < share

    def whole(self, low: int, high: int) -> int:
        """A whole number within [low, high], of as many more digits as of fewer."""
        bits = 1 + int(self._random.random() * (high - low).bit_length())
        return low + min(high - low, int(self._random.random() * (1 << bits)))

    def one_of(self, *values: str) -> str:
        return values[int(self._random.random() * len(values))]


def random_tasks() -> list[RandomTask]:
    """All tasks, by their number."""
    return [_task(Chance(number)) for number in range(COUNT)]


def _task(chance: Chance) -> RandomTask:
    milli = chance.happens(0.3)
    parameters = Parameters(
        cpu_time=chance.whole(1, 10_000) if chance.happens(0.7) else None,
        cpu_time_unit=("m" if milli else "") + "HS06sPerEvent" + ("Fixed" if chance.happens(0.1) else ""),
        base_time=float(chance.whole(0, 900)),
        cpu_efficiency=chance.whole(1, 100) if chance.happens(0.95) else 0,
        ram_count=chance.whole(1, 8000) if chance.happens(0.5) else None,
        ram_count_unit=chance.one_of("MBPerCore", "MBPerCore", "MB", "MBPerCoreFixed"),
        base_ram_count=chance.whole(0, 2000) if chance.happens(0.5) else 0,
        out_disk_unit=chance.one_of("kB", "kBPerEvent", "kBPerEvent", "MBPerEvent", "kBPerEventFixed", "kBFixed"),
        work_disk_count=chance.whole(1, 20_000) if chance.happens(0.4) else None,
        lib_size=chance.whole(1, 2 << 30) / MB if chance.happens(0.2) else None,
        tgt_max_output_for_ng=chance.whole(1, 40) if chance.happens(0.6) else None,
        n_gb_per_job=14,
    )
    settings = Settings(
        scout_cputime_rank=chance.whole(1, 100) if chance.happens(0.3) else 95,
        scout_ramcount_rank=chance.whole(1, 100) if chance.happens(0.3) else 75,
        scout_ramcount_margin=chance.whole(1, 50) if chance.happens(0.3) else 10,
        scout_ramcount_min=chance.whole(1, 4000) if chance.happens(0.2) else None,
        scout_disk_io_cap=chance.whole(1, 9000) if chance.happens(0.2) else None,
    )
    number = chance.whole(1, 100) if chance.happens(0.1) else chance.whole(1, 12)
    return RandomTask(parameters, settings, tuple(_job(chance) for _ in range(number)))


def _job(chance: Chance) -> Finished:
    seconds = chance.whole(0, 400_000) if chance.happens(0.95) else 21_600
    secondary = chance.whole(1, 1 << 34) if chance.happens(0.3) else 0
    output = chance.whole(1, 1 << 36)
    events = chance.whole(1, 100_000) if chance.happens(0.8) else None
    files = min(chance.whole(1, 40), events or 40)
    return Finished(
        task="t",
        start=T0,
        end=T0 + seconds,
        cores=int(chance.one_of("1", "1", "4", "8", "64")),
        events=events,
        files=files,
        core_power=chance.whole(5, 40) + 0.25 if chance.happens(0.8) else None,
        cpu_seconds=chance.whole(0, 3_000_000),
        memory_bytes=1024 * chance.whole(0, 1 << 26) if chance.happens(0.95) else None,
        leak=chance.whole(0, 9000) if chance.happens(0.5) else None,
        input_bytes=secondary + (files + chance.whole(1, 1 << 36) if chance.happens(0.9) else 0),
        output_bytes=output if chance.happens(0.95) else None,
        read_bytes=1024 * chance.whole(0, 1 << 30) if chance.happens(0.9) else None,
        written_bytes=1024 * chance.whole(0, 1 << 30) if chance.happens(0.9) else None,
        work_bytes=chance.whole(0, 1 << 36) if chance.happens(0.8) else None,
        secondary_input_bytes=secondary,
        largest_output_bytes=1 + (output - 1) // chance.whole(1, 9) if chance.happens(0.5) else None,
        pseudo_input=chance.happens(0.05),
    )
