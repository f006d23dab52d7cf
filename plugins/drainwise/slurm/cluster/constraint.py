"""The features that a job asks of its nodes (`--constraint`): whether a node with given ones would do.

A constraint is read from left to right, as Slurm does: `a|b&c` is `(a|b)&c`. Of `[a|b]`, where all nodes of a job
shall have the same, each node has to have one. A count that is less than the job's nodes (`a*2` of 4) asks nothing of a
single node. What is not understood is taken as met.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection
from typing import Union

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
