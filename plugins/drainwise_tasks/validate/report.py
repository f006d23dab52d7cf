"""A validation as plain values: one row per step, and what to submit with.

Source: CMS McM MultiValidation, "Request submission to computing".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace

from drainwise_tasks.validate.checks import Check, RequestEstimates
from drainwise_tasks.validate.machine import PASSED, Step, Validation
from drainwise_tasks.validate.measurement import Measurement
from drainwise_tasks.validate.thresholds import (
    DOCUMENT,
    EXACT,
    FLOATING_POINT,
    MOST_EFFICIENT,
    Thresholds,
    memory_for_submission,
)

HEADINGS = (
    *("step", ">cores", ">memory", "state", ">s/event", ">kB/event"),
    *(">peak MB", ">filter", ">CPU eff.", "remark~"),
)
"""As `cli.screen.layout.headings_of` reads them. Memory and peak in MB."""

_MEASURED = (
    *("events", "written", "wall_seconds", "cpu_seconds"),
    *("time_per_event", "size_per_event", "peak_rss", "filter_efficiency", "cpu_efficiency"),
)


@dataclass(frozen=True)
class SequenceFigures:
    """One sequence of what is submitted: memory in MB, time_per_event in s, size_per_event in kB."""

    memory: int
    time_per_event: float
    size_per_event: float


@dataclass(frozen=True)
class Submission:
    """cores; memory in MB; time_per_event in s; size_per_event in kB; why these cores.

    other_memory: MB that come out in floating point, as CMS calculates, where memory is exact; and the other way round.
    Time and size are the sums over all sequences, memory is for the one that needs most.
    """

    cores: int
    memory: int
    other_memory: int
    time_per_event: float
    size_per_event: float
    filter_efficiency: float
    cpu_efficiency: float
    why: str
    sequences: tuple[SequenceFigures, ...]


def choose(runs: list[Measurement], thresholds: Thresholds = DOCUMENT) -> Measurement | None:
    """Return the run with most cores whose CPU efficiency is above 70 %, else the single-core one, else None.

    The thresholds may say another efficiency, and that otherwise the most efficient run is taken.
    """
    efficient = [run for run in runs if run.whole_cpu_efficiency > thresholds.cpu_efficiency]
    if not efficient and thresholds.otherwise == MOST_EFFICIENT:
        return max(runs, key=lambda run: (run.whole_cpu_efficiency, run.cores), default=None)
    single = [run for run in runs if run.cores == 1]
    return max(efficient or single, key=lambda run: run.cores, default=None)


def submission(validation: Validation) -> Submission | None:
    """Return what to submit with; None unless the validation has passed."""
    if validation.state != PASSED:
        return None
    # Of the single-core runs the last one counts: the others were out of range.
    last = {step.cores: step.measurement for step in validation.steps if step.measurement is not None}
    thresholds = validation.request.thresholds
    run = choose(list(last.values()), thresholds)
    if run is None:
        return None
    other = replace(thresholds, arithmetic=FLOATING_POINT if thresholds.arithmetic == EXACT else EXACT)
    return Submission(
        run.cores,
        memory_for_submission(run.whole_peak_rss, thresholds),
        memory_for_submission(run.whole_peak_rss, other),
        sum(one.time_per_event for one in run.sequences),
        sum(one.size_per_event for one in run.sequences),
        run.whole_filter_efficiency,
        run.whole_cpu_efficiency,
        _why(run, thresholds),
        tuple(
            SequenceFigures(memory_for_submission(one.peak_rss, thresholds), one.time_per_event, one.size_per_event)
            for one in run.sequences
        ),
    )


def _why(run: Measurement, thresholds: Thresholds) -> str:
    part, above = f"{100 * run.whole_cpu_efficiency:.0f} %", f"above {100 * thresholds.cpu_efficiency:g} %"
    if run.whole_cpu_efficiency > thresholds.cpu_efficiency:
        return f"the most cores with a CPU efficiency {above}: {part}"
    if thresholds.otherwise == MOST_EFFICIENT:
        return f"no run has a CPU efficiency {above}; the most efficient one has {part}"
    return f"no run has a CPU efficiency {above}; on one core it is {part}"


def as_json(validation: Validation) -> dict[str, object]:
    """Return all of it: times in s, sizes per event in kB, memory in MB, efficiencies as parts of 1."""
    chosen = submission(validation)
    return {
        "name": validation.request.name,
        "identifier": validation.identifier,
        "backend": validation.backend,
        "state": validation.state,
        "reason": validation.reason or None,
        "steps": [_step(step) for step in validation.steps],
        "submission": None if chosen is None else asdict(chosen),
    }


def rows(validation: Validation) -> list[tuple[str, ...]]:
    """Return one row of text per step, under `HEADINGS`."""
    return [_row(step) for step in validation.steps]


def verdict(validation: Validation) -> str:
    """Return the outcome in one line."""
    chosen = submission(validation)
    if chosen is None:
        return f"{validation.request.name}: {validation.state}" + (f": {validation.reason}" * bool(validation.reason))
    figures = (
        f"{chosen.cores} core{'s' if chosen.cores > 1 else ''}, {chosen.memory} MB{_otherwise(validation, chosen)},"
        f" {chosen.time_per_event:.4g} s and {chosen.size_per_event:.4g} kB per event"
    )
    return f"{validation.request.name}: {validation.state}: submit with {figures} ({chosen.why})"


def _otherwise(validation: Validation, chosen: Submission) -> str:
    """Say which memory the other arithmetic gives; "" where it is the same."""
    if chosen.other_memory == chosen.memory:
        return ""
    exact = validation.request.thresholds.arithmetic == EXACT
    return f" ({chosen.other_memory} {'in floating point, as CMS calculates' if exact else 'in exact arithmetic'})"


def _row(step: Step) -> tuple[str, ...]:
    run = step.measurement
    figures = ("", "", "", "", "") if run is None else _figures(run)
    return (step.label, str(step.cores), str(step.memory), step.state, *figures, _remark(step))


def _figures(run: Measurement) -> tuple[str, ...]:
    return (
        _joined(one.time_per_event for one in run.sequences),
        _joined(one.size_per_event for one in run.sequences),
        f"{run.whole_peak_rss:.0f}",
        f"{run.whole_filter_efficiency:.4g}",
        f"{100 * run.whole_cpu_efficiency:.0f} %",
    )


def _joined(values: Iterable[float]) -> str:
    """Write one figure, or those of several sequences with + between them."""
    return "+".join(f"{value:.4g}" for value in values)


def _remark(step: Step) -> str:
    if step.adjusted is not None:
        claims = step.adjusted.sequences
        times, sizes = _joined(one.time_per_event for one in claims), _joined(one.size_per_event for one in claims)
        after = f"next try with {times} s, {sizes} kB"
        return f"{step.note}; {after}"
    return step.note or ("in range" if step.checks else "")


def _step(step: Step) -> dict[str, object]:
    run = step.measurement
    return {
        "step": step.label,
        "cores": step.cores,
        "attempt": step.attempt,
        "memory": step.memory,
        "state": step.state,
        "handle": step.handle or None,
        "claimed": _claims(step.estimates),
        "measured": None if run is None else _figures_of(run, _MEASURED),
        "checks": [_check(check) for check in step.checks],
        "adjusted": None if step.adjusted is None else _claims(step.adjusted),
        "note": step.note or None,
    }


def _claims(estimates: RequestEstimates) -> dict[str, object]:
    return _figures_of(estimates, ("time_per_event", "size_per_event"))


def _figures_of(first: RequestEstimates | Measurement, names: Sequence[str]) -> dict[str, object]:
    """Return these figures of the first sequence, and those of the following ones where there are some."""
    found: dict[str, object] = {name: getattr(first, name) for name in names}
    return {**found, "following": [_figures_of(one, names) for one in first.following]} if first.following else found


def _check(check: Check) -> dict[str, object]:
    found = {**asdict(check), "unit": check.unit or None}
    del found["fatal"]
    return found
