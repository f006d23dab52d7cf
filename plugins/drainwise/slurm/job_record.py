"""Slurm's jobs as facts, out of what `squeue --json` prints; one reader for each of its two shapes.

Up to 22.05 a number is a number and the state a word. Later a number says whether it is set and finite, and the state
is a list of words. Everything that a user chose (names, comments, paths) stays behind here, but for the AdminComment,
which only root may set.
"""

from __future__ import annotations

import gc
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from drainwise.errors import PoolUnreachable
from drainwise.pilotad.values import LATEST
from drainwise.slurm.agent_query import bytes_of

Record = Mapping[str, object]

RUNNING, PENDING, COMPLETING = "RUNNING", "PENDING", "COMPLETING"
_UNSET = {0xFFFFFFFE, 0xFFFFFFFF}  # NO_VAL and INFINITE where they are printed as they are
_LARGEST = 10**18  # whatever stands for more can be calculated with
_TASKS = re.compile(r"(\d{1,12})(?:-(\d{1,12})(?::(\d{1,12}))?)?")
_MEMORY = re.compile(r"(?:^|,)mem=([^,]*)")
_WHOLE_NODES = "none"
MOST_CORES, MOST_NODES, MOST_TASKS = 1 << 24, 1 << 16, 1 << 22
"""More than any job of a Slurm has: 65,536 nodes and 4 million tasks are its own limits."""


@dataclass(frozen=True)
class Job:
    """One job, one task of an array, one component of a heterogeneous job, or the tasks of an array that still wait.

    `array`: the array's number (None: of no array), `task` this one's; `tasks` how many wait together here, of which no
    more may start than the array may have running at a time (`at_once`, None: all). `het`: the number of the
    heterogeneous job it belongs to. Times are UNIX s, None when not known; of a waiting job they are what the scheduler
    expects, and `cores` what it asks for at least. `limit`: minutes, None without limit. `priority`: None when not
    known, 0 for a held job. `whole_nodes`: it shares no node. `memory`: of all its nodes, bytes, None when not known.
    `features`: what its nodes must have, as the user wrote it. `odd`: which of its numbers no job can have, "" for
    none: nothing is to be calculated with it.
    """

    number: int
    array: int | None
    task: int | None
    tasks: int
    het: int | None
    user: str
    account: str
    partitions: tuple[str, ...]
    states: frozenset[str]
    reason: str
    cores: int
    node_count: int
    node: str
    start: int | None
    end: int | None
    limit: int | None
    restarts: int
    priority: int | None
    admin_comment: str
    at_once: int | None = None
    whole_nodes: bool = False
    memory: int | None = None
    features: str = ""
    odd: str = ""

    @property
    def label(self) -> str:
        """What Slurm's commands take for this job and no other: an array's number alone would mean all its tasks."""
        return str(self.number) if self.array is None or self.task is None else f"{self.array}_{self.task}"


def jobs_in(answer: bytes) -> list[Job]:
    """The jobs in the output of `squeue --json`.

    Raises PoolUnreachable when it is not whole: up to 22.05 squeue ends well also when slurmctld did not answer.
    """
    collects = gc.isenabled()
    gc.disable()  # or it would go through the millions of new values again and again: half of the time
    try:
        # A user may put any bytes into a job's name.
        document = json.loads(answer.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        raise PoolUnreachable(
            "half an answer: squeue --json printed no JSON; has this Slurm its JSON plugin?"
        ) from None
    finally:
        if collects:
            gc.enable()
    records = document.get("jobs") if isinstance(document, dict) else None
    if not isinstance(records, list):
        raise PoolUnreachable("half an answer: squeue --json printed no list of jobs")
    errors = document.get("errors")
    if errors:
        first = errors[0] if isinstance(errors, list) and isinstance(errors[0], dict) else {}
        text = str(first.get("description") or first.get("error") or "no reason given")
        raise PoolUnreachable(f"squeue failed: {text[:200]}")
    read = _flagged if _is_flagged(document) else _plain
    return [_job(record, read) for record in records]


def _is_flagged(document: Record) -> bool:
    meta = document.get("meta")
    plugin = meta.get("plugin") if isinstance(meta, dict) else None
    return isinstance(plugin, dict) and "data_parser" in plugin


def _plain(value: object) -> int | None:
    """A number as up to 22.05."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
        return None
    return None if value in _UNSET else min(int(value), _LARGEST)


def _flagged(value: object) -> int | None:
    """A number as since 23.02; some have stayed plain."""
    if not isinstance(value, dict):
        return _plain(value)
    if value.get("set") is not True or value.get("infinite") is True:
        return None
    return _plain(value.get("number"))


def _job(record: object, read: Callable[[object], int | None]) -> Job:
    if not isinstance(record, dict):
        raise PoolUnreachable("half an answer: squeue --json printed a job that is none")
    number, cores = read(record.get("job_id")), read(record.get("cpus"))
    state = record.get("job_state")
    states = frozenset([state] if isinstance(state, str) else state if isinstance(state, list) else ())
    # Up to 22.05 a job that Slurm has not looked at yet (a held one, say) has no number of cores.
    if not number or not states or (cores is None and RUNNING in states):
        raise PoolUnreachable("half an answer: squeue --json printed a job without number, cores or state")
    array, waiting = read(record.get("array_job_id")) or None, _text(record, "array_task_string")
    tasks, at_once = waiting_tasks(waiting) if array and waiting else (1, None)
    shared, memory = record.get("shared"), _MEMORY.search(_text(record, "tres_req_str"))
    nodes, start, end = read(record.get("node_count")), read(record.get("start_time")), read(record.get("end_time"))
    return Job(
        number=number,
        array=array,
        task=read(record.get("array_task_id")),
        tasks=tasks,
        het=read(record.get("het_job_id")) or None,
        user=_text(record, "user_name"),
        account=_text(record, "account"),
        partitions=tuple(_text(record, "partition").split(",")),
        states=states,
        reason=_text(record, "state_reason"),
        cores=1 if cores is None else cores,
        node_count=nodes or 0,
        node=_text(record, "nodes"),
        start=start or None,
        end=end or None,
        limit=read(record.get("time_limit")),
        restarts=read(record.get("restart_cnt")) or 0,
        priority=read(record.get("priority")),
        admin_comment=_text(record, "admin_comment"),
        at_once=at_once,
        whole_nodes=_WHOLE_NODES in (shared if isinstance(shared, list) else [shared]),
        memory=bytes_of(memory[1]) if memory else None,
        features=_text(record, "features"),
        odd=odd_fields(cores, nodes, tasks, () if PENDING in states else (start, end)),
    )


def _text(record: Record, name: str) -> str:
    value = record.get(name)
    return value if isinstance(value, str) else ""


def waiting_tasks(text: str) -> tuple[int, int | None]:
    """How many tasks `1-9:2,12%4` names, and how many of the array may run at a time (None: all)."""
    tasks, _, most = text.partition("%")
    count = 0
    for first, last, step in _TASKS.findall(tasks):
        count += (int(last) - int(first)) // max(1, int(step or 1)) + 1 if last else 1
    return max(1, count), (int(most) or None) if most.isascii() and most.isdigit() and len(most) <= 12 else None


def odd_fields(cores: int | None, nodes: int | None, tasks: int, times: tuple[int | None, ...]) -> str:
    """Which of a job's numbers no job can have, with their values; "" when all are usual.

    times: of its run; those that the scheduler expects of a waiting job without limit are in the next century.
    """
    limits = {"cores": (cores, MOST_CORES), "nodes": (nodes, MOST_NODES), "tasks": (tasks, MOST_TASKS)}
    found = [f"{name} {value:.3g}" for name, (value, most) in limits.items() if value is not None and value > most]
    found += [f"time {time:.3g}" for time in times if time is not None and time > LATEST]
    return ", ".join(found)
