"""From a table to a job: what its keys may hold, and what its rule adds. Wrong values are refused by job and key."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping

from drainwise.common.typed_table import SHELL
from drainwise.facts.errors import ConfigurationError, UsageError
from drainwise_launch.choice.resources import Resources, parse_resources, shown, wrong
from drainwise_launch.choice.work import Work

LONGEST_TIME = 100 * 365 * 86400.0
NAME_LIMIT = 200
LOCAL = "local"
SHARED = ("command", "resources", "expected", "cwd", "environment", "backend", "wall_limit")
"""The keys that a rule may have as well."""

_JOB = ("name", "rule", "after", *SHARED)
_LIST = "a list of names"
_LEAST = Resources()


class JobReader:
    """Makes jobs of tables. rules: by name; any_rule: a rule need not be one of them. `override`: of every job."""

    def __init__(
        self, path: str, rules: Mapping[str, Mapping[str, object]], backend: str, override: str | None, any_rule: bool
    ) -> None:
        self._path, self._rules, self._any_rule = path, rules, any_rule
        self._here = os.path.dirname(os.path.abspath(path))
        self._backend, self._override = backend, override
        self._resources: dict[str, Resources] = {}
        self._shared: dict[str, str] = {}

    def jobs(self, entries: Iterable[object]) -> Iterator[Work]:
        """Yield the jobs of these tables. Raises UsageError for the first that is wrong."""
        for number, entry in enumerate(entries, 1):
            yield self.job(entry, f"job {number}")

    def job(self, entry: object, which: str) -> Work:
        """Return one job; `which` names it until its name is known. Raises UsageError."""
        if not isinstance(entry, dict):
            raise wrong(self._path, which, entry, "a table with the keys of a job")
        name = entry.get("name")
        if not isinstance(name, str) or not 0 < len(name) <= NAME_LIMIT or not name.isprintable():
            raise wrong(f"{self._path}: {which}", "name", name, f"1 to {NAME_LIMIT} printable characters")
        whose = f"{self._path}: job {name}"
        for key in entry:
            if key not in _JOB:
                raise UsageError(f"{whose}: {str(key)[:60]!a}: unknown key; known are {', '.join(_JOB)}")
        rule_name = self._same(text_of(whose, "rule", entry.get("rule", "")))
        rule = self._rules.get(rule_name, {})
        if rule_name and rule_name not in self._rules and not self._any_rule:
            raise wrong(whose, "rule", rule_name, "the name of a table in [rules]")
        found = {**rule, **entry}
        return Work(
            name=name,
            argv=self._command(whose, found.get("command")),
            after=names_of(whose, "after", found.get("after", [])),
            resources=self._needs(whose, rule.get("resources"), entry.get("resources")),
            rule=rule_name,
            backend=self._same(self._override or text_of(whose, "backend", found.get("backend", self._backend))),
            cwd=self._same(os.path.normpath(os.path.join(self._here, self._cwd(whose, found.get("cwd", "."))))),
            environment=_environment(whose, rule.get("environment"), entry.get("environment")),
            expected=_expected(whose, found.get("expected")),
            wall_limit=_wall_limit(whose, found.get("wall_limit", 0)),
        )

    def _same(self, text: str) -> str:
        """Return one object for equal texts."""
        return self._shared.setdefault(text, text)

    def _command(self, whose: str, value: object) -> tuple[str, ...]:
        if isinstance(value, str) and value.strip():
            words: list[object] = [*SHELL, value]
        elif isinstance(value, list) and value and value[0]:
            words = value
        else:
            raise wrong(whose, "command", value, "a list of words, or a text for the shell")
        return tuple(_word(whose, "command", word).replace("{here}", self._here) for word in words)

    def _needs(self, whose: str, of_rule: object, own: object) -> Resources:
        if of_rule is None and own is None:
            return _LEAST
        key = repr((of_rule, own))
        known = self._resources.get(key)
        if known is None:
            tables = [table_of(whose, "resources", table) for table in (of_rule, own)]
            known = parse_resources({**tables[0], **tables[1]}, f"{whose}: resources")
            known = self._resources.setdefault(repr(known), known)
            self._resources[key] = known
        return known

    @staticmethod
    def _cwd(whose: str, value: object) -> str:
        text = text_of(whose, "cwd", value)
        return _word(whose, "cwd", os.path.expanduser(text))


def table_of(path: str, key: str, value: object) -> dict[str, object]:
    """Return the table, empty where there is none. Raises ConfigurationError."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ConfigurationError(path, "", key, shown(value), "a table")
    return value


def text_of(whose: str, key: str, value: object) -> str:
    """Return a printable text. Raises UsageError."""
    if isinstance(value, str) and len(value) <= NAME_LIMIT * 20 and value.isprintable():
        return value
    raise wrong(whose, key, value, "a printable text")


def _word(whose: str, key: str, value: object) -> str:
    """Return a text that can be an argument of a process. Raises UsageError."""
    if isinstance(value, str) and "\0" not in value:
        try:
            value.encode()
        except UnicodeEncodeError:
            pass
        else:
            return value
    raise wrong(whose, key, value, "text that is UTF-8 and has no NUL")


def names_of(whose: str, key: str, value: object) -> tuple[str, ...]:
    """Return a list of names, made from one or several. Raises UsageError."""
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list):
        raise wrong(whose, key, value, _LIST)
    for one in value:
        if not isinstance(one, str):
            raise wrong(whose, key, one, _LIST)
    return tuple(value)


def _environment(whose: str, of_rule: object, own: object) -> tuple[tuple[str, str], ...]:
    if of_rule is None and own is None:
        return ()
    variables = {**table_of(whose, "environment", of_rule), **table_of(whose, "environment", own)}
    for name, value in variables.items():
        if not name or "=" in name or _word(whose, "environment", name) != name:
            raise wrong(whose, "environment", name, "names without '='")
        if not isinstance(value, str):
            raise wrong(whose, f"environment: {name[:60]!a}", value, "a text")
    return tuple(sorted((name, _word(whose, name[:60], value)) for name, value in variables.items()))


def _expected(whose: str, value: object) -> float | None:
    if value is None:
        return None
    # Written so that a NaN fails, too; a whole number may be too large for a float.
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= LONGEST_TIME:
        return float(value)
    raise wrong(whose, "expected", value, "seconds above 0, at most a hundred years")


def _wall_limit(whose: str, value: object) -> int:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= LONGEST_TIME:
        return math.ceil(value)
    raise wrong(whose, "wall_limit", value, "seconds, at most a hundred years; 0 for none")
