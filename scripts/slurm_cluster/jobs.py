"""Jobs as tests see them: the lines of squeue, with typed fields."""

from __future__ import annotations

import re
from dataclasses import dataclass

from real_daemons.errors import DaemonsError

# Control characters separate, since a user chooses a job's name.
_RECORD, _FIELD = "\x1e", "\x1f"
FORMAT = _RECORD + _FIELD.join(("%A", "%i", "%u", "%a", "%T", "%C", "%N", "%r", "%q", "%P", "%Q", "%S", "%e", "%j"))


@dataclass(frozen=True)
class Job:
    """One job, one task of an array or one component of a heterogeneous job.

    `label` is what Slurm shows (`12`, `12_3`, `12+1`), `id` the number behind it. `start` and `end` are UNIX seconds,
    0 if Slurm knows none; of a running job `end` is when its lease ends.
    """

    id: int
    label: str
    user: str
    account: str
    state: str
    cores: int
    nodes: tuple[str, ...]
    reason: str
    qos: str
    partition: str
    priority: int
    start: int
    end: int
    name: str


def parse_jobs(text: str) -> list[Job]:
    """The jobs in the output of squeue with FORMAT, without headline, times in UNIX seconds."""
    jobs = []
    for record in text.split(_RECORD)[1:]:
        fields = record.split(_FIELD, 13)
        if len(fields) != 14:
            raise DaemonsError(f"squeue printed {record!r}, which has {len(fields)} fields instead of 14")
        number, label, user, account, state, cores, nodes, reason, qos, partition, priority, start, end, name = fields
        jobs.append(
            Job(
                id=int(number),
                label=label,
                user=user,
                account=account,
                state=state,
                cores=int(cores),
                nodes=expand(nodes),
                reason=reason,
                qos=qos,
                partition=partition,
                priority=int(priority),
                start=_time(start),
                end=_time(end),
                name=name.removesuffix("\n"),
            )
        )
    return jobs


def expand(nodes: str) -> tuple[str, ...]:
    """`node[1-2,4]` → node1, node2, node4. For the names of a test cluster, which have no leading zeros."""
    names: list[str] = []
    for prefix, ranges, plain in re.findall(r"([^,\[\]]+)\[([^\]]*)\]|([^,\[\]]+)", nodes):
        if plain:
            names.append(plain)
        for part in filter(None, ranges.split(",")):
            first, _dash, last = part.partition("-")
            names += [f"{prefix}{number}" for number in range(int(first), int(last or first) + 1)]
    return tuple(names)


def _time(text: str) -> int:
    return int(text) if text.isdigit() else 0
