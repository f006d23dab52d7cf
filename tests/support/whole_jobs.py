"""All facts of jobs out of what `squeue --json` printed, in each of its two shapes, beside what its lines say.

The package reads the lines, and of the JSON the texts alone. Up to 22.05 a number is a number and the state a word.
Later a number says whether it is set and finite, and the state is a list of words.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping

from drainwise.slurm.jobs.gres import Gres, gres_in, gres_of_run, gres_per_node
from drainwise.slurm.jobs.job import MOST_TEXT, SlurmJob, odd_fields
from drainwise.slurm.jobs.squeue_lines import FIELDS, SNAPSHOT_FIELDS
from drainwise.slurm.jobs.values import (
    BILLING,
    COMPLETING,
    NODES,
    PENDING,
    RUNNING,
    count_in,
    memory_in,
    reason_in,
    waiting_tasks,
)

Record = Mapping[str, object]

_UNSET = {0xFFFFFFFE, 0xFFFFFFFF}  # NO_VAL and INFINITE where they are printed as they are
_LARGEST = 10**18  # whatever stands for more can be calculated with
_WHOLE_NODES = "none"


def jobs_in(answer: bytes) -> list[SlurmJob]:
    """Read the jobs in the output of `squeue --json`."""
    document = json.loads(answer.decode("utf-8", "replace"), strict=False)
    is_flagged = "data_parser" in document.get("meta", {}).get("plugin", {})
    return [job_in(record, _flagged if is_flagged else plain_number) for record in document["jobs"]]


def lines_of(jobs: Iterable[SlurmJob]) -> str:
    """Write jobs as `squeue` would have printed them of the same moment; of what is waited for less than all."""
    found = []
    for job in jobs:
        tasks = f"1-{job.tasks}" + (f"%{job.at_once}" if job.at_once else "") if job.tasks > 1 else "N/A"
        # Where a job has two states, squeue prints the one that Slurm looks at first.
        states = sorted(job.states, key=lambda state: (state != COMPLETING, state in {RUNNING, PENDING}))
        limit = "UNLIMITED" if job.limit is None else f"{job.limit}:00"
        memory = f",mem={job.memory >> 20}M" if job.memory else ""
        billed = "" if job.billed is None else f",billing={job.billed}"
        facts = {
            "JobID": job.number,
            "ArrayJobID": job.array or job.number,
            "ArrayTaskID": tasks if job.task is None else job.task,
            "HetJobID": job.het,
            "StartTime": job.start,
            "EndTime": job.end,
            "PriorityLong": job.priority,
            "RestartCnt": job.restarts,
            "UserName": job.user,
            "Account": job.account,
            "State": states[0],
            "Reason": job.reason,
            "NumCPUs": job.cores,
            "NumNodes": job.node_count,
            "NodeList": job.node,
            "TimeLimit": limit,
            "OverSubscribe": "NO" if job.whole_nodes else "USER" if job.user_alone else "OK",
            "tres-alloc": f"cpu={job.cores}{memory}{billed}",
            "NumTasks": job.ranks,
            "tres-per-node": ",".join(f"gres/{name}:{count}" for name, count in job.gres),
            "ReqNodes": job.required,
            "ExcNodes": job.excluded,
            "Reservation": job.reservation,
            "MinTmpDisk": f"{job.disk}M",
            "Partition": ",".join(job.partitions),
            "Feature": job.features,
            "SchedNodes": job.planned,
            "QOS": job.qos,
            "Threads": job.threads,
            "Licenses": job.licences,
            "Requeue": int(job.can_requeue),
            "BatchFlag": int(job.can_requeue),
        }
        found.append(
            "".join(f"{'N/A' if facts.get(name) is None else facts[name]}|" for name in (*SNAPSHOT_FIELDS, *FIELDS))
            + "\n"
        )
    return "".join(found)


def plain_number(value: object) -> int | None:
    """Read a number as up to 22.05."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
        return None
    return None if value in _UNSET else min(int(value), _LARGEST)


def _flagged(value: object) -> int | None:
    """Read a number as since 23.02; some have stayed plain."""
    if not isinstance(value, dict):
        return plain_number(value)
    if value.get("set") is not True or value.get("infinite") is True:
        return None
    return plain_number(value.get("number"))


def job_in(record: Record, read: Callable[[object], int | None]) -> SlurmJob:
    """Read one job; read: its numbers."""
    number, cores = read(record.get("job_id")), read(record.get("cpus"))
    state = record.get("job_state")
    states = frozenset([state] if isinstance(state, str) else state if isinstance(state, list) else ())
    assert number is not None
    array, waiting = read(record.get("array_job_id")) or None, text_in(record, "array_task_string")
    tasks, at_once = waiting_tasks(waiting) if array and waiting else (1, None)
    shared, comment = record.get("shared"), text_in(record, "admin_comment")
    nodes, start, end = read(record.get("node_count")), read(record.get("start_time")), read(record.get("end_time"))
    asked, ranks = text_in(record, "tres_req_str"), read(record.get("tasks")) or 1
    fewest = count_in(asked, NODES) or nodes if PENDING in states else nodes
    return SlurmJob(
        number=number,
        array=array,
        task=read(record.get("array_task_id")),
        tasks=tasks,
        het=read(record.get("het_job_id")) or None,
        user=text_in(record, "user_name"),
        account=text_in(record, "account"),
        partitions=tuple(text_in(record, "partition").split(",")),
        states=states,
        reason=reason_in(text_in(record, "state_description").replace("_", " ") or text_in(record, "state_reason")),
        cores=1 if cores is None else cores,
        node_count=fewest or 0,
        node=text_in(record, "nodes"),
        start=start or None,
        end=end or None,
        limit=read(record.get("time_limit")),
        restarts=read(record.get("restart_cnt")) or 0,
        priority=read(record.get("priority")),
        can_requeue=record.get("requeue") is True and record.get("batch_flag") is True,
        comments=(comment,) if comment else (),
        at_once=at_once,
        whole_nodes=_WHOLE_NODES in (shared if isinstance(shared, list) else [shared]),
        user_alone="user" in (shared if isinstance(shared, list) else [shared]),
        billed=count_in(text_in(record, "tres_alloc_str") or text_in(record, "tres_req_str"), BILLING),
        qos=text_in(record, "qos"),
        licences=text_in(record, "licenses"),
        memory=memory_in(asked),
        features=text_in(record, "features"),
        required=text_in(record, "required_nodes"),
        excluded=text_in(record, "excluded_nodes"),
        disk=read(record.get("minimum_tmp_disk_per_node")) or 0,
        gres=_gres(record, ranks, fewest or 0),
        ranks=ranks,
        reservation=text_in(record, "resv_name"),
        odd=odd_fields(cores, nodes, tasks, () if PENDING in states else (start, end)),
        name=text_in(record, "name")[:MOST_TEXT],
        comment=text_in(record, "comment")[:MOST_TEXT],
    )


def _gres(record: Record, ranks: int, nodes: int) -> Gres:
    """Return what a job has on its one node, else what it asks for on each."""
    details = record.get("gres_detail")
    if nodes == 1 and isinstance(details, list) and len(details) == 1 and isinstance(details[0], str):
        return gres_in(details[0])
    held = gres_of_run(text_in(record, "tres_alloc_str") or text_in(record, "tres_req_str")) if nodes == 1 else ()
    asked = [text_in(record, f"tres_per_{part}") for part in ("node", "job", "task", "socket")]
    return held or gres_per_node(asked, ranks, nodes)


def text_in(record: Record, name: str) -> str:
    """Return a text of a record, "" for anything else."""
    value = record.get(name)
    return value if isinstance(value, str) else ""
