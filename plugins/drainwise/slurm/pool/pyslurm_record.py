"""Read jobs out of what pyslurm knows of them.

A number that is unset, without limit or 0 is None, an empty text is None, and of a state with several words only the
one that counts most is there. The reason for which a job waits is one word, or a sentence in its place.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from drainwise.facts.errors import PoolUnreachable
from drainwise.slurm.jobs.gres import Gres
from drainwise.slurm.jobs.job import MOST_TEXT, SlurmJob, odd_fields
from drainwise.slurm.jobs.squeue_json import Record, text_in
from drainwise.slurm.jobs.states import PENDING, reason_in, states_of
from drainwise.slurm.jobs.values import waiting_tasks

_NO_REASON = "None"


def jobs_of_pyslurm(answer: bytes) -> list[SlurmJob]:
    """Read the jobs in the line that `pyslurm_reader` prints. Raises PoolUnreachable when it is not whole."""
    try:
        document = json.loads(answer)
    except (ValueError, RecursionError):
        raise PoolUnreachable("incomplete answer: pyslurm's jobs are no JSON") from None
    records = document.get("jobs") if isinstance(document, dict) else None
    if not isinstance(records, list):
        raise PoolUnreachable("incomplete answer: pyslurm gave no list of jobs")
    return [_job(record) for record in records]


def _job(record: object) -> SlurmJob:
    if not isinstance(record, dict):
        raise PoolUnreachable("incomplete answer: pyslurm gave a job that is none")
    number, cores, state = _number(record, "id"), _number(record, "cpus"), text_in(record, "state")
    if not number or cores is None or not state:
        raise PoolUnreachable("incomplete answer: pyslurm gave a job without number, cores or state")
    array, waiting = _number(record, "array_id") or None, text_in(record, "array_tasks_waiting")
    task = _number(record, "array_task_id")
    tasks = waiting_tasks(waiting)[0] if array and waiting else 1
    if array and task is None and not waiting:
        task = 0
    comment = text_in(record, "admin_comment")
    features, times = record.get("constraints"), (_number(record, "start_time"), _number(record, "end_time"))
    return SlurmJob(
        number=number,
        array=array,
        task=task,
        tasks=tasks,
        het=_number(record, "heterogeneous_id") or None,
        user=text_in(record, "user_name"),
        account=text_in(record, "account"),
        partitions=tuple(text_in(record, "partition").split(",")),
        states=states_of(state),
        reason=reason_in(text_in(record, "state_reason")) or _NO_REASON,
        cores=cores,
        node_count=_number(record, "num_nodes") or 0,
        node=text_in(record, "allocated_nodes"),
        start=_number(record, "start_time") or None,
        end=_number(record, "end_time") or None,
        limit=_number(record, "time_limit"),
        restarts=_number(record, "requeue_count") or 0,
        priority=_number(record, "priority"),
        comments=(comment,) if comment else (),
        at_once=(_number(record, "array_tasks_parallel") or None) if array and waiting else None,
        whole_nodes=text_in(record, "resource_sharing") == "NO",
        user_alone=text_in(record, "resource_sharing") == "USER",
        qos=text_in(record, "qos"),
        memory=(_number(record, "memory") or 0) << 20 or None,
        features=",".join(map(str, features)) if isinstance(features, list) else "",
        required=text_in(record, "required_nodes"),
        excluded=text_in(record, "excluded_nodes"),
        disk=_number(record, "temporary_disk_per_node") or 0,
        ranks=_number(record, "ntasks") or 1,
        reservation=text_in(record, "reservation"),
        odd=odd_fields(cores, _number(record, "num_nodes"), tasks, () if state == PENDING else times),
        name=text_in(record, "name")[:MOST_TEXT],
        comment=text_in(record, "comment")[:MOST_TEXT],
    )


def with_gres(jobs: list[SlurmJob], known: Mapping[int, tuple[Gres, int, dict[str, Any]]]) -> list[SlurmJob]:
    """Return the jobs with what pyslurm does not tell: generic resources, the fewest nodes, where they may start.

    known: by the jobs' numbers, as `squeue_lines.gres_of_lines` has it; what it lacks has begun to wait since.
    """
    found = []
    for job in jobs:
        gres, nodes, facts = known.get(job.number, ((), 0, {}))
        if PENDING in job.states and facts:
            job = replace(job, gres=gres, node_count=nodes or job.node_count, **facts)  # noqa: PLW2901
        elif gres:
            job = replace(job, gres=gres)  # noqa: PLW2901
        found.append(job)
    return found


def _number(record: Record, name: str) -> int | None:
    """Read a number of 0 or more; without limit (`UNLIMITED`) it is none."""
    value = record.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
