r"""The name, the options and the script of qsub for a job. Pure.

Names that Grid Engine takes were measured with 8.1.9, which refuses / : @ \ * ? and tabs, and loses a job with a
blank. The tag stands at the end, so that the job can be found again by it, in the queue and in the accounting.
"""

from __future__ import annotations

import re
import shlex

from drainwise_launch.backend import Start
from drainwise_launch.choice.resources import Amount, Resources
from drainwise_launch.job_script import job_script
from drainwise_launch.sge.settings import SgeSettings

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


def qsub_script(job: Start) -> str:
    """Return the script that qsub reads."""
    return job_script(job, MOVED_CODES)


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
