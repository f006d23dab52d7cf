"""The states of jobs, out of the events of their log, or out of the ads of queue and history. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from drainwise.common.printable import one_line
from drainwise.htcondor.ads.values import number
from drainwise_launch.backend import DONE, RUNNING, SIGNALLED, WAITING, JobState

ATTRIBUTES = (
    *("ClusterId", "ProcId", "JobStatus", "HoldReason", "HoldReasonCode", "RemoveReason"),
    *("ExitBySignal", "ExitCode", "ExitSignal", "RemoteWallClockTime", "RemoteUserCpu", "RemoteSysCpu"),
)
"""The attributes that are queried."""
REMOVED = SIGNALLED + 15
"""Code of a job that was removed."""
HELD = 1
"""Code of a job that HTCondor put on hold: it does not run until somebody releases it, so it has failed."""

_ON_HOLD = "on hold"
_BY_USER = frozenset({1, 15})  # HoldReasonCode: somebody held it, or submitted it so
_USAGE = re.compile(r"Usr (\d+) (\d+):(\d+):(\d+), Sys (\d+) (\d+):(\d+):(\d+)")
_SUBMITTED = JobState(WAITING)
_IDLE, _RUNS, _REMOVED, _COMPLETED, _HELD, _OUTPUT, _SUSPENDED = range(1, 8)


@dataclass(frozen=True)
class Event:
    """One event of a log: kind as HTCondor names it (SUBMIT, EXECUTE …), time in UNIX s, and its own values."""

    number: str
    kind: str
    time: float
    values: Mapping[str, object]


class EventLogJobs:
    """The jobs of the log, by number.

    A schedd that has lost its queue gives numbers anew: each SUBMIT begins another job, with the tag that it notes.
    What a job did whose SUBMIT is not there counts for nothing: it might be another job's.
    """

    def __init__(self) -> None:
        self._jobs: dict[str, EventLogJob] = {}

    def take(self, event: Event) -> None:
        """Take one more event."""
        if event.kind == "SUBMIT":
            # Beside notes of its own 25.x has ours in the second place; 23.9 takes the first for another kind of notes.
            notes = event.values.get("UserNotes") or event.values.get("LogNotes") or ""
            self._jobs[event.number] = EventLogJob(str(notes).strip())
        elif event.number in self._jobs:
            self._jobs[event.number].take(event)

    def tag(self, number: str) -> str:
        """Return the tag of the last job with this number; empty where there is none."""
        job = self._jobs.get(number)
        return job.tag if job is not None else ""

    def state(self, number: str, tag: str) -> JobState | None:
        """Return the state of the job with this number and this tag, as the log has it."""
        job = self._jobs.get(number)
        return job.state if job is not None and job.tag == tag else None

    def numbers(self, tags: Collection[str]) -> dict[str, str]:
        """Return the numbers of jobs with these tags, by tag."""
        return {job.tag: number for number, job in self._jobs.items() if job.tag in tags}

    def forget(self, number: str) -> None:
        """Forget a job of which nothing needs to be known any more."""
        self._jobs.pop(number, None)


@dataclass
class EventLogJob:
    """One job of the log. began: the start of its run, UNIX s."""

    tag: str
    began: float | None = None
    state: JobState = _SUBMITTED

    def take(self, event: Event) -> None:
        """Take one more event. What has ended has ended, but what is on hold may be released."""
        is_done = self.state.state == DONE
        if is_done and not is_held(self.state):
            return
        if event.kind in {"JOB_RELEASED", "JOB_EVICTED", "JOB_RECONNECT_FAILED", "SHADOW_EXCEPTION"}:
            self.state = _SUBMITTED
        elif event.kind == "EXECUTE":
            self.began, self.state = event.time, JobState(RUNNING)
        elif event.kind == "JOB_HELD":
            self.state = held(event.values.get("HoldReasonCode"), event.values.get("HoldReason"))
        elif event.kind == "JOB_TERMINATED":
            wall = max(0.0, event.time - self.began) if self.began is not None else None
            self.state = JobState(DONE, _code(event.values), wall, _cpu(event.values))
        elif event.kind == "JOB_ABORTED" and not is_done:
            self.state = JobState(DONE, REMOVED, why=_words("removed", event.values.get("Reason")))


def held(code: object, reason: object) -> JobState:
    """Return the state of a job on hold: it waits if a user put it there, else it has failed."""
    why = _words(_ON_HOLD, reason)
    return JobState(WAITING, why=why) if code in _BY_USER else JobState(DONE, HELD, why=why)


def failed_if_held(state: JobState) -> JobState:
    """Return the state of a job of which nobody waits for the release."""
    return JobState(DONE, HELD, why=state.why) if state.state == WAITING and state.why.startswith(_ON_HOLD) else state


def is_held(state: JobState) -> bool:
    """Tell whether it has failed because HTCondor put it on hold, and may be in the queue still."""
    return state.state == DONE and state.why.startswith(_ON_HOLD)


def queued(ad: Mapping[str, object]) -> JobState | None:
    """Return the state of a job in the queue; None for one that is being removed."""
    status = ad.get("JobStatus")
    if status in {_RUNS, _OUTPUT, _SUSPENDED}:
        return JobState(RUNNING)
    if status == _HELD:
        return held(ad.get("HoldReasonCode"), ad.get("HoldReason"))
    if status == _COMPLETED:
        return ended(ad)
    return JobState(WAITING) if status == _IDLE else None


def ended(ad: Mapping[str, object]) -> JobState:
    """Return the state of a job in the history."""
    wall, user, system = (number(ad, name) for name in ("RemoteWallClockTime", "RemoteUserCpu", "RemoteSysCpu"))
    cpu = (user or 0.0) + (system or 0.0) or None
    if ad.get("JobStatus") != _COMPLETED:
        return JobState(DONE, REMOVED, wall, cpu, _words("removed", ad.get("RemoveReason")))
    if ad.get("ExitBySignal") is True:
        return JobState(DONE, SIGNALLED + _whole(ad.get("ExitSignal"), 1), wall, cpu)
    return JobState(DONE, _whole(ad.get("ExitCode"), 1), wall, cpu)


def number_of(ad: Mapping[str, object]) -> str:
    """Return `cluster.proc`."""
    return f"{_whole(ad.get('ClusterId'), 0)}.{_whole(ad.get('ProcId'), 0)}"


def _code(values: Mapping[str, object]) -> int:
    if values.get("TerminatedNormally") is False:
        return SIGNALLED + _whole(values.get("TerminatedBySignal"), 1)
    return _whole(values.get("ReturnValue"), 1)


def _cpu(values: Mapping[str, object]) -> float | None:
    match = _USAGE.search(str(values.get("TotalRemoteUsage", "")))
    if match is None:
        return None
    days, hours, minutes, seconds = (int(match[place]) + int(match[place + 4]) for place in range(1, 5))
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds) or None


def _whole(value: object, otherwise: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else otherwise


def _words(what: str, reason: object) -> str:
    said = one_line(str(reason or ""))
    return f"{what}: {said}" if said else what
