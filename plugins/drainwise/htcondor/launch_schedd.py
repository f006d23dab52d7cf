"""Talks to an access point about the launcher's jobs.

To be called in a process that ends after one question (`time_limit.within`): the bindings may hang, and do for ever
before a schedd that is stopped.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import classad2
import htcondor2

from drainwise.errors import ActionRefused, PoolUnreachable
from drainwise.htcondor.launch_states import HISTORY_ATTRIBUTES, QUEUE_ATTRIBUTES
from drainwise.htcondor.launch_submission import TAG
from drainwise.htcondor.packed_ads import plain
from drainwise.htcondor.pool_ads import Ad

# What the bindings say of a description or a job that is refused; 23.9 raises RuntimeError, 25.x a class of its own.
_REFUSED = ("failed to create job ad", "unable to commit transaction")
_GONE = "nonexistent job"
_FAULTS = (getattr(htcondor2, "HTCondorException", RuntimeError), RuntimeError, ValueError)


def submitted(schedd: str, collector: str, words: Mapping[str, str]) -> str:
    """Submit one job; its number. Raises ActionRefused, PoolUnreachable."""
    point = _access_point(schedd, collector)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = point.submit(htcondor2.Submit(dict(words)), count=1)
        except _FAULTS as fault:
            said = _one_line(fault)
            if any(sign in said.lower() for sign in _REFUSED):
                raise ActionRefused(f"the schedd refused: {said}") from None
            raise PoolUnreachable(f"the schedd took no job: {said}") from None
    return f"{result.cluster()}.{result.first_proc()}"


def in_queue(schedd: str, collector: str, constraint: str) -> list[Ad]:
    """The jobs in the queue for which `constraint` holds, with QUEUE_ATTRIBUTES and TAG. Raises PoolUnreachable."""
    attributes = (*QUEUE_ATTRIBUTES, TAG)
    return _plain(_asked(_access_point(schedd, collector).query, constraint, list(attributes)), attributes)


def in_history(schedd: str, collector: str, constraint: str, most: int, since: int) -> list[Ad]:
    """Of the jobs that have left the queue since `since` (UNIX s), the last `most` for which `constraint` holds."""
    attributes = (*HISTORY_ATTRIBUTES, TAG)
    before = classad2.ExprTree(f"EnteredCurrentStatus < {since}")
    history = _access_point(schedd, collector).history
    return _plain(_asked(history, constraint, list(attributes), most, before), attributes)


def removed(schedd: str, collector: str, numbers: Sequence[str]) -> None:
    """Remove jobs; one that is gone is no fault. Raises PoolUnreachable, ActionRefused."""
    act = _access_point(schedd, collector).act
    answer = _asked(act, htcondor2.JobAction.Remove, list(numbers), "ended by drainwise launch")
    denied = answer.get("TotalPermissionDenied", 0)
    if denied:
        raise ActionRefused(f"the schedd does not let this user remove {denied} of {len(numbers)} jobs")


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
            if any(sign in said.lower() for sign in _REFUSED):
                raise ActionRefused(f"the schedd refused: {said}") from None
            raise PoolUnreachable(f"the schedd changed no priority: {said}") from None


def tagged(tags: Collection[str]) -> str:
    """The constraint for jobs with one of these tags."""
    return " || ".join(f"{TAG} == {_quoted(tag)}" for tag in tags)


def numbered(numbers: Collection[str]) -> str:
    """The constraint for jobs with these numbers."""
    pairs = (number.partition(".") for number in numbers)
    return " || ".join(f"(ClusterId == {int(cluster)} && ProcId == {int(proc)})" for cluster, _dot, proc in pairs)


def _access_point(schedd: str, collector: str) -> Any:
    try:
        if not schedd and not collector:
            return htcondor2.Schedd()
        asked = htcondor2.Collector(collector) if collector else htcondor2.Collector()
        found = asked.locateAll(htcondor2.DaemonType.Schedd)
    except _FAULTS as fault:
        raise PoolUnreachable(f"no access point of HTCondor here: {_one_line(fault)}") from None
    for ad in found:
        if not schedd or ad.get("Name") == schedd:
            return htcondor2.Schedd(ad)
    raise PoolUnreachable(f"the collector knows no schedd {schedd or '(any)'}")


def _asked(ask: Any, *words: object) -> Any:
    try:
        return ask(*words)
    except _FAULTS as fault:
        raise PoolUnreachable(f"the schedd does not answer: {_one_line(fault)}") from None


def _plain(ads: Iterable[Any], attributes: Sequence[str]) -> list[Ad]:
    return [plain(ad, attributes) for ad in ads]


def _quoted(text: str) -> str:
    return str(classad2.quote(text))


def _one_line(fault: BaseException) -> str:
    return "".join(letter for letter in " ".join(str(fault).split()) if letter.isprintable())[:200]
