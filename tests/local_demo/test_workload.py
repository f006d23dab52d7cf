"""The workload is decided by the seed alone, fills the machine exactly and stays within its lease."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from local_demo.excerpt import read_excerpt
from local_demo.workload import ARRIVAL, BOBS_JOB, LEAST_CORES, MOST_CORES, draw_workload

JOBS = read_excerpt()
SIZES = st.integers(LEAST_CORES // 8, MOST_CORES // 8).map(lambda eighths: eighths * 8)


@settings(max_examples=25)
@given(cores=SIZES, seed=st.integers(0, 1000), speed=st.floats(60, 2000))
def test_the_machine_is_full_and_bob_is_owed_whole_jobs(cores: int, seed: int, speed: float) -> None:
    workload = draw_workload(JOBS, cores, speed, seed)
    assert sum(pilot.cores for pilot in workload.pilots) == cores == workload.alices_quota + workload.bobs_quota
    assert workload.bobs_quota == workload.bobs_jobs * BOBS_JOB > 0
    assert len({pilot.name for pilot in workload.pilots}) == len(workload.pilots)
    assert all(pilot.cores % pilot.width == 0 and pilot.after < workload.arrival for pilot in workload.pilots)


@settings(max_examples=10)
@given(seed=st.integers(0, 1000), speed=st.floats(60, 2000))
def test_payloads_outlast_the_play_and_fit_the_lease(seed: int, speed: float) -> None:
    """So that no pilot runs out of work, and none is refused for its maximum."""
    workload = draw_workload(JOBS, 64, speed, seed)
    for pilot in workload.pilots:
        side_by_side = sum(one.cores // one.width for one in workload.pilots if one.width == pilot.width)
        runs = sum(float(payload.command[1]) for payload in workload.payloads[pilot.width])
        assert runs > side_by_side * ARRIVAL / speed
    for width, payloads in workload.payloads.items():
        for payload in payloads:
            assert payload.cores == width
            assert float(payload.command[1]) < payload.expected <= payload.maximum < workload.lease


def test_the_same_seed_draws_the_same_play() -> None:
    assert draw_workload(JOBS, 64, 600, 5) == draw_workload(JOBS, 64, 600, 5)
    assert draw_workload(JOBS, 64, 600, 5) != draw_workload(JOBS, 64, 600, 6)


def test_times_of_the_log_are_divided_by_the_speed() -> None:
    slow, fast = draw_workload(JOBS, 64, 300, 1), draw_workload(JOBS, 64, 600, 1)
    assert slow.arrival == 2 * fast.arrival
    runs = [float(workload.payloads[workload.pilots[0].width][0].command[1]) for workload in (slow, fast)]
    assert abs(runs[0] - 2 * runs[1]) < 0.002
