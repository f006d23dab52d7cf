"""Slurm's jobs as facts, out of what pyslurm knows of them: a third shape beside the two of `squeue --json`.

A number that is unset, without limit or 0 is None, an empty text is None, and of a state with several words only the
one that counts most is there. The reason for which a job waits is one word, or a sentence in its place.
"""

from __future__ import annotations

import json

from drainwise.errors import PoolUnreachable
from drainwise.slurm.job_lines import UNDER
from drainwise.slurm.job_record import PENDING, Job, Record, odd_fields, waiting_tasks

_NO_REASON, _RESOURCES = "None", "Resources"
# The sentence that stands in the place of Resources while some of the nodes that would do take no jobs.
_NODES_TAKEN = "Nodes required for job are DOWN, DRAINED or reserved"


def jobs_of_pyslurm(answer: bytes) -> list[Job]:
    """The jobs in the line that `pyslurm_reader` prints. Raises PoolUnreachable when it is not whole."""
    try:
        document = json.loads(answer)
    except (ValueError, RecursionError):
        raise PoolUnreachable("half an answer: pyslurm's jobs are no JSON") from None
    records = document.get("jobs") if isinstance(document, dict) else None
    if not isinstance(records, list):
        raise PoolUnreachable("half an answer: pyslurm gave no list of jobs")
    return [_job(record) for record in records]


def _job(record: object) -> Job:
    if not isinstance(record, dict):
        raise PoolUnreachable("half an answer: pyslurm gave a job that is none")
    number, cores, state = _number(record, "id"), _number(record, "cpus"), _text(record, "state")
    if not number or cores is None or not state:
        raise PoolUnreachable("half an answer: pyslurm gave a job without number, cores or state")
    array, waiting = _number(record, "array_id") or None, _text(record, "array_tasks_waiting")
    task = _number(record, "array_task_id")
    tasks = waiting_tasks(waiting)[0] if array and waiting else 1
    if array and task is None and not waiting:
        task = 0
    features, times = record.get("features"), (_number(record, "start_time"), _number(record, "end_time"))
    return Job(
        number=number,
        array=array,
        task=task,
        tasks=tasks,
        het=_number(record, "heterogeneous_id") or None,
        user=_text(record, "user_name"),
        account=_text(record, "account"),
        partitions=tuple(_text(record, "partition").split(",")),
        states=frozenset({state, UNDER.get(state, state)}),
        reason=_reason(_text(record, "state_reason")),
        cores=cores,
        node_count=_number(record, "num_nodes") or 0,
        node=_text(record, "allocated_nodes"),
        start=_number(record, "start_time") or None,
        end=_number(record, "end_time") or None,
        limit=_number(record, "time_limit"),
        restarts=_number(record, "requeue_count") or 0,
        priority=_number(record, "priority"),
        admin_comment=_text(record, "admin_comment"),
        at_once=(_number(record, "array_tasks_parallel") or None) if array and waiting else None,
        whole_nodes=_text(record, "resource_sharing") == "NO",
        memory=(_number(record, "memory") or 0) << 20 or None,
        features=",".join(map(str, features)) if isinstance(features, list) else "",
        odd=odd_fields(cores, _number(record, "num_nodes"), tasks, () if state == PENDING else times),
    )


def _reason(text: str) -> str:
    """The word that squeue has: a sentence begins with it (`ReqNodeNotAvail, UnavailableNodes:n1`), but for one."""
    return _RESOURCES if text.startswith(_NODES_TAKEN) else text.partition(",")[0] or _NO_REASON


def _number(record: Record, name: str) -> int | None:
    """A number of 0 or more; without limit (`UNLIMITED`) it is none."""
    value = record.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _text(record: Record, name: str) -> str:
    value = record.get(name)
    return value if isinstance(value, str) else ""
