"""Match jobs with one place of each class, as the negotiator does: the job's requirements and the place's START.

ClassAd expressions are also looked into as texts: the literals in them, the parts that every job has. To be called in a
process that ends after one question: the expressions are those of users.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import classad2

from drainwise.common.bounded_call import several_within
from drainwise.facts.errors import PoolUnreachable
from drainwise.htcondor.ads.values import job_needs
from drainwise.pool.amounts import Amounts

FREE_NOW = frozenset(("availablegpus",))
"""What a place says of its free things alone, in lower case: of a place that were empty it is not known."""

JOB_SECONDS = 0.5
"""For the match of one kind of jobs with all classes, some milliseconds as a rule."""

_TIME = re.compile(r"\btime\s*\(|\bCurrentTime\b", re.IGNORECASE)
_MOST_HANGS = 3
_FAULTS = (classad2.ClassAdException, KeyError, TypeError, ValueError, UnicodeDecodeError, RecursionError)


def references(ad: Any, name: str) -> frozenset[str]:
    """Return the names, in lower case, that an expression of an ad refers to outside of it."""
    try:
        expression = ad.lookup(name)
        found = ad.externalRefs(expression)
    except _FAULTS:
        return frozenset()
    names = (one.lower().removeprefix("target.").partition(".")[0] for one in found)
    return frozenset(one for one in names if one.isidentifier() and one.isascii())


def flattened(ad: Any, name: str) -> str:
    """Return an expression of an ad with the ad's own values put in, as text; "" when it has none.

    One that asks for the time is left as it is: its text shall be the same at any time.
    """
    try:
        expression = ad.lookup(name)
        if _TIME.search(str(expression)):
            return str(expression)
        return str(ad.flatten(expression)) if isinstance(expression, classad2.ExprTree) else str(expression)
    except _FAULTS:
        return ""


def parsed(text: str) -> Any | None:
    """Return the ad that a text is; None for none."""
    try:
        ad = classad2.parseOne(text)
    except _FAULTS:
        return None
    return ad if len(ad) else None


def may_run(job: Any, place: Any, unknown: Collection[str]) -> bool:
    """Decide whether a job may run in a place.

    unknown: the names, in lower case, whose values are not known here: a condition that they leave open is met.
    """
    return _holds(job, place, "Requirements", unknown) and _holds(place, job, "Start", unknown)


def _holds(ad: Any, other: Any, name: str, unknown: Collection[str]) -> bool:
    try:
        if name not in ad:
            return True
        expression = ad.lookup(name)
        value = expression.eval(ad, other) if isinstance(expression, classad2.ExprTree) else expression
    except _FAULTS:
        return False
    if isinstance(value, bool):
        return value
    if isinstance(value, classad2.Value):
        return not references(ad, name).isdisjoint(unknown)
    return type(value) in {int, float} and value != 0


def needs_at(job: Any, place: Any, names: Collection[str]) -> Amounts:
    """Return what a job asks of an empty place, of which its amounts may be a part; names: the pool's countables."""

    def value_of(name: str) -> object:
        try:
            expression = job.lookup(name)
            return expression.eval(job, place) if isinstance(expression, classad2.ExprTree) else expression
        except _FAULTS:
            return None

    return job_needs(value_of, names)


def asks_of_place(job: Any, names: Collection[str]) -> frozenset[str]:
    """Return the names, in lower case, of what a job's amounts refer to at a place; names: the pool's countables."""
    return frozenset().union(*(references(job, f"Request{name}") for name in ("Cpus", "Memory", "Disk", *names)))


def matched(
    jobs: Sequence[Any | None],
    places: Mapping[str, Any],
    unknown: Collection[str],
    names: Collection[str] = (),
    seconds: float = JOB_SECONDS,
) -> list[dict[str, Amounts | None] | None]:
    """Return the classes (by name; `places` has one place of each) on which each job may run, with what it asks there.

    The latter is None where it is the same everywhere. names: the pool's countables. Of a job, None: it is without an
    ad, or its match takes longer than `seconds`.
    """

    def match(job: Any) -> dict[str, Amounts | None]:
        fitting = [name for name, place in places.items() if may_run(job, place, unknown)]
        asked = asks_of_place(job, names)
        differs = any(name in places[one] for name in asked for one in fitting)
        return {name: needs_at(job, places[name], names) if differs else None for name in fitting}

    def answers(begin: int) -> Callable[[], Iterator[dict[str, Amounts | None] | None]]:
        def give() -> Iterator[dict[str, Amounts | None] | None]:
            for job in jobs[begin:]:
                yield None if job is None else match(job)

        return give

    found: list[dict[str, Amounts | None] | None] = []
    for _ in range(_MOST_HANGS):
        if len(found) == len(jobs):
            break
        try:
            with closing(several_within(seconds, answers(len(found)), "a match")) as given:
                found.extend(given)
        except PoolUnreachable:
            found.append(None)
    return found + [None] * (len(jobs) - len(found))


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


def _depths(expression: str) -> Iterator[tuple[int, int]]:
    """Yield the place of each sign outside of strings, and how many brackets are open behind it."""
    depth = place = 0
    while place < len(expression):
        sign = expression[place]
        if sign == '"':
            found = _STRING.match(expression, place)
            place = found.end() if found else len(expression)
            continue
        depth += (sign in "([{") - (sign in ")]}")
        yield place, depth
        place += 1


def conjuncts(expression: str) -> list[str]:
    """Split an expression at its outermost `&&`; brackets around the whole of a part are taken off."""
    ends = [place for place, depth in _depths(expression) if depth == 0 and expression.startswith("&&", place)]
    begins = [0, *(place + 2 for place in ends)]
    return [_bare(expression[begin:end]) for begin, end in zip(begins, [*ends, len(expression)])]


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
    """Return a part without the brackets whose first opens it and whose last closes it."""
    part = part.strip()
    while part[:1] + part[-1:] == "()" and next((at for at, depth in _depths(part) if not depth), 0) == len(part) - 1:
        part = part[1:-1].strip()
    return part
