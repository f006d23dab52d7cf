"""The settings of Grid Engine: the table [backends.sge] of a launch file, and the priority of the command line.

Source: the SGE backend of open-lmake's documentation; what it does not name is marked as ours.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from drainwise.common.typed_table import absolute_path, in_file, key, matching, read_keys, text, whole
from drainwise.facts.errors import UsageError
from drainwise_launch.backend import DEFAULT_MAX_QUEUED, option_words

LOWEST, HIGHEST = -1023, 1024
"""The range of `qsub -p`; above 0 for operators alone."""
_LONGEST_KEY = 100  # room is left in a name for the job's own
_LONGEST_TEXT = 1000
_SECTION = "backends.sge"
_RESOURCE = matching("([A-Za-z_][A-Za-z0-9_.-]{0,99})?", "the name of a resource, as `qconf -sc` lists it")


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

    bin: str = key(absolute_path())
    root: str = key(absolute_path())
    cell: str = key(text(_LONGEST_TEXT), "")
    cluster: str = key(text(_LONGEST_TEXT), "")
    default_prio: int = key(whole(LOWEST, HIGHEST), 0)
    cpu_resource: str = key(_RESOURCE, "")
    mem_resource: str = key(_RESOURCE, "")
    tmp_resource: str = key(_RESOURCE, "")
    n_max_queued_jobs: int = key(whole(1, 100_000), DEFAULT_MAX_QUEUED)
    repo_key: str = key(text(_LONGEST_KEY), "")
    prio_span: int = key(whole(0, HIGHEST - LOWEST), 100)
    command_seconds: int = key(whole(1, 600), 20)
    accounting_seconds: int = key(whole(0, 86_400), 60)


def sge_settings(table: Mapping[str, object], options: str, file: str) -> SgeSettings:
    """Return the settings in a table of `file`; the command line's priority (`-p N`) replaces default_prio.

    Raises ConfigurationError for a wrong key or value, UsageError for other options.
    """
    found = read_keys(table, SgeSettings, in_file(file, _SECTION))
    if (priority := _priority(options)) is not None:
        found["default_prio"] = priority
    return SgeSettings(**found)


def _priority(options: str) -> int | None:
    words = option_words(options, "sge")
    if len(words) == 1:
        words = ["-p", *words]  # the priority alone, as open-lmake's command line has it
    if not words:
        return None
    if len(words) == 2 and words[0] == "-p" and re.fullmatch(r"-?[0-9]{1,4}", words[1]):
        priority = int(words[1])
        if LOWEST <= priority <= HIGHEST:
            return priority
    raise UsageError(f"options for sge: {options[:60]!r}: expected `-p PRIORITY`, {LOWEST} to {HIGHEST}")
