"""What a lease was when it was granted, and when it counts as shortened."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from drainwise.slurm.jobs.job import SlurmJob
from drainwise.slurm.jobs.scontrol_jobs import job_in
from drainwise.slurm.jobs.values import states_of
from drainwise.slurm.node.lease import SlurmLease
from drainwise.slurm.node_agent.jobs import GRANTED, NodeJob, granted_end, is_this_run, learn_granted

from .recorded_cluster import recorded

START = 1_795_248_000


def facts(**changes: object) -> SlurmJob:
    """A run of ten minutes."""
    text = recorded("24.11", "scontrol.txt").decode("utf-8", "replace")
    known = job_in(text.partition("show job 10\n")[2].partition("scontrol: ")[0], 10)
    assert known is not None
    values = {"start": START, "end": START + 600, "limit": 10, "uid": 1001, **changes}
    return replace(known, **values)  # type: ignore[arg-type]


def lease(**changes: object) -> SlurmLease:
    """The lease that 22.05's prolog writes: it knows neither start nor end."""
    return SlurmLease(**{"job": "10", "uid": 1001, "gid": 1001, "started": START + 1, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({}, True),
        ({"uid": 1002}, False),
        ({"restarts": 1}, False),
        ({"states": states_of("PENDING")}, False),
        ({"states": states_of("COMPLETING")}, False),
        ({"states": states_of("CONFIGURING")}, True),
        ({"start": None}, False),
    ],
)
def test_which_run_slurmctld_speaks_of(change: dict[str, object], same: bool) -> None:
    assert is_this_run(lease(), facts(**change)) is same


def test_a_known_start_has_to_agree() -> None:
    """A later one is that of a node that had to be powered up first."""
    known = lease(started=START, start_known=True)
    assert is_this_run(known, facts())
    assert is_this_run(known, facts(start=START + 60))
    assert not is_this_run(known, facts(start=START - 60))


def test_what_was_granted() -> None:
    """The prolog's word, else the time limit; no limit, no end."""
    assert granted_end(lease(), facts()) == START + 600
    assert granted_end(lease(started=START, start_known=True, ends=START + 900), facts(end=START + 300)) == START + 900
    assert granted_end(lease(), facts(limit=None)) is None


@pytest.fixture
def job(tmp_path: Path) -> NodeJob:
    tree = os.open(tmp_path, os.O_RDONLY)
    return NodeJob("n1", lease(), (1, 1), tree, "10")


def test_the_first_sight_is_kept_for_the_next_agent(job: NodeJob, tmp_path: Path) -> None:
    """An order in between does not change what was granted; a broken file is written anew."""
    learn_granted(job, facts())
    assert (tmp_path / GRANTED).read_text() == f"{START + 600}\n"
    for kept, expected in (
        (f"{START + 600}\n", START + 600),
        ("none\n", None),
        ("-1\n", START + 300),
        ("", START + 300),
    ):
        (tmp_path / GRANTED).write_text(kept)
        other = NodeJob("n1", lease(), (1, 1), job.tree, "10")
        learn_granted(other, facts(limit=5, end=START + 290))
        assert other.granted == expected


@pytest.mark.parametrize(
    ("end", "limit", "granted"),
    [
        (START + 300, 6, START + 600),
        (START + 900, 15, START + 900),
        (None, None, None),
        (None, 10, START + 600),
    ],
)
def test_a_lease_that_is_made_longer_is_granted_so_long(
    job: NodeJob, tmp_path: Path, end: int | None, limit: int | None, granted: int | None
) -> None:
    """Also for the next agent; one that is made shorter, or whose end is not known, stays granted as it was."""
    learn_granted(job, facts())
    learn_granted(job, facts(end=end, limit=limit))
    assert job.granted == granted
    assert (tmp_path / GRANTED).read_text() == f"{'none' if granted is None else granted}\n"
    other = NodeJob("n1", lease(), (1, 1), job.tree, "10")
    learn_granted(other, facts(end=START + 100))
    assert other.granted == granted


def test_what_has_no_end_is_kept_as_such(job: NodeJob, tmp_path: Path) -> None:
    learn_granted(job, facts(limit=None, end=None))
    assert (tmp_path / GRANTED).read_text() == "none\n"
    assert job.granted is None and job.granted_known
