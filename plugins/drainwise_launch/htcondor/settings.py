"""The settings of HTCondor: the table [backends.htcondor] of a launch file, and the options of the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from drainwise.common.typed_table import in_file, key, matching, read_keys, truth, whole
from drainwise.facts.errors import UsageError
from drainwise_launch.backend import DEFAULT_MAX_QUEUED, option_words

COMMANDS = ("requirements", "rank", "accounting_group", "accounting_group_user", "concurrency_limits")
"""Submit commands that a job may give as resources, and the command line for all jobs."""
TEXT_LIMIT = 1000

_SECTION = "backends.htcondor"
_ADDRESS = matching(r"[A-Za-z0-9@._:<>?&=\[\]-]{1,500}", "a name or an address")


@dataclass(frozen=True)
class CondorLaunchSettings:
    """The keys of [backends.htcondor].

    n_max_queued_jobs: how many of one bucket may be idle. use_prio: tell each job's JobPrio by when it should start.
    schedd: the name of the access point, where it is not this machine's; collector: the pool it is in.
    command_seconds: how long a question or a submission may take. check_seconds: how often the queue is asked for jobs
    whose ends the event log does not tell. history_seconds: how long a job that has left the queue may still be missing
    in its history before it counts as vanished. check_slots: refuse what no slot of the pool can hold now.
    fail_held: a job that its owner holds has failed, like one that HTCondor puts on hold.
    options: submit command → value, of the command line.
    """

    n_max_queued_jobs: int = key(whole(1, 100_000), DEFAULT_MAX_QUEUED)
    use_prio: bool = key(truth(), True)
    schedd: str = key(_ADDRESS, "")
    collector: str = key(_ADDRESS, "")
    command_seconds: int = key(whole(1, 600), 20)
    check_seconds: int = key(whole(1, 86_400), 30)
    history_seconds: int = key(whole(0, 86_400), 60)
    check_slots: bool = key(truth(), False)
    fail_held: bool = key(truth(), False)
    options: Mapping[str, str] = field(default_factory=dict)


def condor_settings(table: Mapping[str, object], options: str, file: str) -> CondorLaunchSettings:
    """Read the settings in a table of `file`, with the options of the command line.

    Raises ConfigurationError for a wrong key or value, UsageError for a wrong option.
    """
    wrong = in_file(file, _SECTION)
    found = read_keys(table, CondorLaunchSettings, wrong)
    if "collector" in found and "schedd" not in found:
        raise wrong("collector", found["collector"], "the name of one of its access points beside it: schedd")
    return CondorLaunchSettings(**found, options=_options(options))


def _options(text: str) -> dict[str, str]:
    words = option_words(text, "htcondor")
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
    """Tell whether a text can be the value of a submit command, and is itself there.

    A backslash would join its line with the next one; of two signs of a macro nobody can make a text.
    """
    if not text.isprintable() or len(text) > TEXT_LIMIT or "$$" in text:
        return False
    return text.strip() != "" and not text.rstrip().endswith("\\")
