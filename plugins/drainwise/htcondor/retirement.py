"""How an order is taken back although HTCondor never lets a slot that retires become busy again.

The entry of the run stays in PILOT_RECLAIM with 0 in the deadline's place. The slot has no deadline then, and where it
retires already, its retirement lasts ten years: longer than any job. So the run goes on as if nobody had asked; only
the word Retiring stays, and the claim ends with the job. Whatever else ends a run (the node's own PREEMPT, a drain, a
preemption by the negotiator) ends it after the node's usual retirement.
"""

from __future__ import annotations

TAKEN_BACK = 0
"""Stands for the deadline of an order that was taken back."""

ENDLESS = 315_360_000
"""The retirement of such a run in s: ten years."""

_OURS = ("pilotreclaimdeadline", str(ENDLESS))  # of the drop-ins that were and are, in small letters


def why_at_once(written: str | None) -> str:
    """Why a slot would end a run with an order at once instead of at its deadline, and what to do; "" when it keeps it.

    written: the slot's MaxJobRetirementTime as its startd has it, not evaluated; None when it has none. The drop-in's
    is known by what it alone has. A number stands there when another file sets it, or a drain was cancelled: from then
    on that startd puts 0 over its configuration.
    """
    if written is None:
        return "it has no MaxJobRetirementTime: install the drop-in of drainwise there"
    if any(name in written.casefold() for name in _OURS):
        return ""
    what = f"its MaxJobRetirementTime is {written[:80]} and names no deadline: "
    if written.strip().isdigit():
        return (
            f"{what}restart its startd if a drain was cancelled there, else install the drop-in, after what sets"
            " MAXJOBRETIREMENTTIME"
        )
    return f"{what}install the drop-in there, after what sets MAXJOBRETIREMENTTIME"


def is_endless(left: int | None) -> bool:
    """Whether so much retirement time (s) is left only because an order was taken back."""
    return left is not None and left > ENDLESS // 2
