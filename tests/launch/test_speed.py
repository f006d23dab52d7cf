"""What a choice and a job cost, in small; `scripts/bench --only launch` measures it with a million."""

from __future__ import annotations

import pytest

from benchmarks import launching

pytestmark = pytest.mark.daemons  # a million jobs take their time


def test_choosing_costs_the_buckets_and_not_the_jobs() -> None:
    """Fifty times as many jobs in as many buckets: at most three times as long, as with a hundred times."""
    few, many = launching.engine_of(1000), launching.engine_of(50_000)
    times = [min(sum(launching.seconds_to_choose(engine, 100)) for _ in range(5)) for engine in (few, many)]
    assert times[1] < 3 * times[0]


def test_a_million_jobs_would_fit_into_two_gibibytes() -> None:
    """By what fifty thousand more take; chains of ten, with names and commands."""
    more = launching.memory(60_000) - launching.memory(10_000)
    assert more / 50_000 * 1_000_000 < 2 << 30


def test_a_job_of_the_local_backend_costs_little_more_than_its_process(capsys: pytest.CaptureFixture[str]) -> None:
    """Generous, for a busy machine: the target is twice."""
    [plain, ours] = launching.starting(3, 40)
    assert plain.ratio == 1.0 and ours.ratio < 6
    assert not capsys.readouterr().out
