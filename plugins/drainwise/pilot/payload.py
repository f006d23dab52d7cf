"""One payload: what it needs and how long it may run; and its form as one line of JSON in a queue."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from drainwise.errors import PayloadError

LONGEST = 100 * 365 * 86400.0
"""Seconds a payload may ask for: a hundred years, so that every sum of times stays exact."""
MOST_CORES = 1_000_000
MOST_EVENTS = 1e15
TEXT_LIMIT = 1 << 20
"""Characters of one payload's JSON."""
TASK_LIMIT = 200
SHELL = ("/bin/sh", "-c")

_NAME = re.compile(r"[A-Za-z0-9_+-][A-Za-z0-9._+-]{0,99}")
_KEYS = ("name", "cores", "command", "expected", "maximum", "priority", "task", "events")


@dataclass(frozen=True)
class Payload:
    """What a pilot runs: a `command` on `cores` for `expected` seconds in good faith and never more than `maximum`.

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
        if not 1 <= self.cores <= MOST_CORES:
            raise _wrong(self.name, "cores", self.cores, f"a whole number from 1 to {MOST_CORES}")
        # Written so that a NaN fails, too.
        if not 0 < self.maximum <= LONGEST:
            raise _wrong(self.name, "maximum", self.maximum, f"seconds above 0, at most {LONGEST:.0f}")
        if not 0 < self.expected <= self.maximum:
            raise _wrong(self.name, "expected", self.expected, f"seconds above 0, at most maximum ({self.maximum:g})")
        if not 0 <= self.events <= MOST_EVENTS:
            raise _wrong(self.name, "events", self.events, f"a number from 0 to {MOST_EVENTS:g}")


def parse_payload(text: str, default_name: str | None = None) -> Payload:
    """Read one JSON object: name, cores (1), command, expected (maximum), maximum, priority (0), task, events (0).

    command is a list of words, or a string for the shell. `default_name` serves a payload that states no name.
    Raises PayloadError, one line that names the key, the value and what was expected; unknown keys are refused by name.
    """
    found = _json_object(text)
    name = found.get("name", default_name)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise _wrong("", "name", name, "1 to 100 letters, digits or . _ + - and no dot in front")
    unknown = sorted(set(found) - set(_KEYS))
    if unknown:
        raise PayloadError(f"payload {name}: {_shown(unknown[0])}: unknown key; known are {', '.join(_KEYS)}")
    if "maximum" not in found:
        raise PayloadError(f"payload {name}: maximum is missing: the seconds after which it may be stopped")
    maximum = _number(name, found, "maximum", 0.0)
    cores = found.get("cores", 1)
    if isinstance(cores, bool) or not isinstance(cores, int):
        raise _wrong(name, "cores", cores, f"a whole number from 1 to {MOST_CORES}")
    return Payload(
        name=name,
        cores=cores,
        command=_command(name, found.get("command")),
        expected=_number(name, found, "expected", maximum),
        maximum=maximum,
        priority=_number(name, found, "priority", 0.0),
        task=_task(name, found.get("task", "")),
        events=_number(name, found, "events", 0.0),
    )


def payload_text(payload: Payload) -> str:
    """Write a payload as one line of JSON, without the newline, which `parse_payload` reads to an equal payload."""
    return json.dumps({key: getattr(payload, key) for key in _KEYS})


def _json_object(text: str) -> Mapping[str, object]:
    if len(text) > TEXT_LIMIT:
        raise PayloadError(f"payload: {len(text)} characters, expected at most {TEXT_LIMIT}")
    try:
        found: object = json.loads(text, object_pairs_hook=_each_key_once, parse_constant=_no_constant)
    except RecursionError:
        raise PayloadError("payload: nested too deeply, expected one flat JSON object") from None
    except ValueError as error:
        raise PayloadError(f"payload: expected one JSON object ({str(error)[:100]})") from None
    if not isinstance(found, dict):
        raise PayloadError(f"payload: {_shown(found)}: expected one JSON object")
    return found


def _each_key_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise PayloadError(f"payload: {_shown(key)}: stands twice")
        found[key] = value
    return found


def _no_constant(word: str) -> NoReturn:
    raise PayloadError(f"payload: {word}: expected a number")


def _number(name: str, found: Mapping[str, object], key: str, default: float) -> float:
    value = found.get(key, default)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    raise _wrong(name, key, value, "a number")


def _command(name: str, value: object) -> tuple[str, ...]:
    if isinstance(value, str) and value.strip():
        words: list[object] = [*SHELL, value]
    elif isinstance(value, list) and value and value[0]:
        words = value
    else:
        raise _wrong(name, "command", value, "a list of words, or a string for the shell")
    command = []
    for word in words:
        if not isinstance(word, str) or "\0" in word or not _encodable(word):
            raise _wrong(name, "command", word, "words of text without NUL")
        command.append(word)
    return tuple(command)


def _task(name: str, value: object) -> str:
    if isinstance(value, str) and len(value) <= TASK_LIMIT and (value.isprintable() or not value):
        return value
    raise _wrong(name, "task", value, f"at most {TASK_LIMIT} printable characters")


def _encodable(word: str) -> bool:
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


def _shown(value: object) -> str:
    """Print a value from outside: ASCII without control characters, at most 60 characters."""
    try:
        return ascii(value)[:60]
    except ValueError:  # an integer of too many digits to print
        return "a very large number"


def _wrong(name: str, key: str, value: object, expected: str) -> PayloadError:
    payload = f"payload {_shown(name)[1:-1]}" if name else "payload"
    return PayloadError(f"{payload}: {key} = {_shown(value)}: expected {expected}")
