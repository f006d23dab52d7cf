"""What a validated request is submitted with: cores, memory, time and size per event, all from one of its runs.

Source: CMS McM MultiValidation, "Request submission to computing".
"""

from __future__ import annotations

from dataclasses import dataclass

from drainwise.estimate.validation_machine import PASSED, Validation
from drainwise.estimate.validation_measurement import Measurement
from drainwise.estimate.validation_memory import memory_for_submission

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
    """The run with most cores whose CPU efficiency is above 70 %, else the single-core one; None: there is neither."""
    efficient = [run for run in runs if run.cpu_efficiency > EFFICIENT]
    single = [run for run in runs if run.cores == 1]
    return max(efficient or single, key=lambda run: run.cores, default=None)


def submission(validation: Validation) -> Submission | None:
    """What to submit with; None unless the validation has passed."""
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
