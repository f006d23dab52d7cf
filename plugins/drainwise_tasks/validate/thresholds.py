"""The thresholds of a validation: the document's, those of McM in its last version, or a request's own.

Source: CMS McM MultiValidation (the document); cms-PdmV/cmsPdmV at 64f4de6 of July 2025, its last commit
(validation_control.py, request.py, validation.py). What McM keeps in its database and not in its code is the
document's: the margin of the time per event and the CPU efficiency.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from drainwise.common.typed_table import Kind, Wrong, choice, key, list_of, number, read_keys, whole
from drainwise.facts.errors import UsageError

SINGLE_CORE, MOST_EFFICIENT = "single-core", "most-efficient"
EXACT, FLOATING_POINT = "exact", "floating-point"
MOST_MARGINS = 20
_STEP = 1000


_FACTOR = number(1, 100, "a factor from 1 to 100")
_SHARE = number(0, 1)


def _read_margins(value: object) -> tuple[tuple[float, float], ...]:
    pairs = list_of(list_of(number(0, 1e12, above=True), ""), "").read(value)
    found = tuple((pair[0], _FACTOR.read(pair[1])) for pair in pairs if len(pair) == 2)
    below = [size for size, _ in found]
    if len(found) != len(pairs) or len(found) > MOST_MARGINS or sorted(set(below)) != below:
        raise ValueError
    return found


_MARGINS = Kind("rising pairs of MB and a factor, such as [[4000, 1.6], [6000, 1.5]]", _read_margins)


@dataclass(frozen=True)
class Thresholds:
    """The thresholds. Margins are parts of the claim; memory margins are factors of the peak resident set.

    measured_weight, old_weight: of the next try's claim. tries: on one core, the first included. least_events: events
    that must be written; 0: any. cpu_efficiency: above which more cores are worth taking. otherwise: which run where
    none is above it. memory_margin_below: rising (MB, factor) for peaks below so many MB; memory_margin: for larger
    ones. arithmetic: of memory to submit with.
    """

    time_margin: float = key(_SHARE, 0.4)
    size_margin: float = key(_SHARE, 0.1)
    sigmas: float = key(number(0, 1000, above=True), 3)
    measured_weight: float = key(number(0, 1000, above=True), 3)
    old_weight: float = key(number(0, 1000), 1)
    tries: int = key(whole(1, 100), 3)
    least_events: int = key(whole(0, 10**12), 0)
    cpu_efficiency: float = key(_SHARE, 0.7)
    otherwise: str = key(choice(SINGLE_CORE, MOST_EFFICIENT), SINGLE_CORE)
    memory_margin: float = key(_FACTOR, 1.1)
    memory_margin_below: tuple[tuple[float, float], ...] = key(_MARGINS, ())
    arithmetic: str = key(choice(EXACT, FLOATING_POINT), EXACT)


DOCUMENT = Thresholds()
MCM = Thresholds(
    size_margin=0.5,
    sigmas=5,
    measured_weight=9,
    old_weight=1,
    tries=2,
    least_events=10,
    otherwise=MOST_EFFICIENT,
    memory_margin=1.2,
    memory_margin_below=((4000, 1.6), (6000, 1.5), (8000, 1.4), (10_000, 1.3)),
    arithmetic=FLOATING_POINT,
)
PROFILES = {"document": DOCUMENT, "mcm": MCM}
"""The sets of thresholds by their names in a request."""


def thresholds_of(found: object, profile: str, wrong: Wrong) -> Thresholds:
    """Return the thresholds of a profile with those that a table has in their place. Raises what `wrong` makes."""
    return replace(PROFILES[profile], **read_keys(found, Thresholds, wrong))


def memory_for_submission(peak_rss: float, thresholds: Thresholds = DOCUMENT) -> int:
    """Return MB to submit with: the peak resident set in MB times its margin, rounded up to the next thousand.

    Exact arithmetic makes 55000 of 50000 and a tenth. In binary floating point, in which the document writes its
    formula and McM calculates, 1.1 × 50000 is a little more than 55000, and 56000 comes out. Raises UsageError for a
    peak that is none, NaN or infinity.
    """
    if not (math.isfinite(peak_rss) and peak_rss > 0):
        raise UsageError(f"peak resident memory: {peak_rss!r} MB: expected a number above 0")
    factor = next((by for below, by in thresholds.memory_margin_below if peak_rss < below), thresholds.memory_margin)
    if thresholds.arithmetic == FLOATING_POINT:
        return math.ceil(peak_rss * factor / 1000.0) * _STEP
    return math.ceil(Fraction(repr(float(peak_rss))) * Fraction(repr(factor)) / _STEP) * _STEP
