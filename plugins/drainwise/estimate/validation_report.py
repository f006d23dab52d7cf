"""A validation as plain values: one row per step, and what to submit with."""

from __future__ import annotations

from drainwise.estimate.validation_checks import Check
from drainwise.estimate.validation_machine import Step, Validation
from drainwise.estimate.validation_measurement import Measurement
from drainwise.estimate.validation_submission import submission

HEADINGS = (
    "step",
    ">cores",
    ">memory",
    "state",
    ">s/event",
    ">kB/event",
    ">peak MB",
    ">filter",
    ">CPU eff.",
    "remark",
)
"""`>` stands before a column of numbers. Memory and peak in MB."""


def as_json(validation: Validation) -> dict[str, object]:
    """All of it: times in s, sizes per event in kB, memory in MB, efficiencies as parts of 1."""
    chosen = submission(validation)
    return {
        "name": validation.request.name,
        "identifier": validation.identifier,
        "backend": validation.backend,
        "state": validation.state,
        "reason": validation.reason or None,
        "steps": [_step(step) for step in validation.steps],
        "submission": None
        if chosen is None
        else {
            "cores": chosen.cores,
            "memory": chosen.memory,
            "time_per_event": chosen.time_per_event,
            "size_per_event": chosen.size_per_event,
            "filter_efficiency": chosen.filter_efficiency,
            "cpu_efficiency": chosen.cpu_efficiency,
            "why": chosen.why,
        },
    }


def rows(validation: Validation) -> list[tuple[str, ...]]:
    """One row of text per step, under `HEADINGS`."""
    return [_row(step) for step in validation.steps]


def verdict(validation: Validation) -> str:
    """The outcome in one line."""
    chosen = submission(validation)
    if chosen is None:
        return f"{validation.request.name}: {validation.state}" + (f": {validation.reason}" * bool(validation.reason))
    figures = (
        f"{chosen.cores} core{'s' if chosen.cores > 1 else ''}, {chosen.memory} MB,"
        f" {chosen.time_per_event:.4g} s and {chosen.size_per_event:.4g} kB per event"
    )
    return f"{validation.request.name}: {validation.state}: submit with {figures} ({chosen.why})"


def _row(step: Step) -> tuple[str, ...]:
    run = step.measurement
    figures = ("", "", "", "", "") if run is None else _figures(run)
    return (step.label, str(step.cores), str(step.memory), step.state, *figures, _remark(step))


def _figures(run: Measurement) -> tuple[str, ...]:
    return (
        f"{run.time_per_event:.4g}",
        f"{run.size_per_event:.4g}",
        f"{run.peak_rss:.0f}",
        f"{run.filter_efficiency:.4g}",
        f"{100 * run.cpu_efficiency:.0f} %",
    )


def _remark(step: Step) -> str:
    if step.adjusted is not None:
        after = f"next try with {step.adjusted.time_per_event:.4g} s, {step.adjusted.size_per_event:.4g} kB"
        return f"{step.note}; {after}"
    return step.note or ("in range" if step.checks else "")


def _step(step: Step) -> dict[str, object]:
    return {
        "step": step.label,
        "cores": step.cores,
        "attempt": step.attempt,
        "memory": step.memory,
        "state": step.state,
        "handle": step.handle or None,
        "claimed": {
            "time_per_event": step.estimates.time_per_event,
            "size_per_event": step.estimates.size_per_event,
        },
        "measured": None if step.measurement is None else _measured(step.measurement),
        "checks": [_check(check) for check in step.checks],
        "adjusted": None
        if step.adjusted is None
        else {"time_per_event": step.adjusted.time_per_event, "size_per_event": step.adjusted.size_per_event},
        "note": step.note or None,
    }


def _measured(run: Measurement) -> dict[str, object]:
    return {
        "events": run.events,
        "written": run.written,
        "wall_seconds": run.wall_seconds,
        "cpu_seconds": run.cpu_seconds,
        "time_per_event": run.time_per_event,
        "size_per_event": run.size_per_event,
        "peak_rss": run.peak_rss,
        "filter_efficiency": run.filter_efficiency,
        "cpu_efficiency": run.cpu_efficiency,
    }


def _check(check: Check) -> dict[str, object]:
    return {
        "name": check.name,
        "measured": check.measured,
        "low": check.low,
        "high": check.high,
        "unit": check.unit or None,
        "passed": check.passed,
    }
