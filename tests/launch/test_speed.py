"""What a choice looks at and a job takes, in small; `scripts/bench --only launch` measures it with a million."""

from __future__ import annotations

import pytest

from benchmarks import launching
from drainwise_launch.choice.resources import Resources
from drainwise_launch.choice.work import LaunchJob

pytestmark = pytest.mark.daemons  # a hundred thousand jobs take their time

CHOICES, BUCKETS = 100, 50


@pytest.mark.parametrize("count", [1000, 50_000])
def test_a_choice_looks_at_one_job_of_each_bucket_however_many_wait(count: int) -> None:
    """Nothing is asked of any other."""
    engine, asked = launching.engine_of(count), 0

    def fits(_: Resources, job: LaunchJob) -> bool:
        nonlocal asked
        asked += 1
        return job.reserved.cpu <= launching.FREE_CPUS

    for _ in range(CHOICES):
        job = engine.choose("local", fits)
        assert job is not None
        engine.start(job, 0.0)
    assert CHOICES <= asked <= CHOICES * BUCKETS


def test_a_million_jobs_would_fit_into_two_gibibytes() -> None:
    """By what fifty thousand more take; chains of ten, with names and commands."""
    more = launching.memory(60_000) - launching.memory(10_000)
    assert more / 50_000 * 1_000_000 < 2 << 30
