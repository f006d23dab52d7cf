"""A task's own statements under JEDI's names: presets, units, and how its jobs are made. Wrong values are named.

A PanDA task has many more parameters than those that are used here, so one that is not is told and stops nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from drainwise.common.typed_table import Kind, choice, in_file, number, optional, read_table, shown
from drainwise_tasks.estimate.records.record import LARGEST

HS06, MILLI_HS06 = "HS06sPerEvent", "mHS06sPerEvent"
CPU_TIME_UNITS = (HS06, MILLI_HS06, f"{HS06}Fixed", f"{MILLI_HS06}Fixed")
PER_CORE, WHOLE_JOB = "MBPerCore", "MB"
RAM_UNITS = (PER_CORE, f"{PER_CORE}Fixed", WHOLE_JOB)
OUT_DISK_UNITS = tuple(
    f"{size}{by}{fixed}" for size in ("kB", "MB", "GB") for by in ("", "PerEvent") for fixed in ("", "Fixed")
)
FIXED = "Fixed"
BASE_TIME, ANALYSIS_BASE_TIME = 600.0, 60.0
"""Seconds of a job that do not scale with the power of its cores; an analysis task has less."""
DEFAULT_CORE_POWER = 10.0
"""HS06 of a core of which nothing is known (JEDI's own default)."""


@dataclass(frozen=True)
class Parameters:
    """One task's parameters. None: not stated.

    cpu_time: in `cpu_time_unit`. base_time: s. cpu_efficiency, min_cpu_efficiency: per cent; 0 ends the scaling with
    events. ram_count, base_ram_count: MB (per core, and on top). out_disk_count: kB per event. out_disk_unit: whether
    panda-server counts it by event or by input, and whether it is Fixed. work_disk_count, lib_size: MB.
    n_gb_per_job, tgt_max_output_for_ng: GB. core_power: HS06 of a core where a record has none. walltime: s that its
    jobs ask for where a record says nothing.
    What the system knows of it: new_jobs, still to be made; input_ratio, input files of a new job to those of a scout;
    queued_jobs and running ones of its user; attempts; broker_failures and external_failures in a row.
    """

    cpu_time: float | None = None
    cpu_time_unit: str = HS06
    base_time: float = BASE_TIME
    cpu_efficiency: float = 90
    ram_count: float | None = None
    ram_count_unit: str = PER_CORE
    base_ram_count: float = 0
    out_disk_count: float | None = None
    out_disk_unit: str = "kBPerEvent"
    work_disk_count: float | None = None
    lib_size: float | None = None
    n_gb_per_job: float | None = None
    n_files_per_job: float | None = None
    tgt_max_output_for_ng: float | None = None
    min_cpu_efficiency: float | None = None
    core_power: float = DEFAULT_CORE_POWER
    walltime: float | None = None
    new_jobs: float | None = None
    input_ratio: float = 1
    queued_jobs: float = 0
    attempts: float = 0
    broker_failures: float = 0
    external_failures: float = 0


JEDI_NAMES = {
    "cpu_time": "cpuTime",
    "cpu_time_unit": "cpuTimeUnit",
    "base_time": "baseTime",
    "cpu_efficiency": "cpuEfficiency",
    "ram_count": "ramCount",
    "ram_count_unit": "ramCountUnit",
    "base_ram_count": "baseRamCount",
    "out_disk_count": "outDiskCount",
    "out_disk_unit": "outDiskUnit",
    "work_disk_count": "workDiskCount",
    "lib_size": "libSize",
    "n_gb_per_job": "nGBPerJob",
    "n_files_per_job": "nFilesPerJob",
    "tgt_max_output_for_ng": "tgtMaxOutputForNG",
    "min_cpu_efficiency": "minCpuEfficiency",
    "core_power": "corePower",
    "walltime": "walltime",
    "new_jobs": "nNewJobs",
    "input_ratio": "inputRatio",
    "queued_jobs": "nQueuedJobs",
    "attempts": "nAttempts",
    "broker_failures": "nBrokerFailures",
    "external_failures": "nExternalFailures",
}
"""Field → the name in a file."""
ALSO = {"baseWalltime": "baseTime", "ramUnit": "ramCountUnit"}
"""Names that PanDA's tables have → the names of its documentation."""
_TEXTS = {"cpu_time_unit": CPU_TIME_UNITS, "ram_count_unit": RAM_UNITS, "out_disk_unit": OUT_DISK_UNITS}
_ABOVE_ZERO = ("core_power", "input_ratio", "walltime")
_OPTIONAL = tuple(field.name for field in fields(Parameters) if field.default is None)


def _kind(field: str) -> Kind[Any]:
    if field in _TEXTS:
        return choice(*_TEXTS[field])
    amount = number(0, 100 if field == "cpu_efficiency" else LARGEST, above=field in _ABOVE_ZERO)
    return optional(amount) if field in _OPTIONAL else amount


_KINDS = {name: _kind(field) for field, name in JEDI_NAMES.items()}


def parameters_from(found: object, file: str, task: str) -> tuple[Parameters, tuple[str, ...]]:
    """Return the parameters in a JSON object, and the names in it that are not used.

    Raises ConfigurationError, which names file, task, key and value, for what is no object, a value that is none, and
    a parameter that is stated under both of its names.
    """
    wrong = in_file(file, task)
    stated: dict[str, object] = found if isinstance(found, dict) else {}
    for name, known in ALSO.items():
        if name in stated and known in stated:
            raise wrong(name, shown(stated[name]), f"{known} or {name}, not both")
    used = {name: value for name, value in stated.items() if ALSO.get(name, name) in _KINDS}
    kinds = {**_KINDS, **{name: _KINDS[known] for name, known in ALSO.items()}}
    read = read_table(used if isinstance(found, dict) else found, kinds, wrong)
    values = {ALSO.get(name, name): value for name, value in read.items()}
    parameters = Parameters(**{field: values[name] for field, name in JEDI_NAMES.items() if name in values})
    return parameters, tuple(sorted(set(stated) - set(used)))
