"""Generic resources (GPUs and whatever else a site counts) as Slurm writes them of jobs and of nodes.

They are read as amounts by name. What has a type counts twice: two `gpu:a100` are 2 of `gpu` and 2 of `gpu:a100`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence

from drainwise.facts.units import parse_amount

Gres = tuple[tuple[str, int], ...]
"""Amounts by name, in the order of the names; none is 0."""

_BEYOND_COMMAS = re.compile(r",(?![^(]*\))")  # those in `gpu:2(IDX:0,3)` part nothing
_PREFIX = re.compile(r"gres[:/]")
_IN_BRACKETS = re.compile(r"\(CNT:([0-9]{1,12})\)")
_NOTHING = {"", "(null)", "N/A"}
_NOT_CONSUMED = "no_consume"
_MOST_PARTS = 64
_LONGEST = 4096


@functools.lru_cache(maxsize=4096)  # jobs and nodes have the same few
def gres_in(text: str) -> Gres:
    """Return what `gpu:a100:2(S:0-1),fpga:3` or `gres/gpu:1` says there is, as amounts of this module.

    Other trackable resources beside them (`cpu=2,gres/gpu=1`), and what no job can use up, are passed over.
    """
    if text in _NOTHING or len(text) > _LONGEST:
        return ()
    found: dict[str, int] = {}
    for part in _BEYOND_COMMAS.split(text)[:_MOST_PARTS]:
        name, kind, count = _part(part)
        if count:
            found[name] = found.get(name, 0) + count
            if kind:
                found[f"{name}:{kind}"] = found.get(f"{name}:{kind}", 0) + count
    return tuple(sorted(found.items()))


def _part(text: str) -> tuple[str, str, int]:
    """Return the name, the type ("" for none) and how many; 0 for what is no generic resource."""
    is_marked = bool(_PREFIX.match(text))
    plain, equals, amount = text.replace(":(null)", "", 1).partition("=")
    if equals and not is_marked:
        return "", "", 0  # `cpu=2`
    listed = _IN_BRACKETS.search(plain)
    words = _PREFIX.sub("", plain.partition("(")[0], count=1).split(":")
    if _NOT_CONSUMED in words or "/" in words[0] or not words[0]:
        return "", "", 0
    if equals:
        words.append(amount)
    # Slurm writes units in capitals: `40gb` is a type.
    number = parse_amount(words[-1]) if len(words) > 1 and words[-1] == words[-1].upper() else None
    if number is None:
        return words[0], ":".join(words[1:]), int(listed[1]) if listed else 1
    return words[0], ":".join(words[1:-1]), int(number)


@functools.lru_cache(maxsize=4096)
def gres_of_run(resources: str) -> Gres:
    """Return the generic resources in a run's list of trackable ones (`cpu=3,gres/gpu=2,gres/gpu:a100=2`).

    There what has a type stands beside the sum, where the site counts both.
    """
    found: dict[str, int] = {}
    typed: dict[str, int] = {}
    for part in resources.split(",")[:_MOST_PARTS] if "gres/" in resources[:_LONGEST] else ():
        name, kind, count = _part(part)
        if count and kind:
            found[f"{name}:{kind}"] = count
            typed[name] = typed.get(name, 0) + count
        elif count:
            found[name] = count
    return tuple(sorted({**found, **{name: max(found.get(name, 0), sum_) for name, sum_ in typed.items()}}.items()))


def gres_per_node(said: Sequence[str], ranks: int, nodes: int) -> Gres:
    """Return what a job asks of each of its nodes.

    said: what it asks per node, per job, per task and per socket, as Slurm writes each. ranks: its tasks. A node is
    asked for what the largest of these says; of sockets nobody knows how many it takes.
    """
    if all(text in _NOTHING for text in said):
        return ()
    node, job, rank, socket = said
    nodes = max(1, nodes)
    found: dict[str, int] = {}
    per_node = -(-max(1, ranks) // nodes)
    for text, times, over in ((node, 1, 1), (job, 1, nodes), (rank, per_node, 1), (socket, 1, 1)):
        for name, count in gres_in(text):
            found[name] = max(found.get(name, 0), -(-count * times // over))
    return tuple(sorted(found.items()))


def with_shards(gres: Gres, nodes: Iterable[Gres]) -> Gres:
    """Return what is asked of a node or in use there, with the shards that its whole GPUs are.

    nodes: what nodes have. Where a GPU may be given away in shards, a job that has it leaves none of them.
    """
    asked = dict(gres)
    had = [dict(one) for one in nodes]
    each = max((one["shard"] // one["gpu"] for one in had if one.get("shard") and one.get("gpu")), default=0)
    if not each or not asked.get("gpu"):
        return gres
    return tuple(sorted({**asked, "shard": asked.get("shard", 0) + asked["gpu"] * each}.items()))
