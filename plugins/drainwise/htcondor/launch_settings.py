"""What the launch file says of HTCondor: the table [backends.htcondor], and the options of the command line."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from drainwise.errors import ConfigurationError, UsageError
from drainwise.launch.backend import DEFAULT_MAX_QUEUED

COMMANDS = ("requirements", "rank", "accounting_group", "accounting_group_user", "concurrency_limits")
"""Submit commands that a job may give as resources, and the command line for all jobs."""
TEXT_LIMIT = 1000

_SECTION = "backends.htcondor"
_RANGES = {
    "n_max_queued_jobs": (1, 100_000),
    "command_seconds": (1, 600),
    "check_seconds": (1, 86_400),
    "history_seconds": (0, 86_400),
}
_TEXTS = ("schedd", "collector")
_ADDRESS = re.compile(r"[A-Za-z0-9@._:<>?&=\[\]-]{1,500}")


@dataclass(frozen=True)
class CondorLaunchSettings:
    """The keys of [backends.htcondor].

    n_max_queued_jobs: how many of one bucket may be idle. use_prio: tell each job's JobPrio by when it should start.
    schedd: the name of the access point, where it is not this machine's; collector: the pool it is in.
    command_seconds: how long a question or a submission may take. check_seconds: how often the queue is asked for jobs
    whose ends the event log does not tell. history_seconds: how long a job that has left the queue may still be missing
    in its history before it counts as vanished. options: submit command → value, of the command line.
    """

    n_max_queued_jobs: int = DEFAULT_MAX_QUEUED
    use_prio: bool = True
    schedd: str = ""
    collector: str = ""
    command_seconds: int = 20
    check_seconds: int = 30
    history_seconds: int = 60
    options: Mapping[str, str] = field(default_factory=dict)


def condor_settings(table: Mapping[str, object], options: str, file: str) -> CondorLaunchSettings:
    """The settings in a table of `file`, with the options of the command line.

    Raises ConfigurationError for a wrong key or value, UsageError for a wrong option.
    """
    known = {one.name for one in fields(CondorLaunchSettings)} - {"options"}
    for key, value in table.items():
        if key not in known:
            raise _wrong(file, key, value, f"one of: {', '.join(sorted(known))}")
        if key in _RANGES:
            least, most = _RANGES[key]
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
                raise _wrong(file, key, value, f"a whole number from {least} to {most}")
        elif key in _TEXTS:
            if not isinstance(value, str) or not _ADDRESS.fullmatch(value):
                raise _wrong(file, key, value, "a name or an address")
        elif not isinstance(value, bool):
            raise _wrong(file, key, value, "true or false")
    if "collector" in table and "schedd" not in table:
        raise _wrong(file, "collector", table["collector"], "the name of one of its access points beside it: schedd")
    return CondorLaunchSettings(**table, options=_options(options))  # type: ignore[arg-type] # checked above


def _options(text: str) -> dict[str, str]:
    try:
        words = shlex.split(text)
    except ValueError as fault:
        raise UsageError(f"options for htcondor: {fault}") from None
    found = {}
    for word in words:
        name, is_set, value = word.partition("=")
        name, value = name.strip(), value.strip()
        if name not in COMMANDS or not is_set or not is_command_text(value):
            known = ", ".join(COMMANDS)
            raise UsageError(f"options for htcondor: {word[:60]!r}: expected NAME=VALUE with a name of: {known}")
        found[name] = value
    return found


def is_command_text(text: str) -> bool:
    """Whether a text can be the value of a submit command, and is itself there.

    A backslash would join its line with the next one; of two signs of a macro nobody can make a text.
    """
    if not text.isprintable() or len(text) > TEXT_LIMIT or "$$" in text:
        return False
    return text.strip() != "" and not text.rstrip().endswith("\\")


def _wrong(file: str, key: str, value: object, expected: str) -> ConfigurationError:
    return ConfigurationError(file, _SECTION, key, (value if isinstance(value, str) else ascii(value))[:60], expected)
