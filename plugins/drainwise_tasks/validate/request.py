"""A request to validate: what its author claims of one event and of the memory, and how a run of it is started.

Every fault of a request file is refused with the file, the key, the value and what was expected.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from drainwise.common.typed_table import (
    Kind,
    argument,
    checked,
    choice,
    from_json,
    from_toml,
    in_file,
    list_of,
    matching,
    number,
    read_table,
    read_text,
    table_of,
    truth,
    whole,
)
from drainwise.facts.units import parse_duration
from drainwise_tasks.validate.checks import Limits, RequestEstimates
from drainwise_tasks.validate.thresholds import DOCUMENT, PROFILES, Thresholds, thresholds_of

MULTI_CORE = (2, 4, 8)
DEFAULT_WALL_LIMIT = 8 * 3600
LARGEST = 10**12
MOST_CORES = 1024
LONGEST_WALL_LIMIT = 365 * 86400
LAST_RELEASE_WITHOUT_THREADS = (7, 3)

_RELEASE = re.compile(r"CMSSW_([0-9]{1,3})_([0-9]{1,3})(?:_[A-Za-z0-9_]{1,60})?")
_LONGEST_FILE = 1 << 20  # bytes; a request has a page
_SHARE = number(0, 1, "a number above 0, at most 1", above=True)
_TABLE = checked("a table of keys", lambda value: isinstance(value, dict))


def _read_cores(value: object) -> tuple[int, ...]:
    cores = list_of(whole(2, MOST_CORES), "").read(value)
    if sorted(set(cores)) != list(cores):
        raise ValueError
    return cores


def _read_wall_limit(value: object) -> int:
    return whole(1, LONGEST_WALL_LIMIT).read(parse_duration(value) if isinstance(value, str) else value)


_KINDS: dict[str, Kind[Any]] = {
    "name": matching("[A-Za-z0-9][A-Za-z0-9._-]{0,79}", "1 to 80 of A-Z a-z 0-9 . _ -, a letter or digit first"),
    "command": list_of(argument(), 'a list of words, such as ["./run", "{events}", "{cores}"]', least=1),
    "events": whole(1, LARGEST),
    "time_per_event": number(0, LARGEST, "seconds, a number above 0", above=True),
    "size_per_event": number(0, LARGEST, "kB, a number above 0", above=True),
    "memory": whole(1, LARGEST),
    "threads": whole(1, MOST_CORES),
    "filter_efficiency": _SHARE,
    "match_efficiency": _SHARE,
    "release": matching(_RELEASE.pattern, "the name of a release, such as CMSSW_12_4_0"),
    "can_thread": truth(),
    "cores": Kind(f"rising whole numbers from 2 to {MOST_CORES}, such as [2, 4, 8]", _read_cores),
    "wall_limit": Kind("seconds, or a duration such as 30m or 8h, at most 365d", _read_wall_limit),
    "environment": table_of(
        argument(),
        "a table of variables",
        matching("(?!DRAINWISE_)[A-Za-z_][A-Za-z0-9_]{0,99}", "a variable's name, not one of DRAINWISE_…"),
    ),
    "following": list_of(_TABLE, "tables of further sequences, [[following]]"),
    "profile": choice(*PROFILES),
    "thresholds": _TABLE,
    "backends": table_of(_TABLE, "tables of keys by name, such as [backends.slurm]"),
}
_REQUIRED = ("name", "command", "events", "time_per_event", "size_per_event", "memory")


_FURTHER = ("command", "time_per_event", "size_per_event")
MOST_SEQUENCES = 20


@dataclass(frozen=True)
class FurtherSequence:
    """A program that runs after the one before, on what that wrote. time_per_event: s. size_per_event: kB."""

    command: tuple[str, ...]
    time_per_event: float
    size_per_event: float


@dataclass(frozen=True)
class Request:
    """The request to validate. command: words in which {cores}, {events} and {memory} (MB) are replaced.

    following: the further sequences, each run after the one before in the same directory.
    events: how many each run processes. time_per_event: s. size_per_event: kB. memory: MB for all of `threads`.
    filter_efficiency: of generator filter × match. can_thread: whether runs of more cores make sense; `cores` says of
    how many. wall_limit: s of each run. thresholds: what is in range, and what follows. backends: what batch systems
    must be given, by name; a request stays the same when that changes.
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
    thresholds: Thresholds = DOCUMENT
    following: tuple[FurtherSequence, ...] = ()
    backends: Mapping[str, Mapping[str, object]] = field(default_factory=dict, compare=False)

    @property
    def estimates(self) -> RequestEstimates:
        """Return the claims that a validation may adjust."""
        others = tuple(RequestEstimates(one.time_per_event, one.size_per_event) for one in self.following)
        return RequestEstimates(self.time_per_event, self.size_per_event, others)

    @property
    def limits(self) -> Limits:
        """Return the claims that it may not."""
        return Limits(self.memory, self.filter_efficiency)


def load_request(path: str) -> Request:
    """Return the request in `path`, TOML or, where the name ends in .json, JSON. Raises ConfigurationError.

    {here} in its command becomes the directory in which the file lies.
    """
    text = read_text(path, _LONGEST_FILE, "a request file that can be read", "a request of a page")
    request = request_of(from_json(path, text) if path.endswith(".json") else from_toml(path, text), path)
    here = os.path.dirname(os.path.abspath(path))

    def placed(command: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(word.replace("{here}", here) for word in command)

    following = tuple(replace(one, command=placed(one.command)) for one in request.following)
    return replace(request, command=placed(request.command), following=following)


def request_of(found: object, file: str) -> Request:
    """Return the request in the values of a file; `file` is named in every fault. Raises ConfigurationError."""
    wrong = in_file(file)
    values = read_table(found, _KINDS, wrong, _REQUIRED)
    release, said = values.pop("release", None), values.pop("can_thread", None)
    known = None if release is None else release_can_thread(release)
    if said and known is False:
        raise wrong("can_thread", "True", f"false: {release} does not know threads")
    if said is None and known is None:
        expected = "true or false, or a release: may the program run on more than one core?"
        raise wrong("can_thread", "missing", expected)
    if not values["command"][0]:
        raise wrong("command", "", _KINDS["command"].expected)
    following = _further(values.pop("following", ()), file)
    table, profile = values.pop("thresholds", {}), values.pop("profile", "document")
    thresholds = thresholds_of(table, profile, in_file(file, "thresholds"))
    share = values.pop("filter_efficiency", 1.0) * values.pop("match_efficiency", 1.0)
    can_thread = bool(known if said is None else said)
    return Request(**values, filter_efficiency=share, can_thread=can_thread, thresholds=thresholds, following=following)


def _further(found: Sequence[object], file: str) -> tuple[FurtherSequence, ...]:
    if len(found) >= MOST_SEQUENCES:
        raise in_file(file)("following", f"{len(found)} tables", f"fewer than {MOST_SEQUENCES}")
    kinds, sequences = {name: _KINDS[name] for name in _FURTHER}, []
    for place, table in enumerate(found, 2):
        wrong = in_file(file, f"sequence {place}")
        values = read_table(table, kinds, wrong, _FURTHER)
        if not values["command"][0]:
            raise wrong("command", "", kinds["command"].expected)
        sequences.append(FurtherSequence(**values))
    return tuple(sequences)


def release_can_thread(release: str) -> bool | None:
    """Tell whether a CMSSW release knows nThreads: those after 7.3; None where `release` is no such name."""
    match = _RELEASE.fullmatch(release)
    return None if match is None else (int(match[1]), int(match[2])) > LAST_RELEASE_WITHOUT_THREADS


def as_json(request: Request) -> dict[str, object]:
    """Return the request as values of JSON, which `request_of` reads to an equal request."""
    found: dict[str, object] = json.loads(json.dumps(asdict(replace(request, backends={}))))
    del found["backends"]
    return found
