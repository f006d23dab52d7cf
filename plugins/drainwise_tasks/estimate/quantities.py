"""JEDI's quantities of one finished job of a task. None: this job does not count for it.

Source: JEDI, dynamic optimization of task parameters. kB, MB and GB are 1024-based, as PanDA has them.
"""

from __future__ import annotations

from drainwise_tasks.estimate.parameters import FIXED, WHOLE_JOB, Parameters
from drainwise_tasks.estimate.records.record import Finished

KB, MB, GB = 1024.0, 1024.0**2, 1024.0**3
EVENTS_PER_CORE = 10
"""With fewer events per core a job counts for cpuTime only when it ran for long, else initialization skews it."""
LONG_RUN = 6 * 3600.0
"""Seconds after which a job counts however few its events were."""
LEAST_EVENTS = 10
"""With fewer events a job does not count for the size of output per event."""


def events_of(job: Finished) -> float:
    """Return its events; without event information each input file is one, and a job without files is one itself."""
    return job.events if job.events is not None else max(1, job.files or 1)


def core_power_of(job: Finished, parameters: Parameters) -> float:
    """Return the HS06 of one core where it ran; the task's own figure where the record has none."""
    return job.core_power or parameters.core_power


def cpu_time(job: Finished, parameters: Parameters) -> float | None:
    """Return HS06 s per event: (T − baseTime)·corePower·coreCount·cpuEfficiency/100 / nEvents; 0 when T ≤ baseTime."""
    events = events_of(job)
    if events < EVENTS_PER_CORE * job.cores and job.seconds < LONG_RUN:
        return None
    scaling = max(0.0, job.seconds - parameters.base_time)
    return scaling * core_power_of(job, parameters) * job.cores * parameters.cpu_efficiency / 100 / events


def ram_count(job: Finished, parameters: Parameters) -> float | None:
    """Return MB per core, less what does not grow with them: (maxPSS − baseRamCount)/coreCount. Unit MB: all of it."""
    if not job.memory_bytes:
        return None
    if parameters.ram_count_unit == WHOLE_JOB:
        return job.memory_bytes / MB
    return (job.memory_bytes / MB - parameters.base_ram_count) / job.cores


def out_disk_count(job: Finished) -> float | None:
    """Return KB of output per event."""
    events = events_of(job)
    return None if job.output_bytes is None or events < LEAST_EVENTS else job.output_bytes / events / KB


def work_disk_count(job: Finished) -> float | None:
    """Return MB of its directory at its largest."""
    return None if job.work_bytes is None else job.work_bytes / MB


def io_intensity(job: Finished) -> float | None:
    """Return KB/s in and out over the wide network."""
    if (job.input_bytes is None and job.output_bytes is None) or not job.seconds:
        return None
    return ((job.input_bytes or 0) + (job.output_bytes or 0)) / KB / job.seconds


def disk_io(job: Finished) -> float | None:
    """Return KB/s read from and written to local disk."""
    if (job.read_bytes is None and job.written_bytes is None) or not job.seconds:
        return None
    return ((job.read_bytes or 0) + (job.written_bytes or 0)) / KB / job.seconds


def leak_per_core(job: Finished) -> float | None:
    """Return KB/s per core by which its memory grew."""
    return None if job.leak is None else job.leak / KB / job.cores


def cpu_efficiency(job: Finished) -> float | None:
    """Return per cent of the time of its cores in which it computed."""
    if job.cpu_seconds is None or not job.seconds:
        return None
    return 100 * job.cpu_seconds / (job.cores * job.seconds)


def is_fixed(unit: str) -> bool:
    """Decide whether scouts must leave a value of this unit alone."""
    return unit.endswith(FIXED)
