"""How jobs fare, by events and ads as 23.9.6 wrote them."""

from __future__ import annotations

import pytest

from drainwise.htcondor.launch_states import Course, Event, ended, number_of, queued
from drainwise.launch.backend import DONE, RUNNING, WAITING, State

USAGE = {"TotalRemoteUsage": "Usr 0 00:01:00, Sys 0 00:00:02"}
DONE_3 = {"TerminatedNormally": True, "ReturnValue": 3, **USAGE}
KILLED = {"TerminatedNormally": False, "TerminatedBySignal": 9, **USAGE}
REASON = "Transfer input files failure"


def course(*events: tuple[str, float, dict[str, object]]) -> State | None:
    made = Course()
    for kind, time, values in events:
        made.take(Event("1.0", kind, time, values))
    return made.state


SUBMIT: tuple[str, float, dict[str, object]] = ("SUBMIT", 10.0, {})
EXECUTE: tuple[str, float, dict[str, object]] = ("EXECUTE", 20.0, {})


@pytest.mark.parametrize(
    ("events", "state"),
    [
        ([], None),
        ([SUBMIT], State(WAITING)),
        ([SUBMIT, EXECUTE], State(RUNNING)),
        ([SUBMIT, EXECUTE, ("IMAGE_SIZE", 21.0, {"Size": 1})], State(RUNNING)),
        ([SUBMIT, EXECUTE, ("JOB_EVICTED", 30.0, {})], State(WAITING)),
        ([SUBMIT, EXECUTE, ("JOB_TERMINATED", 95.0, DONE_3)], State(DONE, 3, 75.0, 62.0)),
        ([SUBMIT, EXECUTE, ("JOB_TERMINATED", 95.0, KILLED)], State(DONE, 137, 75.0, 62.0)),
        ([SUBMIT, EXECUTE, ("JOB_EVICTED", 30.0, {}), ("EXECUTE", 90.0, {}), ("JOB_TERMINATED", 95.0, DONE_3)],
         State(DONE, 3, 5.0, 62.0)),
        ([SUBMIT, ("JOB_ABORTED", 30.0, {"Reason": "via condor_rm"})], State(DONE, 143, why="removed: via condor_rm")),
        ([SUBMIT, ("JOB_HELD", 30.0, {"HoldReason": REASON, "HoldReasonCode": 13})],
         State(DONE, 1, why=f"on hold: {REASON}")),
        ([SUBMIT, ("JOB_HELD", 30.0, {"HoldReason": "via condor_hold", "HoldReasonCode": 1})],
         State(WAITING, why="on hold: via condor_hold")),
        ([SUBMIT, ("JOB_HELD", 30.0, {"HoldReason": REASON, "HoldReasonCode": 13}), ("JOB_ABORTED", 31.0, {})],
         State(DONE, 1, why=f"on hold: {REASON}")),
        ([SUBMIT, ("JOB_HELD", 30.0, {"HoldReasonCode": 13}), ("JOB_RELEASED", 31.0, {})], State(WAITING)),
        ([SUBMIT, EXECUTE, ("JOB_TERMINATED", 95.0, DONE_3), ("JOB_ABORTED", 96.0, {})], State(DONE, 3, 75.0, 62.0)),
    ],
)  # fmt: skip
def test_the_course_of_a_job(events: list[tuple[str, float, dict[str, object]]], state: State | None) -> None:
    assert course(*events) == state


@pytest.mark.parametrize(
    ("status", "state"), [(1, WAITING), (2, RUNNING), (6, RUNNING), (7, RUNNING), (3, None), (4, None), (None, None)]
)
def test_the_queue(status: int | None, state: str | None) -> None:
    found = queued({"JobStatus": status})
    assert (found.state if found else None) == state


@pytest.mark.parametrize(
    ("ad", "state"),
    [
        ({"JobStatus": 4, "ExitCode": 3, "ExitBySignal": False, "RemoteWallClockTime": 7.0}, State(DONE, 3, 7.0)),
        ({"JobStatus": 4, "ExitBySignal": True, "ExitSignal": 9, "RemoteUserCpu": 2.5}, State(DONE, 137, None, 2.5)),
        ({"JobStatus": 3, "RemoveReason": "x\ny"}, State(DONE, 143, why="removed: x y")),
        ({"JobStatus": 4}, State(DONE, 1)),
    ],
)
def test_the_history(ad: dict[str, object], state: State) -> None:
    assert ended(ad) == state


def test_a_number() -> None:
    assert number_of({"ClusterId": 12, "ProcId": 3}) == "12.3"
