"""Read jobs out of the lines of plain `squeue`: a tenth of what its JSON costs for a job that waits.

No text that a user chose is among the fields (a name may hold any sign of separation, and line ends), but for the
features that a waiting job asks for: Slurm takes those that some node has, and they come last. AdminComment cannot be
asked for.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from drainwise.facts.errors import PoolUnreachable
from drainwise.slurm.jobs.commands import SlurmCommands
from drainwise.slurm.jobs.gres import gres_of_run, gres_per_node
from drainwise.slurm.jobs.job import SlurmJob, odd_fields
from drainwise.slurm.jobs.values import (
    BILLING,
    NODES,
    PENDING,
    RUNNING,
    count_in,
    mebibytes_in,
    memory_in,
    minutes_in,
    reason_in,
    states_of,
    waiting_tasks,
    whole,
)

_OWN_FIELDS = (
    *("JobID", "ArrayJobID", "ArrayTaskID", "HetJobID", "StartTime", "EndTime", "PriorityLong", "RestartCnt"),
)
_GRES_FIELDS = ("tres-per-node", "tres-per-job", "tres-per-task", "tres-per-socket")
_COMMON_FIELDS = (
    *("UserName", "Account", "State", "Reason", "NumCPUs", "NumNodes", "NodeList", "TimeLimit", "OverSubscribe"),
    *("tres-alloc", "NumTasks", *_GRES_FIELDS, "ReqNodes", "ExcNodes", "Reservation", "MinTmpDisk", "Partition"),
    "Feature",
)
FIELDS = (*_OWN_FIELDS, *_COMMON_FIELDS)
"""First what is each job's own: the rest of the line is the same for many, and read once."""
SNAPSHOT_FIELDS = ("SchedNodes", "Exclusive", "QOS", "Threads", "Licenses", "Requeue", "BatchFlag")
"""What a snapshot asks beside: where a waiting job may start, and whether its owner lets a run be requeued.

Before 26.05 Slurm has no `Exclusive`, complains, and prints nothing.
"""
RUN_FIELDS = (
    *("JobID", "ArrayJobID", "ArrayTaskID", "HetJobID", "State", "StartTime", "EndTime", "NumNodes", "Requeue"),
    *("BatchFlag", "RestartCnt", "PriorityLong", "TimeLimit"),
)
"""What is asked of one run right before and after an order."""

_NOTHING = {"", "N/A", "(null)"}
# With whom a job shares its nodes, by Exclusive or, where that is empty, by OverSubscribe (26.05 says NO of all).
_SHARING = {
    "Exclusive": {"NO": "", "NODE": "whole_nodes", "USER": "user_alone"},
    "OverSubscribe": {"OK": "", "YES": "", "NO": "whole_nodes", "USER": "user_alone"},
}
_UNKNOWN = "invalid job id"
_NO_JOB = "incomplete answer: squeue printed a line that is no job"
_whole = functools.lru_cache(maxsize=16_384)(whole)  # many jobs have the same numbers, but for their own


def _format(fields: tuple[str, ...]) -> str:
    return f"--Format={','.join(f'{field}:|' for field in fields)}"


COMMAND = ("squeue", "--noheader", "--all", _format((*SNAPSHOT_FIELDS, *FIELDS)))
"""Slurm 22.05 has no `ExcNodes` there: it complains, and prints nothing in its place."""


def jobs_of_lines(answer: bytes, fields: tuple[str, ...] = FIELDS) -> list[SlurmJob]:
    """Read the jobs in the answer to a question for `fields`. Raises PoolUnreachable when a line is no job."""
    read = _listed_job if fields is FIELDS else lambda line: _job(line, fields)
    return [read(line) for line in answer.decode("utf-8", "replace").split("\n") if line]


def _number(word: str) -> int:
    number = whole(word)
    if not number:
        raise PoolUnreachable(_NO_JOB)
    return number


def _listed_job(line: str) -> SlurmJob:
    """Read a job in the answer to COMMAND, or to one for FIELDS alone: such a line begins with the job's number."""
    many = 0 if line[0].isdigit() else len(SNAPSHOT_FIELDS)
    words = line.split("|", many + len(_OWN_FIELDS))
    if len(words) != many + len(_OWN_FIELDS) + 1:
        raise PoolUnreachable(_NO_JOB)
    planned = words[0] if many and words[0] not in _NOTHING else ""
    return _made(words[many:-1], *_asked(tuple(words[1:many]), words[-1]), planned)


def _job(line: str, fields: tuple[str, ...]) -> SlurmJob:
    """Read a job in the answer to a question for `fields`, of which those that are each job's own are some."""
    words = line.removesuffix("|").split("|")
    if len(words) != len(fields):
        raise PoolUnreachable(_NO_JOB)
    found = dict(zip(fields, words))
    return _made([found[name] for name in _OWN_FIELDS], *_facts(found))


def _made(own: list[str], asked: dict[str, Any], nodes: int | None, planned: str = "") -> SlurmJob:
    """Return the job with what is its own; nodes: how many stand there."""
    number, array, tasks, het, begin, finish, priority, restarts = own
    is_part = tasks not in _NOTHING
    count, at_once = waiting_tasks(tasks) if is_part and not tasks.isdigit() else (1, None)
    start, end = _whole(begin), _whole(finish)
    return SlurmJob(
        number=_number(number),
        array=_whole(array) if is_part else None,
        task=_whole(tasks),
        tasks=count,
        het=_whole(het) or None,
        start=start or None,
        end=end or None,
        restarts=_whole(restarts) or 0,
        priority=_whole(priority),
        at_once=at_once,
        planned=planned,
        odd=odd_fields(asked["cores"], nodes, count, () if PENDING in asked["states"] else (start, end)),
        **asked,
    )


@functools.lru_cache(maxsize=16_384)  # most jobs that wait are like others
def _asked(first: tuple[str, ...], rest: str) -> tuple[dict[str, Any], int | None]:
    """Read the rest of a line; first: what SNAPSHOT_FIELDS say, without where the job is planned."""
    words = rest.removesuffix("|").split("|", len(_COMMON_FIELDS) - 1)
    if len(words) != len(_COMMON_FIELDS):
        raise PoolUnreachable(_NO_JOB)
    return _facts(dict(zip((*SNAPSHOT_FIELDS[1:], *_COMMON_FIELDS) if first else _COMMON_FIELDS, (*first, *words))))


def _facts(found: dict[str, str]) -> tuple[dict[str, Any], int | None]:
    """Return what is not the job's own, by the names of the job's facts; and its number of nodes as it stands there."""
    state = found.get("State", "")
    if not state.isupper():
        raise PoolUnreachable(_NO_JOB)
    cores, said = whole(found.get("NumCPUs", "0")), whole(found["NumNodes"].partition("-")[0])
    resources, ranks = found.get("tres-alloc", ""), whole(found.get("NumTasks")) or 1
    nodes = (count_in(resources, NODES) or said if state == PENDING else said) or 0
    is_told = nodes == 1 and "gres/" in resources
    asked = [found.get(name, "") for name in _GRES_FIELDS]
    field = "OverSubscribe" if found.get("Exclusive", "") in _NOTHING else "Exclusive"
    word = found.get(field, "OK")
    sharing = _SHARING[field].get(word)
    return {
        "user": found.get("UserName", ""),
        "account": _text(found, "Account"),
        "partitions": tuple(found.get("Partition", "").split(",")),
        "states": states_of(state),
        "reason": reason_in(found.get("Reason", "")),
        "cores": 1 if cores is None else cores,
        "node_count": nodes,
        "node": _text(found, "NodeList"),
        "limit": minutes_in(found.get("TimeLimit", "")),
        "can_requeue": found.get("Requeue") == "1" and found.get("BatchFlag") == "1",
        "whole_nodes": sharing == "whole_nodes",
        "user_alone": sharing == "user_alone",
        "unknown": f"{field}={word[:40]}" if sharing is None else "",
        "qos": _text(found, "QOS"),
        "threads": whole(found.get("Threads")),
        "licences": _text(found, "Licenses"),
        "memory": memory_in(resources),
        "features": _text(found, "Feature"),
        "required": _text(found, "ReqNodes"),
        "excluded": _text(found, "ExcNodes"),
        "reservation": _text(found, "Reservation"),
        "disk": mebibytes_in(found.get("MinTmpDisk", "")),
        "gres": gres_of_run(resources) if is_told else gres_per_node(asked, ranks, nodes),
        "ranks": ranks,
        "billed": count_in(resources, BILLING),
    }, said


def _text(found: Mapping[str, str], field: str) -> str:
    text = found.get(field, "")
    return "" if text in _NOTHING else text


def current_run(commands: SlurmCommands, label: str) -> SlurmJob | None:
    """Ask for a job as it is now; None when slurmctld has none. Raises PoolUnreachable when it does not answer."""
    answer = commands.start("squeue", *_run_options(), f"--jobs={label}").answer()
    if answer.code != 0:
        if _UNKNOWN in answer.said.lower():
            return None
        raise PoolUnreachable(f"squeue failed: {answer.complaint}")
    return next((job for job in jobs_of_lines(answer.out, RUN_FIELDS) if job.label == label), None)


def jobs_in_states(commands: SlurmCommands, *states: str, fields: tuple[str, ...] = RUN_FIELDS) -> list[SlurmJob]:
    """Ask for all jobs in these states (RUNNING when none is named). Raises PoolUnreachable."""
    running = commands.start("squeue", *_run_options(",".join(states) or RUNNING, fields))
    return jobs_of_lines(running.output(), fields)


def _run_options(states: str = "all", fields: tuple[str, ...] = RUN_FIELDS) -> tuple[str, ...]:
    return ("--noheader", "--all", "--array", f"--states={states}", _format(fields))
