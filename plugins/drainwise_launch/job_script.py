"""A job as a script of sh: what a batch system that takes scripts is given. Nothing a user writes is ever evaluated.

Everything stands in the script, the environment too: options and ads of a batch system can be read by everybody, a
job's script by its owner alone. No file is needed that the worker node might not see.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping

from drainwise.facts.errors import ActionRefused
from drainwise_launch.backend import Start

NOT_BEGUN = 125
"""The script's exit code when the job's directory or its output file cannot be used."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# What some shell lets nobody set, or not to anything.
_OF_THE_SHELL = re.compile(
    "BASH.*|E?UID|PPID|OPTIND|LINENO|S?RANDOM|SECONDS|EPOCHSECONDS|EPOCHREALTIME|SHELLOPTS|FUNCNAME|GROUPS|DIRSTACK"
    "|PIPESTATUS|HISTCMD"
)


def job_script(job: Start, moved: Mapping[int, int] | None = None, unwanted: Collection[str] = ()) -> str:
    """Return the script of a job; one without `stdout` prints where the batch system has it print.

    `moved`: exit codes that mean something to the batch system → those to end with instead.

    `unwanted`: variables that the submit command leaves in a job's environment and nobody asked for.

    Raises ActionRefused for what no process can be given: a NUL, half a character.
    """
    words = [shlex.quote(word) for word in job.argv]
    by_env = [f"{name}={value}" for name, value in job.environment.items() if not _is_plain(name)]
    if by_env or job.argv[0].startswith("-"):  # that some shells take for an option of exec
        if "=" in job.argv[0]:
            raise ActionRefused(f"job {job.name!r}: no shell can start a program called {job.argv[0][:60]!r} so")
        words = ["/usr/bin/env", "--", *map(shlex.quote, by_env), *words]
    # Behind `exec` no word is the shell's: a builtin, an assignment, the beginning of an `if`. Its stdin alone is
    # taken away: a shell that is given the script on its own would read nothing more of it, and end with 0.
    program = " ".join(["exec", *words, "</dev/null"])
    strange = sorted(set(unwanted) - set(job.environment))
    lines = [
        "#!/bin/sh",
        *([f"unset {' '.join(strange)}"] if strange else []),
        f"exec >>{shlex.quote(job.stdout)} 2>&1 || exit {NOT_BEGUN}" if job.stdout else "exec 2>&1",
        *(f"export {name}={shlex.quote(value)}" for name, value in job.environment.items() if _is_plain(name)),
        f"cd -- {shlex.quote(job.cwd)} || exit {NOT_BEGUN}",
    ]
    if moved:
        cases = " ".join(f"{code}) exit {instead};;" for code, instead in moved.items())
        lines += [f"({program})", "code=$?", f'case "$code" in {cases} esac', 'exit "$code"']
    else:
        lines.append(program)
    text = "\n".join(lines) + "\n"
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ActionRefused(f"job {job.name!r}: half a character in its arguments or environment") from None
    if "\0" in text:
        raise ActionRefused(f"job {job.name!r}: a NUL in its arguments or environment, which no process can be given")
    return text


def _is_plain(name: str) -> bool:
    return bool(_VARIABLE.fullmatch(name)) and not _OF_THE_SHELL.fullmatch(name)
