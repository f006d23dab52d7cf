"""What a task states of itself, under JEDI's names: presets, units, and how its jobs are made. Wrong ones are named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from drainwise.errors import ConfigurationError
from drainwise.estimate.records import LARGEST

HS06, MILLI_HS06 = "HS06sPerEvent", "mHS06sPerEvent"
CPU_TIME_UNITS = (HS06, MILLI_HS06, f"{HS06}Fixed", f"{MILLI_HS06}Fixed")
PER_CORE = "MBPerCore"
RAM_UNITS = (PER_CORE, f"{PER_CORE}Fixed")
FIXED = "Fixed"
BASE_TIME, ANALYSIS_BASE_TIME = 600.0, 60.0
"""Seconds of a job that do not scale with the power of its cores; an analysis task has less."""
DEFAULT_CORE_POWER = 10.0
"""HS06 of a core of which nothing is known (JEDI's own default)."""


@dataclass(frozen=True)
class Parameters:
    """One task's parameters. None: not stated.

    cpu_time: in `cpu_time_unit`. base_time: s. cpu_efficiency, min_cpu_efficiency: per cent; 0 ends the scaling with
    events. ram_count, base_ram_count: MB (per core, and on top). out_disk_count: kB per event. work_disk_count: MB.
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
    work_disk_count: float | None = None
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
    "work_disk_count": "workDiskCount",
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
_TEXTS = {"cpu_time_unit": CPU_TIME_UNITS, "ram_count_unit": RAM_UNITS}
_ABOVE_ZERO = ("core_power", "input_ratio", "walltime")
_OPTIONAL = tuple(field.name for field in fields(Parameters) if field.default is None)


def parameters_from(found: object, file: str, task: str) -> Parameters:
    """The parameters in a JSON object. Raises ConfigurationError, which names file, task, key and value."""
    if not isinstance(found, Mapping):
        raise ConfigurationError(file, task, "", str(found)[:80], "an object of task parameters")
    fields_of = {name: field for field, name in JEDI_NAMES.items()}
    values: dict[str, object] = {}
    for key, value in found.items():
        field = fields_of.get(key)
        if field is None:
            raise ConfigurationError(file, task, str(key)[:80], str(value)[:80], f"one of {', '.join(fields_of)}")
        expected = _fault(field, value)
        if expected:
            raise ConfigurationError(file, task, key, str(value)[:80], expected)
        values[field] = value
    return Parameters(**values)  # type: ignore[arg-type] # each was checked just now


def _fault(field: str, value: object) -> str:
    """What was expected instead of a value; "" when it is right."""
    if field in _TEXTS:
        return "" if value in _TEXTS[field] else f"one of {', '.join(_TEXTS[field])}"
    if value is None and field in _OPTIONAL:
        return ""
    highest = 100 if field == "cpu_efficiency" else LARGEST
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not 0 <= float(str(value)) <= highest or (field in _ABOVE_ZERO and not value):
        return f"a number {'above' if field in _ABOVE_ZERO else 'from'} 0" + (" to 100" if highest == 100 else "")
    return ""
