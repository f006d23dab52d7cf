"""The payload queue of a pilot, as a protocol, and its record: one JSON line per event, which several pilots may share.

A line is one write to a file opened for appending, so that lines of different pilots do not mix.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from drainwise.common.local_file import Held
from drainwise.common.service import Faults
from drainwise.pilot.decide.payload import Backlog, Payload

_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

RECORDS = "records.jsonl"
STARTED = "started"
DONE = "done"
FAILED = "failed"
REQUEUED = "requeued"
REFUSED = "refused"


class PayloadUsage(NamedTuple):
    """What a payload's main process and the descendants it waited for used; None: not known.

    cpu_seconds: over all cores. memory_bytes: the largest PSS of all its processes together that was seen every few
    seconds, or the largest RSS of any one of them where that is more. read_bytes, written_bytes: from storage and to
    it. work_bytes: of the files in its directory at most, as far as seen; output_bytes: of those that it left there.
    """

    cpu_seconds: float
    memory_bytes: int
    read_bytes: int | None
    written_bytes: int | None
    work_bytes: int | None
    output_bytes: int | None


@dataclass(frozen=True)
class EndedPayload:
    """A payload that is over. code: 0…255, or −N when signal N ended it. stopped: why the pilot stopped it, or "".

    start: UNIX s. usage: None for one whose command could not be executed, or that could not be ended.
    """

    payload: Payload
    code: int
    start: float
    stopped: str = ""
    usage: PayloadUsage | None = None

    @property
    def failed(self) -> bool:
        """Whether it did not end by itself, and well."""
        return bool(self.code or self.stopped)


class Records:
    """The record of one pilot in the file `path`. A record that cannot be written costs a log line, nothing else."""

    def __init__(self, path: str, pilot: str, log: Callable[[str], None]) -> None:
        self._path, self._pilot, self._faults = path, pilot, Faults(log)

    def add(self, event: str, payload: str, now: float | None = None, **details: object) -> None:
        """Write that `event` befell the payload of that name at `now`, UNIX s (None: at this moment)."""
        moment = round(time.time() if now is None else now, 3)
        entry = {"time": moment, "pilot": self._pilot, "event": event, "payload": payload, **details}
        self._faults.set(self._path.rpartition("/")[2], append_line(self._path, json.dumps(entry)))

    def started(self, payload: Payload, now: float, **details: object) -> None:
        """Write that a payload starts, with what it takes and how long."""
        takes: dict[str, object] = {"cores": payload.cores, "expected": payload.expected, "maximum": payload.maximum}
        if payload.task:
            takes["task"] = payload.task
        if payload.events:
            takes["events"] = payload.events
        self.add(STARTED, payload.name, now, **takes, **details)

    def ended(self, ended: EndedPayload, now: float, **details: object) -> None:
        """Write that a payload is done or has failed."""
        why = {"reason": ended.stopped} if ended.stopped else {}
        usage = {} if ended.usage is None else ended.usage._asdict()
        used = {name: value for name, value in usage.items() if value is not None}
        event, seconds = FAILED if ended.failed else DONE, round(now - ended.start, 3)
        self.add(event, ended.payload.name, now, **details, code=ended.code, seconds=seconds, **why, **used)

    def requeued(self, name: str, reason: str, seconds: float, now: float, **details: object) -> None:
        """Write that a payload waits again after it ran for `seconds`."""
        self.add(REQUEUED, name, now, **details, reason=reason, seconds=round(seconds, 3))


def append_line(path: str, line: str) -> str:
    """Append a line in one write; what went wrong in a few words, "" when nothing did.

    A line that could be written in part only is ended, so that the next one stands alone.
    """
    content = line.encode("ascii") + b"\n"
    try:
        # A FIFO without a reader, or anything else that is no file, must not make the pilot wait.
        with Held(os.open(path, _APPEND, 0o644)) as fd:
            if os.write(fd, content) != len(content):
                os.write(fd, b"\n")
                return "not written in whole"
    except OSError as error:
        return error.strerror or "cannot be written"
    return ""


class PayloadQueue(Protocol):
    """A queue that gives and takes back payloads. No method raises for what is wrong outside the pilot: it is logged.

    Times are UNIX s.
    """

    def look(self, now: float) -> bool:
        """Take in what is new; whether anything changed. Cheap when nothing did."""

    def waiting(self) -> Backlog:
        """Return those that could be started, not claimed yet: a view that follows the changes."""

    def claim(self, payload: Payload, now: float) -> bool:
        """Make a waiting payload this pilot's own just before it starts; False when somebody else has it already."""

    def finished(self, ended: EndedPayload, now: float) -> None:
        """Record that a claimed payload ended by itself (0: done, else failed) or was stopped for good."""

    def requeue(self, payload: Payload, reason: str, seconds: float, now: float) -> None:
        """Put back a claimed payload that did not end, after it ran for `seconds`."""

    def unclaim(self, payload: Payload, reason: str, now: float) -> None:
        """Have a claimed payload wait again that could not be started, by no fault of its own."""

    def refuse(self, payload: Payload, reason: str, now: float) -> None:
        """Offer a waiting payload never again: it cannot run here."""

    def more_may_come(self) -> bool:
        """Return whether payloads that are not waiting yet may still appear."""

    def fileno(self) -> int | None:
        """Return a descriptor that becomes readable when there is something new; None: look from time to time."""

    def close(self, now: float) -> None:
        """Hand back whatever is left."""
