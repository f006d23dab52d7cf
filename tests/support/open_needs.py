"""A play of a need that stays open, the same on each batch system: alice has four pilots of 8 cores, bob comes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from useful_orders import Stage, asked

Say = Callable[[str, float, int], object]
"""Let a pilot, by its name, state so many cores in use, by payloads that end in so many seconds."""
LATE = 1.0, 90_000
"""What a pilot says whose order will cost much: seven cores idle until its deadline, and what runs then is lost."""
NOTHING_TO_LOSE = 8.0, 60
DEAR = 4.0, 90_000


def replace_an_order(stage: Stage, say: Say) -> None:
    """An order is withdrawn as another pilot costs less by far, which goes instead; nobody is asked twice."""
    first, second, third, fourth = sorted(one["name"] for one in json.loads(stage.command("snapshot"))["pilots"])
    for name in (second, third, fourth):
        say(name, *DEAR)
    say(first, 8.0, 600)
    stage.submit("bob", 8)
    done = stage.cycles(120, asked)
    assert given(done) == [first]
    quiet = iter(range(2))
    assert given(stage.cycles(60, lambda _: next(quiet) == 1)) == []

    say(first, *LATE)
    say(second, *NOTHING_TO_LOSE)
    done = stage.cycles(120, asked)
    assert given(done) == [second] and withdrawn(done) == [first]
    assert len(done[-1]["withdrawals"]) == 1 and done[-1]["cores"]["deficit"] == 0
    told = stage.command("explain", first)
    assert f"the order was withdrawn: another pilot costs less by far: {second} " in " ".join(told.split()), told
    told = stage.command("explain", second)
    assert f"in place of {first}, whose order would cost " in " ".join(told.split()), told

    say(second, *LATE)
    say(first, *NOTHING_TO_LOSE)
    quiet = iter(range(4))
    assert given(stage.cycles(90, lambda _: next(quiet) == 3)) == [], "the first has had its order within the hour"
    say(third, *NOTHING_TO_LOSE)
    done = stage.cycles(120, asked)
    assert given(done) == [third] and withdrawn(done) == [second]
    assert len(stage.running("alice")) == 4, "all of them still run"


def given(cycles: list[Any]) -> list[str]:
    """The names of the pilots that got an order, in their order."""
    return [
        name for one in cycles for name in _done(one["acts"], [it for user in one["users"] for it in user["orders"]])
    ]


def withdrawn(cycles: list[Any]) -> list[str]:
    """The names of the pilots whose order was withdrawn, in their order."""
    return [name for one in cycles for name in _done(one["withdrawn"], one["withdrawals"])]


def _done(acts: list[Any], planned: list[Any]) -> list[str]:
    names = {row["run"]: row["name"] for row in planned}
    return [names[act["run"]] for act in acts if act["outcome"] == "done"]
