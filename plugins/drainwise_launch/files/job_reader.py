"""From a table to a job: what its keys may hold, and what its rule adds. Wrong values are refused by job and key."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from drainwise.common.typed_table import (
    Kind,
    anything,
    argument,
    checked,
    command,
    in_file,
    list_of,
    number,
    optional,
    read_table,
    read_value,
    shown,
    table_of,
    text,
)
from drainwise_launch.choice.resources import Resources, parse_resources
from drainwise_launch.choice.work import Work

LONGEST_TIME = 100 * 365 * 86400.0
NAME_LIMIT = 200
LOCAL = "local"
SHARED = ("command", "resources", "expected", "cwd", "environment", "backend", "wall_limit")
"""The keys that a rule may have as well."""
TEXT = text(NAME_LIMIT * 20, expected="a printable text")
TABLE = table_of(anything())


def names(least: int, expected: str) -> Kind[tuple[str, ...]]:
    """Return the kind of lists of at least `least` names; one name is such a list."""
    several = list_of(checked(expected, lambda value: isinstance(value, str)), expected, least)
    return Kind(expected, lambda value: (value,) if isinstance(value, str) else several.read(value))


_ARGUMENT = argument()
_VARIABLE = checked("names without '='", lambda name: bool(name) and "=" not in _ARGUMENT.read(name))
_KINDS: Mapping[str, Kind[Any]] = {
    "name": text(NAME_LIMIT, 1, f"1 to {NAME_LIMIT} printable characters"),
    "rule": TEXT,
    "after": names(0, "a list of names"),
    "command": command(),
    "resources": optional(TABLE),
    "expected": optional(number(0, LONGEST_TIME, "seconds above 0, at most a hundred years", above=True)),
    "cwd": Kind(TEXT.expected, lambda value: _ARGUMENT.read(os.path.expanduser(TEXT.read(value)))),
    "environment": optional(table_of(_ARGUMENT, name=_VARIABLE)),
    "backend": TEXT,
    "wall_limit": number(0, LONGEST_TIME, "seconds, at most a hundred years; 0 for none"),
}
_LEAST = Resources()


class JobReader:
    """Makes jobs of tables. rules: by name; any_rule: a rule need not be one of them. `override`: of every job."""

    def __init__(
        self, path: str, rules: Mapping[str, Mapping[str, object]], backend: str, override: str | None, any_rule: bool
    ) -> None:
        self._path, self._rules, self._any_rule = path, rules, any_rule
        self._here = os.path.dirname(os.path.abspath(path))
        self._backend, self._override = backend, override
        self._read_rules: dict[str, Mapping[str, Any]] = {"": {}}
        self._resources: dict[str, Resources] = {}
        self._shared: dict[str, str] = {}

    def jobs(self, entries: Iterable[object]) -> Iterator[Work]:
        """Yield the jobs of these tables. Raises UsageError for the first that is wrong."""
        for place, entry in enumerate(entries, 1):
            yield self.job(entry, f"job {place}")

    def job(self, entry: object, which: str) -> Work:
        """Return one job; `which` names it until its name is known. Raises UsageError."""
        if not isinstance(entry, dict):
            raise in_file(self._path)(which, shown(entry), "a table with the keys of a job")
        name = read_value("name", entry.get("name"), _KINDS["name"], in_file(self._path, which))
        wrong = in_file(self._path, f"job {name}")
        own = read_table(entry, _KINDS, wrong)
        rule_name = self._same(own.get("rule", ""))
        if rule_name not in self._read_rules:
            if rule_name not in self._rules and not self._any_rule:
                raise wrong("rule", rule_name, "the name of a table in [rules]")
            self._read_rules[rule_name] = read_table(self._rules.get(rule_name, {}), _KINDS, wrong)
        rule = self._read_rules[rule_name]
        found = {"cwd": ".", "backend": self._backend, **rule, **own}
        if "command" not in found:
            raise wrong("command", "missing", _KINDS["command"].expected)
        resources, environment = (
            {**(rule.get(key) or {}), **(own.get(key) or {})} for key in ("resources", "environment")
        )
        return Work(
            name=name,
            argv=tuple(word.replace("{here}", self._here) for word in found["command"]),
            after=found.get("after", ()),
            resources=self._needs(resources, name) if resources else _LEAST,
            rule=rule_name,
            backend=self._same(self._override or found["backend"]),
            cwd=self._same(os.path.normpath(os.path.join(self._here, found["cwd"]))),
            environment=tuple(sorted(environment.items())),
            expected=None if found.get("expected") is None else float(found["expected"]),
            wall_limit=math.ceil(found.get("wall_limit", 0)),
        )

    def _same(self, word: str) -> str:
        """Return one object for equal texts."""
        return self._shared.setdefault(word, word)

    def _needs(self, table: Mapping[str, object], name: str) -> Resources:
        """Return the resources that a table says, one object for equal ones."""
        key = repr(table)
        known = self._resources.get(key)
        if known is None:
            known = parse_resources(table, f"{self._path}: job {name}: resources")
            known = self._resources[key] = self._resources.setdefault(repr(known), known)
        return known
