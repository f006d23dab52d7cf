"""The text of PILOT_RECLAIM: which runs on a node were asked to be gone by when.

A blank-separated list of `<GlobalJobId>@<JobStart>=<deadline>`. It becomes part of a daemon's configuration, so nothing
enters it that does not match a strict pattern: a blank, `$(`, a quote or a newline would be more than an order.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from drainwise.errors import ActionRefused

KNOB = "PILOT_RECLAIM"

SETTLED_AFTER = 120
"""Seconds after the deadline of an order within which a slot may still change hands because of it."""

_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@:-]{0,254}#[0-9]{1,10}\.[0-9]{1,10}#[0-9]{1,12}@[0-9]{9,10}")
_ORDER = re.compile(f"({_RUN.pattern})=([0-9]{{9,10}})")


@dataclass(frozen=True)
class Order:
    """One run of a job (`<GlobalJobId>@<JobStart>`) and when it must be gone (UNIX s)."""

    run: str
    deadline: int

    def __str__(self) -> str:
        return f"{self.run}={self.deadline}"


def run_name(job: str | None, start: int | None) -> str | None:
    """The name of one run of a job: GlobalJobId and JobStart; None when it could not be put into an order."""
    run = f"{job}@{start}"
    return run if job is not None and start is not None and _RUN.fullmatch(run) else None


def parse_orders(value: str) -> tuple[Order, ...]:
    """The orders in a knob's value; what is no order cannot match any slot and is passed over."""
    found = (_ORDER.fullmatch(word) for word in value.split())
    return tuple(Order(match[1], int(match[2])) for match in found if match)


def orders_text(orders: Iterable[Order]) -> str:
    """The knob's value. Raises ActionRefused when an order has a run or a deadline that no order may have."""
    words = []
    for order in orders:
        word = str(order)
        if not _ORDER.fullmatch(word):
            raise ActionRefused(f"{word[:80]!r} cannot be an order: not a job id, start and deadline of HTCondor")
        words.append(word)
    return " ".join(words)


def with_order(present: Iterable[Order], new: Order, running: Collection[str], now: float) -> tuple[Order, ...]:
    """The list with `new` in it and without old orders of runs that have ended (`running` = the node's runs).

    Those of the last minutes before `now` (UNIX s) stay: they tell why the cores of a run that has left change hands.
    A deadline may come nearer, never move away: whoever was asked counts on it, and a pilot must not gain time by being
    asked again. Raises ActionRefused when `new` would be later than what stands there.
    """
    kept = []
    for order in present:
        if order.run == new.run:
            if order.deadline < new.deadline:
                raise ActionRefused(
                    f"{new.run} was asked to be gone by {order.deadline} already; it is not given until {new.deadline}"
                )
        elif order.run in running or order.deadline + SETTLED_AFTER >= now:
            kept.append(order)
    return (*kept, new)
