"""One payload: what it needs and how long it may run, its form as one line of JSON in a queue; and those that wait.

Those that wait lie in the launcher's buckets, one for each number of cores, and are kept from one decision to the next:
a decision looks at the first of each bucket, however many wait behind it. What does not fit the time that is left is
put aside until there is more of it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush

from drainwise.common.typed_table import (
    Wrong,
    command,
    key,
    kinds_of,
    matching,
    number,
    read_json,
    read_keys,
    read_value,
    shown,
    text,
    whole,
)
from drainwise.common.waiting import Waiting
from drainwise.facts.errors import PayloadError

LONGEST = 100 * 365 * 86400.0
"""Seconds a payload may ask for: a hundred years, so that every sum of times stays exact."""
MOST_CORES = 1_000_000
MOST_EVENTS = 1e15
TEXT_LIMIT = 1 << 20
"""Characters of one payload's JSON."""
TASK_LIMIT = 200

_NAME = matching(r"[A-Za-z0-9_+-][A-Za-z0-9._+-]{0,99}", "1 to 100 letters, digits or . _ + - and no dot in front")
_NUMBER = number(-sys.float_info.max, sys.float_info.max, "a number")
_COMMAND = command()


@dataclass(frozen=True)
class Payload:
    """A task of a pilot: a `command` on `cores` for `expected` seconds in good faith and never more than `maximum`.

    priority: the higher starts first. task: what it is one of many of, "" when it stands alone. events: how many it
    processes, 0 when it does not say. checkpoint: a command that saves its work, () where there is none, and the
    seconds that this takes.
    Raises PayloadError for cores < 1, for times that are not 0 < expected ≤ maximum ≤ a hundred years, for events < 0.
    """

    name: str = key(_NAME)
    cores: int = key(whole(1, MOST_CORES))
    command: tuple[str, ...] = key(_COMMAND)
    expected: float = key(_NUMBER)
    maximum: float = key(number(0, LONGEST, f"seconds above 0, at most {LONGEST:.0f}", above=True))
    priority: float = key(_NUMBER, 0.0)
    task: str = key(text(TASK_LIMIT), "")
    events: float = key(number(0, MOST_EVENTS), 0.0)
    checkpoint: tuple[str, ...] = key(_COMMAND, ())
    checkpoint_seconds: float = key(number(0, LONGEST), 60.0)

    def __post_init__(self) -> None:
        wrong, expected = _wrong(self.name), f"seconds above 0, at most maximum ({self.maximum:g})"
        for name, kind in _CHECKED.items():
            read_value(name, getattr(self, name), kind, wrong)
        read_value("expected", self.expected, number(0, self.maximum, expected, above=True), wrong)


_KINDS = kinds_of(Payload)
_CHECKED = {name: _KINDS[name] for name in ("cores", "maximum", "events", "checkpoint_seconds")}
"""The kinds of the numbers that callers give by themselves."""


def parse_payload(written: str, default_name: str | None = None) -> Payload:
    """Read one JSON object: name, cores (1), command, expected (maximum), maximum, priority (0), task, events (0),
    checkpoint, checkpoint_seconds (60).

    command and checkpoint are lists of words, or strings for the shell. `default_name` serves a payload that states no
    name.
    Raises PayloadError, one line that names the key, the value and what was expected; unknown keys are refused by name.
    """
    if len(written) > TEXT_LIMIT:
        raise _wrong("")("", f"{len(written)} characters", f"at most {TEXT_LIMIT}")
    found = read_json(written, _wrong(""))
    if not isinstance(found, dict):
        raise _wrong("")("", shown(found), "one JSON object")
    name = read_value("name", found.get("name", default_name), _NAME, _wrong(""))
    stated = {**found, "name": name}
    stated.setdefault("cores", 1)
    stated.setdefault("expected", found.get("maximum"))
    return Payload(**read_keys(stated, Payload, _wrong(name)))


def payload_text(payload: Payload) -> str:
    """Write a payload as one line of JSON, without the newline, which `parse_payload` reads to an equal payload."""
    return json.dumps({name: value for name, value in vars(payload).items() if value != ()})


def _wrong(name: str) -> Wrong:
    """Return what makes the error of a key of a payload."""
    payload = f"payload {ascii(name)[1:-1][:60]}" if name else "payload"

    def made(key: str, value: str, expected: str) -> PayloadError:
        return PayloadError(f"{payload}: {ascii(key)[1:-1] + ' = ' if key else ''}{value!a}: expected {expected}")

    return made


_SPARE = 1000
"""This many more may have gone than wait before what is left of them is swept out."""


class Backlog:
    """The payloads that wait. Each has an `order`, a number of its own: of equal priority the smallest starts first."""

    def __init__(self, payloads: Iterable[Payload] = ()) -> None:
        self._payloads: dict[int, Payload] = {}
        self._waiting: Waiting[int, int] = Waiting(self._fits_in_time)
        self._late: list[tuple[float, int]] = []
        self._largest = self._gone = 0
        self._now = self._bound = 0.0
        for order, payload in enumerate(payloads):
            self.add(payload, order)

    def __len__(self) -> int:
        return len(self._payloads)

    def __iter__(self) -> Iterator[Payload]:
        """Return them in their order."""
        return (self._payloads[order] for order in sorted(self._payloads))

    def add(self, payload: Payload, order: int) -> None:
        """Add one more."""
        self._payloads[order] = payload
        self._largest = max(self._largest, payload.cores)
        self._put(order)

    def remove(self, order: int) -> None:
        """Remove one. Its place in its bucket is found empty later, or swept out with many others."""
        del self._payloads[order]
        self._gone += 1
        if self._gone > len(self._payloads) + _SPARE:
            self._gone = 0
            self._late.clear()
            self._waiting = Waiting(self._fits_in_time)
            for other in self._payloads:
                self._put(other)

    def larger_than(self, cores: int) -> list[Payload]:
        """Return those that need more cores than that."""
        if self._largest <= cores:
            return []
        self._largest = max((payload.cores for payload in self._payloads.values()), default=0)
        return [payload for payload in self if payload.cores > cores]

    def ending_by(self, bound: float, cores: int, now: float, most: int) -> int:
        """Return how many of at most `cores` cores would surely end by `bound` (UNIX s); counted up to `most`."""
        count = 0
        for payload in self._payloads.values():
            if count == most:
                break
            count += payload.cores <= cores and now + payload.maximum <= bound
        return count

    def highest_first(self, free: int, bound: float, now: float, running: Container[str]) -> tuple[Payload, ...]:
        """Choose as the launcher (SPEC §5) until nothing more fits; all that is chosen goes on waiting.

        Those that would not surely end by `bound` (UNIX s) are passed over. Two of one name run one after the other.
        """
        if free <= 0 or not self._payloads:
            return ()
        self._now, self._bound = now, bound
        self._bring_back()
        chosen: dict[str, Payload] = {}
        taken: list[int] = []

        def fits(cores: int, _: int) -> bool:
            return cores <= free

        while (found := self._waiting.choose(fits)) is not None:
            taken.append(self._waiting.take(found[0]))
            payload = self._payloads[found[1]]
            if payload.name not in chosen and payload.name not in running:
                chosen[payload.name] = payload
                free -= payload.cores
        for order in taken:
            self._put(order)
        return tuple(chosen.values())

    def _put(self, order: int) -> None:
        payload = self._payloads[order]
        self._waiting.add(payload.cores, -payload.priority, order, order)

    def _fits_in_time(self, _: float, order: int) -> bool:
        """Return whether one still waits and fits; one that does not fit is put aside."""
        payload = self._payloads.get(order)
        if payload is None:
            return False
        if self._now + payload.maximum <= self._bound:
            return True
        heappush(self._late, (payload.maximum, order))
        return False

    def _bring_back(self) -> None:
        while self._late and self._now + self._late[0][0] <= self._bound:
            order = heappop(self._late)[1]
            if order in self._payloads:
                self._put(order)
