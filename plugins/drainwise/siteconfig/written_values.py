"""The lines of a site file as sections, keys and texts; each line that is none of them is a fault."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from drainwise.facts.errors import ConfigurationError
from drainwise.siteconfig.feature_sections import KIND, KindSection
from drainwise.siteconfig.schema import SECTIONS
from drainwise.siteconfig.scope_section import SCOPE, ScopeSection
from drainwise.siteconfig.table import Key, keys_of
from drainwise.systems import find

LONGEST_SHOWN = 80
"""Characters of a line or value in a message."""
_NAMED = re.compile(f"({KIND}|{SCOPE})[A-Za-z0-9][A-Za-z0-9_.-]{{0,31}}")


@dataclass(frozen=True)
class WrittenValue:
    """The text of a value and the number of its line."""

    text: str
    line: int


_AS_BY_DEFAULT = "what was its default counts for everybody"
_LOOPBACK_ALONE = "the agent serves its metrics on this machine alone; a proxy of the site may serve them further"
FORMER: Mapping[str, Mapping[str, str]] = {
    "reclaim": {
        "priority_first": "of one user's pilots the cheapest go first; PRIORITY_FACTOR weighs 10 minutes on each core",
        "priority_weight": f"{_AS_BY_DEFAULT}: 10 minutes",
        "stuck_first": "stuck pilots are named, and go by what they waste",
        "min_between_acts": f"{_AS_BY_DEFAULT}: none; the limits of [reclaim] bound what a cycle and an hour order",
        "retry_after": f"{_AS_BY_DEFAULT}: 10 minutes",
        "demand_pause": f"{_AS_BY_DEFAULT}: 15 minutes",
    },
    "trust": {},
    "agent": {"longest_pause": f"{_AS_BY_DEFAULT}: 10 minutes, or [agent] period where that is longer"},
    "metrics": {
        "certificate": _LOOPBACK_ALONE,
        "certificate_key": _LOOPBACK_ALONE,
        "passwords": _LOOPBACK_ALONE,
    },
    "page": {"served": "[page] directory is where a web server of the site finds the page"},
}
"""What counts in place of a key that went, by section and key; all keys of a section without any."""

Written = dict[str, dict[str, WrittenValue]]
"""The values as they stand in the file, by section and key."""


def written_values(file: str, content: str) -> tuple[Written, list[ConfigurationError], tuple[str, ...]]:
    """Return the values in the file, each key once and each known, and a fault for each other line.

    The last is a sentence for each key that is read no more.

    Keys below a section that does not exist are passed over: its fault says enough.
    """
    written: Written = {}
    faults: list[ConfigurationError] = []
    former = list[str]()
    section: str | None = ""
    for number, raw in enumerate(content.split("\n"), 1):
        line = raw.strip(" \t\r")
        if not line or line[0] in "#;":
            continue
        if line[0] == "[":
            section = _without_comment(line)[1:-1]
            if _without_comment(line).endswith("]") and section in FORMER and section not in SECTIONS:
                continue
            expected = _wrong_section(line, section, written)
            if expected:
                faults.append(ConfigurationError(file, "", "", line[:LONGEST_SHOWN], expected, number))
            if expected and section not in written:
                section = None
            else:
                written.setdefault(section, {})
            continue
        if section is None:
            continue
        name = line.partition("=")[0].rstrip(" \t")
        if section in FORMER and (name in FORMER[section] or section not in SECTIONS):
            why = FORMER[section].get(name, _AS_BY_DEFAULT)
            former.append(f"{file}, line {number}: [{section}] {name} is read no more: {why}")
            continue
        fault = _take(file, written, section, line, number)
        if fault is not None:
            faults.append(fault)
    return written, faults, tuple(former)


def _take(file: str, written: Written, section: str, line: str, number: int) -> ConfigurationError | None:
    name, equals, value = line.partition("=")
    name, value = name.rstrip(" \t"), _without_comment(value)
    if not equals or not name or not section:
        wanted = "key = value" if section else "a [section] before the first key"
        return ConfigurationError(file, section, "", line[:LONGEST_SHOWN], wanted, number)
    before = written[section].get(name)
    expected = f"the key once; it stands on line {before.line}, too" if before else _unknown(section, name)
    if expected:
        return ConfigurationError(file, section, name[:LONGEST_SHOWN], value[:LONGEST_SHOWN], expected, number)
    written[section][name] = WrittenValue(value, number)
    return None


def _wrong_section(line: str, name: str, written: Written) -> str:
    """Return what is expected in place of a heading; "" where it is right."""
    if name in written:
        return "the section once"
    if _without_comment(line).endswith("]") and (name in SECTIONS or is_named(name) or find.installed(name)):
        return ""
    near = difflib.get_close_matches(name, SECTIONS, n=1)
    return f"[{near[0]}]" if near else "a section of " + ", ".join(f"[{known}]" for known in SECTIONS)


def is_named(section: str) -> bool:
    """Return whether a section is about nodes of one kind, or jobs of one scope."""
    return _NAMED.fullmatch(section) is not None


def table_of_section(section: str) -> type[Any] | None:
    """Return the dataclass of a section; None where any key is accepted as text."""
    if section in SECTIONS:
        return SECTIONS[section]
    if is_named(section):
        return KindSection if section.startswith(KIND) else ScopeSection
    system = find.installed(section)
    return None if system is None else system.site_keys


def known_keys(section: str) -> Mapping[str, Key] | None:
    """Return the keys of a section by name; None where any key is accepted as text."""
    table = table_of_section(section)
    return None if table is None else {key.name: key for key in keys_of(section, table)}


def _without_comment(text: str) -> str:
    """Return the text before a blank and `#` or `;`, without blanks around it."""
    for mark in (" #", " ;", "\t#", "\t;"):
        text = text.partition(mark)[0]
    return text.strip(" \t")


def _unknown(section: str, name: str) -> str:
    """Return the keys expected in place of one that the section does not have; "" where it has it."""
    known = known_keys(section)
    if known is None or name in known:
        return ""
    near = difflib.get_close_matches(name, known, n=1)
    elsewhere = [where for where in SECTIONS if name in (known_keys(where) or ())]
    if near:
        return f"a known key, perhaps {near[0]}"
    if elsewhere:
        return f"this key in section [{elsewhere[0]}]"
    return "one of the keys " + ", ".join(known)
