r"""What jobs ask of Grid Engine: the table [backends.sge] of a launch file, the priority of the command line, and the
name, the options and the script of qsub for a job.

Pure. Source: the SGE backend of open-lmake's documentation; what it does not name is marked as ours. Names that Grid
Engine takes were measured with 8.1.9, which refuses / : @ \ * ? and tabs, and loses a job with a blank. The tag stands
at the end, so that the job can be found again by it, in the queue and in the accounting.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from drainwise.common.typed_table import absolute_path, in_file, key, matching, read_keys, text, whole
from drainwise.facts.errors import UsageError
from drainwise_launch.backend import DEFAULT_MAX_QUEUED, Start, option_words
from drainwise_launch.choice.resources import Amount, Resources

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


LONGEST = 200
"""Characters of a name; Grid Engine takes 512."""

_CLOSE = {":": ";", "/": "|", "\\": "|", "@": "&", "*": "+", "?": "!"}
_UNSOUND = re.compile(r"[^A-Za-z0-9_.,;|&+!%=~^(){}<>#$-]")
_FIRST = re.compile(r"[A-Za-z_]")
_OPERATOR = re.compile(r"[^A-Za-z0-9_.;-]")


def mangled(text: str) -> str:
    """Return a text as (part of) a name: close looking characters for those refused, `_` for the others."""
    return _UNSOUND.sub("_", "".join(_CLOSE.get(letter, letter) for letter in text))


def job_name(key: str, name: str, tag: str) -> str:
    """Return a job's name in Grid Engine: key and name and `.tag`, cut in the middle where it is too long."""
    shown = mangled(key + name)
    if not _FIRST.match(shown):
        shown = f"_{shown}"
    return f"{shown[: LONGEST - len(tag) - 1]}.{tag}"


def pattern_of(key: str) -> str:
    """Return the expression by which qacct finds all jobs of a key: what is an operator there is any character."""
    return _OPERATOR.sub("?", job_name(key, "", "").removesuffix(".")) + "*"


HARD, SOFT = "hard", "soft"
"""Resources that are options of qsub, after `-hard` and after `-soft`."""

MOVED_CODES = {99: 227, 100: 228}
"""Exit codes that Grid Engine takes for an order (start it again; something is wrong with it) → those used instead.

No signal has the numbers 99 and 100, so nothing else ends with 128 + 99 or 128 + 100.
"""

_VALUE = re.compile(r"[!-+.-~-]{1,1000}")  # no blanks, no commas
_REQUESTS = {
    **dict.fromkeys(("-h", "-notify"), 0),
    **dict.fromkeys(("-l", "-q", "-masterq", "-P", "-R", "-ar", "-A", "-a", "-ac", "-c", "-ckpt", "-hold_jid"), 1),
    **dict.fromkeys(("-js", "-m", "-M", "-binding"), 1),
    "-pe": 2,
}
"""Options of qsub that a job may have, and how many words follow each.

With the others, or a word that belongs to none, the job could not be found again or would be another one: a file to be
submitted in its place, an array, other names, files and variables; or qsub would wait for it.
"""
_INSTANCES = frozenset({"env", "pe", "set"})  # words that may stand between -binding and its strategy


def unfit(resources: Resources) -> str:
    """Return why no job of Grid Engine can ask for these resources; empty when one can."""
    for name, amount in resources.others:
        if name in (HARD, SOFT):
            if why := _options_fault(str(amount)):
                return f"{name} = {str(amount)[:60]!r}: {why}"
        elif isinstance(amount, str) and not _VALUE.fullmatch(amount):
            return f"{name} = {amount[:60]!r}: a value of Grid Engine's is ASCII without blanks or commas"
    return ""


def qsub_arguments(settings: SgeSettings, key: str, job: Start, priority: int) -> list[str]:
    """Return the options of qsub for a job, whose script it reads from its standard input."""
    arguments = ["-terse", "-N", job_name(key, job.name, job.tag), "-C", "", "-S", "/bin/sh", "-wd", "/", "-r", "n"]
    # What a file sge_request may say for others: the user's own, or the site's.
    arguments += ["-b", "n", "-now", "n", "-sync", "n", "-o", "/dev/null", "-j", "y", "-p", str(priority), "-hard"]
    for name, amount in _asked(settings, job.resources):
        arguments += ["-l", f"{name}={amount}"]
    if job.wall_limit > 0:
        arguments += ["-l", f"h_rt={job.wall_limit}"]
    for switch in (HARD, SOFT):
        if options := job.resources.get(switch):
            arguments += [f"-{switch}", *shlex.split(str(options))]
    return arguments


def true_code(status: int) -> int:
    """Return the exit code a job ended with, out of the status of its script."""
    return {moved: code for code, moved in MOVED_CODES.items()}.get(status, status)


def _asked(settings: SgeSettings, resources: Resources) -> list[tuple[str, Amount]]:
    standard = (
        (settings.cpu_resource, resources.cpu),
        (settings.mem_resource, resources.mem),
        (settings.tmp_resource, resources.tmp),
    )
    asked: list[tuple[str, Amount]] = [(name, amount) for name, amount in standard if name and amount]
    return asked + [(name, amount) for name, amount in resources.others if name not in (HARD, SOFT)]


def _options_fault(text: str) -> str:
    try:
        words = shlex.split(text)
    except ValueError as fault:
        return f"options of qsub expected: {fault}"
    if not words or not text.isascii():  # whose answer to other letters looks like qmaster's going away
        return "options of qsub expected, such as `-q long.q`, in ASCII"
    while words:
        option = words.pop(0)
        if option not in _REQUESTS:
            return f"{option!r} is none of the options a job may have: {' '.join(sorted(_REQUESTS))}"
        count = _REQUESTS[option] + (option == "-binding" and words[:1] != [] and words[0] in _INSTANCES)
        values, words = words[:count], words[count:]
        if len(values) < count or any(value.startswith("-") and not value[1:].isdigit() for value in values):
            return f"{option} needs {'a word' if count == 1 else f'{count} words'} behind it"
    return ""
