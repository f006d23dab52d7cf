"""The job spec, a lease supervisor's standard input: the job's command and whole environment, checked and as bytes.

Both are passed so and not as the supervisor's own, because what a job sets for itself (LD_PRELOAD, PYTHONPATH) must not
reach the process that keeps it.
"""

from __future__ import annotations

import marshal
import posix
import pwd

from drainwise.facts.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DEFAULT_PATH = b"/usr/local/bin:/usr/bin:/bin"


def clean_environment(ours: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """Return PATH, HOME, LANG and USER of whoever starts the job, whose environment is `ours`; nothing else of it."""
    base = {b"PATH": DEFAULT_PATH, b"HOME": b"/", b"LANG": b"C.UTF-8", b"USER": b"%d" % posix.getuid()}
    try:
        entry = pwd.getpwuid(posix.getuid())
        base[b"HOME"], base[b"USER"] = entry.pw_dir.encode(), entry.pw_name.encode()
    except KeyError:
        pass  # a user without a name, as in many containers
    return {name: ours.get(name) or value for name, value in base.items()}


def checked_command(words: Sequence[str]) -> list[bytes]:
    """Return the command as bytes. Raises UsageError for none, and for what no process can be given."""
    command = [_bytes(word, "the command") for word in words]
    if not command or not command[0]:
        raise UsageError("the command is empty: name a program to run")
    return command


def checked_environment(variables: Mapping[str, str]) -> dict[bytes, bytes]:
    """Return variables as bytes. Raises UsageError naming the one that cannot be."""
    checked = {}
    for name, value in variables.items():
        if not name or "=" in name:
            raise UsageError(f"environment variable {name[:60]!a}: expected a name without '='")
        checked[_bytes(name, "the name of an environment variable")] = _bytes(value, f"the variable {name[:60]!a}")
    return checked


def _bytes(text: str, what: str) -> bytes:
    try:
        data = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise UsageError(f"{what}: {text[:60]!a} cannot be written as UTF-8") from None
    if b"\0" in data:
        raise UsageError(f"{what}: {text[:60]!a} has a NUL character in it")
    return data


def written_spec(command: Sequence[bytes], environment: Mapping[bytes, bytes]) -> bytes:
    """Write a job spec of checked values."""
    return marshal.dumps((list(command), dict(environment)))


def read_spec(descriptor: int) -> tuple[list[bytes], dict[bytes, bytes]]:
    """Read from a pipe the command and the environment that `written_spec` wrote.

    Raises ValueError for a part of a spec: who wrote it died meanwhile, and half a command must never run.
    """
    try:
        with open(descriptor, "rb", closefd=False) as pipe:
            command, environment = marshal.load(pipe)  # noqa: S302 - who holds the other end is our own process
    except (EOFError, TypeError, ValueError):
        raise ValueError("the job spec is incomplete") from None
    return command, environment
