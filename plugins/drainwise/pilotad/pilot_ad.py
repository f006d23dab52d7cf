"""`.pilot.ad`: bytes to a typed report for its node, a report to bytes for the pilot.

Whatever the bytes are, a report comes out and nothing is raised. Tolerant where a sane pilot differs: blanks around
'=', CRLF, blank lines, names in any case, unknown names. Strict where a value could become something else: see
`values`. A known name that stands twice says nothing.
"""

from __future__ import annotations

from drainwise.common.local_file import replace_file
from drainwise.pilotad.attributes import ATTRIBUTES, CORE_SECONDS, CORES, PILOT_AD, SCALE, absolute, scaled
from drainwise.pilotad.report import PilotReport
from drainwise.pilotad.safe_open import JobDirectory
from drainwise.pilotad.values import READ, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Union

    Value = Union[float, bool, str, None]
    Table = Mapping[bytes, tuple[str, Callable[[bytes], Value]]]

LINE_LIMIT = 256
"""Lines looked at; what comes later says nothing."""

_READ: dict[str, Callable[[bytes], Value]] = {**READ, CORES: whole, CORE_SECONDS: whole}
_ROWS = {row.ad_name.upper().encode(): (row.field, _READ[row.kind]) for row in ATTRIBUTES}
# As the paper writes it, "NAME = value", a name needs no folding.
_ROWS.update({row.ad_name.encode() + b" ": (row.field, _READ[row.kind]) for row in ATTRIBUTES})
_SCALED = tuple((row.field, row.kind) for row in ATTRIBUTES if row.kind in {CORES, CORE_SECONDS})


def parse_pilot_ad(
    data: bytes, cores: int, heartbeat: int, source: str = PILOT_AD
) -> tuple[PilotReport, tuple[str, ...]]:
    """Parse the report in `data` for a lease of `cores`, and the known names whose value was not sound.

    heartbeat: the file's mtime, UNIX s; source: its name. A fraction outside 0…1024 counts as the nearer bound.
    The names (`.pilot.ad`'s, table order, each at most once) are ours, so they may be logged; values never are.
    """
    values: dict[str, Any] = {**known_values(data, _ROWS)}
    for field, kind in _SCALED:
        value = values.get(field)
        if value is not None:
            values[field] = absolute(max(0, min(SCALE, value)) if kind == CORES else value, cores)
    report = PilotReport.from_values(heartbeat, source, values)
    if None not in values.values():
        return report, ()
    return report, tuple(row.ad_name for row in ATTRIBUTES if values.get(row.field, 0) is None)


def known_values(data: bytes, table: Table) -> dict[str, Value]:
    """Read the values of the known names in `NAME = value` lines; None where one is not sound or stands twice.

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


def pilot_ad_text(report: PilotReport, cores: int) -> bytes:
    """Write the file's content for a lease of `cores` ≥ 1: a line for each known value; unknown ones are left out."""
    lines = []
    for row in ATTRIBUTES:
        value = getattr(report, row.field)
        if value is None:
            continue
        if row.kind == CORES:
            value = max(0, min(SCALE, scaled(value, cores)))
        elif row.kind == CORE_SECONDS:
            value = scaled(value, cores)
        lines.append(f"{row.ad_name} = {value}\n")
    return "".join(lines).encode("ascii")


def write_pilot_ad(directory: int | str, report: PilotReport, cores: int, name: str = PILOT_AD) -> None:
    """Put `.pilot.ad` into `directory` (a descriptor or a path), whole at every moment; its mtime is the heartbeat.

    cores: of the lease. name: of the file, where it is another one of this form. Raises FeatureError; the old file is
    still there then.
    """
    content = pilot_ad_text(report, cores)
    with JobDirectory(directory, name) as dir_fd:
        replace_file(name, content, dir_fd)
