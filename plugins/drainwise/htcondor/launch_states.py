"""How jobs fare, out of the events of their log, or out of the ads of queue and history. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from drainwise.launch.backend import DONE, RUNNING, SIGNALLED, WAITING, State

QUEUE_ATTRIBUTES = ("ClusterId", "ProcId", "JobStatus", "HoldReason", "HoldReasonCode")
HISTORY_ATTRIBUTES = (
    *("ClusterId", "ProcId", "JobStatus", "ExitBySignal", "ExitCode", "ExitSignal", "RemoteWallClockTime"),
    *("RemoteUserCpu", "RemoteSysCpu", "RemoveReason"),
)
REMOVED = SIGNALLED + 15
"""Code of a job that was removed."""
HELD = 1
"""Code of a job that HTCondor put on hold: it does not run until somebody releases it, so it has failed."""

_BY_USER = frozenset({1, 15})  # HoldReasonCode: somebody held it, or submitted it so
_USAGE = re.compile(r"Usr (\d+) (\d+):(\d+):(\d+), Sys (\d+) (\d+):(\d+):(\d+)")
_IDLE, _RUNS, _REMOVED, _COMPLETED, _HELD, _OUTPUT, _SUSPENDED = range(1, 8)


@dataclass(frozen=True)
class Event:
    """One event of a log: kind as HTCondor names it (SUBMIT, EXECUTE …), time in UNIX s, and its own values."""

    number: str
    kind: str
    time: float
    values: Mapping[str, object]


@dataclass
class Course:
    """What the log has told of one job so far. state: None as long as it told nothing that counts."""

    began: float | None = None
    state: State | None = None
    held: bool = field(default=False)

    def take(self, event: Event) -> None:
        """One more event."""
        if self.state is not None and self.state.state == DONE and not self.held:
            return
        if event.kind in {"SUBMIT", "JOB_RELEASED", "JOB_EVICTED", "JOB_RECONNECT_FAILED"}:
            self.state, self.held = State(WAITING), False
        elif event.kind == "EXECUTE":
            self.began, self.state, self.held = event.time, State(RUNNING), False
        elif event.kind == "JOB_HELD":
            self.state = held(event.values.get("HoldReasonCode"), event.values.get("HoldReason"))
            self.held = True
        elif event.kind == "JOB_TERMINATED":
            self.held = False
            wall = max(0.0, event.time - self.began) if self.began is not None else None
            self.state = State(DONE, _code(event.values, "TerminatedNormally"), wall, _cpu(event.values))
        elif event.kind in {"JOB_ABORTED", "CLUSTER_REMOVE"} and not self.held:
            self.state = State(DONE, REMOVED, why=_words("removed", event.values.get("Reason")))


def held(code: object, reason: object) -> State:
    """The state of a job on hold."""
    why = _words("on hold", reason)
    return State(WAITING, why=why) if code in _BY_USER else State(DONE, HELD, why=why)


def queued(ad: Mapping[str, object]) -> State | None:
    """How a job in the queue fares; None where the log will tell: it has just ended."""
    status = ad.get("JobStatus")
    if status in {_RUNS, _OUTPUT, _SUSPENDED}:
        return State(RUNNING)
    if status == _HELD:
        return held(ad.get("HoldReasonCode"), ad.get("HoldReason"))
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


def _code(values: Mapping[str, object], normally: str) -> int:
    if values.get(normally) is False:
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
