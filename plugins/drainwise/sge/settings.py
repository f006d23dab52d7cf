"""What the launch file says of Grid Engine: the table [backends.sge], and the priority of the command line.

Source: the SGE backend of open-lmake's documentation; what it does not name is marked as ours.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, fields

from drainwise.errors import ConfigurationError, UsageError
from drainwise.launch.backend import DEFAULT_MAX_QUEUED

LOWEST, HIGHEST = -1023, 1024
"""What `qsub -p` takes; above 0 for operators alone."""
_RESOURCE = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,99}")
_LONGEST_KEY = 100  # room is left in a name for the job's own
_SECTION = "backends.sge"


@dataclass(frozen=True)
class SgeSettings:
    """The keys of [backends.sge].

    bin: directory of qsub, qstat, qdel, qacct, qalter; root: $SGE_ROOT; both are needed. cell: $SGE_CELL. cluster:
    $SGE_CLUSTER and $SGE_CLUSTER_NAME. default_prio: priority of jobs (`qsub -p`). cpu_resource, mem_resource,
    tmp_resource: names of the resources that hold cores, MB of memory and MB of scratch; empty: not asked for.
    n_max_queued_jobs: how many of one bucket may wait. repo_key: stands before the names of jobs; empty: the launch
    file's name and a colon.
    Ours: prio_span: jobs get priorities from default_prio down to so much less, the more urgent the higher; 0: all the
    same. command_seconds: how long a command may take. accounting_seconds: how long after its end a job may still be
    missing in the accounting before it counts as vanished (Grid Engine writes it each 15 s as installed).
    """

    bin: str
    root: str
    cell: str = ""
    cluster: str = ""
    default_prio: int = 0
    cpu_resource: str = ""
    mem_resource: str = ""
    tmp_resource: str = ""
    n_max_queued_jobs: int = DEFAULT_MAX_QUEUED
    repo_key: str = ""
    prio_span: int = 100
    command_seconds: int = 20
    accounting_seconds: int = 60


_PATHS = ("bin", "root")
_RESOURCES = ("cpu_resource", "mem_resource", "tmp_resource")
_RANGES = {
    "default_prio": (LOWEST, HIGHEST),
    "n_max_queued_jobs": (1, 100_000),
    "prio_span": (0, HIGHEST - LOWEST),
    "command_seconds": (1, 600),
    "accounting_seconds": (0, 86_400),
}


def sge_settings(table: Mapping[str, object], options: str, file: str) -> SgeSettings:
    """The settings in a table of `file`, with the priority of the command line (`-p N`) in the place of default_prio.

    Raises ConfigurationError for a wrong key or value, UsageError for other options.
    """
    known = {field.name for field in fields(SgeSettings)}
    for key in table:
        if key not in known:
            raise ConfigurationError(file, _SECTION, key, _shown(table[key]), f"one of: {', '.join(sorted(known))}")
    found: dict[str, int | str] = {}
    for name in (field.name for field in fields(SgeSettings)):
        if name in table:
            found[name] = _number(file, name, table[name]) if name in _RANGES else _text(file, name, table[name])
        elif name in _PATHS:
            raise ConfigurationError(
                file, _SECTION, name, "", "an absolute path: Grid Engine cannot be found without it"
            )
    if (priority := _priority(options)) is not None:
        found["default_prio"] = priority
    return SgeSettings(**found)  # type: ignore[arg-type] # each value has been made to fit its key above


def _number(file: str, name: str, value: object) -> int:
    least, most = _RANGES[name]
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ConfigurationError(file, _SECTION, name, _shown(value), f"a whole number from {least} to {most}")
    return value


def _text(file: str, name: str, value: object) -> str:
    if not isinstance(value, str) or not value.isprintable():
        raise ConfigurationError(file, _SECTION, name, _shown(value), "a text")
    if name in _PATHS and not os.path.isabs(value):
        raise ConfigurationError(file, _SECTION, name, value, "an absolute path")
    if name == "repo_key" and len(value) > _LONGEST_KEY:
        raise ConfigurationError(file, _SECTION, name, _shown(value), f"at most {_LONGEST_KEY} characters")
    if name in _RESOURCES and value and not _RESOURCE.fullmatch(value):
        raise ConfigurationError(file, _SECTION, name, value, "the name of a resource, as `qconf -sc` lists it")
    return value


def _priority(options: str) -> int | None:
    try:
        words = shlex.split(options)
    except ValueError as fault:
        raise UsageError(f"options for sge: {fault}: expected `-p PRIORITY`") from None
    if len(words) == 1:
        words = ["-p", *words]  # the priority alone, as open-lmake's command line has it
    if not words:
        return None
    if len(words) == 2 and words[0] == "-p" and re.fullmatch(r"-?[0-9]{1,4}", words[1]):
        priority = int(words[1])
        if LOWEST <= priority <= HIGHEST:
            return priority
    raise UsageError(f"options for sge: {options[:60]!r}: expected `-p PRIORITY`, {LOWEST} to {HIGHEST}")


def _shown(value: object) -> str:
    return (value if isinstance(value, str) else ascii(value))[:60]
