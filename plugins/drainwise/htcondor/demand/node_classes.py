"""Sort places into classes: those of one class run the same jobs, so that one of them can stand for all. Pure.

Two places are of one class when all attributes that any waiting job or any START asks about are equal. Where an
attribute has many values (a name, free scratch space), those that no expression tells apart count as equal.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from drainwise.htcondor.demand.expressions import Literals

MOST_CLASSES = 200
FEW = 40
"""Values of one attribute that are all told apart."""

EXPRESSION = "/Expr("
"""The beginning of an expression among the values of an ad."""


@dataclass(frozen=True)
class Classes:
    """The class of each place, a place that stands for each class, and the attributes that are not told apart."""

    of: Sequence[str]
    examples: Mapping[str, int]
    ignored: frozenset[str]


def classes_of(
    rows: Sequence[Mapping[str, object]],
    names: Collection[str],
    literals: Literals,
    searched: Collection[str] = (),
    exact: Collection[str] = (),
) -> Classes:
    """Return the classes of places by the values of their attributes (by name in lower case).

    names: the attributes that are asked about; literals: what the asking expressions name; searched: the attributes
    whose texts are looked into; exact: those of which all values are told apart. With more than MOST_CLASSES classes,
    the attributes with most values are ignored.
    """
    columns = {name: [_plain(row.get(name)) for row in rows] for name in sorted(names)}
    counts = {name: len(set(column)) for name, column in columns.items()}
    columns = {name: column for name, column in columns.items() if counts[name] > 1}
    for name in list(columns):
        if counts[name] > FEW and name not in exact:
            columns[name] = [_coarse(value, literals, exact=name in searched) for value in columns[name]]
            counts[name] = len(set(columns[name]))
    ignored: set[str] = set()
    while True:
        kept = [column for name, column in columns.items() if name not in ignored]
        signatures = list(zip(*kept)) if kept else [()] * len(rows)
        different = set(signatures)
        if len(different) <= MOST_CLASSES:
            break
        ignored.add(max((name for name in columns if name not in ignored), key=lambda name: counts[name]))
    labels = {one: hashlib.sha256(repr(one).encode("utf-8", "replace")).hexdigest()[:8] for one in different}
    of = [labels[one] for one in signatures]
    examples: dict[str, int] = {}
    for place, label in enumerate(of):
        examples.setdefault(label, place)
    return Classes(of, examples, frozenset(ignored))


def _plain(value: object) -> object:
    """Make a value that can be compared: ClassAds tell true from 1, which Python does not."""
    if isinstance(value, str):
        return value
    return repr(value) if isinstance(value, (list, dict)) else (type(value).__name__, value)


def _coarse(value: object, literals: Literals, exact: bool) -> object:
    if isinstance(value, str):
        named = exact or value.startswith(EXPRESSION) or value.casefold() in literals.texts
        return value if named else ("other", "")
    if isinstance(value, tuple) and type(value[1]) in {int, float}:
        return bisect_left(literals.numbers, value[1]), bisect_right(literals.numbers, value[1])
    return value
