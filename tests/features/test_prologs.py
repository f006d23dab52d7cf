"""What other batch systems say of a job that starts, made into the facts of its features."""

from __future__ import annotations

import doctest
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

import drainwise.features.prologs
from batch_answers import BHOSTS, BJOBS, CONFIG, FLUX, LSF, PBS_PRO, QSTAT, QUEUE, SGE, TORQUE, R
from drainwise.features.prologs import Ask, Fact, flux, grid_engine, lsf, pbs, pbs_attributes, seconds, size

NOW = 1_795_398_529


def said(**answers: str) -> Ask:
    """Commands that print these answers, by their names; of Flux by what they ask for."""
    return lambda *command: answers.get(command[0], answers.get(command[-1], ""))


def stated(job: dict[str, Fact]) -> dict[str, Fact]:
    """The facts that there are."""
    return {name: value for name, value in job.items() if value is not None}


@pytest.mark.parametrize(
    ("limit", "memory", "wall", "rss"),
    [
        ("60.0/n1", "4 G", 3600, 4 << 30),
        ("90.0 min of n1", "2 Gbytes", 5400, 2 << 30),
        ("1:30", "2048", 5400, 2048 << 10),
        ("-", "-", None, None),
    ],
)
def test_lsf(limit: str, memory: str, wall: int | None, rss: int | None) -> None:
    found = lsf(LSF, said(bjobs=BJOBS % (limit, memory), bhosts=BHOSTS), "n1.pool", NOW)
    expected: dict[str, Fact] = {"job_id": "4711", "jobstart_secs": NOW, "allocated_cpu": 8, "wall_limit_secs": wall}
    assert stated(found.job) == stated({**expected, "max_rss_bytes": rss, "max_swap_bytes": 8 << 30})
    assert (found.machine, found.owner) == ({"jobslots": 24}, "alice")


def test_lsf_asks_for_its_job() -> None:
    """One of an array by its index."""
    array = {**LSF, "LSB_JOBINDEX": "3"}
    asked: list[str] = []

    def ask(*command: str) -> str:
        asked.append(command[-1])
        return ""

    assert lsf(array, ask, "n1", NOW).job["job_id"] == "4711[3]"
    assert asked == ["4711[3]", "n1"]
    assert lsf({"LSB_JOBID": "1", "LSB_DJOB_NUMPROC": "2"}, said(), "n1", NOW).job["allocated_cpu"] == 2


def test_pbs_pro() -> None:
    found = pbs({"PBS_JOBID": "4711.head"}, said(qstat=PBS_PRO), "n1.pool", NOW)
    assert found.job.pop("jobstart_secs")
    assert stated(found.job) == {
        "job_id": "4711.head",
        "allocated_cpu": 8,
        "wall_limit_secs": 86400,
        "cpu_limit_secs": 172800,
        "max_rss_bytes": 16 << 30,
    }
    assert found.owner == "alice"
    assert pbs_attributes(PBS_PRO)["exec_vnode"] == "(n1:ncpus=8:mem=16777216kb)+(n2:ncpus=4)"


def test_torque() -> None:
    found = pbs({"PBS_JOBID": "4711[2].head"}, said(qstat=TORQUE), "n1", NOW)
    assert found.job.pop("jobstart_secs")
    assert stated(found.job) == {
        "job_id": "4711[2].head",
        "allocated_cpu": 5,
        "wall_limit_secs": 86400,
        "max_rss_bytes": 4 << 30,
    }
    assert found.owner == "alice"


def test_grid_engine() -> None:
    """Of the job and the queue the tighter limit; memory by the slots on this host."""
    found = grid_engine(SGE, said(cat=CONFIG, qstat=QSTAT, qconf=QUEUE), "central", NOW)
    assert stated(found.job) == {
        "job_id": "1",
        "jobstart_secs": NOW,
        "allocated_cpu": 4,
        "wall_limit_secs": 600,
        "cpu_limit_secs": 1000,
        "max_rss_bytes": 4 << 30,
        "scratch_limit_bytes": 10 << 30,
    }
    assert (found.machine, found.owner) == ({"jobslots": 16}, "alice")
    assert grid_engine({**SGE, "SGE_TASK_ID": "2"}, said(), "central", NOW).job["job_id"] == "1.2"
    assert grid_engine(SGE, said(qconf=QUEUE), "central", NOW).job["wall_limit_secs"] == 86400


@pytest.mark.parametrize(("rank", "cores"), [("1", 8), ("2\n", 4), ("3", None), ("", None)])
def test_flux(rank: str, cores: int | None) -> None:
    found = flux(FLUX, said(R=R, rank=rank), "n1", NOW)
    expected: dict[str, Fact] = {"job_id": "186579", "jobstart_secs": 1795398000, "wall_limit_secs": 3600}
    expected["allocated_cpu"] = cores
    assert stated(found.job) == stated(expected)
    assert found.owner == "1001"


def test_flux_without_an_end() -> None:
    """Expiration 0 is none."""
    endless = R.replace("1795401600.25", "0.0")
    assert flux(FLUX, said(R=endless, rank="0"), "n1", NOW).job["wall_limit_secs"] is None


@given(st.text(), st.sampled_from([lsf, pbs, grid_engine, flux]))
def test_no_answer_is_too_odd(text: str, described: Callable[[Mapping[str, str], Ask, str, int], object]) -> None:
    """It costs facts, not the job."""
    for answer in (text, f'{{"execution": {text}}}', '{"RECORDS": [[]]}', '{"execution": {"R_lite": [[]]}}'):
        described({}, lambda *_, answer=answer: answer, "n1", NOW)


@pytest.mark.parametrize(
    ("text", "bytes_"), [("4gb", 4 << 30), ("512 M", 512 << 20), ("16777216kb", 16 << 30), ("7", 7), ("INFINITY", None)]
)
def test_sizes(text: str, bytes_: int | None) -> None:
    assert size(text) == bytes_


@pytest.mark.parametrize(
    ("text", "expected"),
    [("86400", 86400), ("24:00:00", 86400), ("1:00:00:00", 86400), ("30:00", 1800), ("INFINITY", None), (None, None)],
)
def test_times(text: str | None, expected: int | None) -> None:
    assert seconds(text) == expected


def test_the_examples_in_the_docstrings_are_true() -> None:
    assert doctest.testmod(drainwise.features.prologs) == (0, 1)
