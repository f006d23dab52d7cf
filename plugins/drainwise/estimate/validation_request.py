"""A request to validate: what its author claims of one event and of the memory, and how a run of it is started.

Every fault of a request file is refused with the file, the key, the value and what was expected.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from drainwise.errors import ConfigurationError
from drainwise.estimate.validation_checks import Estimates, Limits
from drainwise.siteconfig.units import parse_duration

MULTI_CORE = (2, 4, 8)
DEFAULT_WALL_LIMIT = 8 * 3600
LARGEST = 10**12
MOST_CORES = 1024
LONGEST_WALL_LIMIT = 365 * 86400
LAST_RELEASE_WITHOUT_THREADS = (7, 3)

_RELEASE = re.compile(r"CMSSW_([0-9]{1,3})_([0-9]{1,3})(?:_[A-Za-z0-9_]{1,60})?")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_OUR_VARIABLES = "DRAINWISE_"
_KEYS = (
    "name",
    "command",
    "events",
    "time_per_event",
    "size_per_event",
    "memory",
    "threads",
    "filter_efficiency",
    "match_efficiency",
    "release",
    "can_thread",
    "cores",
    "wall_limit",
    "environment",
    "backends",
)


@dataclass(frozen=True)
class Request:
    """What is to be validated. command: words in which {cores}, {events} and {memory} (MB) are replaced.

    events: how many each run processes. time_per_event: s. size_per_event: kB. memory: MB for all of `threads`.
    filter_efficiency: of generator filter × match. can_thread: whether runs of more cores make sense; `cores` says of
    how many. wall_limit: s of each run. backends: what batch systems have to be told, by name; a request stays the same
    when that changes.
    """

    name: str
    command: tuple[str, ...]
    events: int
    time_per_event: float
    size_per_event: float
    memory: int
    can_thread: bool
    threads: int = 1
    filter_efficiency: float = 1.0
    cores: tuple[int, ...] = MULTI_CORE
    wall_limit: int = DEFAULT_WALL_LIMIT
    environment: Mapping[str, str] = field(default_factory=dict)
    backends: Mapping[str, Mapping[str, object]] = field(default_factory=dict, compare=False)

    @property
    def estimates(self) -> Estimates:
        """What a validation may adjust."""
        return Estimates(self.time_per_event, self.size_per_event)

    @property
    def limits(self) -> Limits:
        """What it may not."""
        return Limits(self.memory, self.filter_efficiency)


def request_of(found: object, file: str) -> Request:
    """The request in the values of a file; `file` is named in every fault. Raises ConfigurationError."""
    values = _Values(file, found)
    can_thread, claimed = values.can_thread(), values.fraction("filter_efficiency")
    return Request(
        name=values.name(),
        command=values.command(),
        events=values.whole("events", LARGEST),
        time_per_event=values.number("time_per_event", "seconds"),
        size_per_event=values.number("size_per_event", "kB"),
        memory=values.whole("memory", LARGEST),
        can_thread=can_thread,
        threads=values.whole("threads", MOST_CORES, 1),
        filter_efficiency=claimed * values.fraction("match_efficiency"),
        cores=values.cores(),
        wall_limit=values.wall_limit(),
        environment=values.environment(),
        backends=values.backends(),
    )


def release_can_thread(release: str) -> bool | None:
    """Whether a CMSSW release knows nThreads: those after 7.3; None where `release` is no such name."""
    match = _RELEASE.fullmatch(release)
    return None if match is None else (int(match[1]), int(match[2])) > LAST_RELEASE_WITHOUT_THREADS


class _Values:
    """The keys of one file, each read with its own check."""

    def __init__(self, file: str, found: object) -> None:
        self._file = file
        if not isinstance(found, dict):
            raise ConfigurationError(file, "", "", _shown(found), "one table of keys at the top")
        self._found: Mapping[object, object] = found
        for key in self._found:
            if key not in _KEYS:
                near = difflib.get_close_matches(str(key), _KEYS, n=1)
                hint = f"a known key; did you mean {near[0]}?" if near else f"one of {', '.join(_KEYS)}"
                raise ConfigurationError(file, "", str(key)[:80], _shown(self._found[key]), hint)

    def _wrong(self, key: str, expected: str) -> ConfigurationError:
        value = _shown(self._found[key]) if key in self._found else "missing"
        return ConfigurationError(self._file, "", key, value, expected)

    def name(self) -> str:
        value = self._found.get("name")
        if isinstance(value, str) and _NAME.fullmatch(value):
            return value
        raise self._wrong("name", "1 to 80 of A-Z a-z 0-9 . _ -, a letter or digit first")

    def command(self) -> tuple[str, ...]:
        value = self._found.get("command")
        if isinstance(value, list) and value and value[0] and all(_is_word(word) for word in value):
            return tuple(str(word) for word in value)
        raise self._wrong("command", 'a list of words, such as ["./run", "{events}", "{cores}"]')

    def whole(self, key: str, most: int, default: int | None = None) -> int:
        value = self._found.get(key, default)
        if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most:
            return value
        raise self._wrong(key, f"a whole number from 1 to {most}")

    def number(self, key: str, unit: str) -> float:
        value = self._found.get(key)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= LARGEST:
            return float(value)
        raise self._wrong(key, f"{unit}, a number above 0")

    def fraction(self, key: str) -> float:
        value = self._found.get(key, 1.0)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= 1:
            return float(value)
        raise self._wrong(key, "a number above 0, at most 1")

    def can_thread(self) -> bool:
        said, release = self._found.get("can_thread"), self._found.get("release")
        known = release_can_thread(release) if isinstance(release, str) else None
        if release is not None and known is None:
            raise self._wrong("release", "the name of a release, such as CMSSW_12_4_0")
        if said is not None and not isinstance(said, bool):
            raise self._wrong("can_thread", "true or false")
        if said is True and known is False:
            raise self._wrong("can_thread", f"false: {release} does not know threads")
        if said is None and known is None:
            raise self._wrong("can_thread", "true or false, or a release: may the program run on more than one core?")
        return bool(known if said is None else said)

    def cores(self) -> tuple[int, ...]:
        value = self._found.get("cores", list(MULTI_CORE))
        if isinstance(value, list) and all(_is_count(one) for one in value) and sorted(set(value)) == value:
            return tuple(value)
        raise self._wrong("cores", f"rising whole numbers from 2 to {MOST_CORES}, such as [2, 4, 8]")

    def wall_limit(self) -> int:
        value = self._found.get("wall_limit", DEFAULT_WALL_LIMIT)
        try:
            seconds = parse_duration(value) if isinstance(value, str) else value
        except ValueError:
            seconds = None
        if isinstance(seconds, int) and not isinstance(seconds, bool) and 1 <= seconds <= LONGEST_WALL_LIMIT:
            return seconds
        raise self._wrong("wall_limit", "seconds, or a duration such as 30m or 8h, at most 365d")

    def environment(self) -> dict[str, str]:
        value = self._found.get("environment", {})
        if not isinstance(value, dict):
            raise self._wrong("environment", "a table of variables")
        for name, text in value.items():
            if not (isinstance(name, str) and _VARIABLE.fullmatch(name)) or name.startswith(_OUR_VARIABLES):
                expected = f"a variable's name, not one of {_OUR_VARIABLES}…"
                raise ConfigurationError(self._file, "environment", str(name)[:80], _shown(text), expected)
            if not _is_word(text):
                raise ConfigurationError(self._file, "environment", name, _shown(text), "text without NUL")
        return dict(value)

    def backends(self) -> dict[str, Mapping[str, object]]:
        value = self._found.get("backends", {})
        if isinstance(value, dict) and all(isinstance(table, dict) for table in value.values()):
            return dict(value)
        raise self._wrong("backends", "tables of keys by name, such as [backends.slurm]")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 2 <= value <= MOST_CORES


def _is_word(value: object) -> bool:
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _shown(value: object) -> str:
    try:
        text = value if isinstance(value, str) else repr(value)
    except ValueError:  # an integer of too many digits to print
        return "a very large number"
    return ascii(text)[1:-1][:80]


def as_json(request: Request) -> dict[str, object]:
    """The request as plain values, which `request_of` reads to an equal request."""
    return {
        "name": request.name,
        "command": list(request.command),
        "events": request.events,
        "time_per_event": request.time_per_event,
        "size_per_event": request.size_per_event,
        "memory": request.memory,
        "threads": request.threads,
        "filter_efficiency": request.filter_efficiency,
        "can_thread": request.can_thread,
        "cores": list(request.cores),
        "wall_limit": request.wall_limit,
        "environment": dict(request.environment),
    }
