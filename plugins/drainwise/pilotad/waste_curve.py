"""The tenth, optional attribute of a report: what ending the pilot should waste at up to five future times.

    EXP_WASTE_CURVE = 1795250800:5400:60000,1795252600:7200:41000

Each point is a UNIX time in s, the core-seconds that should idle until then if the pilot starts nothing more from its
report on, and those that should be lost when it is ended then: both expectations over when its payloads may end. Times
rise, and what idles never falls. The text is made of digits and marks alone, so it goes as it is into a ClassAd string
and a line of JSON.
"""

from __future__ import annotations

from drainwise.pilotad.values import EARLIEST, LATEST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    CurvePoint = tuple[int, int, int]
    """UNIX s, idle core-seconds, lost core-seconds."""

MOST_POINTS = 5
TEXT_LIMIT = 256
"""Characters of the longest text that is read."""
_MOST_DIGITS = 15
_PARTS = 3


def curve_text(points: Sequence[CurvePoint]) -> str:
    """Write points (UNIX s, idle core-seconds, lost core-seconds)."""
    return ",".join(f"{moment}:{idle}:{lost}" for moment, idle, lost in points)


def curve_points(text: str) -> tuple[CurvePoint, ...] | None:
    """Read the points of a text that `curve_text` can have written; None for any other."""
    if not 0 < len(text) <= TEXT_LIMIT or not text.isascii():
        return None
    words = text.split(",")
    if len(words) > MOST_POINTS:
        return None
    found: list[CurvePoint] = []
    before, idle_before = EARLIEST - 1, 0
    for word in words:
        parts = word.split(":")
        if len(parts) != _PARTS or not all(part.isdigit() and len(part) <= _MOST_DIGITS for part in parts):
            return None
        moment, idle, lost = map(int, parts)
        if not before < moment <= LATEST or idle < idle_before:
            return None
        found.append((moment, idle, lost))
        before, idle_before = moment, idle
    return tuple(found)


def sound_curve(value: object) -> str | None:
    """Return a foreign value when it is such a text, in its one form; None for anything else."""
    if type(value) is not str:
        return None
    points = curve_points(value)
    return None if points is None else curve_text(points)


def curve_value(text: bytes) -> str | None:
    """Read a value of a file: see `sound_curve`."""
    return sound_curve(text.decode("ascii", "replace"))
