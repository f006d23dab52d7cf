"""Read the site file: every fault is refused with its place and what was expected; all of them can be had at once."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from drainwise.common.written_file import read_text
from drainwise.facts.errors import ConfigurationError
from drainwise.siteconfig.feature_sections import KIND, KindSection
from drainwise.siteconfig.kinds import text
from drainwise.siteconfig.node_sections import NodeSection
from drainwise.siteconfig.schema import SECTIONS, SiteConfig
from drainwise.siteconfig.scope_section import SCOPE, ScopeSection
from drainwise.siteconfig.table import Key, keys_of
from drainwise.siteconfig.written_values import (
    LONGEST_SHOWN,
    Written,
    WrittenValue,
    is_named,
    known_keys,
    table_of_section,
    written_values,
)

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


def examine(path: str) -> SiteReading:
    """Read the site file with all its faults. Raises ConfigurationError where it is no text that can be read."""
    content = read_text(path, _LONGEST_FILE, "a readable text file", "a site file of a page or two")
    written, faults, former = written_values(path, content)
    own: dict[str, Any] = {
        section: table(**_values(path, section, written.get(section, {}), faults))
        for section, table in SECTIONS.items()
    }
    kinds = {
        section[len(KIND) :]: KindSection(**_values(path, section, written[section], faults))
        for section in written
        if is_named(section) and section.startswith(KIND)
    }
    scopes = {
        section[len(SCOPE) :]: ScopeSection(**_values(path, section, written[section], faults))
        for section in written
        if is_named(section) and section.startswith(SCOPE)
    }
    others = {}
    for section in (one for one in written if one and one not in SECTIONS and not is_named(one)):
        table, values = table_of_section(section), _values(path, section, written[section], faults)
        others[section] = values if table is None else table(**values)
    config = SiteConfig(file=path, **own, kinds=kinds, scopes=scopes, others=others, former=former)
    wrong = {(one.section, one.key) for one in faults if one.key}
    faults += [one for one in _contradictions(config, written) if not _concerns(one, wrong)]
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


def _contradictions(config: SiteConfig, written: Written) -> Iterator[ConfigurationError]:
    """Yield a fault for each value that is right by itself and contradicts another.

    A file that sets keys of one batch system only is not measured by the defaults of the others.
    """
    nodes = [section for section, table in SECTIONS.items() if issubclass(table, NodeSection)]
    used = [section for section in nodes if written.get(section)] or nodes
    tables = {**config.others, **{f"{KIND}{name}": kind for name, kind in config.kinds.items()}}
    tables |= {f"{SCOPE}{name}": scope for name, scope in config.scopes.items()}
    for section in [*(one for one in SECTIONS if one not in nodes), *used, *tables]:
        values = tables[section] if section in tables else getattr(config, section)
        for name, expected in getattr(values, "contradictions", lambda _: ())(config):
            key = next(one for one in keys_of(section, type(values)) if one.name == name)
            value, found = getattr(values, name), written.get(section, {}).get(name)
            shown = "" if value is None else key.kind.show(value)
            line = 0 if found is None else found.line
            yield ConfigurationError(config.file, section, name, found.text if found else shown, expected, line)
