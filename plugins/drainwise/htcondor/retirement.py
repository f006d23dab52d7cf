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


def is_endless(left: int | None) -> bool:
    """Whether so much retirement time (s) is left only because an order was taken back."""
    return left is not None and left > ENDLESS // 2
