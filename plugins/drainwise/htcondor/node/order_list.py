"""Read the text of PILOT_RECLAIM, on the node and on the pool side alike: which run must be gone by when.

A blank-separated list of `<GlobalJobId>@<JobStart>=<deadline>`. Of several entries for a run the last counts, and zeros
before a number mean nothing, as in the ClassAd expressions of the execute node's drop-in.

HTCondor never lets a slot that retires become busy again. So an order is withdrawn by an entry with 0 in the deadline's
place: the slot has no deadline then, and where it retires already, its retirement lasts ten years. The run goes on as
if it had no order; only its activity stays Retiring, and the claim ends with the job. Whatever else ends a run (the
node's own PREEMPT, a drain, a preemption by the negotiator) ends it after the node's usual retirement.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

WITHDRAWN = 0
"""Stands for the deadline of an order that was withdrawn."""

ENDLESS = 315_360_000
"""The retirement of a run whose order was withdrawn, in s: ten years."""

_DIGITS = (9, 10)  # of a UNIX time in s from 1973 to 2286


def entries(orders: str) -> Iterator[tuple[str, int]]:
    """Yield each entry's run and deadline (UNIX s, or WITHDRAWN), in their order; pass over what is no entry."""
    for word in orders.split():
        run, _, deadline = word.rpartition("=")
        if not run or not deadline.isascii() or not deadline.isdigit():
            continue
        digits = deadline.lstrip("0")
        if not digits or _DIGITS[0] <= len(digits) <= _DIGITS[1]:
            yield run, int(digits or WITHDRAWN)


def deadline_of(run: str, orders: str) -> int | None:
    """Return the deadline that stands for this run (UNIX s, or WITHDRAWN); None when it has no entry."""
    return next((deadline for name, deadline in reversed([*entries(orders)]) if name == run), None)


def is_endless(left: int | None) -> bool:
    """Decide whether so much retirement time (s) is left only because an order was withdrawn."""
    return left is not None and left > ENDLESS // 2
