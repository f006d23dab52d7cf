"""Nodes in classes: the nodes of a class are alike to every job that waits."""

from __future__ import annotations

import functools
import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Union

from drainwise.slurm.jobs.job import SlurmJob
from drainwise.slurm.node.host_list import hosts
from drainwise.slurm.pool.node_line import SlurmNode
from drainwise.slurm.pool.rules import NodeReservation

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


# A constraint, the features that a job asks of its nodes, is read from left to right, as Slurm does: `a|b&c` is
# `(a|b)&c`. Of `[a|b]`, where all nodes of a job shall have the same, each node has to have one. A count that is less
# than the job's nodes (`a*2` of 4) asks nothing of a single node. What is not understood is taken as met.
_TOKEN = re.compile(r"\s*([&,|()\[\]]|\*\s*[0-9]{1,9}|[^&,|()\[\]*\s:]+|.)", re.DOTALL)
_LONGEST = 4096
_DEEPEST = 20
_CLOSING = {"(": ")", "[": "]"}
_OPERATORS = {"&", ",", "|"}

# What combines names and groups from left to right: the operator before each, and for how many nodes (0: all).
_Group = tuple[tuple[str, Union[str, "_Group"], int], ...]


class _NotUnderstoodError(Exception):
    pass


def is_met(constraint: str, features: Collection[str], nodes: int = 1) -> bool:
    """Decide whether a node with `features` would do for a job of `nodes` nodes with this constraint."""
    if not constraint:
        return True
    parsed = _parsed(constraint)
    return parsed is None or _holds(parsed, features, nodes)


def _holds(group: _Group, features: Collection[str], nodes: int) -> bool:
    met = True
    for operator, part, count in group:
        is_free = 0 < count < nodes
        holds = is_free or (part in features if isinstance(part, str) else _holds(part, features, nodes))
        met = met or holds if operator == "|" else met and holds
    return met


@functools.lru_cache(maxsize=4096)
def _parsed(constraint: str) -> _Group | None:
    """Return what a constraint combines; None when it is not understood."""
    tokens = _TOKEN.findall(constraint.strip()) if len(constraint) <= _LONGEST else []
    try:
        group, end = _group(tokens, 0, "", 0)
    except _NotUnderstoodError:
        return None
    return group if end == len(tokens) and tokens else None


def _group(tokens: list[str], place: int, closing: str, depth: int) -> tuple[_Group, int]:
    """Return what stands up to `closing` ("": the end), and the place behind it."""
    if depth > _DEEPEST:
        raise _NotUnderstoodError
    parts: list[tuple[str, str | _Group, int]] = []
    operator = "&"
    while True:
        part, place = _part(tokens, place, depth)
        count = 0
        if place < len(tokens) and tokens[place].startswith("*"):
            count, place = int(tokens[place][1:].strip() or 0), place + 1
            if not count:
                raise _NotUnderstoodError
        parts.append((operator, part, count))
        if place == len(tokens) or tokens[place] == closing:
            break
        if tokens[place] not in _OPERATORS:
            raise _NotUnderstoodError
        operator, place = tokens[place], place + 1
    if closing and place == len(tokens):
        raise _NotUnderstoodError
    return tuple(parts), place + bool(closing)


def _part(tokens: list[str], place: int, depth: int) -> tuple[str | _Group, int]:
    if place >= len(tokens):
        raise _NotUnderstoodError
    token = tokens[place]
    if token in _CLOSING:
        return _group(tokens, place + 1, _CLOSING[token], depth + 1)
    if token[0] in "&,|()[]*:" or not token.isprintable():
        raise _NotUnderstoodError
    return token, place + 1
