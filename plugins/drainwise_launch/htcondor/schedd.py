"""Talk to an access point about the launcher's jobs, and to the collector about slots; read the jobs' event log.

HTCondor writes that as the user: whoever reads it needs no daemon. All else is to be called in a process that ends
after one question (`bounded_call.within`): the bindings may hang, and do for ever before a schedd that is stopped.
"""

from __future__ import annotations

import os
import re
import stat
import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import classad2
import htcondor2

from drainwise.common.printable import one_line
from drainwise.facts.errors import ActionRefused, PoolFull, PoolUnreachable
from drainwise.htcondor.ads.query import plain
from drainwise.htcondor.ads.values import Ad, number
from drainwise_launch.htcondor.states import ATTRIBUTES, Event
from drainwise_launch.htcondor.submission import TAG

_ATTRIBUTES = (*ATTRIBUTES, TAG)
_SIZE = ("TotalSlotCpus", "TotalSlotMemory")
# What the bindings say of a job that is refused: by themselves, or by the schedd, which gives a reason. Without one the
# connection was lost, and the job may be there.
_REFUSED = re.compile(r"failed to create job ad|unable to commit transaction\W*\w", re.IGNORECASE)
# The schedd gives no number: MAX_JOBS_SUBMITTED, MAX_JOBS_PER_OWNER, a user who is disabled. Only 25.x says more.
_FULL = re.compile(r"failed to create new (cluster|proc)|expected next procid", re.IGNORECASE)
_GONE = "nonexistent job"
# 23.9 raises RuntimeError and OSError, 25.x a class of its own.
_LOG_FAULTS = (getattr(htcondor2, "HTCondorException", RuntimeError), RuntimeError, OSError)
_FAULTS = (*_LOG_FAULTS, ValueError)
_SILENT = "the schedd does not answer"
_NONE_HERE = "no access point of HTCondor here (the schedd of this machine, or SCHEDD_HOST)"


@dataclass(frozen=True)
class AccessPoint:
    """An access point by name, in a collector's pool; "" for the schedd of this machine or SCHEDD_HOST, in its own."""

    schedd: str = ""
    collector: str = ""

    def submit(self, words: Mapping[str, str]) -> str:
        """Submit one job and return its number. Raises ActionRefused, PoolFull, PoolUnreachable."""
        point = self._located()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                result = point.submit(htcondor2.Submit(dict(words)), count=1)
            except _FAULTS as fault:
                said = one_line(str(fault))
                if _REFUSED.search(said):
                    raise ActionRefused(f"the schedd refused: {said}") from None
                if _FULL.search(said):
                    raise PoolFull(f"the schedd takes no more jobs of this user now: {said}") from None
                raise PoolUnreachable(f"the schedd took no job: {said}") from None
        return f"{result.cluster()}.{result.first_proc()}"

    def in_queue(self, constraint: str) -> list[Ad]:
        """Query the queue for the jobs that meet `constraint`, with _ATTRIBUTES. Raises PoolUnreachable."""
        ads = _answer(_SILENT, self._located().query, constraint, list(_ATTRIBUTES))
        return [plain(ad, _ATTRIBUTES) for ad in ads]

    def in_history(self, constraint: str, most: int, since: int) -> list[Ad]:
        """Query the last `most` jobs that left the queue since `since` (UNIX s) and meet `constraint`."""
        before = classad2.ExprTree(f"EnteredCurrentStatus < {since}")
        ads = _answer(_SILENT, self._located().history, constraint, list(_ATTRIBUTES), most, before)
        return [plain(ad, _ATTRIBUTES) for ad in ads]

    def remove(self, constraint: str) -> None:
        """Remove the jobs for which `constraint` holds. Raises PoolUnreachable, ActionRefused."""
        act = self._located().act
        answer = _answer(_SILENT, act, htcondor2.JobAction.Remove, constraint, "ended by drainwise launch")
        denied = answer.get("TotalPermissionDenied", 0)
        if denied:
            raise ActionRefused(f"the schedd does not let this user remove {denied} jobs")

    def set_priorities(self, priorities: Mapping[str, int]) -> None:
        """Set JobPrio of jobs by number; one that is gone is no fault. Raises PoolUnreachable, ActionRefused."""
        edit = self._located().edit
        for job, priority in priorities.items():
            try:
                edit([job], "JobPrio", str(priority))
            except _FAULTS as fault:
                said = one_line(str(fault))
                if _GONE in said.lower():
                    continue
                if _REFUSED.search(said):
                    raise ActionRefused(f"the schedd refused: {said}") from None
                raise PoolUnreachable(f"the schedd changed no priority: {said}") from None

    def slot_sizes(self) -> list[tuple[int, int]]:
        """Return (cores, MB) of each kind of slot that jobs can get, whole. Raises PoolUnreachable."""
        words = (htcondor2.AdType.Startd, 'SlotType =!= "Dynamic"', list(_SIZE))
        ads = _answer("the collector (COLLECTOR_HOST) does not answer", lambda: self._collector().query(*words))
        sizes = (tuple(number(plain(ad, _SIZE), name) for name in _SIZE) for ad in ads)
        return sorted({(int(one), int(two)) for one, two in sizes if one is not None and two is not None})

    def _located(self) -> Any:
        if not self.schedd:
            return _answer(_NONE_HERE, htcondor2.Schedd)
        for ad in _answer(_NONE_HERE, lambda: self._collector().locateAll(htcondor2.DaemonType.Schedd)):
            if ad.get("Name") == self.schedd:
                return htcondor2.Schedd(ad)
        raise PoolUnreachable(f"the collector knows no schedd {self.schedd}")

    def _collector(self) -> Any:
        return htcondor2.Collector(self.collector) if self.collector else htcondor2.Collector()


def tagged_with(begin: str) -> str:
    """Return the constraint for jobs whose tags begin so: one look at each job of the queue."""
    return f"substr({TAG}, 0, {len(begin)}) == {_quoted(begin)}"


def tagged(tags: Collection[str]) -> str:
    """Return the constraint for jobs with one of these tags."""
    return " || ".join(f"{TAG} == {_quoted(tag)}" for tag in tags)


def either(tags: Collection[str], numbers: Collection[str], begin: str) -> str:
    """Return the constraint for jobs with one of these tags, or one of these numbers and a tag that begins so."""
    pairs = (number.partition(".") for number in numbers)
    numbered = " || ".join(f"(ClusterId == {int(cluster)} && ProcId == {int(proc)})" for cluster, _dot, proc in pairs)
    meant = [f"({tagged_with(begin)}) && ({numbered})"] if numbered else []
    return " || ".join([*meant, *([tagged(tags)] if tags else [])]) or "False"


def _answer(silent: str, ask: Any, *words: object) -> Any:
    """Return what the bindings answer. Raises PoolUnreachable, which says `silent`, where they do not."""
    try:
        return ask(*words)
    except _FAULTS as fault:
        raise PoolUnreachable(f"{silent}: {one_line(str(fault))}") from None


def _quoted(text: str) -> str:
    return str(classad2.quote(text))


class EventLog:
    """The log at `path`, which is made if it is missing; what it has of earlier launches is read first."""

    def __init__(self, path: str) -> None:
        try:
            # Without O_NONBLOCK a FIFO would hold us for ever.
            made = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
            is_file = stat.S_ISREG(os.fstat(made).st_mode)
            os.close(made)
            if not is_file:
                raise PoolUnreachable(f"the event log {path} cannot be used: it is no file")
            self._log = htcondor2.JobEventLog(path)
        except _LOG_FAULTS as fault:
            raise PoolUnreachable(f"the event log {path} cannot be used: {fault}") from None

    def news(self) -> Iterator[Event]:
        """Yield the new events. An event that cannot be read ends them; the queue is queried for the rest."""
        # Half an event, or one that nobody knows: it is read again with the next news, or left out.
        with suppress(*_LOG_FAULTS):
            # With 0 the bindings wait a second where the daemons' clock is a tick behind Python's.
            for event in self._log.events(stop_after=-1):
                values = {name: event[name] for name in event.keys()}  # noqa: SIM118 - no Mapping in 23.9
                yield Event(f"{event.cluster}.{event.proc}", event.type.name, float(event.timestamp), values)

    def close(self) -> None:
        """Close the file."""
        self._log.close()
