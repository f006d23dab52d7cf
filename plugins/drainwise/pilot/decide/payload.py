"""One payload: what it needs and how long it may run; and its form as one line of JSON in a queue."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import Any

from drainwise.common.typed_table import (
    Kind,
    Wrong,
    command,
    matching,
    number,
    read_json,
    read_table,
    read_value,
    shown,
    text,
    whole,
)
from drainwise.facts.errors import PayloadError

LONGEST = 100 * 365 * 86400.0
"""Seconds a payload may ask for: a hundred years, so that every sum of times stays exact."""
MOST_CORES = 1_000_000
MOST_EVENTS = 1e15
TEXT_LIMIT = 1 << 20
"""Characters of one payload's JSON."""
TASK_LIMIT = 200


@dataclass(frozen=True)
class Payload:
    """A task of a pilot: a `command` on `cores` for `expected` seconds in good faith and never more than `maximum`.

    priority: the higher starts first. task: what it is one of many of, "" when it stands alone. events: how many it
    processes, 0 when it does not say.
    Raises PayloadError for cores < 1, for times that are not 0 < expected ≤ maximum ≤ a hundred years, for events < 0.
    """

    name: str
    cores: int
    command: tuple[str, ...]
    expected: float
    maximum: float
    priority: float = 0.0
    task: str = ""
    events: float = 0.0

    def __post_init__(self) -> None:
        wrong, expected = _wrong(self.name), f"seconds above 0, at most maximum ({self.maximum:g})"
        for key in ("cores", "maximum", "events"):
            read_value(key, getattr(self, key), _KINDS[key], wrong)
        read_value("expected", self.expected, number(0, self.maximum, expected, above=True), wrong)


def parse_payload(written: str, default_name: str | None = None) -> Payload:
    """Read one JSON object: name, cores (1), command, expected (maximum), maximum, priority (0), task, events (0).

    command is a list of words, or a string for the shell. `default_name` serves a payload that states no name.
    Raises PayloadError, one line that names the key, the value and what was expected; unknown keys are refused by name.
    """
    if len(written) > TEXT_LIMIT:
        raise _wrong("")("", f"{len(written)} characters", f"at most {TEXT_LIMIT}")
    found = read_json(written, _wrong(""))
    if not isinstance(found, dict):
        raise _wrong("")("", shown(found), "one JSON object")
    name = read_value("name", found.get("name", default_name), _KINDS["name"], _wrong(""))
    values = read_table(found, _KINDS, _wrong(name), required=("command", "maximum"))
    return Payload(**{"cores": 1, "expected": values["maximum"], **values, "name": name})


def payload_text(payload: Payload) -> str:
    """Write a payload as one line of JSON, without the newline, which `parse_payload` reads to an equal payload."""
    return json.dumps({key: getattr(payload, key) for key in _KINDS})


_NUMBER = number(-sys.float_info.max, sys.float_info.max, "a number")
_KINDS: dict[str, Kind[Any]] = {
    "name": matching(r"[A-Za-z0-9_+-][A-Za-z0-9._+-]{0,99}", "1 to 100 letters, digits or . _ + - and no dot in front"),
    "cores": whole(1, MOST_CORES),
    "command": command(),
    "expected": _NUMBER,
    "maximum": number(0, LONGEST, f"seconds above 0, at most {LONGEST:.0f}", above=True),
    "priority": _NUMBER,
    "task": text(TASK_LIMIT),
    "events": number(0, MOST_EVENTS),
}


def _wrong(name: str) -> Wrong:
    """Return what makes the error of a key of a payload."""
    payload = f"payload {ascii(name)[1:-1][:60]}" if name else "payload"

    def made(key: str, value: str, expected: str) -> PayloadError:
        return PayloadError(f"{payload}: {ascii(key)[1:-1] + ' = ' if key else ''}{value!a}: expected {expected}")

    return made
