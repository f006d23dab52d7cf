"""A validation as plain values: one row per step, and what to submit with.

Source: CMS McM MultiValidation, "Request submission to computing".
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from drainwise.validate.checks import Check
from drainwise.validate.machine import PASSED, Step, Validation
from drainwise.validate.measurement import Measurement, memory_for_submission

HEADINGS = (
    *("step", ">cores", ">memory", "state", ">s/event", ">kB/event"),
    *(">peak MB", ">filter", ">CPU eff.", "remark~"),
)
"""As `cli.layout.headings_of` reads them. Memory and peak in MB."""

_MEASURED = (
    "events written wall_seconds cpu_seconds time_per_event size_per_event peak_rss filter_efficiency cpu_efficiency"
)
EFFICIENT = 0.70
"""CPU efficiency above which more cores are worth taking."""


@dataclass(frozen=True)
class Submission:
    """cores; memory in MB; time_per_event in s; size_per_event in kB; why these cores."""

    cores: int
    memory: int
    time_per_event: float
    size_per_event: float
    filter_efficiency: float
    cpu_efficiency: float
    why: str


def choose(runs: list[Measurement]) -> Measurement | None:
    """Return the run with most cores whose CPU efficiency is above 70 %, else the single-core one, else None."""
    efficient = [run for run in runs if run.cpu_efficiency > EFFICIENT]
    single = [run for run in runs if run.cores == 1]
    return max(efficient or single, key=lambda run: run.cores, default=None)


def submission(validation: Validation) -> Submission | None:
    """Return what to submit with; None unless the validation has passed."""
    if validation.state != PASSED:
        return None
    # Of the single-core runs the last one counts: the others were out of range.
    last = {step.cores: step.measurement for step in validation.steps if step.measurement is not None}
    run = choose(list(last.values()))
    if run is None:
        return None
    part = f"{100 * run.cpu_efficiency:.0f} %"
    if run.cpu_efficiency > EFFICIENT:
        why = f"the most cores with a CPU efficiency above {100 * EFFICIENT:.0f} %: {part}"
    else:
        why = f"no run has a CPU efficiency above {100 * EFFICIENT:.0f} %; on one core it is {part}"
    return Submission(
        run.cores,
        memory_for_submission(run.peak_rss),
        run.time_per_event,
        run.size_per_event,
        run.filter_efficiency,
        run.cpu_efficiency,
        why,
    )


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
    run = step.measurement
    return {
        "step": step.label,
        "cores": step.cores,
        "attempt": step.attempt,
        "memory": step.memory,
        "state": step.state,
        "handle": step.handle or None,
        "claimed": asdict(step.estimates),
        "measured": None if run is None else {name: getattr(run, name) for name in _MEASURED.split()},
        "checks": [_check(check) for check in step.checks],
        "adjusted": None if step.adjusted is None else asdict(step.adjusted),
        "note": step.note or None,
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
