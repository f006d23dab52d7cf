"""What names one run of a job."""

from __future__ import annotations

import pytest

from drainwise.facts.errors import ActionRefused
from drainwise.pilotad.values import LATEST
from drainwise.slurm.jobs.job import SlurmJob, label_and_start, odd_fields, run_name

T0 = 1795270000


@pytest.mark.parametrize("label", ["17", "4294967295", "12_3"])
def test_a_run_is_named_by_its_job_and_start(label: str) -> None:
    assert label_and_start(run_name(label, T0)) == (label, T0)


@pytest.mark.parametrize(
    "run",
    [
        "",
        "17",
        "17@",
        f"17@{T0} ",
        f"17;reboot@{T0}",
        f"-1@{T0}",
        f"12_@{T0}",
        f"12+1@{T0}",
        f"12,13@{T0}",
        f"१७@{T0}",
        f"ALL@{T0}",
    ],
)
def test_what_is_no_run_is_refused(run: str) -> None:
    """HOSTILE 44: a list, a component or a word for all jobs would reach more than one."""
    with pytest.raises(ActionRefused):
        label_and_start(run)


@pytest.mark.parametrize(
    ("job", "label"),
    [
        (SlurmJob(17), "17"),
        (SlurmJob(17, array=12, task=0), "12_0"),
        (SlurmJob(17, array=12), "17"),
        (SlurmJob(17, het=12, het_offset=0), "12+0"),
        (SlurmJob(17, het=12), "17"),
        (SlurmJob(17, het_offset=1), "17"),
    ],
)
def test_a_job_is_named_alone(job: SlurmJob, label: str) -> None:
    assert job.label == label


@pytest.mark.parametrize(
    ("limits", "nodes", "memory"),
    [
        ({"memory": 5, "memory_per_node": 6, "memory_per_core": 7}, 1, 5),
        ({"memory": 5, "memory_per_node": 6, "memory_per_core": 7}, 2, 6),
        ({"memory_per_node": 0, "memory_per_core": 7}, 1, 0),
        ({"memory": 5, "memory_per_core": 7}, 2, 28),
        ({"memory": 5}, 2, None),
        ({"memory_per_core": 0}, 1, None),
        ({}, 1, None),
    ],
)
def test_the_memory_on_a_node_is_what_is_known_of_it(limits: dict[str, int], nodes: int, memory: int | None) -> None:
    job = SlurmJob(17, node_count=nodes, **limits)  # type: ignore[arg-type]
    assert job.memory_on_node(4) == memory
    assert job.memory_on_node(None) == job.memory_on_node(0) == (None if memory == 28 else memory)


@pytest.mark.parametrize(
    ("numbers", "odd"),
    [
        ((None, None, 1, ()), ""),
        ((1 << 24, 1 << 16, 1 << 22, (LATEST, None)), ""),
        (((1 << 24) + 1, 1, 1, ()), "cores 1.68e+07"),
        ((1, (1 << 16) + 1, 1, ()), "nodes 6.55e+04"),
        ((None, None, (1 << 22) + 1, (LATEST + 1,)), "tasks 4.19e+06, time 4.1e+09"),
        ((1, 1, 1, (None, LATEST + 1)), "time 4.1e+09"),
    ],
)
def test_numbers_that_no_job_has_are_named(
    numbers: tuple[int | None, int | None, int, tuple[int | None, ...]], odd: str
) -> None:
    assert odd_fields(*numbers) == odd
    assert odd_fields(numbers[0], numbers[1], numbers[2], ()) == ", ".join(
        one for one in odd.split(", ") if not one.startswith("time")
    )
