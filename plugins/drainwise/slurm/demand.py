"""What a waiting job really wants of the nodes: whole ones where it shares none, and nothing where no node would do."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from drainwise.slurm.job_record import Job
from drainwise.slurm.node_line import Node

COMMAND = ("scontrol", "show", "config")

_SETTING = re.compile(r"^(SelectType|SelectTypeParameters)\s*=\s*(\S+)", re.MULTILINE)
# Beside these signs a constraint is a list of names that a node must all have.
_CHOICE = re.compile(r"[|\[\]()*:]")
_MIB = 1 << 20
_SHOWN = 5


@dataclass(frozen=True)
class Selection:
    """How the cluster shares out its nodes: `whole_nodes` to one job at a time; `memory`: jobs get it to themselves."""

    whole_nodes: bool = False
    memory: bool = True


@dataclass(frozen=True)
class Wanted:
    """Cores on each of so many nodes."""

    cores: int
    nodes: int


def selection_in(config: str) -> Selection:
    """The way in which nodes are shared, in the output of COMMAND."""
    found = {name: value.upper() for name, value in _SETTING.findall(config)}
    whole = found.get("SelectType", "") == "SELECT/LINEAR"
    return Selection(whole, "MEMORY" in found.get("SelectTypeParameters", "MEMORY"))


def wanted(job: Job, nodes: Iterable[Node], selection: Selection) -> Wanted | None:
    """What one task of a waiting job wants of these nodes, its partitions'; None when it can never start on them.

    A job that shares no node wants the smallest that would do, with all its cores, and one that wants most of a node's
    memory as large a part of its cores: no smaller place is one for it.
    """
    count = max(1, job.node_count)
    cores = math.ceil(job.cores / count)
    memory = None if job.memory is None else job.memory / count / _MIB
    fitting = [
        node
        for node in nodes
        if node.takes_jobs
        and node.cpus >= cores
        and (memory is None or node.memory is None or memory <= node.memory)
        and has_features(node, job.features)
    ]
    if len(fitting) < count:
        return None
    if job.whole_nodes or selection.whole_nodes:
        return Wanted(min(node.cpus for node in fitting), count)
    if memory is not None and selection.memory:
        parts = [round(node.cpus * memory / node.memory) for node in fitting if node.memory]
        cores = max(cores, min(parts, default=0))
    return Wanted(cores, count)


def has_features(node: Node, constraint: str) -> bool:
    """Whether a node has all features of a plain list (`a&b,c`). What offers a choice is taken as met."""
    if not constraint or _CHOICE.search(constraint):
        return True
    return node.features.issuperset(name.strip() for name in re.split("[&,]", constraint))


class Demand:
    """What waiting jobs want of the nodes, and which of them nothing. within_reach: partitions of pilots' nodes."""

    def __init__(self, nodes: Sequence[Node], selection: Selection, within_reach: frozenset[str]) -> None:
        self._nodes, self._selection, self._within_reach = nodes, selection, within_reach
        self._known: dict[tuple[object, ...], Wanted | None] = {}
        self._impossible: list[str] = []

    def of(self, job: Job) -> Wanted | None:
        """What one task of a waiting job wants; None when it would not run, however many pilots left."""
        if self._within_reach.isdisjoint(job.partitions):
            return None
        kind = (job.partitions, job.cores, job.node_count, job.memory, job.whole_nodes, job.features)
        if kind not in self._known:
            partitions = frozenset(job.partitions)
            places = [node for node in self._nodes if node.partitions & partitions]
            self._known[kind] = wanted(job, places, self._selection)
        if self._known[kind] is None:
            self._impossible.append(job.label)
        return self._known[kind]

    def notices(self) -> tuple[str, ...]:
        """What was left out, for the administrator."""
        if not self._impossible:
            return ()
        shown = ", ".join(self._impossible[:_SHOWN]) + (", …" if len(self._impossible) > _SHOWN else "")
        count = len(self._impossible)
        what = "1 waiting job is" if count == 1 else f"{count} waiting jobs are"
        return (f"{what} no demand, as no nodes that take jobs have the cores, memory and features: {shown}",)
