"""Bytes of a `.pilot.ad` → a typed report. Whatever the bytes are, a report comes out and nothing is raised.

Tolerant where a sane pilot differs: blanks around '=', CRLF, blank lines, names in any case, unknown names.
Strict where a value could become something else: see `values`. A known name that stands twice says nothing.
"""

from __future__ import annotations

from drainwise.pilotad.attributes import (
    ATTRIBUTES,
    CORE_SECONDS,
    CORES,
    FLAG,
    PILOT_AD,
    PRIORITY,
    SCALE,
    TIME,
    absolute,
)
from drainwise.pilotad.report import PilotReport
from drainwise.pilotad.values import flag, priority, unix_time, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Union

    Value = Union[float, bool, None]
    Table = Mapping[bytes, tuple[str, Callable[[bytes], Value]]]

LINE_LIMIT = 256
"""Lines looked at; what comes later says nothing."""

_READ: dict[str, Callable[[bytes], Value]] = {
    TIME: unix_time,
    PRIORITY: priority,
    FLAG: flag,
    CORES: whole,
    CORE_SECONDS: whole,
}
_ROWS = {row.ad_name.upper().encode(): (row.field, _READ[row.kind]) for row in ATTRIBUTES}
# As the paper writes it, "NAME = value", a name needs no folding.
_ROWS.update({row.ad_name.encode() + b" ": (row.field, _READ[row.kind]) for row in ATTRIBUTES})
_FRACTIONS = tuple(row.field for row in ATTRIBUTES if row.kind == CORES)
_SUMS = tuple(row.field for row in ATTRIBUTES if row.kind == CORE_SECONDS)


def parse_pilot_ad(data: bytes, cores: int, heartbeat: int) -> tuple[PilotReport, tuple[str, ...]]:
    """The report that `data` makes for a lease of `cores`, and the known names whose value was not sound.

    heartbeat: the file's mtime, UNIX s. A fraction outside 0…1024 counts as the nearer bound.
    The names (`.pilot.ad`'s, table order, nine at most) are ours, so they may be logged; values never are.
    """
    values = known_values(data, _ROWS)
    for field in _FRACTIONS:
        value = values.get(field)
        if value is not None:
            values[field] = absolute(max(0, min(SCALE, value)), cores)
    for field in _SUMS:
        value = values.get(field)
        if value is not None:
            values[field] = absolute(value, cores)
    report = PilotReport.from_values(heartbeat, PILOT_AD, values)
    if None not in values.values():
        return report, ()
    return report, tuple(row.ad_name for row in ATTRIBUTES if values.get(row.field, 0) is None)


def known_values(data: bytes, table: Table) -> dict[str, Value]:
    """The values of the known names in `data`'s `NAME = value` lines; None where one is not sound or stands twice.

    table: upper-case name (other spellings may be added) → the key to answer with and the reader of the value's text.
    """
    values: dict[str, Value] = {}
    for line in data.split(b"\n", LINE_LIMIT)[:LINE_LIMIT]:
        name, equals, text = line.partition(b"=")
        if not equals:
            continue
        row = table.get(name) or table.get(name.strip().upper())
        if row is not None:
            key, read = row
            values[key] = None if key in values else read(text.strip())
    return values
