"""What jobs ask of Slurm: the table [backends.slurm] of a launch file, options, and the description of a job to sbatch.

Pure. Source: the Slurm backend of open-lmake's documentation, and SPEC §5 (use_nice); what open-lmake does not name is
marked as ours. In the place of its `lib_slurm`, the dynamic library, stands `bin`: Slurm's own commands are used. Its
newer versions have `licenses`, `init_timeout` and wckey.

The sooner a job should start, the smaller its nice value, in this launcher's jobs and in those of all others that
count from the same origin. Slurm takes the nice value off the job's priority and stops at 1: only where the priorities
(PriorityWeight…) are larger than the nice values does it change the order. A site sets `time_origin` and `nice_factor`
in PriorityParameters so that they are.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from drainwise.common.typed_table import absolute_path, in_file, key, matching, number, read_keys, text, truth, whole
from drainwise.facts.errors import UsageError
from drainwise.slurm.jobs.commands import settings_in
from drainwise_launch.backend import DEFAULT_MAX_QUEUED, option_words
from drainwise_launch.choice.resources import Amount, Resources

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


ATTRIBUTES = {
    "account": "account",
    "excludes": "exclude",
    "features": "constraint",
    "gres": "gres",
    "licence": "licenses",
    "licences": "licenses",
    "licenses": "licenses",
    "nodes": "nodelist",
    "partition": "partition",
    "qos": "qos",
    "reserv": "reservation",
    "reservation": "reservation",
    "wckey": "wckey",
}
"""Resources that are passed to Slurm as they are → the option of sbatch. Ours: account."""
AMOUNTS = {"cpu": "cpus-per-task", "mem": "mem", "tmp": "tmp"}
MOST_COMPONENTS = 128

WRAP = 1 << 31
LARGEST = WRAP - 3
"""The largest nice value that Slurm takes."""
DEFAULT_ORIGIN = "2023-01-01 00:00:00"

_BEFORE_ZONE = re.compile(r" (?=[+-])")
_INDEXED = re.compile(r"(.*?[A-Za-z_])([0-9]{1,3})")
_VALUE = re.compile(r"[^\s]{1,1000}")
_UNSOUND = re.compile(r"[^A-Za-z0-9_.,:;@&+!=~^(){}<>#*?/-]")
_LONGEST_NAME = 200

Component = dict[str, str]
"""Long option of sbatch → value, for one component of a (heterogeneous) job."""


def job_name(repo_key: str, name: str, tag: str) -> str:
    """Return the name of a job in Slurm: key, name, `.tag`, cut where it is too long. The tag finds the job again."""
    shown = _UNSOUND.sub("_", repo_key + name)
    return f"{shown[: _LONGEST_NAME - len(tag) - 1]}.{tag}"


def unfit(resources: Resources) -> str:
    """Say why no job of Slurm can ask for these resources, in words; empty when one can, as far as one can know."""
    for name, amount in resources.others:
        stem, index = _split(name)
        if index >= MOST_COMPONENTS:
            return f"{name}: a heterogeneous job has at most {MOST_COMPONENTS} components"
        if isinstance(amount, str) and not _VALUE.fullmatch(amount):
            return f"{name} = {amount[:60]!r}: a value of Slurm's has no blanks"
        if index and ATTRIBUTES.get(stem) == "licenses":
            return f"{name}: Slurm takes licences for the first component of a heterogeneous job alone"
        if stem in AMOUNTS and not isinstance(amount, int):
            return f"{name} = {amount[:60]!r}: expected a whole number"
    indexes = {_split(name)[1] for name, _amount in resources.others}
    missing = [index for index in range(1, max(indexes, default=0)) if index not in indexes]
    if missing:
        return f"nothing has the index {missing[0]}: the components of a heterogeneous job are numbered from 0 on"
    return ""


def components(resources: Resources, licenses: Collection[str], options: Mapping[str, str]) -> list[Component]:
    """Return what each component of the job asks for.

    licenses: names of those that Slurm's configuration declares; other resources that nobody knows are generic ones
    (gres). options: of the command line, for the first component.
    """
    found: dict[int, Component] = {0: {}}
    for name, amount in (*_standard(resources), *resources.others):
        stem, index = _split(name)
        mine = found.setdefault(index, {})
        if stem in AMOUNTS:
            mine[AMOUNTS[stem]] = f"{amount}M" if stem != "cpu" else str(amount)
        elif stem in ATTRIBUTES:
            _add(mine, ATTRIBUTES[stem], str(amount))
        else:
            _add(mine, "licenses" if stem in licenses else "gres", f"{stem}:{amount}")
    found[0].update({name: _in_mb(name, value) for name, value in options.items()})
    return [found[index] for index in sorted(found)]


def sbatch_arguments(parts: list[Component], name: str, nice: int | None, wall_limit: int) -> list[str]:
    """Return the options of sbatch for a job, whose script it reads from its standard input.

    The first ones count for all components.
    """
    arguments = ["--parsable", f"--job-name={name}", "--export=ALL", "--no-requeue", "--chdir=/", "--output=/dev/null"]
    if nice is not None:
        arguments.append(f"--nice={nice}")
    if wall_limit > 0:
        arguments.append(f"--time={-(-wall_limit // 60)}")
    for index, part in enumerate(parts):
        arguments += [":"] * (index > 0)
        arguments += ["--ntasks=1", *(f"--{option}={value}" for option, value in part.items())]
    return arguments


def _standard(resources: Resources) -> list[tuple[str, Amount]]:
    amounts = (("cpu", resources.cpu), ("mem", resources.mem), ("tmp", resources.tmp))
    return [(name, amount) for name, amount in amounts if amount]


def _split(name: str) -> tuple[str, int]:
    """Split `gres1` into gres and 1; a name that only looks so (`gpu2`) stays: nobody else knows what it means."""
    match = _INDEXED.fullmatch(name)
    if match and (match[1] in ATTRIBUTES or match[1] in AMOUNTS):
        return match[1], int(match[2])
    return name, 0


def _add(part: Component, option: str, value: str) -> None:
    part[option] = f"{part[option]},{value}" if option in part else value


def _in_mb(option: str, value: str) -> str:
    return f"{value}M" if option in {"mem", "tmp"} and value.isdigit() else value


@dataclass(frozen=True)
class NiceScale:
    """The origin of nice values (UNIX s), and how much they grow each second."""

    origin: float
    factor: float = 1.0

    def nice(self, priority: float) -> int:
        """Return the nice value of a job that should start at `priority` (UNIX s)."""
        steps = (priority - self.origin) * self.factor
        return min(LARGEST, int(steps) % WRAP) if math.isfinite(steps) else LARGEST


def nice_scale(configuration: str) -> NiceScale:
    """Read the scale in the PriorityParameters of `scontrol show config`.

    As Slurm does, pass over what is no date or no number there, and words that are not known.
    """
    parameters = settings_in(configuration).get("priorityparameters", "")
    words = dict(word.strip().partition("=")[::2] for word in parameters.split(","))
    origin = unix_time(words.get("time_origin", ""))
    if origin is None:
        origin = unix_time(DEFAULT_ORIGIN) or 0.0
    try:
        factor = float(words.get("nice_factor", "1"))
    except ValueError:
        factor = 1.0
    return NiceScale(origin, factor if math.isfinite(factor) and factor > 0 else 1.0)


def unix_time(text: str) -> float | None:
    """Read `YYYY-MM-DD HH:MM[:SS][ +HH:MM]` as UNIX s, in local time where no zone is named; None for another text."""
    try:
        return datetime.fromisoformat(_BEFORE_ZONE.sub("", text.strip())).timestamp()
    except (ValueError, OverflowError):
        return None
