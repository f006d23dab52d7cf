"""Read the site file: every fault is refused with its place and what was expected."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any

from drainwise.common.written_file import read_text
from drainwise.facts.errors import ConfigurationError
from drainwise.siteconfig.feature_sections import KIND, KindSection
from drainwise.siteconfig.kinds import text
from drainwise.siteconfig.node_sections import NodeSection
from drainwise.siteconfig.schema import SECTIONS, SiteConfig
from drainwise.siteconfig.table import Key, keys_of
from drainwise.systems import find

DEFAULT_SITE_FILE = "/etc/drainwise/site.ini"

_LONGEST_FILE = 1 << 20  # bytes; a site file has a page
_LONGEST_SHOWN = 80
_KIND = re.compile(KIND + "[A-Za-z0-9][A-Za-z0-9_.-]{0,31}")

Written = dict[str, dict[str, str]]
"""The values as they stand in the file, by section and key."""


def load(path: str) -> SiteConfig:
    """Read the site's settings from the INI file `path`; what the file leaves out has its default.

    Raises ConfigurationError for a file that cannot be read, is not UTF-8 or has a line, section, key or value that is
    not in the table of keys, and for values that contradict each other.
    """
    written = _written(path, read_text(path, _LONGEST_FILE, "a readable text file", "a site file of a page or two"))
    own: dict[str, Any] = {
        section: table(**_values(path, section, written.get(section, {}))) for section, table in SECTIONS.items()
    }
    kinds = {
        section[len(KIND) :]: KindSection(**_values(path, section, written[section]))
        for section in written
        if _is_kind(section)
    }
    others = {}
    for section in (one for one in written if one not in SECTIONS and not _is_kind(one)):
        table, values = _table(section), _values(path, section, written[section])
        others[section] = values if table is None else table(**values)
    config = SiteConfig(file=path, **own, kinds=kinds, others=others)
    _refuse_contradictions(config, written)
    return config


def _written(file: str, content: str) -> Written:
    """Return the values in the file, each key once and each known."""
    written: Written = {}
    section = ""
    for number, raw in enumerate(content.split("\n"), 1):
        line = raw.strip(" \t\r")
        if not line or line[0] in "#;":
            continue
        if line[0] == "[":
            section = _section(file, line, number, written)
            written[section] = {}
            continue
        name, equals, value = line.partition("=")
        name, value = name.rstrip(" \t"), _without_comment(value)
        if not equals or not name or not section:
            wanted = "key = value" if section else "a [section] before the first key"
            raise ConfigurationError(file, section, "", line[:_LONGEST_SHOWN], f"{wanted} on line {number}")
        fault = f"the key once (again on line {number})" if name in written[section] else _unknown(section, name)
        if fault:
            raise ConfigurationError(file, section, name[:_LONGEST_SHOWN], value[:_LONGEST_SHOWN], fault)
        written[section][name] = value
    return written


def _section(file: str, line: str, number: int, written: Written) -> str:
    name = _without_comment(line)[1:-1]
    if name in written:
        raise ConfigurationError(file, "", "", line[:_LONGEST_SHOWN], f"the section once (again on line {number})")
    if not _without_comment(line).endswith("]") or not (name in SECTIONS or _is_kind(name) or find.installed(name)):
        near = difflib.get_close_matches(name, SECTIONS, n=1)
        meant = f"[{near[0]}]" if near else "a section of " + ", ".join(f"[{known}]" for known in SECTIONS)
        raise ConfigurationError(file, "", "", line[:_LONGEST_SHOWN], f"{meant} on line {number}")
    return name


def _is_kind(section: str) -> bool:
    return _KIND.fullmatch(section) is not None


def _table(section: str) -> type[Any] | None:
    """Return the dataclass of a section; None where any key is accepted as text."""
    if section in SECTIONS:
        return SECTIONS[section]
    if _is_kind(section):
        return KindSection
    system = find.installed(section)
    return None if system is None else system.site_keys


def _keys(section: str) -> Mapping[str, Key] | None:
    table = _table(section)
    return None if table is None else {key.name: key for key in keys_of(section, table)}


def _without_comment(text: str) -> str:
    """Return the text before a blank and `#` or `;`, without blanks around it."""
    for mark in (" #", " ;", "\t#", "\t;"):
        text = text.partition(mark)[0]
    return text.strip(" \t")


def _unknown(section: str, name: str) -> str:
    """Return the keys expected in place of one that the section does not have; "" where it has it."""
    known = _keys(section)
    if known is None or name in known:
        return ""
    near = difflib.get_close_matches(name, known, n=1)
    elsewhere = [where for where in SECTIONS if name in (_keys(where) or ())]
    if near:
        return f"a known key, perhaps {near[0]}"
    if elsewhere:
        return f"this key in section [{elsewhere[0]}]"
    return "one of the keys " + ", ".join(known)


def _values(file: str, section: str, written: Mapping[str, str]) -> dict[str, Any]:
    known = _keys(section)
    return {
        name: _value(file, Key(section, name, text(), "", "", "") if known is None else known[name], value)
        for name, value in written.items()
    }


def _value(file: str, key: Key, value: str) -> object:
    try:
        parsed: object = key.kind.parse(value)
    except ValueError:
        raise ConfigurationError(file, key.section, key.name, value[:_LONGEST_SHOWN], key.kind.expected) from None
    return parsed


def _refuse_contradictions(config: SiteConfig, written: Written) -> None:
    """Raise ConfigurationError for values that are right each by itself and contradict each other.

    A file that sets keys of one batch system only is not measured by the defaults of the others.
    """
    nodes = [section for section, table in SECTIONS.items() if issubclass(table, NodeSection)]
    used = [section for section in nodes if written.get(section)] or nodes
    tables = {**config.others, **{f"{KIND}{name}": kind for name, kind in config.kinds.items()}}
    for section in [*(one for one in SECTIONS if one not in nodes), *used, *tables]:
        values = tables[section] if section in tables else getattr(config, section)
        for name, expected in getattr(values, "contradictions", lambda _: ())(config):
            key = next(one for one in keys_of(section, type(values)) if one.name == name)
            value = getattr(values, name)
            shown = "" if value is None else key.kind.show(value)
            raise ConfigurationError(config.file, section, name, written.get(section, {}).get(name, shown), expected)
