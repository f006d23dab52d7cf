"""The schedule without pilots is first come, first served: the same as a general simulator's, job by job."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from benchmarks.schedule import busy_share, first_come_first_served
from drainwise.facts.errors import UsageError
from drainwise_simulate.trace import TraceJob, read_trace

from .made_up import job, traces

TRACES = Path(__file__).parents[2] / "traces"


@given(jobs=traces())
def test_it_is_simpys_schedule(jobs: list[TraceJob]) -> None:
    """A model of the same machine in SimPy starts every job at the same moment."""
    pytest.importorskip("simpy")
    from fcfs_in_simpy import first_come_first_served_in_simpy

    for cores in (8, 13):
        assert first_come_first_served(jobs, cores) == first_come_first_served_in_simpy(jobs, cores)


@pytest.mark.parametrize(("excerpt", "cores"), [("lcg-cnaf.swf.gz", 181), ("wagap.swf.gz", 1024)])
def test_it_is_simpys_schedule_of_real_jobs(excerpt: str, cores: int) -> None:
    """The same for the thousands of jobs of an excerpt, on a machine that they fill."""
    pytest.importorskip("simpy")
    from fcfs_in_simpy import first_come_first_served_in_simpy

    jobs = [one for one in read_trace(str(TRACES / excerpt)).jobs if one.cores <= cores]
    starts = first_come_first_served(jobs, cores)
    assert len(jobs) > 5000
    assert any(start > one.submit for one, start in zip(jobs, starts)), "nobody had to wait"
    assert starts == first_come_first_served_in_simpy(jobs, cores)


def test_a_wide_job_holds_up_those_behind_it() -> None:
    """Nobody overtakes: the third job would fit beside the first and waits for the second."""
    jobs = [job(1, 0, 100, 5), job(2, 10, 50, 8), job(3, 20, 10, 1)]
    assert first_come_first_served(jobs, 8) == [0, 100, 150]


@given(jobs=traces())
def test_no_core_is_used_twice(jobs: list[TraceJob]) -> None:
    """At every start the jobs that run need no more cores than there are, and none starts before it comes."""
    starts = first_come_first_served(jobs, 8)
    for one, now in zip(jobs, starts):
        assert now >= one.submit
        busy = [other.cores for other, start in zip(jobs, starts) if start <= now < start + other.run]
        assert sum(busy) <= 8


def test_a_job_that_can_never_run_is_named() -> None:
    """It says which job and how wide it is."""
    with pytest.raises(UsageError, match="job 7 needs 9 cores, there are 8"):
        first_come_first_served([job(7, 0, 1, 9)], 8)


def test_jobs_out_of_order_are_refused() -> None:
    """The order of arrival is the order of the queue."""
    with pytest.raises(UsageError, match="sort the jobs"):
        first_come_first_served([job(1, 5, 1), job(2, 4, 1)], 8)


def test_how_full_the_machine_is() -> None:
    """4 of 8 cores for half of the time between the first and the last start are a quarter."""
    jobs = [job(1, 0, 50, 4), job(2, 100, 10, 8)]
    assert busy_share(jobs, first_come_first_served(jobs, 8), 8) == 0.25
    assert busy_share([], [], 8) == 0.0
