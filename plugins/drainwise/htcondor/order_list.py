"""Reads the text of PILOT_RECLAIM, on the node and on the pool side alike: which run must be gone by when.

A blank-separated list of `<GlobalJobId>@<JobStart>=<deadline>`. Of several entries for a run the last counts, and zeros
before a number mean nothing, as in the ClassAd expressions of the execute node's drop-in.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_DIGITS = (9, 10)  # of a UNIX time in s from 1973 to 2286


def entries(orders: str) -> Iterator[tuple[str, int]]:
    """Each entry's run and deadline (UNIX s; 0: taken back), in their order; what is no entry is passed over."""
    for word in orders.split():
        run, _, deadline = word.rpartition("=")
        if not run or not deadline.isascii() or not deadline.isdigit():
            continue
        digits = deadline.lstrip("0")
        if not digits or _DIGITS[0] <= len(digits) <= _DIGITS[1]:
            yield run, int(digits or "0")


def standing(run: str, orders: str) -> int | None:
    """The deadline that stands for this run (UNIX s; 0: its order was taken back); None when it has no entry."""
    found = None
    for name, deadline in entries(orders):
        if name == run:
            found = deadline
    return found
