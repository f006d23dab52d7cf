"""The whole procedure as a state machine: every transition takes a state and a fact and gives the next state. Pure.

A step is one run. The single-core run comes first; it is tried at most three times, or as often as the request's
thresholds say, with estimates adjusted in between. When it is in range, the runs of 2, 4 and 8 cores follow at the same
time, where the program can thread. Their values are saved and not checked.

Source: CMS McM MultiValidation. As in McM, a run of whatever cores that fails ends the validation. A run that the batch
system lost says nothing about the request: it is run once more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from drainwise_tasks.validate.checks import Check, RequestEstimates, adjust, check_run
from drainwise_tasks.validate.measurement import Measurement, memory_for_run
from drainwise_tasks.validate.request import Request
from drainwise_tasks.validate.start import Run

MOST_LOSSES = 1
"""The number of times a run that the batch system lost is run again."""

STEP_STATES = ("planned", "started", "measured", "failed", "lost", "cancelled")
PLANNED, STARTED, MEASURED, FAILED, LOST, CANCELLED = STEP_STATES
"""The states of a step. PLANNED: a start may be under way. CANCELLED: another step's failure made it pointless."""
_OPEN = (PLANNED, STARTED)

STATES = GOING, PASSED, REFUSED = "running", "passed", "failed"
"""The states of a validation."""


@dataclass(frozen=True)
class Step:
    """One run: try `attempt` on `cores` with `memory` MB, held against `estimates`.

    loss: how often it was lost before. handle: the batch system's. adjusted: the estimates of the next try, where this
    one led to another.
    """

    cores: int
    attempt: int
    memory: int
    estimates: RequestEstimates
    loss: int = 0
    state: str = PLANNED
    handle: str = ""
    measurement: Measurement | None = None
    checks: tuple[Check, ...] = ()
    adjusted: RequestEstimates | None = None
    note: str = ""

    @property
    def label(self) -> str:
        """The step within its validation, such as 1c-2 for the second try on one core."""
        return f"{self.cores}c-{self.attempt}" + (f"-again{self.loss}" if self.loss else "")


@dataclass(frozen=True)
class Validation:
    """One validation of a request; `identifier` is its own and nobody else's. `reason`: why it failed.

    backend: the name of the batch system that has its runs.
    """

    identifier: str
    request: Request
    steps: tuple[Step, ...]
    state: str = GOING
    reason: str = ""
    backend: str = ""

    def name_of(self, step: Step) -> str:
        """Return the name under which a step is run, and found again."""
        return f"{self.identifier}-{step.label}"


def begin(request: Request, identifier: str, backend: str = "") -> Validation:
    """Return a validation whose single-core run is planned."""
    return Validation(identifier, request, (_planned(request, 1, 1, request.estimates),), backend=backend)


def with_state(validation: Validation, *states: str) -> list[Step]:
    """Return its steps that are in one of these states, in order."""
    return [step for step in validation.steps if step.state in states]


def run_of(validation: Validation, step: Step) -> Run:
    """Return the run of a step."""
    return asked_run(validation.request, validation.name_of(step), step.cores, step.memory)


def asked_run(request: Request, name: str, cores: int, memory: int) -> Run:
    """Return the run of a request on `cores` with `memory` MB."""
    figures = {"cores": cores, "events": request.events, "memory": memory}
    words, *others = [
        tuple(filled(word, figures) for word in command)
        for command in (request.command, *(one.command for one in request.following))
    ]
    return Run(name, cores, memory, request.events, request.wall_limit, words, request.environment, tuple(others))


def all_runs(request: Request) -> list[tuple[int, int]]:
    """Return (cores, MB) of every run that the validation may come to."""
    counts = (1, *(request.cores if request.can_thread else ()))
    return [(cores, memory_for_run(cores, request.memory, request.threads)) for cores in counts]


def started(validation: Validation, label: str, handle: str) -> Validation:
    """Mark a planned step as started: the batch system has it."""
    return _changed(validation, label, (PLANNED,), lambda step: replace(step, state=STARTED, handle=handle))


def lost(validation: Validation, label: str, why: str) -> Validation:
    """Mark a step as lost by the batch system: plan it once more, fail the validation the second time."""
    step = _open(validation, label)
    if step is None:
        return validation
    after = _changed(validation, label, _OPEN, lambda one: replace(one, state=LOST, note=why))
    if step.loss >= MOST_LOSSES:
        return _refused(after, f"{_words(step)}: lost by the batch system {step.loss + 1} times: {why}")
    again = replace(step, state=PLANNED, handle="", loss=step.loss + 1)
    return replace(after, steps=(*after.steps, again))


def failed(validation: Validation, label: str, why: str) -> Validation:
    """Mark a step as failed, as it ended badly or without a report: the validation has failed."""
    step = _open(validation, label)
    if step is None:
        return validation
    after = _changed(validation, label, _OPEN, lambda one: replace(one, state=FAILED, note=why))
    return _refused(after, f"{_words(step)}: {why}")


def measured(validation: Validation, label: str, run: Measurement) -> Validation:
    """Take the measurement of a step that ended well: on one core check its values, on more save them."""
    step = _open(validation, label)
    if step is None:
        return validation
    if step.cores > 1:
        saved = _changed(validation, label, _OPEN, lambda one: replace(one, state=MEASURED, measurement=run))
        return saved if with_state(saved, *_OPEN) else replace(saved, state=PASSED)
    request = validation.request
    checks = check_run(run, step.estimates, request.limits, request.thresholds)
    return _after_checks(validation, replace(step, state=MEASURED, measurement=run, checks=checks))


def cancelled(validation: Validation, why: str) -> Validation:
    """Cancel a validation that is no longer wanted; whoever holds the handles of its open steps must kill them."""
    return validation if validation.state != GOING else _refused(validation, why)


def _after_checks(validation: Validation, step: Step) -> Validation:
    """Return what follows a single-core run: the end, another try with other estimates, or the runs of more cores."""
    missed = [check for check in step.checks if not check.passed]
    if not missed:
        after = _with(validation, step)
        more = validation.request.cores if validation.request.can_thread else ()
        planned = tuple(_planned(validation.request, cores, 1, step.estimates) for cores in more)
        return replace(after, steps=after.steps + planned) if planned else replace(after, state=PASSED)
    why = "; ".join(map(str, missed))
    if any(check.fatal for check in missed):
        return _refused(_with(validation, replace(step, note=why)), f"{_words(step)}: {why}")
    thresholds = validation.request.thresholds
    if step.attempt >= thresholds.tries:
        reason = f"{_words(step)}: {why}: out of range after {thresholds.tries} tries"
        return _refused(_with(validation, replace(step, note=why)), reason)
    estimates = adjust(step.estimates, step.checks, thresholds)
    after = _with(validation, replace(step, note=why, adjusted=estimates))
    return replace(after, steps=(*after.steps, _planned(validation.request, 1, step.attempt + 1, estimates)))


def _planned(request: Request, cores: int, attempt: int, estimates: RequestEstimates) -> Step:
    return Step(cores, attempt, memory_for_run(cores, request.memory, request.threads), estimates)


def filled(word: str, figures: dict[str, int]) -> str:
    """Return the word with figures in the place of their names in braces."""
    for name, value in figures.items():
        word = word.replace("{" + name + "}", str(value))
    return word


def _open(validation: Validation, label: str) -> Step | None:
    """Return the step while it is open; None for a settled one, which no news changes."""
    return next((step for step in with_state(validation, *_OPEN) if step.label == label), None)


def _changed(validation: Validation, label: str, states: tuple[str, ...], change: Callable[[Step], Step]) -> Validation:
    steps = (change(step) if step.label == label and step.state in states else step for step in validation.steps)
    return replace(validation, steps=tuple(steps))


def _with(validation: Validation, step: Step) -> Validation:
    return _changed(validation, step.label, _OPEN, lambda _: step)


def _refused(validation: Validation, reason: str) -> Validation:
    """Refuse the validation and cancel its open steps; whoever holds their handles must kill them."""
    steps = (replace(step, state=CANCELLED) if step.state in _OPEN else step for step in validation.steps)
    return replace(validation, steps=tuple(steps), state=REFUSED, reason=reason)


def _words(step: Step) -> str:
    return f"{step.cores} core{'s' if step.cores > 1 else ''}" + (f", try {step.attempt}" if step.cores == 1 else "")
