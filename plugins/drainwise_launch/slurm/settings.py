"""The settings of Slurm: the table [backends.slurm] of a launch file, and the options of the command line.

Source: the Slurm backend of open-lmake's documentation; what it does not name is marked as ours. In the place of its
`lib_slurm`, the dynamic library, stands `bin`: Slurm's own commands are used. Its newer versions have `licenses`,
`init_timeout` and wckey.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from drainwise.common.typed_table import absolute_path, in_file, key, matching, number, read_keys, text, truth, whole
from drainwise.facts.errors import UsageError
from drainwise_launch.backend import DEFAULT_MAX_QUEUED, option_words

_SECTION = "backends.slurm"
_LICENSE = " *[A-Za-z0-9_][A-Za-z0-9_.@-]{0,99} *"

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
LONG_OPTIONS = (*OPTIONS.values(), "mem", "tmp", "gres", "reservation", "wckey")
USAGE = (
    "-A|--account NAME, -c|--cpus-per-task N, --mem MB, --tmp MB, -C|--constraint FEATURES, -x|--exclude NODES, "
    "--gres LIST, -L|--licenses LIST, -w|--nodelist NODES, -p|--partition NAME, -q|--qos NAME, --reservation NAME, "
    "--wckey KEY, -h|--help; each takes the place of what the jobs ask for"
)


@dataclass(frozen=True)
class SlurmLaunchSettings:
    """The keys of [backends.slurm].

    config: slurm.conf, where it is not in the usual place. init_timeout: seconds in which Slurm must answer for the
    first time. licenses: names of licences beside those that Slurm's configuration declares.
    n_max_queued_jobs: how many of one bucket may wait.
    repo_key: what the names of jobs begin with; empty: the name of the file, and a colon.
    use_nice: tell Slurm by each job's nice value when it should start.
    Ours: bin: directory of Slurm's commands. command_seconds: how long one may take. accounting_seconds: how long a job
    that slurmctld does not know may still be missing in the accounting before it counts as vanished.
    options: long option → value, of the command line.
    """

    bin: str = key(absolute_path(), "/usr/bin")
    config: str = key(absolute_path(), "")
    init_timeout: float = key(number(0.0, 600.0, "seconds above 0, at most 600", above=True), 10.0)
    licenses: str = key(matching(f"{_LICENSE}(,{_LICENSE})*", "names of licences with commas between them"), "")
    n_max_queued_jobs: int = key(whole(1, 100_000), DEFAULT_MAX_QUEUED)
    repo_key: str = key(text(60), "")
    use_nice: bool = key(truth(), False)
    command_seconds: int = key(whole(1, 600), 20)
    accounting_seconds: int = key(whole(0, 86_400), 60)
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def more_licenses(self) -> frozenset[str]:
        """The names in `licenses`."""
        return frozenset(name.strip() for name in self.licenses.split(",") if name.strip())


def slurm_settings(table: Mapping[str, object], options: str, file: str) -> SlurmLaunchSettings:
    """Return the settings in a table of `file`, with the options of the command line.

    Raises ConfigurationError for a wrong key or value, UsageError for a wrong option.
    """
    found = read_keys(table, SlurmLaunchSettings, in_file(file, _SECTION))
    return SlurmLaunchSettings(**found, options=command_line_options(options))


def command_line_options(options: str) -> dict[str, str]:
    """Return long option → value, of options as sbatch takes them. Raises UsageError for others, and for -h."""
    words = option_words(options, "slurm")
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
