"""Read jobs out of what `squeue --json` prints, in each of its two shapes.

Up to 22.05 a number is a number and the state a word. Later a number says whether it is set and finite, and the state
is a list of words. What a user chose (paths, a script) stays behind here, but for the job's name and comment, which may
say who sent it. Only root may set the AdminComment.
"""

from __future__ import annotations

import gc
import json
import math
from collections.abc import Callable, Mapping

from drainwise.facts.errors import PoolUnreachable
from drainwise.slurm.jobs.gres import Gres, gres_in, gres_of_run, gres_per_node
from drainwise.slurm.jobs.job import MOST_TEXT, SlurmJob, odd_fields
from drainwise.slurm.jobs.values import PENDING, RUNNING, memory_in, nodes_of, reason_in, waiting_tasks

Record = Mapping[str, object]

_UNSET = {0xFFFFFFFE, 0xFFFFFFFF}  # NO_VAL and INFINITE where they are printed as they are
_LARGEST = 10**18  # whatever stands for more can be calculated with
_WHOLE_NODES = "none"


def jobs_in(answer: bytes) -> list[SlurmJob]:
    """Read the jobs in the output of `squeue --json`.

    Raises PoolUnreachable when it is not whole: up to 22.05 squeue ends well also when slurmctld did not answer.
    """
    collects = gc.isenabled()
    gc.disable()  # or it would go through the millions of new values again and again: half of the time
    try:
        # A user may put any bytes into a job's name.
        document = json.loads(answer.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        raise PoolUnreachable(
            "incomplete answer: squeue --json printed no JSON; has this Slurm its JSON plugin?"
        ) from None
    finally:
        if collects:
            gc.enable()
    records = document.get("jobs") if isinstance(document, dict) else None
    if not isinstance(records, list):
        raise PoolUnreachable("incomplete answer: squeue --json printed no list of jobs")
    errors = document.get("errors")
    if errors:
        first = errors[0] if isinstance(errors, list) and isinstance(errors[0], dict) else {}
        text = str(first.get("description") or first.get("error") or "no reason given")
        raise PoolUnreachable(f"squeue failed: {text[:200]}")
    meta = document.get("meta")
    plugin = meta.get("plugin") if isinstance(meta, dict) else None
    read = _flagged if isinstance(plugin, dict) and "data_parser" in plugin else plain_number
    return [job_in(record, read, "squeue --json printed") for record in records]


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


def job_in(record: object, read: Callable[[object], int | None], who: str) -> SlurmJob:
    """Read one job; read: its numbers, who: has printed it. Raises PoolUnreachable for what is none."""
    if not isinstance(record, dict):
        raise PoolUnreachable(f"incomplete answer: {who} a job that is none")
    number, cores = read(record.get("job_id")), read(record.get("cpus"))
    state = record.get("job_state")
    states = frozenset([state] if isinstance(state, str) else state if isinstance(state, list) else ())
    # Up to 22.05 a job that Slurm has not looked at yet (a held one, say) has no number of cores.
    if not number or not states or (cores is None and RUNNING in states):
        raise PoolUnreachable(f"incomplete answer: {who} a job without number, cores or state")
    array, waiting = read(record.get("array_job_id")) or None, text_in(record, "array_task_string")
    tasks, at_once = waiting_tasks(waiting) if array and waiting else (1, None)
    shared, comment = record.get("shared"), text_in(record, "admin_comment")
    nodes, start, end = read(record.get("node_count")), read(record.get("start_time")), read(record.get("end_time"))
    asked, ranks = text_in(record, "tres_req_str"), read(record.get("tasks")) or 1
    fewest = nodes_of(asked) or nodes if PENDING in states else nodes
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
        comments=(comment,) if comment else (),
        at_once=at_once,
        whole_nodes=_WHOLE_NODES in (shared if isinstance(shared, list) else [shared]),
        user_alone="user" in (shared if isinstance(shared, list) else [shared]),
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
