"""Buckets: what needs nearly the same waits in one queue, so that choosing costs the number of queues, not of jobs.

Rounding groups; what is reserved in the end are the exact amounts. Source: SPEC §5; open-lmake's resource buckets.
"""

from __future__ import annotations

from drainwise.launch.resources import Resources

BITS = 3
"""Significant bits that rounding leaves: steps of an eighth to a quarter."""


def rounded_up(amount: int, bits: int = BITS) -> int:
    """The next number with at most so many significant bits: 8 → 8, 9 → 10, 17 → 20, 1000 → 1024, 1025 → 1280."""
    spare = amount.bit_length() - bits
    return amount if spare <= 0 else -(-amount >> spare) << spare


def bucket_of(resources: Resources) -> Resources:
    """The bucket: cpu, mem and tmp rounded up, the others as they are."""
    return Resources(rounded_up(resources.cpu), rounded_up(resources.mem), rounded_up(resources.tmp), resources.others)
