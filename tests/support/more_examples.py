"""How much a test looks at: fewer examples or cases in each run, all of them with `scripts/test --all-releases`."""

from __future__ import annotations

import itertools
import os
from collections.abc import Collection
from typing import TypeVar

from hypothesis import settings

IS_THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
"""Whether this is a run of everything."""
T = TypeVar("T")


def more_examples(times: float) -> settings:
    """Settings with `times` the examples of the profile: for a property of which few find the place, say."""
    return settings(max_examples=round(times * settings().max_examples))


def most_of(few: T, every: T) -> T:
    """The first, and `every` in a run of everything."""
    return every if IS_THOROUGH else few


def combined(*values: Collection[object]) -> list[tuple[object, ...]]:
    """Cases of several parameters: each of their combinations in a run of everything.

    Else each combination of all parameters but the last, whose values take turns: any two of three parameters have each
    pair of their values. The last one has the fewest values.
    """
    turns = most_of(1, len(values[-1]))
    cases = itertools.product(*(enumerate(one) for one in values))
    chosen = [one for one in cases if sum(number for number, _ in one) % len(values[-1]) < turns]
    return [tuple(value for _, value in one) for one in chosen]
