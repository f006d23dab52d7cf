"""Read the site file: every fault is refused with its place and what was expected; all of them can be had at once."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from drainwise.common.typed_table import read_text
from drainwise.facts.errors import ConfigurationError
from drainwise.siteconfig.kinds import Key, keys_of, text
from drainwise.siteconfig.node_sections import KIND, KindSection, NodeSection
from drainwise.siteconfig.schema import SCOPE, SECTIONS, ScopeSection, SiteConfig
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
    "slurm": {"limits_wait": f"{_AS_BY_DEFAULT}: 1 second"},
    "identity": {"subject": "no subject of a credential is asked for, shown or written down"},
    "page": {"served": "[page] directory is where a web server of the site finds the page"},
}
"""What counts in place of a key that went, by section and key; all keys of a section without any."""

_RENAMED = {("slurm", "vacate", "cancel"): "at_deadline = end", ("slurm", "vacate", "requeue"): ""}
"""What a line of former releases is read as for one more: a line of [reclaim], "" for what is so without it."""

Written = dict[str, dict[str, WrittenValue]]
"""The values as they stand in the file, by section and key."""


def written_values(file: str, content: str) -> tuple[Written, list[ConfigurationError], tuple[str, ...]]:
    """Return the values in the file, each key once and each known, and a fault for each other line.

    The last is a sentence for each key that is read no more.

    Keys below a section that does not exist are passed over: its fault says enough.
    """
    written: Written = {}
    faults: list[ConfigurationError] = []
    former, renamed = list[str](), dict[str, WrittenValue]()
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
        now = _RENAMED.get((section, name, _without_comment(line.partition("=")[2])))
        if now is not None:
            cure = f"write `{now}` in [reclaim] in its place" if now else "leave it out"
            former.append(f"{file}, line {number}: [{section}] {name} is read for this release alone: {cure}")
            key, _, value = now.partition(" = ")
            renamed |= {key: WrittenValue(value, number)} if key else {}
            continue
        fault = _take(file, written, section, line, number)
        if fault is not None:
            faults.append(fault)
    if renamed:
        written["reclaim"] = {**renamed, **written.get("reclaim", {})}
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


DEFAULT_SITE_FILE = "/etc/drainwise/site.ini"

_LONGEST_FILE = 1 << 20  # bytes; a site file has a page


@dataclass(frozen=True)
class SiteReading:
    """What stands in a site file: the settings, in which what is wrong has its default; the values as written; faults.

    The faults stand in the order of their lines, those without a line last.
    """

    config: SiteConfig
    written: Written
    faults: tuple[ConfigurationError, ...]


def load(path: str) -> SiteConfig:
    """Read the site's settings from the INI file `path`; what the file leaves out has its default.

    Raises ConfigurationError for a file that cannot be read, is not UTF-8 or has a line, section, key or value that is
    not in the table of keys, and for values that contradict each other.
    """
    reading = examine(path)
    if not reading.faults:
        return reading.config
    one, others = reading.faults[0], len(reading.faults) - 1
    more = f" ({others} more: `drainwise config check` shows all)" if others else ""
    raise ConfigurationError(one.file, one.section, one.key, one.value, one.expected, one.line, more)


def load_or_defaults(path: str) -> SiteConfig:
    """Read the site's settings as `load`; the defaults where no file is in the usual place, as on a node."""
    return SiteConfig() if path == DEFAULT_SITE_FILE and not os.path.lexists(path) else load(path)


def examine(path: str) -> SiteReading:
    """Read the site file with all its faults. Raises ConfigurationError where it is no text that can be read."""
    content = read_text(path, _LONGEST_FILE, "a readable text file", "a site file of a page or two")
    written, faults, former = written_values(path, content)
    sections = dict[str, Any]()
    for section in dict.fromkeys([*SECTIONS, *written]):
        table, values = table_of_section(section), _values(path, section, written.get(section, {}), faults)
        sections[section] = values if table is None else table(**values)

    def named(begin: str) -> dict[str, Any]:
        return {one[len(begin) :]: table for one, table in sections.items() if is_named(one) and one.startswith(begin)}

    own = {section: sections[section] for section in SECTIONS}
    others = {one: table for one, table in sections.items() if one not in SECTIONS and not is_named(one)}
    config = SiteConfig(file=path, **own, kinds=named(KIND), scopes=named(SCOPE), others=others, former=former)
    wrong = {(one.section, one.key) for one in faults if one.key}
    faults += [one for one in _contradictions(config, sections, written) if not _concerns(one, wrong)]
    return SiteReading(config, written, tuple(sorted(faults, key=lambda one: one.line or len(content) + 1)))


def _values(
    file: str, section: str, written: Mapping[str, WrittenValue], faults: list[ConfigurationError]
) -> dict[str, Any]:
    """Return the values that are right by themselves; a fault for each other."""
    known, values = known_keys(section), {}
    for name, value in written.items():
        key = Key(section, name, text(), "", "", "") if known is None else known[name]
        try:
            values[name] = key.kind.parse(value.text)
        except ValueError:
            shown = value.text[:LONGEST_SHOWN]
            faults.append(ConfigurationError(file, section, name, shown, key.kind.expected, value.line))
    return values


def _concerns(contradiction: ConfigurationError, wrong: Collection[tuple[str, str]]) -> bool:
    """Return whether a contradiction is one of a default that stands in for a wrong value: it may go with that."""
    own = (contradiction.section, contradiction.key) in wrong
    return own or any(re.search(rf"\b{re.escape(key)}\b", contradiction.expected) for _, key in wrong)


def _contradictions(config: SiteConfig, sections: Mapping[str, Any], written: Written) -> Iterator[ConfigurationError]:
    """Yield a fault for each value that is right by itself and contradicts another.

    A file that sets keys of one batch system only is not measured by the defaults of the others.
    """
    nodes = [section for section, table in SECTIONS.items() if issubclass(table, NodeSection)]
    used = [section for section in nodes if written.get(section)] or nodes
    for section, values in sections.items():
        if section in nodes and section not in used:
            continue
        for name, expected in getattr(values, "contradictions", lambda _: ())(config):
            key = next(one for one in keys_of(section, type(values)) if one.name == name)
            value, found = getattr(values, name), written.get(section, {}).get(name)
            shown = "" if value is None else key.kind.show(value)
            line = 0 if found is None else found.line
            yield ConfigurationError(config.file, section, name, found.text if found else shown, expected, line)


@dataclass(frozen=True)
class EffectiveValue:
    """One value as a site file would have it, "" where it is left out; `line` of the file, 0: the default counts."""

    section: str
    key: str
    value: str
    line: int


def effective_values(reading: SiteReading) -> Iterator[EffectiveValue]:
    """Yield the values of all sections of every site file, then those of further ones that the file has.

    Of a value that is wrong the text in the file is given: its fault says so.
    """
    for section in dict.fromkeys([*SECTIONS, *reading.written]):
        known, written = known_keys(section), reading.written.get(section, {})
        for name in written if known is None else known:
            if name in written:
                yield EffectiveValue(section, name, written[name].text, written[name].line)
            elif known is not None:
                yield EffectiveValue(section, name, known[name].default, 0)
