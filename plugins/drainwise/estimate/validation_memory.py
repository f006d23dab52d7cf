"""How much memory a validation run asks for, and how much the request asks for when it is submitted. In MB (10⁶ bytes).

Source: CMS McM MultiValidation, "Memory scaling in validation" and "Request submission to computing".
"""

from __future__ import annotations

import math
from fractions import Fraction

from drainwise.errors import UsageError

LEAST_PER_CORE, MOST_PER_CORE = 500, 4000
"""Between these lies what a run of more cores than the request has threads gets for each core, MB."""
USUAL_SINGLE_CORE, SCALED_SINGLE_CORE = 2300, 2000
"""A request of one thread and 2300 MB is scaled as if it had 2000 MB."""
_MARGIN = Fraction(11, 10)
_STEP = 1000
_MB, _MIB = 10**6, 1 << 20


def single_core_memory(memory: int, threads: int) -> Fraction:
    """MB for each core of a run that needs more than the request's: `memory` MB of the request for `threads` threads.

    Raises UsageError where either is below 1.
    """
    _check(memory, threads)
    if threads == 1 and memory == USUAL_SINGLE_CORE:
        return Fraction(SCALED_SINGLE_CORE)
    return max(Fraction(LEAST_PER_CORE), min(Fraction(MOST_PER_CORE), Fraction(memory, threads)))


def memory_for_run(cores: int, memory: int, threads: int) -> int:
    """MB that a validation run on `cores` gets: the request's memory up to its threads, scaled beyond them.

    Whole MB, rounded up where memory / threads is none. Raises UsageError where one of them is below 1.
    """
    _check(memory, threads)
    if cores < 1:
        raise UsageError(f"cores: {cores}: expected 1 or more")
    return memory if cores <= threads else math.ceil(single_core_memory(memory, threads) * cores)


def memory_for_submission(peak_rss: float) -> int:
    """MB to submit with: the peak resident set in MB and a tenth, rounded up to the next thousand.

    Exact: as floating point numbers 1.1 × 50000 is more than 55000. Raises UsageError for none, NaN or infinity.
    """
    if not (math.isfinite(peak_rss) and peak_rss > 0):
        raise UsageError(f"peak resident memory: {peak_rss!r} MB: expected a number above 0")
    return math.ceil(Fraction(repr(float(peak_rss))) * _MARGIN / _STEP) * _STEP


def mebibytes(megabytes: int) -> int:
    """MB as batch systems count them, in 2²⁰ bytes; rounded up."""
    return -(-megabytes * _MB // _MIB)


def _check(memory: int, threads: int) -> None:
    for what, value in (("memory", memory), ("threads", threads)):
        if value < 1:
            raise UsageError(f"{what}: {value}: expected 1 or more")
