"""A task's needs, learned from its first finished jobs: JEDI's selection, ranks, margins, floors, caps and units.

Every figure says from how many jobs it comes, and what held against it: a unit that is `Fixed`, a larger preset.
Source: JEDI, dynamic optimization of task parameters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from drainwise_tasks.estimate import quantities
from drainwise_tasks.estimate.parameters import HS06, MILLI_HS06, Parameters
from drainwise_tasks.estimate.quantities import GB, KB, MB, is_fixed
from drainwise_tasks.estimate.records.record import Finished
from drainwise_tasks.estimate.settings import Settings
from drainwise_tasks.estimate.spread import percentile

CPU_TIME_SAFETY = 1.5
"""What cpuTime is multiplied with."""
MILLI_BELOW = 10
"""A smaller cpuTime is counted in thousandths."""
OUT_DISK_RANK = 75
MOST_GB_PER_JOB = 100
LEAST_OUTPUT = 1e-9
"""kB per event; from less no number of events follows that makes an output of some size."""
KEPT_FIXED, KEPT_PRESET = "kept: the unit is Fixed", "kept: the preset is larger"


@dataclass(frozen=True)
class Figure:
    """One estimate: its value and unit, from how many jobs it comes, the preset, and why it is not the measured one."""

    name: str
    value: float
    unit: str
    jobs: int
    before: float | None = None
    note: str = ""


@dataclass(frozen=True)
class MissingFigure:
    """A figure that cannot be given for want of events: its name, and why."""

    name: str
    why: str


class Sample:
    """The first jobs of one task, job by job; failed ones count for nothing here."""

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters
        self.jobs: list[Finished] = []

    def add(self, job: Finished) -> None:
        """Take in one finished job."""
        self.jobs.append(job)

    def figures(self, settings: Settings) -> tuple[Figure, ...]:
        """Return all estimates for which at least one job counts."""
        found = (
            self._cpu_time(settings),
            self._ram_count(settings),
            self._out_disk_count(),
            self._work_disk_count(),
            self._io_intensity(),
            self._disk_io(settings),
            self._n_gb_per_job(),
            self._cpu_efficiency(),
        )
        return tuple(figure for figure in found if figure is not None)

    def missing(self) -> tuple[MissingFigure, ...]:
        """Return the figures that these jobs could have told if they had had more events."""
        task, found = self.parameters, []
        jobs = f"too few events: none of {len(self.jobs)} jobs had"
        if self.jobs and not is_fixed(task.cpu_time_unit) and self.middle_cpu_time() is None:
            why = f"{jobs} {quantities.EVENTS_PER_CORE} events per core or ran for {quantities.LONG_RUN / 3600:g} h"
            found.append(MissingFigure("cpuTime", why))
        measured = any(job.output_bytes is not None for job in self.jobs)
        if measured and self._out_disk_count() is None:
            found.append(MissingFigure("outDiskCount", f"{jobs} {quantities.LEAST_EVENTS} events"))
            if task.tgt_max_output_for_ng is not None:
                found.append(MissingFigure("nGBPerJob", "it follows from outDiskCount, which is missing"))
        return tuple(found)

    def middle_cpu_time(self) -> float | None:
        """Return the median cpuTime in HS06 s per event: the likely one, where JEDI's figure is rarely exceeded."""
        values = _known([quantities.cpu_time(job, self.parameters) for job in self.jobs])
        return percentile(values, 50) if values else None

    def _cpu_time(self, settings: Settings) -> Figure | None:
        task = self.parameters
        if is_fixed(task.cpu_time_unit):
            return fixed_figure("cpuTime", task.cpu_time, task.cpu_time_unit)
        values = _known([quantities.cpu_time(job, task) for job in self.jobs])
        if not values:
            return None
        value, unit = CPU_TIME_SAFETY * percentile(values, settings.scout_cputime_rank), HS06
        before = None if task.cpu_time is None else in_hs06(task.cpu_time, task.cpu_time_unit)
        if value < MILLI_BELOW:
            value, unit = 1000 * value, MILLI_HS06
            before = None if before is None else 1000 * before
        return Figure("cpuTime", _ceil(value), unit, len(values), before, assumed_power(self.jobs, task))

    def _ram_count(self, settings: Settings) -> Figure | None:
        task = self.parameters
        if is_fixed(task.ram_count_unit):
            return fixed_figure("ramCount", task.ram_count, task.ram_count_unit)
        values = _known([quantities.ram_count(job, task) for job in self.jobs])
        if not values:
            return None
        value = percentile(values, settings.scout_ramcount_rank) * (100 + settings.scout_ramcount_margin) / 100
        value, note = max(1.0, value), ""
        if settings.scout_ramcount_min is not None and value < settings.scout_ramcount_min:
            value, note = settings.scout_ramcount_min, "raised to SCOUT_RAMCOUNT_MIN"
        return Figure("ramCount", _ceil(value), task.ram_count_unit, len(values), task.ram_count, note)

    def _out_disk_count(self) -> Figure | None:
        task = self.parameters
        if is_fixed(task.out_disk_unit):
            return fixed_figure("outDiskCount", task.out_disk_count, task.out_disk_unit)
        values = _known([quantities.out_disk_count(job) for job in self.jobs])
        if not values:
            return None
        value = percentile(values, OUT_DISK_RANK)
        return Figure("outDiskCount", value, "kBPerEvent", len(values), task.out_disk_count)

    def _work_disk_count(self) -> Figure | None:
        values = _known([quantities.work_disk_count(job) for job in self.jobs])
        if not values:
            return None
        before, value = self.parameters.work_disk_count, _ceil(values[-1])
        if before is not None and before > value:
            return Figure("workDiskCount", before, "MB", len(values), before, KEPT_PRESET)
        return Figure("workDiskCount", value, "MB", len(values), before)

    def _io_intensity(self) -> Figure | None:
        values = _known([quantities.io_intensity(job) for job in self.jobs])
        return Figure("ioIntensity", values[-1], "kBPerS", len(values)) if values else None

    def _disk_io(self, settings: Settings) -> Figure | None:
        values = _known([quantities.disk_io(job) for job in self.jobs])
        if not values:
            return None
        value, cap = math.fsum(values) / len(values), settings.scout_disk_io_cap
        if cap is not None and value > cap:
            return Figure("diskIO", cap, "kBPerS", len(values), None, "capped by SCOUT_DISK_IO_CAP")
        return Figure("diskIO", value, "kBPerS", len(values))

    def _n_gb_per_job(self) -> Figure | None:
        """Return GB of disk per job so that its output reaches the wanted size: that, its input, its directory."""
        task, out = self.parameters, self._out_disk_count()
        if task.tgt_max_output_for_ng is None or out is None or not out.jobs or out.value < LEAST_OUTPUT:
            return None
        events = task.tgt_max_output_for_ng * GB / (out.value * KB)
        known = [(job.input_bytes, quantities.events_of(job)) for job in self.jobs if job.input_bytes is not None]
        seen = sum(count for _, count in known)
        per_event = sum(size for size, _ in known) / seen if seen else 0.0
        work = self._work_disk_count()
        room = (work.value if work else task.work_disk_count or 0.0) * MB
        value = task.tgt_max_output_for_ng + (per_event * events + room) / GB
        return Figure("nGBPerJob", min(MOST_GB_PER_JOB, _ceil(value)), "GB", out.jobs, task.n_gb_per_job)

    def _cpu_efficiency(self) -> Figure | None:
        values = _known([quantities.cpu_efficiency(job) for job in self.jobs])
        return Figure("cpuEfficiency", percentile(values, 50), "percent", len(values)) if values else None


def in_hs06(value: float, unit: str) -> float:
    """Return a cpuTime in HS06 s per event, whatever its unit."""
    return value / 1000 if unit.startswith("m") else value


def assumed_power(jobs: Sequence[Finished], task: Parameters) -> str:
    """Say of how many jobs nobody knows the power of their cores; "" when it is known of all."""
    assumed = sum(1 for job in jobs if not job.core_power)
    return f"{assumed} of {len(jobs)} jobs taken as {task.core_power:g} HS06 per core" if assumed else ""


def figure_called(name: str, figures: Sequence[Figure]) -> Figure | None:
    """Return the figure of that name."""
    return next((figure for figure in figures if figure.name == name), None)


def fixed_figure(name: str, value: float | None, unit: str) -> Figure | None:
    """Return the preset of a unit that scouts must leave alone, from no job; None where there is none."""
    return None if value is None else Figure(name, value, unit, 0, value, KEPT_FIXED)


def _known(values: Sequence[float | None]) -> list[float]:
    return sorted(value for value in values if value is not None)


def _ceil(value: float) -> float:
    """Round up; what is a whole number but for the error of the arithmetic stays that number."""
    return float(math.ceil(value - 1e-9 * max(1.0, abs(value))))
