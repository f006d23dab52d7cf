"""Reading a journal back, across the files that it was rotated into: the oldest event first."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable, Iterator

from drainwise.errors import UsageError
from drainwise.journal.event import VERSION, Event, whole


def files_of(path: str) -> list[str]:
    """The files of the journal at `path` that exist, the oldest first and `path` last."""
    folder, name = os.path.split(path)
    numbered = re.compile(re.escape(name) + r"\.([1-9][0-9]{0,5})")
    try:
        found = [int(match[1]) for entry in os.listdir(folder or ".") if (match := numbered.fullmatch(entry))]
    except OSError:
        found = []
    return [f"{path}.{number}" for number in sorted(found, reverse=True)] + [path] * os.path.lexists(path)


def lines_of(paths: Iterable[str]) -> Iterator[bytes]:
    """The whole lines of the files, in their order; a torn last one is passed over.

    All files are opened before the first is read, the newest first, and none is read twice: so nothing is missed when
    they are rotated meanwhile. Raises UsageError for a file that cannot be read.
    """
    seen: set[tuple[int, int]] = set()
    opened: list[int] = []
    try:
        for path in reversed(list(paths)):
            descriptor = _opened(path)
            if descriptor is None:
                continue
            opened.append(descriptor)
            facts = os.fstat(descriptor)
            if (facts.st_dev, facts.st_ino) in seen:
                os.close(opened.pop())
            seen.add((facts.st_dev, facts.st_ino))
        while opened:
            with open(opened.pop(), "rb") as stream:
                yield from (line for line in stream if line.endswith(b"\n"))
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _opened(path: str) -> int | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None  # moved on since it was listed
    except (OSError, ValueError) as fault:
        reason = getattr(fault, "strerror", None) or "not a path"
        raise UsageError(f"the journal {path!r} cannot be read: {reason}") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UsageError(f"the journal {path!r} cannot be read: it is not a regular file")
    return descriptor


def event_of(line: bytes) -> Event | None:
    """The event that a line holds; None when it is none, or of another version."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    sound = isinstance(value, dict) and value.get("version") == VERSION and isinstance(value.get("event"), str)
    return value if sound else None


def is_of(line: bytes, kinds: tuple[bytes, ...]) -> bool:
    """Whether a line is an event of one of these kinds, told from its beginning: no need to read all of it."""
    return line.startswith(b'{"event":"') and line[10:24].partition(b'"')[0] in kinds


def first_time(paths: Iterable[str]) -> int | None:
    """When the journal begins, UNIX s; None when there is nothing in it."""
    for line in lines_of(paths):
        event = event_of(line)
        if event is not None and isinstance(event.get("time"), int):
            return whole(event, "time")
    return None


def events_of(paths: Iterable[str], *kinds: str) -> Iterator[Event]:
    """The events of the files, in their order; only of these kinds, when some are named."""
    names = tuple(kind.encode() for kind in kinds)
    for line in lines_of(paths):
        if not names or is_of(line, names):
            event = event_of(line)
            if event is not None:
                yield event
