"""Read a journal back, across the files that it was rotated into: the oldest event first."""

from __future__ import annotations

import json
import math
import os
import re
import stat
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from drainwise.facts.errors import UsageError
from drainwise.journal.event import VERSION, Event, Kind, moment, objects


def files_of(path: str) -> list[str]:
    """Return the files of the journal at `path` that exist, the oldest first and `path` last."""
    folder, name = os.path.split(path)
    numbered = re.compile(re.escape(name) + r"\.([1-9][0-9]{0,5})")
    try:
        found = [int(match[1]) for entry in os.listdir(folder or ".") if (match := numbered.fullmatch(entry))]
    except OSError:
        found = []
    return [f"{path}.{number}" for number in sorted(found, reverse=True)] + [path] * os.path.lexists(path)


def lines_of(paths: Iterable[str], passed_over: PassedOver | None = None) -> Iterator[bytes]:
    """Yield the whole lines of the files, in their order; a torn last one is passed over and counted.

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
                for line in stream:
                    if line.endswith(b"\n"):
                        yield line
                    elif passed_over is not None:
                        passed_over.lines += 1
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


class PassedOver:
    """Counts the lines of a journal that are no sound events of this version: somebody else's, torn, or of a newer one.

    Whoever reads a journal for somebody says so.
    """

    def __init__(self) -> None:
        self.lines = 0

    def __str__(self) -> str:
        """Return a sentence, "" where there were none."""
        if not self.lines:
            return ""
        return f"{self.lines} {'line' if self.lines == 1 else 'lines'} of the journal cannot be used; passed over"


def event_of(line: bytes) -> Event | None:
    """Return the event that a line holds; None when it is none, its time is none, or it is of another version."""
    try:
        value = json.loads(line, parse_constant=_refused, parse_float=_finite)
        if not isinstance(value, dict) or not isinstance(value.get("event"), str):
            return None
        if value.get("version") != VERSION:
            return None
        if "time" in value:
            moment(value, "time")
    except (ValueError, RecursionError):
        return None
    return value


def _refused(name: str) -> float:
    raise ValueError(name)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def kind_of(line: bytes) -> str | None:
    """Return the kind of event that a line holds; of ours the beginning is enough.

    None for what is no event; a line that another program wrote is read.
    """
    if line.startswith(b'{"event":"'):
        return line[10:24].partition(b'"')[0].decode("ascii", "replace")
    event = event_of(line)
    return None if event is None else str(event["event"])


def first_time(paths: Iterable[str]) -> int | None:
    """Return when the journal begins, UNIX s; None when there is nothing in it."""
    for line in lines_of(paths):
        event = event_of(line)
        if event is not None and "time" in event:
            return moment(event, "time")
    return None


def events_of(paths: Iterable[str], *kinds: str, passed_over: PassedOver | None = None) -> Iterator[Event]:
    """Yield the events of the files, in their order; only of these kinds, when some are named."""
    passed_over = passed_over or PassedOver()
    for line in lines_of(paths, passed_over):
        kind = kind_of(line)
        if kind is None or not kinds or kind in kinds:
            event = event_of(line)
            if event is not None:
                yield event
            else:
                passed_over.lines += 1


def unusable_lines(paths: Iterable[str]) -> PassedOver:
    """Return the count of all lines that are no events: they are read whole, which takes its time."""
    found = PassedOver()
    for _ in events_of(paths, passed_over=found):
        pass
    return found


_LISTS = ("users", "spared", "pilots")
_NAMING = (Kind.DECISION, Kind.ORDER, Kind.PART, Kind.RETURNED, Kind.WITHDRAWAL, Kind.ENDED)


class NamesIn(NamedTuple):
    """What a journal names."""

    users: set[str]
    accounts: set[str]
    nodes: set[str]


def names_in(paths: Iterable[str]) -> NamesIn:
    """Return the names in the journal's files, for who typed one that is not known.

    Raises UsageError for a file that cannot be read.
    """
    found = NamesIn(set(), set(), set())
    for event in events_of(paths, *_NAMING):
        for one in (event, *_within(event)):
            for names, key in zip(found, ("user", "account", "node")):
                if isinstance(name := one.get(key), str):
                    names.add(name)
    return found


def _within(event: Event) -> Iterator[Event]:
    for name in _LISTS:
        try:
            yield from objects(event, name)
        except ValueError:
            continue
