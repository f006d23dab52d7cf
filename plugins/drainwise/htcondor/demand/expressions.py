"""Look into ClassAd expressions as texts: the literals in them, the parts that every job has. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_NUMBER = re.compile(r"(?<![\w.])\d{1,18}(?:\.\d{1,18})?(?![\w.])")
_SEARCH = re.compile(
    r"\b(?:regexp|substr|strcmp|stricmp|toUpper|toLower|split|version|size|strcat)\w*\s*\(", re.IGNORECASE
)
_NAMES = re.compile(r"\bTARGET\.(\w+)", re.IGNORECASE)
_STRINGS_APART = re.compile(r"[\s,]+")
# Conditions that condor_submit writes into the requirements of each job, and the amounts, which are told as such.
_USUAL = frozenset(("memory", "cpus", "disk", "gpus", "hasfiletransfer", "filesystemdomain", "condorversion"))
_USUAL_TEXTS = frozenset(('TARGET.Arch == "X86_64"', 'TARGET.OpSys == "LINUX"'))
_KEPT = re.compile(r"\(int\(split\(replace\(strcat\(")
_SHOWN = 300

KEPT_MARK = "ChildPilotReturningCpus"
"""Stands in what the drop-in of the execute nodes adds to START, and nowhere else."""

_REALLY_FREE = re.compile("my[.](slot1_childpilotlentcpus|pilotfreecpus)", re.IGNORECASE)
"""Likewise, with `[htcondor] partial_return`, in this drop-in and in earlier ones."""


@dataclass(frozen=True)
class Literals:
    """The texts (case folded) and the numbers (sorted) that expressions name."""

    texts: frozenset[str]
    numbers: tuple[float, ...]


def literals_in(expressions: Iterable[str]) -> Literals:
    """Return what the expressions name; the members of a list in a string (`"a, b"`) are named, too."""
    texts: set[str] = set()
    numbers: set[float] = set()
    for expression in expressions:
        for text in _STRING.findall(expression):
            texts.add(text.casefold())
            texts.update(_STRINGS_APART.split(text.casefold()))
        bare = _STRING.sub('""', expression)
        numbers.update(float(number) for number in _NUMBER.findall(bare))
    return Literals(frozenset(texts), tuple(sorted(numbers)))


def searched_names(expressions: Iterable[str]) -> Iterator[str]:
    """Yield the names, in lower case, in the parts (joined by `&&`) of expressions that look into texts."""
    for expression in expressions:
        for part in conjuncts(expression):
            if _SEARCH.search(_STRING.sub('""', part)):
                yield from (name.lower() for name in re.findall(r"[A-Za-z_]\w*", _STRING.sub('""', part)))


def conjuncts(expression: str) -> list[str]:
    """Split an expression at its outermost `&&`; brackets around the whole of a part are taken off."""
    parts, depth, begin, place = [], 0, 0, 0
    while place < len(expression):
        sign = expression[place]
        if sign == '"':
            found = _STRING.match(expression, place)
            place = found.end() if found else len(expression)
            continue
        depth += (sign in "([{") - (sign in ")]}")
        if depth == 0 and expression.startswith("&&", place):
            parts.append(expression[begin:place])
            begin = place = place + 2
            continue
        place += 1
    parts.append(expression[begin:])
    return [_bare(part) for part in parts]


@lru_cache(maxsize=4096)
def without_kept_room(start: str) -> str:
    """Return the START of a node, as ClassAds write it, as it is there while no room is kept.

    What the drop-in of drainwise adds to it differs from place to place while room is kept. With partial return it also
    asks what is really free there now, which an amount of the place tells.
    """
    if _REALLY_FREE.search(start):
        for part in conjuncts(start):
            if _REALLY_FREE.search(part):
                start = start.replace(f" && ({part})", "", 1)
    if KEPT_MARK.casefold() not in start.casefold():
        return start
    for part in conjuncts(start):
        if _KEPT.match(part) and KEPT_MARK.casefold() in part.casefold():
            return start.replace(f"({part})", "(true)", 1)
    return start


def unusual(expression: str, counted: Collection[str] = ()) -> str:
    """Return the conditions of a job's requirements that not every job has, as an administrator would write them.

    counted: names, in lower case, of which jobs ask for amounts.
    """
    usual, kept = _USUAL.union(counted), []
    for part in conjuncts(expression):
        names = {name.lower() for name in _NAMES.findall(_STRING.sub('""', part))}
        if part not in _USUAL_TEXTS and part.lower() != "true" and not (names and names <= usual):
            kept.append(part)
    text = " && ".join(kept)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]} …"


def _bare(part: str) -> str:
    part = part.strip()
    while part.startswith("(") and part.endswith(")") and _closes_at_end(part):
        part = part[1:-1].strip()
    return part


def _closes_at_end(part: str) -> bool:
    """Decide whether the bracket that opens first closes last."""
    depth, place = 0, 0
    while place < len(part):
        sign = part[place]
        if sign == '"':
            found = _STRING.match(part, place)
            place = found.end() if found else len(part)
            continue
        depth += (sign == "(") - (sign == ")")
        if depth == 0:
            return place == len(part) - 1
        place += 1
    return False
