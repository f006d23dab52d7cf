"""What a keeper is told on its standard input: the job's command and its whole environment, checked and as bytes.

Both are passed so and not as the keeper's own, because what a job sets for itself (LD_PRELOAD, PYTHONPATH) must not
reach the process that keeps it.
"""

from __future__ import annotations

import posix
import pwd

from drainwise.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DEFAULT_PATH = b"/usr/local/bin:/usr/bin:/bin"
_PIECE = 1 << 16


def clean_environment(ours: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """PATH, HOME, LANG and USER of whoever starts the job, whose environment is `ours`; nothing else of it."""
    base = {b"PATH": DEFAULT_PATH, b"HOME": b"/", b"LANG": b"C.UTF-8", b"USER": b"%d" % posix.getuid()}
    try:
        entry = pwd.getpwuid(posix.getuid())
        base[b"HOME"], base[b"USER"] = entry.pw_dir.encode(), entry.pw_name.encode()
    except KeyError:
        pass  # a user without a name, as in many containers
    return {name: ours.get(name) or value for name, value in base.items()}


def checked_command(words: Sequence[str]) -> list[bytes]:
    """The command as bytes. Raises UsageError for none, and for what no process can be given."""
    command = [_bytes(word, "the command") for word in words]
    if not command or not command[0]:
        raise UsageError("the command is empty: name a program to run")
    return command


def checked_environment(variables: Mapping[str, str]) -> dict[bytes, bytes]:
    """Variables as bytes. Raises UsageError naming the one that cannot be."""
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


def written_order(command: Sequence[bytes], environment: Mapping[bytes, bytes]) -> bytes:
    """`length NUL count NUL arguments NUL NAME=value …`, from what was checked; the length is of what follows it."""
    pairs = [b"%b=%b" % pair for pair in environment.items()]
    words = b"\0".join([b"%d" % len(command), *command, *pairs])
    return b"%d\0%b" % (len(words), words)


def parsed_order(order: bytes) -> tuple[list[bytes], dict[bytes, bytes]]:
    """The command and the environment that `written_order` wrote.

    Raises ValueError for a part of an order: who gave it died over it, and half a command must never run.
    """
    length, _, text = order.partition(b"\0")
    if not length.isdigit() or int(length) != len(text):
        raise ValueError("the order has not come whole")
    count, *words = text.split(b"\0")
    environment = {}
    for pair in words[int(count) :]:
        name, _, value = pair.partition(b"=")
        environment[name] = value
    return words[: int(count)], environment


def read_order(descriptor: int) -> tuple[list[bytes], dict[bytes, bytes]]:
    """As `parsed_order`, from a pipe that is read to its end."""
    pieces = []
    while piece := posix.read(descriptor, _PIECE):
        pieces.append(piece)
    return parsed_order(b"".join(pieces))
