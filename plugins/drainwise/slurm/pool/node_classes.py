"""Nodes in classes: the nodes of a class are alike to every job that waits."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from drainwise.slurm.cluster.node_line import SlurmNode
from drainwise.slurm.cluster.rules import NodeReservation
from drainwise.slurm.jobs.job import SlurmJob
from drainwise.slurm.node.host_list import hosts

_HAS = attrgetter("cpus", "memory", "gres", "disk")
MOST_LISTS = 64
"""Lists of nodes that jobs ask for by name and that are looked at: each may make a class of its nodes."""


@dataclass(frozen=True)
class NodeClass:
    """`count` nodes like `sample`. reservations: whose jobs alone they take now; ahead: those that begin later.

    lists: of those that jobs name, which hold these nodes.
    """

    name: str
    sample: SlurmNode
    count: int
    reservations: frozenset[str]
    ahead: tuple[NodeReservation, ...]
    lists: frozenset[str]


class NodeClasses:
    """The nodes that take jobs, if only those of a reservation, in classes.

    lists: of nodes, as jobs write them; those that are not understood are in no list. now: UNIX s; a reservation that
    ended before counts no more.
    """

    def __init__(
        self, nodes: Iterable[SlurmNode], reservations: Iterable[NodeReservation], lists: Iterable[str], now: int
    ) -> None:
        known = {node.name: node for node in nodes}
        self.whole = tuple(one for one in reservations if one.end > now and _takes_whole_nodes(one, known))
        self.lists, within = _members(lists)
        reserved: dict[str, list[NodeReservation]] = defaultdict(list)
        for one in self.whole:
            for name in one.nodes:
                reserved[name].append(one)
        found: dict[tuple[tuple[object, ...], tuple[NodeReservation, ...], frozenset[str]], list[SlurmNode]]
        found = defaultdict(list)
        for node in known.values():
            mine = reserved.get(node.name, [])
            if node.takes_jobs or (node.reserved and any(one.active for one in mine)):
                of = (node.partitions, node.features, *_HAS(node), node.grain, node.sockets)
                found[of, tuple(mine), within.get(node.name, frozenset())].append(node)
        self.all = tuple(_class(alike, mine, lists) for (_, mine, lists), alike in found.items())
        self.class_of = {node.name: one.name for one, alike in zip(self.all, found.values()) for node in alike}

    def of_nodes(self, names: Iterable[str]) -> frozenset[str]:
        """Return the classes of these nodes."""
        return frozenset(self.class_of[name] for name in names if name in self.class_of)


def lists_of(jobs: Iterable[SlurmJob]) -> list[str]:
    """Return the lists of nodes that jobs ask for and will not have: at most MOST_LISTS, those of the most cores."""
    cores: Counter[str] = Counter()
    for job in jobs:
        for text in (job.required, job.excluded):
            if text:
                cores[text] += max(1, job.cores) * job.tasks
    return [text for text, _ in cores.most_common(MOST_LISTS)]


def _members(lists: Iterable[str]) -> tuple[dict[str, int], dict[str, frozenset[str]]]:
    """Return the lists that are understood with their lengths, and for each node those that hold it."""
    lengths: dict[str, int] = {}
    within: dict[str, set[str]] = defaultdict(set)
    for text in lists:
        try:
            names = set(hosts(text))
        except ValueError:
            continue
        lengths[text] = len(names)
        for name in names:
            within[name].add(text)
    return lengths, {name: frozenset(texts) for name, texts in within.items()}


def _takes_whole_nodes(one: NodeReservation, nodes: Mapping[str, SlurmNode]) -> bool:
    """Decide whether a reservation has all cores of its nodes. One of some cores leaves the others to everybody."""
    return one.cpus is None or one.cpus >= sum(nodes[name].cpus for name in one.nodes if name in nodes)


def _class(alike: Sequence[SlurmNode], mine: tuple[NodeReservation, ...], lists: frozenset[str]) -> NodeClass:
    node = alike[0]
    names = sorted(node.partitions)
    inner = [one.name for one in mine if one.active]
    facts: tuple[object, ...] = (names, sorted(node.features), *_HAS(node), sorted(lists))
    if node.grain > 1 or node.sockets > 1:
        facts += (node.grain, node.sockets)
    said = repr((facts, [(one.name, one.active) for one in mine]))
    name = f"{','.join(names)[:24]}-{hashlib.sha256(said.encode('utf-8', 'replace')).hexdigest()[:8]}"
    ahead = tuple(one for one in mine if not one.active)
    return NodeClass(name, node, len(alike), frozenset(inner), ahead, lists)
