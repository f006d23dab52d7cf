#!/usr/bin/env python3
"""A task's needs as panda-server calculates them today, to the last digit, where it differs from JEDI's document.

Quantities are whole kilobytes, seconds and per cents on the way, so a figure can differ from the document's by more
than its rounding.

usage: scripts/panda_figures.py RECORDS [TASKS [SETTINGS]]: a figure a line, from the first jobs of each task. The files
are those of `drainwise estimate`. Source: PanDAWMS/panda-server (Apache-2.0) at 9cc3603 of 2026-08-06,
getScoutJobData_JEDI. Where it differs from the table of docs/estimate.md:

all: whole seconds, kB and percent on the way; cut to whole numbers, not rounded up, but for cpuTime, ioIntensity and
    diskIO
cpuTime: few events are made up for by strictly more than 6 h, or by pseudo_input
ramCount: with unit MB the memory of the whole job: neither by core nor less baseRamCount
outDiskCount: at most 10240 kB; outDiskUnit says by what: with PerEvent by event, else by MB of main input (unit kB).
    Fixed keeps the preset
workDiskCount: the library's size (libSize) where it is larger than the directory
ioIntensity: of the main input and the output, per core
diskIO: jobs of which both reading and writing is known
memoryLeakCore: B/s per core, the mean; a figure of its own
nGBPerJob: from one job's output, of which the largest data set reaches tgtMaxOutputForNG; by event its input and
    workDiskCount + 300 MB, else the input that makes that output; less 1500 MB, which PanDA adds to each job by
    itself
cpuEfficiency: whole percent
"""

from __future__ import annotations

import json
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "plugins"))

from drainwise.common.printable import printable
from drainwise_tasks.estimate import quantities
from drainwise_tasks.estimate.parameters import HS06, MILLI_HS06, PER_CORE, Parameters, parameters_from
from drainwise_tasks.estimate.quantities import KB, MB, is_fixed
from drainwise_tasks.estimate.records.formats import read_as
from drainwise_tasks.estimate.records.record import Finished, lines_in, opened
from drainwise_tasks.estimate.scouts import (
    CPU_TIME_SAFETY,
    KEPT_PRESET,
    MILLI_BELOW,
    MOST_GB_PER_JOB,
    OUT_DISK_RANK,
    Figure,
    assumed_power,
    fixed_figure,
    in_hs06,
)
from drainwise_tasks.estimate.settings import Settings, settings_from
from drainwise_tasks.estimate.spread import percentile

PER_EVENT = "PerEvent"
MOST_OUT_DISK = 10 * 1024
"""kB of output per event, or per MB of input: more is not believed."""
DEFAULT_OUTPUT = 1500 * 1024**2
"""Bytes that PanDA adds for the output of each job, whatever nGBPerJob says."""
WORK_DISK_MARGIN = 300 * 1024**2
"""Bytes that PanDA adds to workDiskCount."""
_GIBI = 1024**3


def panda_figures(jobs: Sequence[Finished], task: Parameters, settings: Settings) -> tuple[Figure, ...]:
    """Return all estimates for which at least one of these good jobs counts, in the order of the document's."""
    out, work = _out_disk_count(jobs, task), _work_disk_count(jobs, task)
    found = (
        _cpu_time(jobs, task, settings),
        _ram_count(jobs, task, settings),
        out,
        work,
        _io_intensity(jobs),
        _disk_io(jobs, settings),
        _leak(jobs),
        _n_gb_per_job(jobs, task, out, work),
        _cpu_efficiency(jobs),
    )
    return tuple(figure for figure in found if figure is not None)


def _cpu_time(jobs: Sequence[Finished], task: Parameters, settings: Settings) -> Figure | None:
    if is_fixed(task.cpu_time_unit):
        return fixed_figure("cpuTime", task.cpu_time, task.cpu_time_unit)
    values = sorted(_hs06_seconds(job, task) / quantities.events_of(job) for job in jobs if _has_events(job))
    if not values:
        return None
    value, unit = percentile(values, settings.scout_cputime_rank) * CPU_TIME_SAFETY, HS06
    before = None if task.cpu_time is None else in_hs06(task.cpu_time, task.cpu_time_unit)
    if value < MILLI_BELOW:
        value, unit = value * 1000, MILLI_HS06
        before = None if before is None else 1000 * before
    return Figure("cpuTime", math.ceil(value), unit, len(values), before, assumed_power(jobs, task))


def _has_events(job: Finished) -> bool:
    """Decide whether a job counts for cpuTime: strictly more than six hours make up for few events."""
    events = quantities.events_of(job)
    return job.pseudo_input or events >= quantities.EVENTS_PER_CORE * job.cores or job.seconds > quantities.LONG_RUN


def _hs06_seconds(job: Finished, task: Parameters) -> float:
    seconds = _whole_seconds(job)
    if task.cpu_efficiency == 0 or seconds <= task.base_time:
        return 0.0
    power = quantities.core_power_of(job, task)
    return float(seconds - task.base_time) * power * job.cores * float(task.cpu_efficiency) / 100.0


def _ram_count(jobs: Sequence[Finished], task: Parameters, settings: Settings) -> Figure | None:
    if is_fixed(task.ram_count_unit):
        return fixed_figure("ramCount", task.ram_count, task.ram_count_unit)
    per_core = task.ram_count_unit == PER_CORE
    sizes = [(job.memory_bytes // KB, job.cores) for job in jobs if job.memory_bytes and job.memory_bytes >= KB]
    base = task.base_ram_count * 1024
    values = sorted(math.ceil((size - base) / float(cores)) if per_core else size for size, cores in sizes)
    if not values:
        return None
    kilobytes = percentile(values, settings.scout_ramcount_rank) * (100 + settings.scout_ramcount_margin) // 100
    value, note = float(int(kilobytes / 1024)), ""
    if value < 0:
        value = 1.0
    if settings.scout_ramcount_min is not None and settings.scout_ramcount_min > value:
        value, note = settings.scout_ramcount_min, "raised to SCOUT_RAMCOUNT_MIN"
    return Figure("ramCount", value, task.ram_count_unit, len(values), task.ram_count, note)


def _out_disk_count(jobs: Sequence[Finished], task: Parameters) -> Figure | None:
    if is_fixed(task.out_disk_unit):
        return fixed_figure("outDiskCount", task.out_disk_count, task.out_disk_unit)
    values = sorted(size for size, _ in _out_sizes(jobs, task))
    if not values:
        return None
    value, note = percentile(values, OUT_DISK_RANK) / 1024, "" if _scales_with_events(task) else "per MB of input"
    if value > MOST_OUT_DISK:
        value, note = MOST_OUT_DISK, f"capped at {MOST_OUT_DISK}"
    unit = "kBPerEvent" if _scales_with_events(task) else "kB"
    return Figure("outDiskCount", int(value), unit, len(values), task.out_disk_count, note)


def _scales_with_events(task: Parameters) -> bool:
    return task.out_disk_unit.endswith(PER_EVENT)


def _out_sizes(jobs: Sequence[Finished], task: Parameters) -> list[tuple[int, Finished]]:
    """Return bytes of output per event, or per MB of input, of each job with enough events."""
    found = []
    for job in jobs:
        events = quantities.events_of(job)
        if job.output_bytes is not None and events >= quantities.LEAST_EVENTS:
            by = events if _scales_with_events(task) else _main_input(job)
            found.append((math.ceil(float(job.output_bytes) / by), job))
    return found


def _main_input(job: Finished) -> float:
    """Return MB of its main input; files of less than a byte, such as made-up ones, count as 1 MB each."""
    size = (job.input_bytes or 0) - (job.secondary_input_bytes or 0)
    return float(size) / MB if size >= 1 else float(max(1, job.files or 1))


def _work_disk_count(jobs: Sequence[Finished], task: Parameters) -> Figure | None:
    """Return the largest directory, or the library where it is larger; a job that says nothing has an empty one."""
    if not jobs:
        return None
    sizes = [max((job.work_bytes or 0) / MB, task.lib_size or 0) for job in jobs]
    value, before = int(max(sizes)), task.work_disk_count
    if before is not None and before > value:
        return Figure("workDiskCount", before, "MB", len(sizes), before, KEPT_PRESET)
    note = "the library's size" if task.lib_size is not None and task.lib_size == max(sizes) else ""
    return Figure("workDiskCount", value, "MB", len(sizes), before, note)


def _io_intensity(jobs: Sequence[Finished]) -> Figure | None:
    values = [
        (_main_input(job) * 1024.0 + float(job.output_bytes) / 1024.0) / float(_whole_seconds(job)) / float(job.cores)
        for job in jobs
        if job.output_bytes is not None and _whole_seconds(job)
    ]
    return Figure("ioIntensity", math.ceil(max(values)), "kBPerS", len(values), note="per core") if values else None


def _disk_io(jobs: Sequence[Finished], settings: Settings) -> Figure | None:
    values = [
        (job.read_bytes + job.written_bytes) / KB / float(_whole_seconds(job))
        for job in jobs
        if job.read_bytes is not None and job.written_bytes is not None and _whole_seconds(job)
    ]
    if not values:
        return None
    value, cap = math.ceil(sum(values) // len(values)), settings.scout_disk_io_cap
    if cap is not None and value > cap:
        return Figure("diskIO", cap, "kBPerS", len(values), None, "capped by SCOUT_DISK_IO_CAP")
    return Figure("diskIO", value, "kBPerS", len(values))


def _leak(jobs: Sequence[Finished]) -> Figure | None:
    values = [math.ceil(float(job.leak) / float(job.cores)) for job in jobs if job.leak is not None]
    return Figure("memoryLeakCore", math.ceil(sum(values) / len(values)), "BPerS", len(values)) if values else None


def _n_gb_per_job(jobs: Sequence[Finished], task: Parameters, out: Figure | None, work: Figure | None) -> Figure | None:
    """Return GB per job from one job alone: the upper one of the two between which outDiskCount lies, or the lower."""
    if task.tgt_max_output_for_ng is None or out is None or not out.jobs or work is None:
        return None
    sizes = _out_sizes(jobs, task)
    ordered, last = sorted(size for size, _ in sizes), dict(sizes)
    place = (len(ordered) - 1) * OUT_DISK_RANK / 100
    for size in (ordered[math.ceil(place)], ordered[math.floor(place)]):
        value = _gb_by(last[size], task, int(out.value) * 1024, work.value)
        if value is not None:
            return Figure("nGBPerJob", value, "GB", out.jobs, task.n_gb_per_job)
    return None


def _gb_by(job: Finished, task: Parameters, out_disk: int, work_disk: float) -> int | None:
    """Return GB so that the job's largest output reaches the wanted size. out_disk: bytes. work_disk: MB."""
    total = int(job.output_bytes or 0)
    largest = total if job.largest_output_bytes is None else int(job.largest_output_bytes)
    if task.tgt_max_output_for_ng is None or not total * largest:
        return None
    wanted = total * int(task.tgt_max_output_for_ng) * _GIBI // largest
    scale = wanted // (out_disk or 1)
    if _scales_with_events(task):
        if job.input_bytes is None:
            return None
        main = job.input_bytes - (job.secondary_input_bytes or 0)
        # The main input is in MB here, and what is not main in bytes: PanDA adds them as they are.
        input_size = (_main_input(job) + job.input_bytes - main) * scale // quantities.events_of(job)
        room = wanted + input_size + (work_disk * 1024 * 1024 + WORK_DISK_MARGIN) - DEFAULT_OUTPUT
    else:
        room = wanted + scale * (1024 * 1024) - DEFAULT_OUTPUT
    gigabytes = room / _GIBI
    return int(min(MOST_GB_PER_JOB, gigabytes if gigabytes > 0 else 1))


def _cpu_efficiency(jobs: Sequence[Finished]) -> Figure | None:
    values = sorted(
        math.ceil(float(job.cpu_seconds) / (job.cores * float(_whole_seconds(job))) * 100)
        for job in jobs
        if job.cpu_seconds is not None and _whole_seconds(job)
    )
    return Figure("cpuEfficiency", int(percentile(values, 50)), "percent", len(values)) if values else None


def _whole_seconds(job: Finished) -> int:
    return math.floor(job.seconds)


def main(words: Sequence[str]) -> int:
    """Print the figures of each task; the exit code."""
    if not 1 <= len(words) <= 3:
        print(__doc__, file=sys.stderr)
        return 2
    tasks, found = [*(json.loads(Path(path).read_text()) for path in words[1:]), {}, {}][:2]
    settings, _ = settings_from(found, "SETTINGS")
    skips, jobs = Counter[str](), defaultdict[str, list[Finished]](list)
    with opened(words[0]) as stream:
        for job in read_as("auto", lines_in(stream, skips), skips):
            if job.good:
                jobs[job.task].append(job)
    for task, done in sorted(jobs.items()):
        parameters, _ = parameters_from(tasks.get(task, tasks.get("*", {})), "TASKS", task)
        for figure in panda_figures(done[: settings.first_jobs], parameters, settings):
            shown = (task, figure.name, f"{figure.value:g}", figure.unit, f"{figure.jobs} jobs", figure.note)
            print(printable("  ".join(filter(None, shown))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
