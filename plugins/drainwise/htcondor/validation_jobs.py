"""A validation's runs as jobs of the schedd: submitted, found by an attribute of ours, looked at, removed.

To be imported and called in a process that ends after one question (`time_limit.within`): the bindings may hang.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import classad2
import htcondor2

from drainwise.errors import PoolUnreachable
from drainwise.htcondor.launch_schedd import submitted
from drainwise.htcondor.packed_ads import plain
from drainwise.htcondor.pool_ads import Ad

NAME = "DrainwiseValidationRun"
"""The attribute of a job that says which run it is."""
JOB_ATTRIBUTES = (
    *("ClusterId", "ProcId", "JobStatus", "ExitCode", "ExitBySignal", "ExitSignal"),
    *("HoldReason", "RemoveReason", "LastRejMatchReason"),
)
_SLOT_ATTRIBUTES = ("TotalSlotCpus", "TotalSlotMemory")
_FAULTS = (RuntimeError, getattr(htcondor2, "HTCondorException", RuntimeError))  # 23.9 has not the second one


def find_job(name: str) -> tuple[int, int] | None:
    """(cluster, proc) of the first job that carries this name, in the queue or the history. Raises PoolUnreachable."""
    found = _jobs(f"{NAME} == {classad2.quote(name)}", None)
    numbers = ((ad.get("ClusterId"), ad.get("ProcId")) for ad in found)
    return min(((one, two) for one, two in numbers if isinstance(one, int) and isinstance(two, int)), default=None)


def job_ad(cluster: int, proc: int, name: str) -> Ad | None:
    """What the queue, or else the history, has of a job of that name. Raises PoolUnreachable."""
    found = _jobs(_constraint(cluster, proc, name), 1)
    return found[0] if found else None


def submit_job(directory: str, description: Mapping[str, str], name: str) -> tuple[int, int]:
    """Submit a job from this directory under this name; (cluster, proc).

    Raises ActionRefused when the schedd does not take it, PoolFull when it takes no more for now, and PoolUnreachable
    when it does not answer: the job may be there then.
    """
    os.chdir(directory)  # so that no path of ours has to be written in the language of submit files
    number = submitted("", "", {**description, f"My.{NAME}": str(classad2.quote(name))})
    cluster, _, proc = number.partition(".")
    return int(cluster), int(proc)


def remove_job(cluster: int, proc: int, name: str) -> None:
    """Remove a job that has not completed, if it is of this name. Raises PoolUnreachable."""
    constraint = f"({_constraint(cluster, proc, name)}) && JobStatus =!= 4"
    try:
        _schedd().act(htcondor2.JobAction.Remove, constraint, "its validation needs it no more")
    except _FAULTS as fault:
        raise _silent(fault) from None


def slot_sizes() -> list[tuple[int, int]]:
    """(cores, MiB) of each kind of slot that jobs can get, whole. Raises PoolUnreachable."""
    try:
        kind = htcondor2.AdType.Startd
        ads = htcondor2.Collector().query(kind, 'SlotType =!= "Dynamic"', list(_SLOT_ATTRIBUTES))
    except _FAULTS as fault:
        raise PoolUnreachable(f"the collector (COLLECTOR_HOST) does not answer: {_words(fault)}") from None
    sizes = (tuple(plain(ad, _SLOT_ATTRIBUTES).get(name) for name in _SLOT_ATTRIBUTES) for ad in ads)
    return sorted(
        {(int(one), int(two)) for one, two in sizes if isinstance(one, (int, float)) and isinstance(two, (int, float))}
    )


def _jobs(constraint: str, most: int | None) -> list[Ad]:
    """In the queue, else in the history: whatever left the first is in the second by then."""
    try:
        schedd = _schedd()
        limit = -1 if most is None else most
        found = schedd.query(constraint, list(JOB_ATTRIBUTES), None, limit)
        found = found or schedd.history(constraint, list(JOB_ATTRIBUTES), 1)
    except _FAULTS as fault:
        raise _silent(fault) from None
    return [plain(ad, JOB_ATTRIBUTES) for ad in found]


def _schedd() -> htcondor2.Schedd:
    try:
        return htcondor2.Schedd()
    except _FAULTS as fault:
        raise _silent(fault) from None


def _silent(fault: Exception) -> PoolUnreachable:
    return PoolUnreachable(f"the schedd of this machine (or SCHEDD_HOST) does not answer: {_words(fault)}")


def _words(fault: Exception) -> str:
    return " ".join(str(fault).split()).rstrip(".")


def _constraint(cluster: int, proc: int, name: str) -> str:
    return f"ClusterId == {cluster} && ProcId == {proc} && {NAME} == {classad2.quote(name)}"
