"""What people and programs see of a validation."""

from __future__ import annotations

import json

from drainwise_tasks.validate import machine
from drainwise_tasks.validate.measurement import Measurement
from drainwise_tasks.validate.report import HEADINGS, as_json, rows, verdict
from drainwise_tasks.validate.request import Request

REQUEST = Request("r", ("run",), 100, 1.0, 100.0, 2300, can_thread=True, cores=(2,))


def run(cores: int, time: float) -> Measurement:
    return Measurement(cores, 100, 100, 10**7, time * 100, time * cores * 80, 10**9)


def validated() -> machine.Validation:
    """Out of range once, then in range, then on two cores."""
    validation = machine.measured(machine.begin(REQUEST, "id"), "1c-1", run(1, 2.0))
    validation = machine.measured(validation, "1c-2", run(1, 2.0))
    return machine.measured(validation, "2c-1", run(2, 1.0))


def test_a_row_for_each_step_with_its_figures() -> None:
    """What was measured, what was out of range, and with what the next try began."""
    first, second, third = rows(validated())
    assert len(first) == len(HEADINGS)
    assert first[:9] == ("1c-1", "1", "2300", "measured", "2", "100", "1000", "1", "80 %")
    assert first[9] == "time per event 2 s, expected 0.6 to 1.4 s; next try with 1.75 s, 100 kB"
    assert (second[9], third[2], third[9]) == ("in range", "4000", "")


def test_the_outcome_in_one_line() -> None:
    """What to submit with and why, or why not."""
    assert verdict(validated()) == (
        "r: passed: submit with 2 cores, 2000 MB, 1 s and 100 kB per event"
        " (the most cores with a CPU efficiency above 70 %: 80 %)"
    )
    assert verdict(machine.begin(REQUEST, "id")) == "r: running"
    assert verdict(machine.failed(machine.begin(REQUEST, "id"), "1c-1", "gone")) == "r: failed: 1 core, try 1: gone"


def test_all_of_it_as_json() -> None:
    """Every figure of every step, and null where there is none."""
    value = json.loads(json.dumps(as_json(validated()), allow_nan=False))
    assert value["state"] == "passed" and value["reason"] is None
    assert value["submission"]["cores"] == 2 and value["submission"]["memory"] == 2000
    first, second, third = value["steps"]
    assert first["adjusted"] == {"time_per_event": 1.75, "size_per_event": 100.0} == second["claimed"]
    assert [check["passed"] for check in first["checks"]] == [False, True, True, True]
    assert third["measured"]["cpu_efficiency"] == 0.8 and third["checks"] == []
    assert as_json(machine.begin(REQUEST, "id"))["submission"] is None
