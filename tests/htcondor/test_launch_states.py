"""How jobs fare, by events and ads as 23.9.6 wrote them."""

from __future__ import annotations

import pytest

from drainwise_launch.backend import DONE, RUNNING, WAITING, JobState
from drainwise_launch.htcondor.states import Event, EventLogJobs, ended, is_held, number_of, queued

USAGE = {"TotalRemoteUsage": "Usr 0 00:01:00, Sys 0 00:00:02"}
DONE_3 = {"TerminatedNormally": True, "ReturnValue": 3, **USAGE}
KILLED = {"TerminatedNormally": False, "TerminatedBySignal": 9, **USAGE}
REASON = "Transfer input files failure"


def courses(*events: tuple[str, float, dict[str, object]]) -> EventLogJobs:
    made = EventLogJobs()
    for kind, time, values in events:
        made.take(Event("1.0", kind, time, values))
    return made


SUBMIT: tuple[str, float, dict[str, object]] = ("SUBMIT", 10.0, {"LogNotes": "T1"})
EXECUTE: tuple[str, float, dict[str, object]] = ("EXECUTE", 20.0, {})


@pytest.mark.parametrize(
    ("events", "state"),
    [
        ([], None),
        ([SUBMIT], JobState(WAITING)),
        ([SUBMIT, EXECUTE], JobState(RUNNING)),
        ([SUBMIT, EXECUTE, ("IMAGE_SIZE", 21.0, {"Size": 1})], JobState(RUNNING)),
        ([SUBMIT, EXECUTE, ("JOB_EVICTED", 30.0, {})], JobState(WAITING)),
        ([SUBMIT, EXECUTE, ("SHADOW_EXCEPTION", 30.0, {})], JobState(WAITING)),
        ([SUBMIT, EXECUTE, ("JOB_SUSPENDED", 30.0, {})], JobState(RUNNING)),
        ([SUBMIT, EXECUTE, ("JOB_TERMINATED", 95.0, DONE_3)], JobState(DONE, 3, 75.0, 62.0)),
        ([SUBMIT, EXECUTE, ("JOB_TERMINATED", 95.0, KILLED)], JobState(DONE, 137, 75.0, 62.0)),
        ([SUBMIT, EXECUTE, ("JOB_EVICTED", 30.0, {}), ("EXECUTE", 90.0, {}), ("JOB_TERMINATED", 95.0, DONE_3)],
         JobState(DONE, 3, 5.0, 62.0)),
        ([SUBMIT, ("JOB_ABORTED", 30.0, {"Reason": "via condor_rm"})],
         JobState(DONE, 143, why="removed: via condor_rm")),
        ([SUBMIT, ("JOB_HELD", 30.0, {"HoldReason": REASON, "HoldReasonCode": 13})],
         JobState(DONE, 1, why=f"on hold: {REASON}")),
        ([SUBMIT, ("JOB_HELD", 30.0, {"HoldReason": "via condor_hold", "HoldReasonCode": 1})],
         JobState(WAITING, why="on hold: via condor_hold")),
        ([SUBMIT, ("JOB_HELD", 30.0, {"HoldReason": REASON, "HoldReasonCode": 13}), ("JOB_ABORTED", 31.0, {})],
         JobState(DONE, 1, why=f"on hold: {REASON}")),
        ([SUBMIT, ("JOB_HELD", 30.0, {"HoldReasonCode": 13}), ("JOB_RELEASED", 31.0, {})], JobState(WAITING)),
        ([SUBMIT, ("JOB_HELD", 30.0, {"HoldReasonCode": 1}), ("JOB_ABORTED", 31.0, {})],
         JobState(DONE, 143, why="removed")),
        ([EXECUTE, ("JOB_TERMINATED", 95.0, DONE_3)], None),
        ([SUBMIT, EXECUTE, ("JOB_TERMINATED", 95.0, DONE_3), ("JOB_ABORTED", 96.0, {})], JobState(DONE, 3, 75.0, 62.0)),
    ],
)  # fmt: skip
def test_the_course_of_a_job(events: list[tuple[str, float, dict[str, object]]], state: JobState | None) -> None:
    assert courses(*events).state("1.0", "T1") == state


@pytest.mark.parametrize(
    "notes", [{"LogNotes": "T2"}, {"LogNotes": '[ JobBatchName = "key" ]', "UserNotes": "T2"}], ids=["23.9", "25.x"]
)
def test_a_number_that_is_given_anew_is_another_job_s(notes: dict[str, object]) -> None:
    """48: what the first one did is not what the second one does, and nobody takes either for the other."""
    told = courses(SUBMIT, EXECUTE, ("JOB_TERMINATED", 95.0, DONE_3), ("SUBMIT", 99.0, notes))
    assert told.state("1.0", "T2") == JobState(WAITING)
    assert told.state("1.0", "T1") is None
    assert told.numbers({"T1", "T2"}) == {"T2": "1.0"} and told.tag("1.0") == "T2"
    told.forget("1.0")
    assert told.tag("1.0") == "" and told.state("1.0", "T2") is None


@pytest.mark.parametrize(
    ("status", "state"), [(1, WAITING), (2, RUNNING), (6, RUNNING), (7, RUNNING), (3, None), (4, DONE), (None, None)]
)
def test_the_queue(status: int | None, state: str | None) -> None:
    found = queued({"JobStatus": status})
    assert (found.state if found else None) == state


@pytest.mark.parametrize(
    ("ad", "state"),
    [
        ({"JobStatus": 4, "ExitCode": 3, "ExitBySignal": False, "RemoteWallClockTime": 7.0}, JobState(DONE, 3, 7.0)),
        ({"JobStatus": 4, "ExitBySignal": True, "ExitSignal": 9, "RemoteUserCpu": 2.5}, JobState(DONE, 137, None, 2.5)),
        ({"JobStatus": 3, "RemoveReason": "x\ny"}, JobState(DONE, 143, why="removed: x y")),
        ({"JobStatus": 4}, JobState(DONE, 1)),
    ],
)
def test_the_history(ad: dict[str, object], state: JobState) -> None:
    assert ended(ad) == state


def test_a_number() -> None:
    assert number_of({"ClusterId": 12, "ProcId": 3}) == "12.3"


def test_on_hold_is_told_from_removed() -> None:
    assert is_held(queued({"JobStatus": 5, "HoldReasonCode": 13}) or JobState(WAITING))
    assert not is_held(queued({"JobStatus": 5, "HoldReasonCode": 1}) or JobState(DONE))
    assert not is_held(ended({"JobStatus": 3, "RemoveReason": "x"}))
