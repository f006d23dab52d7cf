"""What the launch file says of Slurm: the table [backends.slurm], and the options of the command line.

Source: the Slurm backend of open-lmake's documentation; what it does not name is marked as ours. In the place of its
`lib_slurm`, the dynamic library, stands `bin`: Slurm's own commands are used.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from drainwise.errors import ConfigurationError, UsageError
from drainwise.launch.backend import DEFAULT_MAX_QUEUED

_SECTION = "backends.slurm"
_RANGES = {"n_max_queued_jobs": (1, 100_000), "command_seconds": (1, 600), "accounting_seconds": (0, 86_400)}
_PATHS = ("bin", "config")
_LONGEST_KEY = 60

OPTIONS = {
    "-A": "account",
    "-c": "cpus-per-task",
    "-C": "constraint",
    "-x": "exclude",
    "-L": "licenses",
    "-w": "nodelist",
    "-p": "partition",
    "-q": "qos",
}
"""The short options of the command line and the long ones they stand for. Ours: account."""
LONG_OPTIONS = (*OPTIONS.values(), "mem", "tmp", "gres", "reservation")
USAGE = (
    "-A|--account NAME, -c|--cpus-per-task N, --mem MB, --tmp MB, -C|--constraint FEATURES, -x|--exclude NODES, "
    "--gres LIST, -L|--licenses LIST, -w|--nodelist NODES, -p|--partition NAME, -q|--qos NAME, --reservation NAME, "
    "-h|--help; each takes the place of what the jobs ask for"
)


@dataclass(frozen=True)
class SlurmLaunchSettings:
    """The keys of [backends.slurm].

    config: slurm.conf, where it is not in the usual place. n_max_queued_jobs: how many of one bucket may wait.
    repo_key: what the names of jobs begin with; empty: the name of the file, and a colon.
    use_nice: tell Slurm by each job's nice value when it should start.
    Ours: bin: directory of Slurm's commands. command_seconds: how long one may take. accounting_seconds: how long a job
    that slurmctld does not know may still be missing in the accounting before it counts as vanished.
    options: long option → value, of the command line.
    """

    bin: str = "/usr/bin"
    config: str = ""
    n_max_queued_jobs: int = DEFAULT_MAX_QUEUED
    repo_key: str = ""
    use_nice: bool = False
    command_seconds: int = 20
    accounting_seconds: int = 60
    options: Mapping[str, str] = field(default_factory=dict)


def slurm_settings(table: Mapping[str, object], options: str, file: str) -> SlurmLaunchSettings:
    """The settings in a table of `file`, with the options of the command line.

    Raises ConfigurationError for a wrong key or value, UsageError for a wrong option.
    """
    known = {one.name for one in fields(SlurmLaunchSettings)} - {"options"}
    found: dict[str, object] = {}
    for key, value in table.items():
        if key not in known:
            raise ConfigurationError(file, _SECTION, key, _shown(value), f"one of: {', '.join(sorted(known))}")
        if key in _RANGES:
            least, most = _RANGES[key]
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
                raise ConfigurationError(file, _SECTION, key, _shown(value), f"a whole number from {least} to {most}")
        elif key in _PATHS:
            if not isinstance(value, str) or not os.path.isabs(value) or not value.isprintable():
                raise ConfigurationError(file, _SECTION, key, _shown(value), "an absolute path")
        elif key == "repo_key":
            if not isinstance(value, str) or not value.isprintable() or len(value) > _LONGEST_KEY:
                expected = f"printable text of at most {_LONGEST_KEY} characters"
                raise ConfigurationError(file, _SECTION, key, _shown(value), expected)
        elif not isinstance(value, bool):
            raise ConfigurationError(file, _SECTION, key, _shown(value), "true or false")
        found[key] = value
    return SlurmLaunchSettings(**found, options=command_line_options(options))  # type: ignore[arg-type] # checked above


def command_line_options(text: str) -> dict[str, str]:
    """Long option → value, of options as sbatch takes them. Raises UsageError for others, and for -h."""
    try:
        words = shlex.split(text)
    except ValueError as fault:
        raise UsageError(f"options for slurm: {fault}") from None
    found = {}
    while words:
        word = words.pop(0)
        if word in {"-h", "--help"}:
            raise UsageError(f"options for slurm: {USAGE}")
        name, has_value, value = word.partition("=")
        if not word.startswith("--"):
            name, value, has_value = word[:2], word[2:], word[2:]
        option = OPTIONS.get(name) or (name[2:] if name.startswith("--") else "")
        if option not in LONG_OPTIONS:
            raise UsageError(f"options for slurm: {word[:60]!r} is none of {USAGE}")
        if not has_value:
            value = words.pop(0) if words else ""
        if not value or not value.isprintable() or value.startswith("-"):
            raise UsageError(f"options for slurm: {word[:60]!r} needs a value")
        found[option] = value
    return found


def _shown(value: object) -> str:
    return (value if isinstance(value, str) else ascii(value))[:60]
