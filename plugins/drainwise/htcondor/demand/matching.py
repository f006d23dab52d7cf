"""Match jobs with one place of each class, as the negotiator does: the job's requirements and the place's START.

To be called in a process that ends after one question: the expressions are those of users.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

import classad2

from drainwise.common.bounded_call import several_within
from drainwise.facts.errors import PoolUnreachable
from drainwise.htcondor.demand.resources import job_needs
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
