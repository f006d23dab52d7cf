"""How jobs fare, out of the events of their log, or out of the ads of queue and history. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from drainwise.launch.backend import DONE, RUNNING, SIGNALLED, WAITING, State

ATTRIBUTES = (
    *("ClusterId", "ProcId", "JobStatus", "HoldReason", "HoldReasonCode", "RemoveReason"),
    *("ExitBySignal", "ExitCode", "ExitSignal", "RemoteWallClockTime", "RemoteUserCpu", "RemoteSysCpu"),
)
"""What is asked of a job's ad."""
REMOVED = SIGNALLED + 15
"""Code of a job that was removed."""
HELD = 1
"""Code of a job that HTCondor put on hold: it does not run until somebody releases it, so it has failed."""

_ON_HOLD = "on hold"
_BY_USER = frozenset({1, 15})  # HoldReasonCode: somebody held it, or submitted it so
_USAGE = re.compile(r"Usr (\d+) (\d+):(\d+):(\d+), Sys (\d+) (\d+):(\d+):(\d+)")
_SUBMITTED = State(WAITING)
_IDLE, _RUNS, _REMOVED, _COMPLETED, _HELD, _OUTPUT, _SUSPENDED = range(1, 8)


@dataclass(frozen=True)
class Event:
    """One event of a log: kind as HTCondor names it (SUBMIT, EXECUTE …), time in UNIX s, and its own values."""

    number: str
    kind: str
    time: float
    values: Mapping[str, object]


class Courses:
    """What the log has told of jobs, by number.

    A schedd that has lost its queue gives numbers anew: each SUBMIT begins another course, with the tag that it notes.
    What a job did whose SUBMIT is not there counts for nothing: it might be another job's.
    """

    def __init__(self) -> None:
        self._courses: dict[str, Course] = {}

    def take(self, event: Event) -> None:
        """One more event."""
        if event.kind == "SUBMIT":
            # Beside notes of its own 25.x has ours in the second place; 23.9 takes the first for another kind of notes.
            notes = event.values.get("UserNotes") or event.values.get("LogNotes") or ""
            self._courses[event.number] = Course(str(notes).strip())
        elif event.number in self._courses:
            self._courses[event.number].take(event)

    def tag(self, number: str) -> str:
        """The tag of the last job with this number; empty where there is none."""
        course = self._courses.get(number)
        return course.tag if course is not None else ""

    def state(self, number: str, tag: str) -> State | None:
        """How the job with this number and this tag fares, as the log has it."""
        course = self._courses.get(number)
        return course.state if course is not None and course.tag == tag else None

    def numbers(self, tags: Collection[str]) -> dict[str, str]:
        """The numbers of jobs with these tags, by tag."""
        return {course.tag: number for number, course in self._courses.items() if course.tag in tags}

    def forget(self, number: str) -> None:
        """Nothing needs to be known of it any more."""
        self._courses.pop(number, None)


@dataclass
class Course:
    """What the log has told of one job so far. began: when it began to run, UNIX s."""

    tag: str
    began: float | None = None
    state: State = _SUBMITTED

    def take(self, event: Event) -> None:
        """One more event. What has ended has ended, but what is on hold may be released."""
        is_done = self.state.state == DONE
        if is_done and not is_held(self.state):
            return
        if event.kind in {"JOB_RELEASED", "JOB_EVICTED", "JOB_RECONNECT_FAILED", "SHADOW_EXCEPTION"}:
            self.state = _SUBMITTED
        elif event.kind == "EXECUTE":
            self.began, self.state = event.time, State(RUNNING)
        elif event.kind == "JOB_HELD":
            self.state = held(event.values.get("HoldReasonCode"), event.values.get("HoldReason"))
        elif event.kind == "JOB_TERMINATED":
            wall = max(0.0, event.time - self.began) if self.began is not None else None
            self.state = State(DONE, _code(event.values), wall, _cpu(event.values))
        elif event.kind == "JOB_ABORTED" and not is_done:
            self.state = State(DONE, REMOVED, why=_words("removed", event.values.get("Reason")))


def held(code: object, reason: object) -> State:
    """The state of a job on hold: it waits if somebody wanted that, else it has failed."""
    why = _words(_ON_HOLD, reason)
    return State(WAITING, why=why) if code in _BY_USER else State(DONE, HELD, why=why)


def is_held(state: State) -> bool:
    """Whether it has failed because HTCondor put it on hold, and may be in the queue still."""
    return state.state == DONE and state.why.startswith(_ON_HOLD)


def queued(ad: Mapping[str, object]) -> State | None:
    """How a job in the queue fares; None for one that is being removed."""
    status = ad.get("JobStatus")
    if status in {_RUNS, _OUTPUT, _SUSPENDED}:
        return State(RUNNING)
    if status == _HELD:
        return held(ad.get("HoldReasonCode"), ad.get("HoldReason"))
    if status == _COMPLETED:
        return ended(ad)
    return State(WAITING) if status == _IDLE else None


def ended(ad: Mapping[str, object]) -> State:
    """How a job in the history ended."""
    wall, user, system = (_number(ad.get(name)) for name in ("RemoteWallClockTime", "RemoteUserCpu", "RemoteSysCpu"))
    cpu = (user or 0.0) + (system or 0.0) or None
    if ad.get("JobStatus") != _COMPLETED:
        return State(DONE, REMOVED, wall, cpu, _words("removed", ad.get("RemoveReason")))
    if ad.get("ExitBySignal") is True:
        return State(DONE, SIGNALLED + _whole(ad.get("ExitSignal"), 1), wall, cpu)
    return State(DONE, _whole(ad.get("ExitCode"), 1), wall, cpu)


def number_of(ad: Mapping[str, object]) -> str:
    """`cluster.proc`."""
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


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _words(what: str, reason: object) -> str:
    said = "".join(letter for letter in " ".join(str(reason or "").split()) if letter.isprintable())[:200]
    return f"{what}: {said}" if said else what
