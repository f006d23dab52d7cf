"""Keys that somebody states by name, checked, as the facts that directories are made of.

The same keys may come from several places; a later one overrules an earlier one. A draft key is made from its twin of
2016, so it is not stated by itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from drainwise.facts.errors import UsageError
from drainwise.features.facts import (
    BY_NAME,
    DECIMAL,
    INTEGER,
    JOB,
    KEYS,
    MACHINE,
    Feature,
    HostFacts,
    JobFacts,
    is_sound,
)

STATED = tuple(key for key in KEYS if key.twin is None)
"""The keys that can be stated."""
PREFIX = "DRAINWISE_FEATURE_"
"""What the name of an environment variable begins with that states a key, in capitals."""
SHUTDOWN = {MACHINE: "shutdowntime", JOB: "shutdowntime_job"}

Stated = dict[str, "int | float | str"]


def from_text(key: Feature, text: str, place: str) -> int | float | str:
    """Read the value of a key. Raises UsageError, which names the place, when it is none."""
    value: object = text
    plain = text.isascii() and text.replace(".", "", 1 if key.kind == DECIMAL else 0).isdecimal() and len(text) < 30
    if plain and key.kind in {INTEGER, DECIMAL}:
        value = float(text) if "." in text else int(text)
    return checked(key, value, place)


def checked(key: Feature, value: object, place: str) -> int | float | str:
    """Return a value that is sound for the key. Raises UsageError, which names the place."""
    if isinstance(value, (int, float, str)) and is_sound(key, value):
        return value
    text = value if isinstance(value, str) else json.dumps(value)  # null, and not None
    raise UsageError(f"{place}: {text[:40]!a} is no {key.name}: expected {key.kind}, in {key.unit}")


def from_environment(environment: Mapping[str, str]) -> Stated:
    """Return what the environment states. Raises UsageError for a value that is none, and for a key that is unknown."""
    found: Stated = {}
    names = {f"{PREFIX}{key.name.upper()}": key for key in STATED}
    for name, text in environment.items():
        if name.startswith(PREFIX):
            if name not in names:
                raise UsageError(f"${name[:60]}: no key of features has this name")
            found[names[name].name] = from_text(names[name], text, f"${name}")
    return found


def from_json(content: object, place: str) -> Stated:
    """Return what a JSON text states: keys by name, or as `drainwise features show --json` prints them.

    Twins are left out. Raises UsageError for what is neither, and for a key that is unknown.
    """
    if not isinstance(content, dict):
        raise UsageError(f"{place}: expected a JSON object of feature keys")
    keys = dict(content)
    for directory in (MACHINE, JOB):
        below = keys.pop(directory, {})
        if not isinstance(below, dict):
            raise UsageError(f"{place}: {directory}: expected an object of feature keys")
        keys.update(below)
    for name in ("format", "version", "errors"):
        keys.pop(name, None)
    unknown = [name for name in keys if name not in BY_NAME]
    if unknown:
        raise UsageError(f"{place}: {unknown[0][:40]!a}: no key of features has this name")
    return {name: checked(BY_NAME[name], value, place) for name, value in keys.items() if BY_NAME[name].twin is None}


def facts_of(sources: Iterable[Mapping[str, int | float | str | None]]) -> tuple[HostFacts, JobFacts, Stated]:
    """Return the facts of host and job by several sources, the last one first, and all that was stated.

    Where nobody states a CPU limit, it is what the run time limit lets all cores use.
    """
    stated: Stated = {}
    for source in sources:
        stated.update({name: value for name, value in source.items() if value is not None})
    cores, wall = stated.get("allocated_cpu"), stated.get("wall_limit_secs")
    if "cpu_limit_secs" not in stated and isinstance(cores, int) and isinstance(wall, int):
        stated["cpu_limit_secs"] = cores * wall
    host, job = ({name: stated.get(name) for name in kind.__match_args__[:-1]} for kind in (HostFacts, JobFacts))
    return HostFacts(**host), JobFacts(**job), stated  # type: ignore[arg-type] # each is checked there
