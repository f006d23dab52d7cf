"""Drives a validation on a batch system: what is planned is started, what runs is looked at, what is pointless killed.

Each step has its name in the state file before it is started, and a start is looked for by that name before it is made:
whoever was killed at any moment goes on where it was, and nothing runs twice.
"""

from __future__ import annotations

from collections.abc import Callable

from drainwise.facts.errors import ActionRefused, PoolFull, PoolUnreachable, UsageError
from drainwise_launch.backend import DONE, RUNNING, VANISHED, WAITING
from drainwise_tasks.validate import machine
from drainwise_tasks.validate.jobs import RunJobs, RunState
from drainwise_tasks.validate.machine import Step, Validation
from drainwise_tasks.validate.measurement import parse_measurement
from drainwise_tasks.validate.request import Request

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 5.0  # seconds; where the batch system can tell, an end is seen sooner
_MOST_UNANSWERED = 120  # looks one after the other, once one was answered: a batch system may be restarted
_LONGER = 1.1  # so that an end is noticed within a tenth of the time that was waited for it

Say = Callable[[str], None]


def refuse_impossible(request: Request, jobs: RunJobs) -> None:
    """Raise UsageError when one of the runs could never start: better now than after hours on one core."""
    for cores, memory in machine.all_runs(request):
        why = jobs.refusal(machine.asked_run(request, "", cores, memory))
        if why:
            hint = "" if cores == 1 else "; `cores` in the request says on how many it is tried"
            raise UsageError(f"the run on {cores} core{'s' if cores > 1 else ''} can never start: {why}{hint}")


def advance(validation: Validation, jobs: RunJobs, save: Callable[[Validation], None], say: Say) -> Validation:
    """Advance by one round: start every planned step, ask for every started one. `save` is called after every change.

    A batch system that takes no more for now is asked again in the next round.
    """
    for step in machine.with_state(validation, machine.PLANNED):
        try:
            validation = _started(validation, step, jobs, say)
        except PoolFull as fault:
            say(f"{step.label}: {fault}; it is started later")
            break
        save(validation)
    for step in machine.with_state(validation, machine.STARTED):
        if validation.state != machine.GOING:
            break
        state = jobs.poll(step.handle, validation.name_of(step))
        if state.note and state.state in (WAITING, RUNNING):
            say(f"{step.label}: {state.state}: {state.note}")
        after = _asked(validation, step, state)
        if after is not validation:
            validation = after
            save(validation)
            _tell(validation, step, say)
    if validation.state == machine.REFUSED:
        kill_pointless(validation, jobs)
    return validation


def kill_pointless(validation: Validation, jobs: RunJobs) -> None:
    """End the runs of cancelled steps, also those of which it was not written down any more that they started.

    And what is left of failed ones: a batch system may keep a job that it stopped.
    """
    for step in machine.with_state(validation, machine.CANCELLED, machine.FAILED):
        name = validation.name_of(step)
        handle = step.handle or jobs.find(name)
        if handle is not None:
            jobs.kill(handle, name)


def run_to_end(
    validation: Validation, jobs: RunJobs, save: Callable[[Validation], None], say: Say, wait: Callable[[float], None]
) -> Validation:
    """Go round until the validation has passed or failed; between two rounds that changed nothing wait ever longer.

    A batch system that has answered and does so no more is waited for; then, as when it never answered, its PoolError
    is raised.
    """
    if validation.state == machine.REFUSED:
        kill_pointless(validation, jobs)
    pause, heard = _FIRST_PAUSE, set[str]()
    unanswered = _MOST_UNANSWERED  # as long as it has not answered once, there is nothing to wait for

    def say_once(text: str) -> None:
        if text not in heard:
            heard.add(text)
            say(text)

    def keep(after: Validation) -> None:
        nonlocal validation, pause, unanswered
        save(after)
        validation, pause, unanswered = after, _FIRST_PAUSE, 0

    while validation.state == machine.GOING:
        pause = min(pause * _LONGER, _LONGEST_PAUSE)
        try:
            advance(validation, jobs, keep, say_once)
            unanswered = 0
        except PoolUnreachable as fault:
            if unanswered >= _MOST_UNANSWERED or validation.state != machine.GOING:
                raise
            say_once(f"{fault}; it is waited for")
            unanswered += 1
        if validation.state == machine.GOING:
            wait(pause)
    return validation


def _started(validation: Validation, step: Step, jobs: RunJobs, say: Say) -> Validation:
    run = machine.run_of(validation, step)
    found = jobs.find(run.name)
    if found is None:
        try:
            handle = jobs.start(run)
        except (ActionRefused, UsageError) as fault:
            return machine.failed(validation, step.label, f"it cannot be started: {fault}")
        say(f"{step.label}: started as {handle}, {step.memory} MB")
    else:
        handle = found
        say(f"{step.label}: found again as {handle}")
    return machine.started(validation, step.label, handle)


def _asked(validation: Validation, step: Step, state: RunState) -> Validation:
    if state.state == VANISHED:
        return machine.lost(validation, step.label, state.note or "nothing is known of it")
    if state.state != DONE:
        return validation
    if state.code != 0:
        how = state.note or f"it ended with {state.code}"
        return machine.failed(validation, step.label, f"{how}: {state.said}" if state.said else how)
    if state.report is None:
        return machine.failed(validation, step.label, "it ended with 0 and without a report")
    try:
        run = parse_measurement(
            state.report, step.cores, validation.request.events, 1 + len(validation.request.following)
        )
    except ValueError as fault:
        return machine.failed(validation, step.label, str(fault))
    return machine.measured(validation, step.label, run)


def _tell(validation: Validation, before: Step, say: Say) -> None:
    step = next(one for one in validation.steps if one.label == before.label)
    say(f"{step.label}: {step.state}" + (f": {step.note}" if step.note else ""))
