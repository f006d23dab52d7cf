"""Memory of validation runs and of the submission: every example of the document, and the rules between them."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.errors import UsageError
from drainwise_tasks.validate.measurement import memory_for_run, single_core_memory
from drainwise_tasks.validate.thresholds import EXACT, MCM, memory_for_submission

EXAMPLES = {
    (2300, 1): {1: 2300, 2: 4000, 4: 8000, 8: 16000},
    (1900, 1): {1: 1900, 2: 3800, 4: 7600, 8: 15200},
    (4000, 2): {1: 4000, 2: 4000, 4: 8000, 8: 16000},
    (9000, 4): {1: 9000, 2: 9000, 4: 9000, 8: 18000},
}
"""The document's worked examples: (memory, nThreads) of the request, and the memory by cores."""


@pytest.mark.parametrize(("request_", "by_cores"), EXAMPLES.items())
def test_the_documents_examples(request_: tuple[int, int], by_cores: dict[int, int]) -> None:
    """All sixteen lines of the document's memory scaling."""
    assert {cores: memory_for_run(cores, *request_) for cores in by_cores} == by_cores


def test_only_one_thread_of_2300_mb_is_scaled_as_2000() -> None:
    """The exception is for a request of one thread; 2300 MB per thread of more threads are scaled as they are."""
    assert single_core_memory(2300, 1) == 2000
    assert single_core_memory(4600, 2) == 2300
    assert single_core_memory(2299, 1) == 2299


def test_memory_per_core_stays_within_500_and_4000_mb() -> None:
    """max(500, min(4000, memory / nThreads)), and only where more cores than threads are asked for."""
    assert memory_for_run(2, 100, 1) == 1000
    assert memory_for_run(8, 9000, 1) == 32000
    assert memory_for_run(1, 9000, 1) == 9000
    assert memory_for_run(8, 3200, 8) == 3200


@given(cores=st.integers(1, 64), memory=st.integers(1, 10**6), threads=st.integers(1, 64))
def test_scaling_against_the_documents_formula(cores: int, memory: int, threads: int) -> None:
    """Up to the request's threads its own memory, beyond them so much per core, never a fraction of a MB too little."""
    found = memory_for_run(cores, memory, threads)
    if cores <= threads:
        assert found == memory
    else:
        single = 2000 if (memory, threads) == (2300, 1) else max(500, min(4000, memory / threads))
        assert math.isclose(found, single * cores, abs_tol=1) and found >= single * cores - 1e-6


@pytest.mark.parametrize(
    ("peak", "memory"), [(1, 1000), (909, 1000), (910, 2000), (1800, 2000), (14545, 16000), (14546, 17000)]
)
def test_submission_rounds_up_to_thousands_with_a_tenth_of_margin(peak: float, memory: int) -> None:
    """ceil(1.1 × peak / 1000) × 1000."""
    assert memory_for_submission(peak) == memory


def test_submission_is_exact_where_floating_point_is_not() -> None:
    """1.1 × 50000 is 55000 and not a little more, which would cost a thousand MB."""
    assert math.ceil((50000 * 1.1) / 1000.0) * 1000 == 56000
    assert memory_for_submission(50000) == 55000


@pytest.mark.parametrize(
    ("peak", "factor"), [(3999, 1.6), (4000, 1.5), (5999, 1.5), (6000, 1.4), (8000, 1.3), (9999, 1.3), (10_000, 1.2)]
)
def test_mcm_s_margins_by_size(peak: float, factor: float) -> None:
    """60 to 20 per cent more, the less the larger the peak; its floating point, and whole thousands."""
    assert memory_for_submission(peak, MCM) == math.ceil(peak * factor / 1000.0) * 1000


def test_both_arithmetics() -> None:
    """5000 MB and a tenth are 5500 in both; 1.1 × 50000 is more than 55000 in McM's alone."""
    tenth = replace(MCM, memory_margin=1.1, memory_margin_below=())
    assert memory_for_submission(5000, tenth) == memory_for_submission(5000, replace(tenth, arithmetic=EXACT)) == 6000
    assert memory_for_submission(50_000, tenth) == 56_000
    assert memory_for_submission(50_000, replace(tenth, arithmetic=EXACT)) == 55_000


@given(st.floats(0.001, 10**7, allow_nan=False))
def test_submission_holds_the_peak_and_its_margin(peak: float) -> None:
    """Whole thousands, at least 1.1 × the peak, and less than a thousand above it."""
    memory = memory_for_submission(peak)
    exact = Fraction(repr(peak)) * 11 / 10
    assert memory % 1000 == 0 and exact <= memory < exact + 1000


@pytest.mark.parametrize("peak", [0.0, -1.0, math.nan, math.inf])
def test_no_memory_is_made_of_no_peak(peak: float) -> None:
    """What is no amount of memory is refused, never rounded."""
    with pytest.raises(UsageError, match="peak resident memory"):
        memory_for_submission(peak)


@pytest.mark.parametrize(("cores", "memory", "threads"), [(0, 2000, 1), (2, 0, 1), (2, 2000, 0)])
def test_nothing_is_scaled_of_nothing(cores: int, memory: int, threads: int) -> None:
    """No cores, no memory and no threads are refused by name."""
    with pytest.raises(UsageError, match="expected 1 or more"):
        memory_for_run(cores, memory, threads)
