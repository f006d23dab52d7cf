"""The four checks of a single-core validation run, and the new value of an estimate that was out of range.

Source: CMS McM MultiValidation, "MultiValidation steps and value checks". Limits belong to the range, and are compared
as the decimal numbers that people wrote: 0.14 lies within 0.1 ± 40 %, whatever binary fractions make of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from drainwise.facts.errors import UsageError
from drainwise_tasks.validate.measurement import Measurement
from drainwise_tasks.validate.thresholds import DOCUMENT, Thresholds

TIME, SIZE, MEMORY, FILTER = "time per event", "size per event", "peak RSS", "filter efficiency"
EVENTS = "events written"
_DIGITS = 14
LEAST_SIGMA = 0.05
"""Sigma is at least this part of the measured efficiency."""


@dataclass(frozen=True)
class RequestEstimates:
    """The claims that a validation may adjust: seconds and kB per event; following: of the further sequences."""

    time_per_event: float
    size_per_event: float
    following: tuple[RequestEstimates, ...] = ()

    @property
    def sequences(self) -> tuple[RequestEstimates, ...]:
        """Those of all sequences, the first included."""
        return (self, *self.following)


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
        ends, digits = (self.low, self.high), 6
        if not self.passed and f"{self.measured:.6g}" in {f"{end:.6g}" for end in ends}:
            digits = _DIGITS
        low, high, measured = (f"{value:.{digits}g}" for value in (self.low, self.high, self.measured))
        place = f"at most {high}{unit}" if self.low == 0 else f"{low} to {high}{unit}"
        return f"{self.name} {measured}{unit}, {'within' if self.passed else 'expected'} {place}"


def check_run(
    run: Measurement, estimates: RequestEstimates, limits: Limits, thresholds: Thresholds = DOCUMENT
) -> tuple[Check, ...]:
    """Return the four checks of a single-core run, in the document's order. Raises UsageError for no events.

    Time and size are those of each sequence, the peak is the largest, the filter efficiency the product. Where so many
    events must have been written, that is checked first: of fewer nothing can be said.
    """
    peak = run.whole_peak_rss
    margins = (
        (TIME, "time_per_event", thresholds.time_margin, "s"),
        (SIZE, "size_per_event", thresholds.size_margin, "kB"),
    )
    return (
        *_events(run, thresholds.least_events),
        *(
            _margin(_named(check, place, estimates), getattr(one, figure), getattr(claim, figure), margin, unit)
            for check, figure, margin, unit in margins
            for place, (one, claim) in enumerate(zip(run.sequences, estimates.sequences))
        ),
        Check(MEMORY, peak, 0.0, float(limits.memory), "MB", peak <= limits.memory, fatal=True),
        _filter(run, limits.filter_efficiency, thresholds.sigmas),
    )


def _events(run: Measurement, least: int) -> tuple[Check, ...]:
    if not least:
        return ()
    written = min(one.written for one in run.sequences)
    return (Check(EVENTS, written, least, max(least, run.events), "", written >= least, fatal=True),)


def _named(check: str, place: int, estimates: RequestEstimates) -> str:
    return f"{check} of sequence {place + 1}" if estimates.following else check


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


def adjusted(measured: float, old: float, thresholds: Thresholds = DOCUMENT) -> float:
    """Return the next try's estimate: by the document (3·measured + old)/4."""
    new, before = thresholds.measured_weight, thresholds.old_weight
    return (new * measured + before * old) / (new + before)


def adjust(
    estimates: RequestEstimates, checks: tuple[Check, ...], thresholds: Thresholds = DOCUMENT
) -> RequestEstimates:
    """Return the estimates of the next try: those that a check found out of range are moved, the others stay."""
    missed = {check.name: check.measured for check in checks if not check.passed}

    def moved(check: str, place: int, old: float) -> float:
        name = _named(check, place, estimates)
        return adjusted(missed[name], old, thresholds) if name in missed else old

    first, *others = [
        RequestEstimates(moved(TIME, place, one.time_per_event), moved(SIZE, place, one.size_per_event))
        for place, one in enumerate(estimates.sequences)
    ]
    return replace(first, following=tuple(others))


def _margin(name: str, measured: float, claimed: float, margin: float, unit: str) -> Check:
    low, high = claimed * (1 - margin), claimed * (1 + margin)
    return Check(name, measured, low, high, unit, _lies_within(measured, low, high), fatal=False)


def _lies_within(measured: float, low: float, high: float) -> bool:
    # What was measured is a quotient, and a limit a product: their last digits are those of binary fractions.
    least, value, most = (float(f"{one:.{_DIGITS}g}") for one in (low, measured, high))
    return least <= value <= most


def _filter(run: Measurement, claimed: float, sigmas: float) -> Check:
    measured = run.whole_filter_efficiency
    reach = sigmas * sigma(measured, run.events)
    low, high = max(0.0, claimed - reach), min(1.0, claimed + reach)
    return Check(FILTER, measured, low, high, "", _lies_within(measured, low, high), fatal=True)
