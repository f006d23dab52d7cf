"""The text of PILOT_RECLAIM: which runs on a node were asked to be gone by when.

A blank-separated list of `<GlobalJobId>@<JobStart>=<deadline>`; the deadline is 0 when the order was taken back. It
becomes part of a daemon's configuration, so nothing enters it that does not match a strict pattern: a blank, `$(`, a
quote or a newline would be more than an order.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from drainwise.errors import ActionRefused
from drainwise.htcondor.retirement import TAKEN_BACK

KNOB = "PILOT_RECLAIM"
TRIAL_KNOB = "PILOT_RECLAIM_TRIAL"
"""Nothing reads it: a node that takes a value for it takes orders, too."""

_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@:-]{0,254}#[0-9]{1,10}\.[0-9]{1,10}#[0-9]{1,12}@[0-9]{9,10}")
_ORDER = re.compile(f"({_RUN.pattern})=([0-9]{{9,10}}|{TAKEN_BACK})")

SETTLED_AFTER = 120
"""Seconds after the deadline of an order within which a slot may still change hands because of it."""

KEPT = 3600
"""Seconds after its deadline for which the order of a run that has ended stays: by it the run's node is found again."""


@dataclass(frozen=True)
class Order:
    """One run of a job (`<GlobalJobId>@<JobStart>`) and when it must be gone (UNIX s); TAKEN_BACK: it need not."""

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


def with_order(present: Iterable[Order], new: Order, running: Collection[str], now: int) -> tuple[Order, ...]:
    """The list at `now` (UNIX s) with `new` in it and without what is spent (`running` = the node's runs).

    What is spent stays for a while: it tells why the cores of a run that has left change hands. The latest deadline
    stands last, where the node looks for it. A deadline may come nearer, never move away: whoever was asked counts on
    it, and a pilot must not gain time by being asked again. Raises ActionRefused when `new` would be later than what
    stands there. To be taken back is no deadline.
    """
    kept = []
    for order in present:
        if order.run != new.run:
            if order.run in running or now <= order.deadline + KEPT:
                kept.append(order)
        elif TAKEN_BACK not in {order.deadline, new.deadline} and order.deadline < new.deadline:
            raise ActionRefused(
                f"{new.run} was asked to be gone by {order.deadline} already; it is not given until {new.deadline}"
            )
    return tuple(sorted((*kept, new), key=lambda order: order.deadline))


def order_of(run: str, present: Iterable[Order]) -> Order | None:
    """What stands for this run in the list; of several entries the last, as the node reads it."""
    found = [order for order in present if order.run == run]
    return found[-1] if found else None
