"""The procedure as pure transitions: tries, adjustment, the runs of more cores, and every way to fail."""

from __future__ import annotations

from dataclasses import replace

import pytest

from drainwise_tasks.validate import machine
from drainwise_tasks.validate.checks import RequestEstimates
from drainwise_tasks.validate.machine import (
    CANCELLED,
    FAILED,
    GOING,
    LOST,
    MEASURED,
    PASSED,
    PLANNED,
    REFUSED,
    STARTED,
    Validation,
)
from drainwise_tasks.validate.measurement import Measurement
from drainwise_tasks.validate.report import choose, submission
from drainwise_tasks.validate.request import Request
from drainwise_tasks.validate.thresholds import FLOATING_POINT, MCM

REQUEST = Request("r", ("run", "-n{events}", "{cores}", "{memory}"), 100, 1.0, 100.0, 2300, can_thread=True)


def measurement(
    cores: int = 1,
    time: float = 1.0,
    size: int = 100,
    peak: int = 1000,
    efficiency: float = 0.9,
    written: int = 100,
) -> Measurement:
    """100 events of so many seconds and kB, with this CPU efficiency."""
    wall = time * 100
    return Measurement(cores, 100, written, size * 1000 * written, wall, wall * cores * efficiency, peak * 10**6)


def begun(request: Request = REQUEST) -> Validation:
    return machine.begin(request, "id")


def states(validation: Validation) -> dict[str, str]:
    return {step.label: step.state for step in validation.steps}


def after_single(request: Request = REQUEST) -> Validation:
    return machine.measured(machine.started(begun(request), "1c-1", "7"), "1c-1", measurement())


def test_it_begins_on_one_core_with_the_requests_values() -> None:
    """One step is planned: one core, the request's memory and estimates; {events}, {cores}, {memory} are filled in."""
    validation = begun()
    assert states(validation) == {"1c-1": PLANNED}
    run = machine.run_of(validation, validation.steps[0])
    assert (run.name, run.cores, run.memory, run.command) == ("id-1c-1", 1, 2300, ("run", "-n100", "1", "2300"))


def test_in_range_leads_to_2_4_and_8_cores_at_the_same_time() -> None:
    """All three are planned at once, with the memory of the document's first example."""
    validation = after_single()
    assert states(validation) == {"1c-1": MEASURED, "2c-1": PLANNED, "4c-1": PLANNED, "8c-1": PLANNED}
    assert [step.memory for step in validation.steps] == [2300, 4000, 8000, 16000]
    assert validation.state == GOING


def test_software_that_cannot_thread_is_done_after_one_core() -> None:
    """No run of more cores is planned."""
    validation = after_single(replace(REQUEST, can_thread=False))
    assert states(validation) == {"1c-1": MEASURED} and validation.state == PASSED


def test_values_of_more_cores_are_saved_and_not_checked() -> None:
    """Absurd time, size and memory on 2, 4 and 8 cores do not matter; the last one ends the validation."""
    validation = after_single()
    for cores in (8, 2, 4):
        assert validation.state == GOING
        validation = machine.measured(validation, f"{cores}c-1", measurement(cores, 99.0, 9999, 10**6, written=1))
    assert validation.state == PASSED
    assert not any(step.checks for step in validation.steps if step.cores > 1)


def test_out_of_range_is_adjusted_and_tried_again() -> None:
    """(3 × measured + old) / 4 for time and size; the next try is held against the new values."""
    validation = machine.measured(begun(), "1c-1", measurement(time=2.0, size=200))
    assert states(validation) == {"1c-1": MEASURED, "1c-2": PLANNED}
    assert validation.steps[1].estimates == validation.steps[0].adjusted == RequestEstimates(1.75, 175.0)
    validation = machine.measured(validation, "1c-2", measurement(time=2.0, size=180))
    assert validation.steps[1].adjusted is None and "8c-1" in states(validation)


def test_at_most_three_tries() -> None:
    """A third miss ends it; there is no fourth."""
    validation, time = begun(), 1.0
    for attempt in (1, 2, 3):
        assert validation.state == GOING
        time *= 10
        validation = machine.measured(validation, f"1c-{attempt}", measurement(time=time))
    assert len(validation.steps) == 3 and validation.state == REFUSED
    assert "out of range after 3 tries" in validation.reason and "time per event 1000 s" in validation.reason


@pytest.mark.parametrize(
    ("time", "size", "state"),
    [
        (1e-6, 1e-6, GOING),
        (11.6, 100.0, GOING),
        (11.7, 100.0, REFUSED),
        (1.0, 277.0, GOING),
        (1.0, 278.0, REFUSED),
    ],
)
def test_how_wrong_a_claim_may_be(time: float, size: float, state: str) -> None:
    """Three tries mend any claim that is too small, 11 times too much time, 2.7 times too large a size."""
    validation = begun(replace(REQUEST, time_per_event=time, size_per_event=size))
    for attempt in (1, 2, 3):
        validation = machine.measured(validation, f"1c-{attempt}", measurement())
    assert validation.state == state
    assert [step.cores for step in validation.steps] == [1, 1, 1, *((2, 4, 8) if state == GOING else ())]


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (measurement(peak=2301), "peak RSS 2301 MB, expected at most 2300 MB"),
        (measurement(written=50), "filter efficiency 0.5"),
        (measurement(peak=2301, time=9.0), "peak RSS"),
    ],
)
def test_memory_and_filter_efficiency_fail_at_once(run: Measurement, expected: str) -> None:
    """No adjustment, no second try, also where the time was out of range as well."""
    validation = machine.measured(begun(), "1c-1", run)
    assert validation.state == REFUSED and len(validation.steps) == 1 and expected in validation.reason


def test_a_run_that_fails_ends_the_validation_and_cancels_the_others() -> None:
    """What runs on other core counts is pointless then."""
    validation = machine.started(after_single(), "8c-1", "9")
    validation = machine.failed(validation, "4c-1", "it ended with 3")
    assert states(validation) == {"1c-1": MEASURED, "2c-1": CANCELLED, "4c-1": FAILED, "8c-1": CANCELLED}
    assert (validation.state, validation.reason) == (REFUSED, "4 cores: it ended with 3")


def test_a_lost_run_is_run_once_more_under_another_name() -> None:
    """Losing it says nothing about the request; losing it twice says that something is wrong."""
    validation = machine.lost(machine.started(begun(), "1c-1", "7"), "1c-1", "gone")
    assert states(validation) == {"1c-1": LOST, "1c-1-again1": PLANNED} and validation.state == GOING
    assert validation.steps[1].handle == "" and validation.steps[1].attempt == 1
    validation = machine.lost(machine.started(validation, "1c-1-again1", "8"), "1c-1-again1", "gone")
    assert validation.state == REFUSED and "lost by the batch system 2 times" in validation.reason


def test_the_tries_after_a_loss_are_not_fewer() -> None:
    """A loss does not count as a try."""
    validation = machine.lost(begun(), "1c-1", "gone")
    for attempt in ("1c-1-again1", "1c-2", "1c-3"):
        assert validation.state == GOING
        validation = machine.measured(validation, attempt, measurement(time=10.0 ** (3 + len(validation.steps))))
    assert validation.state == REFUSED


def test_news_of_a_settled_step_changes_nothing() -> None:
    """Whatever is heard twice, or after the end, is heard once."""
    validation = after_single()
    for again in (
        machine.measured(validation, "1c-1", measurement(peak=10**6)),
        machine.failed(validation, "1c-1", "late"),
        machine.lost(validation, "1c-1", "late"),
        machine.started(validation, "1c-1", "another"),
        machine.failed(validation, "unknown", "late"),
    ):
        assert again == validation
    done = machine.cancelled(validation, "cancelled")
    assert machine.cancelled(done, "again") == done and done.reason == "cancelled"


def test_a_started_step_keeps_its_handle() -> None:
    """The handle is what the batch system is asked by."""
    validation = machine.started(begun(), "1c-1", "7")
    assert validation.steps[0].handle == "7" and states(validation) == {"1c-1": STARTED}


@pytest.mark.parametrize(
    ("efficiencies", "cores"),
    [
        ({1: 0.95, 2: 0.9, 4: 0.8, 8: 0.71}, 8),
        ({1: 0.95, 2: 0.9, 4: 0.8, 8: 0.70}, 4),
        ({1: 0.95, 2: 0.69, 4: 0.71, 8: 0.5}, 4),
        ({1: 0.6, 2: 0.5, 4: 0.4, 8: 0.3}, 1),
        ({1: 0.6, 2: 0.8}, 2),
        ({1: 0.99}, 1),
    ],
)
def test_most_cores_with_a_cpu_efficiency_above_70_percent(efficiencies: dict[int, float], cores: int) -> None:
    """Exactly 70 % is not above; where none is, the single-core result is used."""
    chosen = choose([measurement(count, efficiency=part) for count, part in efficiencies.items()])
    assert chosen is not None and chosen.cores == cores


def test_the_submission_takes_all_its_values_from_the_chosen_run() -> None:
    """Cores, memory of the peak with its margin, time and size per event."""
    validation = after_single()
    for cores, peak, efficiency in ((2, 1900, 0.9), (4, 3700, 0.8), (8, 7400, 0.6)):
        assert submission(validation) is None
        run = measurement(cores, 1.0 / cores, peak=peak, efficiency=efficiency)
        validation = machine.measured(validation, f"{cores}c-1", run)
    chosen = submission(validation)
    assert chosen is not None
    assert (chosen.cores, chosen.memory, chosen.time_per_event, chosen.size_per_event) == (4, 5000, 0.25, 100.0)
    assert "above 70 %: 80 %" in chosen.why


def test_a_failed_validation_submits_nothing() -> None:
    """Not even what its single-core run measured."""
    assert submission(machine.failed(after_single(), "2c-1", "broken")) is None


def test_of_several_tries_the_one_in_range_is_submitted() -> None:
    """The values of the tries before it are forgotten."""
    validation = machine.measured(begun(replace(REQUEST, can_thread=False)), "1c-1", measurement(time=2.0))
    chosen = submission(machine.measured(validation, "1c-2", measurement(time=1.8)))
    assert chosen is not None and chosen.time_per_event == pytest.approx(1.8)


TODAY = replace(REQUEST, thresholds=MCM)


def test_mcm_tries_twice() -> None:
    """The second time out of range is the last; the claim moves by nine tenths of the way."""
    validation = machine.measured(begun(TODAY), "1c-1", measurement(time=2.0))
    assert validation.steps[-1].estimates == RequestEstimates(1.9, 100.0)
    validation = machine.measured(validation, "1c-2", measurement(time=9.0))
    assert validation.state == REFUSED and validation.reason.endswith("out of range after 2 tries")


def test_mcm_takes_the_most_efficient_run_where_none_passes() -> None:
    """On 2 cores with 60 %, though more cores, and one, are there; above 70 % the most cores count as before."""
    runs = {1: 0.5, 2: 0.6, 4: 0.55, 8: 0.6}
    assert [choose([measurement(n, efficiency=part) for n, part in runs.items()], MCM)] == [
        measurement(8, efficiency=0.6)
    ]
    runs[8] = 0.59
    chosen = choose([measurement(n, efficiency=part) for n, part in runs.items()], MCM)
    assert chosen is not None and chosen.cores == 2
    chosen = choose([measurement(n, efficiency=part + 0.15) for n, part in runs.items()], MCM)
    assert chosen is not None and chosen.cores == 8


def test_what_is_submitted_says_which_arithmetic() -> None:
    """50000 MB: 55000 exactly, and beside it the 56000 of CMS's floating point."""
    alone = replace(REQUEST, can_thread=False, memory=60_000)
    chosen = submission(machine.measured(begun(alone), "1c-1", measurement(peak=50_000)))
    assert chosen is not None and (chosen.memory, chosen.other_memory) == (55_000, 56_000)
    floating = replace(alone, thresholds=replace(alone.thresholds, arithmetic=FLOATING_POINT))
    chosen = submission(machine.measured(begun(floating), "1c-1", measurement(peak=50_000)))
    assert chosen is not None and (chosen.memory, chosen.other_memory) == (56_000, 55_000)
