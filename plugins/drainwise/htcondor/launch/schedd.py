"""Talk to an access point about the launcher's jobs, and to the collector about slots.

To be called in a process that ends after one question (`bounded_call.within`): the bindings may hang, and do for ever
before a schedd that is stopped.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import classad2
import htcondor2

from drainwise.common.printable import one_line
from drainwise.facts.errors import ActionRefused, PoolFull, PoolUnreachable
from drainwise.htcondor.ads.query import plain
from drainwise.htcondor.ads.values import Ad
from drainwise.htcondor.launch.states import ATTRIBUTES
from drainwise.htcondor.launch.submission import TAG

_ATTRIBUTES = (*ATTRIBUTES, TAG)
_SIZE = ("TotalSlotCpus", "TotalSlotMemory")
# What the bindings say of a job that is refused: by themselves, or by the schedd, which gives a reason. Without one the
# connection was lost, and the job may be there.
_REFUSED = re.compile(r"failed to create job ad|unable to commit transaction\W*\w", re.IGNORECASE)
# The schedd gives no number: MAX_JOBS_SUBMITTED, MAX_JOBS_PER_OWNER, a user who is disabled. Only 25.x says more.
_FULL = re.compile(r"failed to create new (cluster|proc)|expected next procid", re.IGNORECASE)
_GONE = "nonexistent job"
# 23.9 raises RuntimeError and OSError, 25.x a class of its own.
_FAULTS = (getattr(htcondor2, "HTCondorException", RuntimeError), RuntimeError, OSError, ValueError)


def submitted(schedd: str, collector: str, words: Mapping[str, str]) -> str:
    """Submit one job and return its number. Raises ActionRefused, PoolFull, PoolUnreachable."""
    point = _access_point(schedd, collector)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = point.submit(htcondor2.Submit(dict(words)), count=1)
        except _FAULTS as fault:
            said = _one_line(fault)
            if _REFUSED.search(said):
                raise ActionRefused(f"the schedd refused: {said}") from None
            if _FULL.search(said):
                raise PoolFull(f"the schedd takes no more jobs of this user now: {said}") from None
            raise PoolUnreachable(f"the schedd took no job: {said}") from None
    return f"{result.cluster()}.{result.first_proc()}"


def in_queue(schedd: str, collector: str, constraint: str) -> list[Ad]:
    """Query the queue for the jobs that meet `constraint`, with _ATTRIBUTES. Raises PoolUnreachable."""
    return _plain(_asked(_access_point(schedd, collector).query, constraint, list(_ATTRIBUTES)))


def in_history(schedd: str, collector: str, constraint: str, most: int, since: int) -> list[Ad]:
    """Query the last `most` jobs that left the queue since `since` (UNIX s) and meet `constraint`."""
    before = classad2.ExprTree(f"EnteredCurrentStatus < {since}")
    history = _access_point(schedd, collector).history
    return _plain(_asked(history, constraint, list(_ATTRIBUTES), most, before))


def removed(schedd: str, collector: str, constraint: str) -> None:
    """Remove the jobs for which `constraint` holds. Raises PoolUnreachable, ActionRefused."""
    act = _access_point(schedd, collector).act
    answer = _asked(act, htcondor2.JobAction.Remove, constraint, "ended by drainwise launch")
    denied = answer.get("TotalPermissionDenied", 0)
    if denied:
        raise ActionRefused(f"the schedd does not let this user remove {denied} jobs")


def with_priorities(schedd: str, collector: str, priorities: Mapping[str, int]) -> None:
    """Set JobPrio of jobs by number; one that is gone is no fault. Raises PoolUnreachable, ActionRefused."""
    edit = _access_point(schedd, collector).edit
    for number, priority in priorities.items():
        try:
            edit([number], "JobPrio", str(priority))
        except _FAULTS as fault:
            said = _one_line(fault)
            if _GONE in said.lower():
                continue
            if _REFUSED.search(said):
                raise ActionRefused(f"the schedd refused: {said}") from None
            raise PoolUnreachable(f"the schedd changed no priority: {said}") from None


def slot_sizes(collector: str) -> list[tuple[int, int]]:
    """Return (cores, MB) of each kind of slot that jobs can get, whole. Raises PoolUnreachable."""
    try:
        asked = htcondor2.Collector(collector) if collector else htcondor2.Collector()
        ads = asked.query(htcondor2.AdType.Startd, 'SlotType =!= "Dynamic"', list(_SIZE))
    except _FAULTS as fault:
        raise PoolUnreachable(f"the collector (COLLECTOR_HOST) does not answer: {_one_line(fault)}") from None
    sizes = (tuple(plain(ad, _SIZE).get(name) for name in _SIZE) for ad in ads)
    return sorted(
        {(int(one), int(two)) for one, two in sizes if isinstance(one, (int, float)) and isinstance(two, (int, float))}
    )


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


def _access_point(schedd: str, collector: str) -> Any:
    try:
        if not schedd:
            return htcondor2.Schedd()
        asked = htcondor2.Collector(collector) if collector else htcondor2.Collector()
        found = asked.locateAll(htcondor2.DaemonType.Schedd)
    except _FAULTS as fault:
        raise PoolUnreachable(
            f"no access point of HTCondor here (the schedd of this machine, or SCHEDD_HOST): {_one_line(fault)}"
        ) from None
    for ad in found:
        if ad.get("Name") == schedd:
            return htcondor2.Schedd(ad)
    raise PoolUnreachable(f"the collector knows no schedd {schedd}")


def _asked(ask: Any, *words: object) -> Any:
    try:
        return ask(*words)
    except _FAULTS as fault:
        raise PoolUnreachable(f"the schedd does not answer: {_one_line(fault)}") from None


def _plain(ads: Iterable[Any]) -> list[Ad]:
    return [plain(ad, _ATTRIBUTES) for ad in ads]


def _quoted(text: str) -> str:
    return str(classad2.quote(text))


def _one_line(fault: BaseException) -> str:
    return one_line(str(fault))
