"""The values of a site's settings that count, each with where it comes from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from drainwise.siteconfig.load import SiteReading
from drainwise.siteconfig.schema import SECTIONS
from drainwise.siteconfig.written_values import known_keys


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
