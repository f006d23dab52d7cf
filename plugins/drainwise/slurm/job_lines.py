"""Slurm's jobs as facts, out of the lines of plain `squeue`: a tenth of what its JSON costs for a job that waits.

No text that a user chose is among the fields (a name may hold any sign of separation, and line ends), but for the
features that a waiting job asks for: Slurm takes those that some node has, and they come last. AdminComment cannot be
asked for.
"""

from __future__ import annotations

import re

from drainwise.errors import PoolUnreachable
from drainwise.slurm.agent_query import bytes_of
from drainwise.slurm.job_record import PENDING, RUNNING, Job, odd_fields, waiting_tasks

FIELDS = (
    *("JobID", "ArrayJobID", "ArrayTaskID", "HetJobID", "UserName", "Account", "State", "Reason", "NumCPUs"),
    *("NumNodes", "NodeList", "StartTime", "EndTime", "TimeLimit", "RestartCnt", "PriorityLong", "OverSubscribe"),
    *("tres-alloc", "Partition", "Feature"),
)
COMMAND = ("squeue", "--noheader", "--all", f"--Format={','.join(f'{field}:|' for field in FIELDS)}")

UNDER = {
    **dict.fromkeys(("CONFIGURING", "RESIZING", "SIGNALING", "STOPPED"), RUNNING),
    **dict.fromkeys(("REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT"), PENDING),
}
"""What a job is beside the only word of its state that is shown."""

_MEMORY = re.compile(r"(?:^|,)mem=([^,]*)")
_LIMIT = re.compile(r"(?:(?:(\d{1,5})-)?(\d{1,2}):)?(\d{1,2}):(\d\d)")
_NOTHING = {"", "N/A", "(null)"}
_LONGEST = 1 << 31  # minutes
_WHOLE_NODES = "NO"


def jobs_of_lines(answer: bytes) -> list[Job]:
    """The jobs in the output of COMMAND. Raises PoolUnreachable when a line is none of its."""
    return [_job(line) for line in answer.decode("utf-8", "replace").split("\n") if line]


def _job(line: str) -> Job:
    words = line.split("|", len(FIELDS) - 1)
    found = dict(zip(FIELDS, words))
    number, state = _whole(found["JobID"]), found.get("State", "")
    if len(words) != len(FIELDS) or not number or not state.isupper():
        raise PoolUnreachable("half an answer: squeue printed a line that is no job")
    array, tasks = _whole(found["ArrayJobID"]), found["ArrayTaskID"]
    is_part = tasks not in _NOTHING
    count, at_once = waiting_tasks(tasks) if is_part and not tasks.isdigit() else (1, None)
    memory = _MEMORY.search(found["tres-alloc"])
    feature = found["Feature"].removesuffix("|")
    cores, start, end = _whole(found["NumCPUs"]), _whole(found["StartTime"]), _whole(found["EndTime"])
    nodes = _whole(found["NumNodes"].partition("-")[0])
    return Job(
        number=number,
        array=array if is_part else None,
        task=_whole(tasks),
        tasks=count,
        het=_whole(found["HetJobID"]) or None,
        user=found["UserName"],
        account="" if found["Account"] in _NOTHING else found["Account"],
        partitions=tuple(found["Partition"].split(",")),
        states=frozenset({state, UNDER.get(state, state)}),
        reason=found["Reason"],
        cores=1 if cores is None else cores,
        node_count=nodes or 0,
        node="" if found["NodeList"] in _NOTHING else found["NodeList"],
        start=start or None,
        end=end or None,
        limit=minutes_in(found["TimeLimit"]),
        restarts=_whole(found["RestartCnt"]) or 0,
        priority=_whole(found["PriorityLong"]),
        admin_comment="",
        at_once=at_once,
        whole_nodes=found["OverSubscribe"] == _WHOLE_NODES,
        memory=bytes_of(memory[1]) if memory else None,
        features="" if feature in _NOTHING else feature,
        odd=odd_fields(cores, nodes, count, () if state == PENDING else (start, end)),
    )


def minutes_in(limit: str) -> int | None:
    """`1-02:03:00`, `10:00` in minutes; None for UNLIMITED.

    A lease without limit that was given an end has thousands of years as its limit, which squeue shows as INVALID.
    """
    if limit == "INVALID":
        return _LONGEST
    match = _LIMIT.fullmatch(limit)
    if match is None:
        return None
    days, hours, minutes, _ = (int(part or 0) for part in match.groups())
    return (days * 24 + hours) * 60 + minutes


def _whole(word: str) -> int | None:
    return int(word) if word.isascii() and word.isdigit() and len(word) <= 18 else None
