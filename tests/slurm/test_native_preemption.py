"""Steering Slurm's preemption: whose priority changes so that only the chosen run can be preempted."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.slurm.jobs.job import SlurmJob
from drainwise.slurm.jobs.values import states_of
from drainwise.slurm.pool.native_preemption import EXPOSED, PROTECTED, exempt_from, to_protect, to_release

RUN = SlurmJob(17, node_count=1, start=1795270000, end=1795273600, can_requeue=True, priority=100000)
priorities = st.none() | st.integers(0, 2**32 - 3) | st.sampled_from([EXPOSED, PROTECTED])


def run(label: str, priority: int | None, state: str = "RUNNING", restarts: int = 0) -> SlurmJob:
    array, _, task = label.partition("_")
    one = replace(RUN, number=int(array), priority=priority, states=states_of(state), restarts=restarts)
    return replace(one, array=int(array), task=int(task)) if task else one


@pytest.mark.parametrize(
    ("config", "exempt"),
    [("PreemptParameters       = min_exempt_priority=2", 2), ("PreemptParameters = (null)", None), ("", None)],
)
def test_slurms_own_exemption(config: str, exempt: int | None) -> None:
    assert exempt_from(config) == exempt


def test_with_an_exemption_nobody_else_is_touched() -> None:
    assert to_protect([run("1", 100000), run("2", 5), run("3", EXPOSED)], "1", 2) == []


def test_without_one_all_others_are_protected_but_those_chosen_before() -> None:
    runs = [run("1", 100000), run("2", 5), run("3_1", EXPOSED), run("4", PROTECTED)]
    assert to_protect(runs, "1", None) == ["2"]


@given(st.lists(priorities, min_size=1, max_size=9), st.none() | st.just(2))
def test_only_chosen_runs_can_be_preempted(numbers: list[int | None], exempt: int | None) -> None:
    """After the change: whoever is below the line of safety was chosen, now or before."""
    runs = [run(str(place), number) for place, number in enumerate(numbers)]
    protected = to_protect(runs, "0", exempt)
    safe = PROTECTED if exempt is None else exempt
    for one in runs:
        if one.label not in protected and one.label != "0" and one.priority is not None:
            assert one.priority >= safe or one.priority == EXPOSED


def test_only_requeued_jobs_that_kept_our_priority_get_their_own_back() -> None:
    """A held job (0), one that an administrator put last (1, never run) and ordinary ones keep theirs."""
    jobs = [run("1", 0, "PENDING", 1), run("2", EXPOSED, "PENDING"), run("3", 500, "PENDING", 2)]
    jobs += [run("4", EXPOSED, "PENDING", 1), run("5", PROTECTED, "PENDING", 3)]
    assert to_release(jobs) == ["4", "5"]
