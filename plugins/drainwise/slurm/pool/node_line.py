"""Slurm's nodes as facts, out of the lines of `sinfo`: the same in all versions, and nothing in them is a user's."""

from __future__ import annotations

from dataclasses import dataclass, replace

from drainwise.facts.errors import PoolUnreachable
from drainwise.slurm.jobs.gres import Gres, gres_in
from drainwise.slurm.jobs.values import whole

FIELDS = (
    *("NodeList", "CPUsState", "StateLong", "PartitionName", "Memory", "AllocMem", "Features", "Gres", "GresUsed"),
    "Disk",
)
COMMAND = (
    *("sinfo", "--noheader", "--Node", "--all"),
    f"--Format={','.join(f'{field}:|' for field in (*FIELDS, 'Extra'))}",
)

_USABLE = {"idle", "mixed", "planned"}
_SOON_USABLE = {*_USABLE, "allocated", "completing"}  # a node takes no new job while one of its jobs is being ended
_RESERVED = {"reserved", "maint"}
_STILL_USABLE = "-~#"  # planned for a job by the scheduler; powered down, powering up
_MAINTAINED, _REBOOTS = "$", "@"
REBOOTS_LATER = (23, 11)
"""The release since which a node that shall reboot takes jobs until then (by its source; seen on 24.11 and 26.05)."""


@dataclass(frozen=True)
class SlurmNode:
    """One node with its cores: `allocated` to jobs, all that jobs have or may have, and `idle` ones for a job now.

    The cores of a job that is being ended are not among the allocated ones any more. `draining`: it takes no new job,
    so cores that a job there gives back are of no use to anybody. `takes_jobs`: it has room for jobs now, or will have;
    `cpus`, `memory` (MiB, None when not known), `features`, `gres` and `disk` (MiB) are what it has in all. `unused`
    cores nobody has, whatever its state; `used_memory` (MiB) and `used_gres` are what jobs have. `reserved`: it takes
    the jobs of a reservation alone. `grain`: a job gets a multiple of so many cores there; `threads` of a core count
    as so many, and it has `sockets`. `extra`: what stands in its Extra, "" where that is not known.
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
    gres: Gres = ()
    disk: int = 0
    unused: int = 0
    used_memory: int = 0
    used_gres: Gres = ()
    reserved: bool = False
    grain: int = 1
    threads: int = 1
    sockets: int = 1
    extra: str = ""


def nodes_in(answer: str, release: tuple[int, ...] = REBOOTS_LATER) -> list[SlurmNode]:
    """Return the nodes in the output of COMMAND, each once. Raises PoolUnreachable when a line is none of its."""
    usable = _STILL_USABLE + (_REBOOTS if release >= REBOOTS_LATER else "")
    found: dict[str, SlurmNode] = {}
    for line in answer.splitlines():
        words = line.split("|")
        if len(words) > len(FIELDS) and words[0] in found:
            node = found[words[0]]
            found[node.name] = replace(node, partitions=node.partitions | {words[3]})
            continue
        cores = words[1].split("/") if len(words) > len(FIELDS) else []
        if len(cores) != 4 or not all(number.isascii() and number.isdigit() and len(number) < 10 for number in cores):
            raise PoolUnreachable("incomplete answer: sinfo printed a line that is no node")
        found[words[0]] = _node(words, usable, *map(int, cores))
    return list(found.values())


def _node(words: list[str], usable: str, allocated: int, idle: int, _other: int, total: int) -> SlurmNode:
    name, state, partition, memory, taken = words[0], words[2].lower(), words[3], words[4], words[5]
    plain = state.rstrip(usable)
    return SlurmNode(
        name,
        allocated,
        allocated + (idle if plain in _SOON_USABLE else 0),
        idle if plain in _USABLE and _has_memory(memory, taken) else 0,
        state.startswith("drain"),
        frozenset({partition}),
        takes_jobs=plain in _SOON_USABLE,
        cpus=total,
        memory=int(memory) if memory.isascii() and memory.isdigit() and int(memory[:15]) > 1 else None,
        features=frozenset() if words[6] == "(null)" else frozenset(words[6].split(",")),
        gres=gres_in(words[7]),
        disk=whole(words[9]) or 0,
        unused=idle,
        used_memory=whole(taken) or 0,
        used_gres=gres_in(words[8]),
        extra="|".join(words[len(FIELDS) : -1]),
        reserved=plain in _RESERVED or (_MAINTAINED in plain and plain.rstrip(_MAINTAINED + usable) in _SOON_USABLE),
    )


def _has_memory(memory: str, taken: str) -> bool:
    """Decide whether jobs have left any memory; all of it is there where Slurm does not share it out."""
    return not (memory.isdigit() and taken.isdigit()) or int(memory) <= 1 or int(taken) < int(memory)
