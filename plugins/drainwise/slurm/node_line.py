"""Slurm's nodes as facts, out of the lines of `sinfo`: the same in all versions, and nothing in them is a user's."""

from __future__ import annotations

from dataclasses import dataclass

from drainwise.errors import PoolUnreachable

FIELDS = ("NodeList", "CPUsState", "StateLong", "PartitionName", "Memory", "AllocMem", "Features")
COMMAND = ("sinfo", "--noheader", "--Node", "--all", f"--Format={','.join(f'{field}:|' for field in FIELDS)}")

_USABLE = {"idle", "mixed", "planned"}
_SOON_USABLE = {*_USABLE, "allocated", "completing"}  # a node takes no new job while one of its jobs is being ended
_STILL_USABLE = "-~#"  # planned for a job by the scheduler; powered down, powering up


@dataclass(frozen=True)
class Node:
    """One node with its cores: `allocated` to jobs, all that jobs have or may have, and `idle` ones for a job now.

    The cores of a job that is being ended are not among the allocated ones any more. `draining`: it takes no new job,
    so cores that a job there gives back are of no use to anybody. `takes_jobs`: it has room for jobs now, or will have;
    `cpus`, `memory` (MiB, None when not known) and `features` are what it has in all.
    """

    name: str
    allocated: int
    cores: int
    idle: int
    draining: bool
    partitions: frozenset[str]
    takes_jobs: bool = True
    cpus: int = 0
    memory: int | None = None
    features: frozenset[str] = frozenset()


def nodes_in(answer: str) -> list[Node]:
    """The nodes in the output of COMMAND, each once. Raises PoolUnreachable when a line is none of its."""
    found: dict[str, Node] = {}
    for line in answer.splitlines():
        words = line.split("|")
        cores = words[1].split("/") if len(words) == len(FIELDS) + 1 else []
        if len(cores) != 4 or not all(number.isascii() and number.isdigit() and len(number) < 10 for number in cores):
            raise PoolUnreachable("half an answer: sinfo printed a line that is no node")
        name, state, partition, memory, taken = words[0], words[2].lower(), words[3], words[4], words[5]
        seen = found[name].partitions if name in found else frozenset()
        plain, allocated, idle = state.rstrip(_STILL_USABLE), int(cores[0]), int(cores[1])
        found[name] = Node(
            name,
            allocated,
            allocated + (idle if plain in _SOON_USABLE else 0),
            idle if plain in _USABLE and _has_memory(memory, taken) else 0,
            state.startswith("drain"),
            seen | {partition},
            takes_jobs=plain in _SOON_USABLE,
            cpus=int(cores[3]),
            memory=int(memory) if memory.isascii() and memory.isdigit() and int(memory[:15]) > 1 else None,
            features=frozenset() if words[6] == "(null)" else frozenset(words[6].split(",")),
        )
    return list(found.values())


def _has_memory(memory: str, taken: str) -> bool:
    """Whether jobs have left any memory; all of it is there where Slurm does not share it out."""
    return not (memory.isdigit() and taken.isdigit()) or int(memory) <= 1 or int(taken) < int(memory)
