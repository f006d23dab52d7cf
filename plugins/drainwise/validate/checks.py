"""The four checks of a single-core validation run, and the new value of an estimate that was out of range.

Source: CMS McM MultiValidation, "MultiValidation steps and value checks". Limits belong to the range, and are compared
as the decimal numbers that people wrote: 0.14 lies within 0.1 ± 40 %, whatever binary fractions make of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from drainwise.facts.errors import UsageError
from drainwise.validate.measurement import Measurement

TIME, SIZE, MEMORY, FILTER = "time per event", "size per event", "peak RSS", "filter efficiency"
TIME_MARGIN, SIZE_MARGIN = Fraction(40, 100), Fraction(10, 100)
SIGMAS = 3
LEAST_SIGMA = 0.05
"""Sigma is at least this part of the measured efficiency."""
_MEASURED_WEIGHT, _OLD_WEIGHT = 3, 1


@dataclass(frozen=True)
class RequestEstimates:
    """The claims that a validation may adjust: seconds and kB per event."""

    time_per_event: float
    size_per_event: float


@dataclass(frozen=True)
class Limits:
    """The claims that only the author changes: MB, and filter × match efficiency."""

    memory: int
    filter_efficiency: float


@dataclass(frozen=True)
class Check:
    """One check: the `measured` value must lie within [low, high], in `unit`. `fatal`: no adjustment mends it."""

    name: str
    measured: float
    low: float
    high: float
    unit: str
    passed: bool
    fatal: bool

    def __str__(self) -> str:
        """Return the check in words, with its figures."""
        unit = f" {self.unit}" if self.unit else ""
        place = f"at most {self.high:.6g}{unit}" if self.low == 0 else f"{self.low:.6g} to {self.high:.6g}{unit}"
        return f"{self.name} {self.measured:.6g}{unit}, {'within' if self.passed else 'expected'} {place}"


def check_run(run: Measurement, estimates: RequestEstimates, limits: Limits) -> tuple[Check, ...]:
    """Return the four checks of a single-core run, in the document's order. Raises UsageError for no events."""
    return (
        _margin(TIME, run.time_per_event, estimates.time_per_event, TIME_MARGIN, "s"),
        _margin(SIZE, run.size_per_event, estimates.size_per_event, SIZE_MARGIN, "kB"),
        Check(MEMORY, run.peak_rss, 0.0, float(limits.memory), "MB", run.peak_rss <= limits.memory, fatal=True),
        _filter(run, limits.filter_efficiency),
    )


def sigma(measured: float, events: int) -> float:
    """Return the deviation of a measured filter efficiency: max(√(e·(1 − e)/n), 0.05·e).

    Raises UsageError for no events, of which no efficiency can be known, and for an efficiency outside 0…1.
    """
    if events < 1:
        raise UsageError(
            f"filter efficiency: {events} events were run: expected 1 or more, there is nothing to measure"
        )
    if not 0 <= measured <= 1:
        raise UsageError(f"filter efficiency: {measured!r}: expected a number from 0 to 1")
    return max(math.sqrt(measured * (1 - measured) / events), LEAST_SIGMA * measured)


def adjusted(measured: float, old: float) -> float:
    """Return the next try's estimate: (3·measured + old)/4."""
    return (_MEASURED_WEIGHT * measured + _OLD_WEIGHT * old) / (_MEASURED_WEIGHT + _OLD_WEIGHT)


def adjust(estimates: RequestEstimates, checks: tuple[Check, ...]) -> RequestEstimates:
    """Return the estimates of the next try: those that a check found out of range are moved, the others stay."""
    missed = {check.name: check.measured for check in checks if not check.passed}
    return RequestEstimates(
        adjusted(missed[TIME], estimates.time_per_event) if TIME in missed else estimates.time_per_event,
        adjusted(missed[SIZE], estimates.size_per_event) if SIZE in missed else estimates.size_per_event,
    )


def _margin(name: str, measured: float, claimed: float, margin: Fraction, unit: str) -> Check:
    exact, centre = Fraction(repr(measured)), Fraction(repr(claimed))
    low, high = centre * (1 - margin), centre * (1 + margin)
    return Check(name, measured, float(low), float(high), unit, low <= exact <= high, fatal=False)


def _filter(run: Measurement, claimed: float) -> Check:
    measured = run.filter_efficiency
    reach = SIGMAS * sigma(measured, run.events)
    low, high = max(0.0, claimed - reach), min(1.0, claimed + reach)
    return Check(FILTER, measured, low, high, "", abs(measured - claimed) <= reach, fatal=True)
