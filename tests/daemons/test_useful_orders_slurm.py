"""On a real cluster: a small job gets its cores from large pilots, and nothing is taken for ever in vain."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

import drainwise
from slurm_cluster import DeadlineError, SlurmCluster
from useful_orders import Stage, give_a_large_pilot_for_a_small_job, pause_the_demand_of_a_job_that_cannot_start

pytestmark = [pytest.mark.play, pytest.mark.in_turn("useful orders", "Slurm")]
PACKAGES = str(Path(drainwise.__file__).parents[1])
ENVIRONMENT = {"PYTHONPATH": PACKAGES, "PYTHONDONTWRITEBYTECODE": "1"}
SITE = """\
[slurm]
bin_dir = {tools}
[reclaim]
at_deadline = end
policy = least-waste
drain_only = no
min_age = 0s
time_to_start = 20s
[agent]
state_dir = {state}
"""
SLEEP = "exec sleep 1000"
OLDER = 3  # seconds; starts are whole ones


@pytest.fixture
def full(slurm: SlurmCluster) -> Iterator[SlurmCluster]:
    """alice, who has two thirds, has a pilot on each of four nodes of 8 cores, the oldest on node1: it costs most."""
    first = submit(slurm, "alice", 8, "--nodelist=node1")
    slurm.wait_for(lambda: first in running(slurm, "alice"), 30, "the first pilot")
    start = slurm.job(first).start
    slurm.wait_for(lambda: time.time() > start + OLDER, 10, "an older pilot")
    submit(slurm, "alice", 8, "--array=1-3")
    slurm.wait_for(lambda: len(running(slurm, "alice")) == 4, 30, "four pilots")
    yield slurm
    slurm.cancel_all(90)


@pytest.fixture
def site_file(slurm: SlurmCluster, tmp_path: Path) -> str:
    path = tmp_path / "site.ini"
    tools = slurm.outside_env("root")["PATH"].split(os.pathsep)[0]
    path.write_text(SITE.format(tools=tools, state=tmp_path / "state"))
    return str(path)


def submit(cluster: SlurmCluster, user: str, cores: int, *options: str) -> int:
    return cluster.submit(SLEEP, user, ["--ntasks=1", f"--cpus-per-task={cores}", "--time=30", *options])


def running(cluster: SlurmCluster, user: str) -> set[int]:
    """The running jobs of a user."""
    return {job.id for job in cluster.jobs() if job.state == "RUNNING" and job.user == user}


@pytest.fixture
def stage(full: SlurmCluster, site_file: str) -> Stage:
    def command(*words: str) -> str:
        argv = [sys.executable, "-m", "drainwise", *words, "--pool", "slurm", "--site", site_file]
        return full.run_outside(argv, environment=ENVIRONMENT).stdout

    return Stage(partial(submit, full), partial(running, full), command, full.wait_for, DeadlineError)


def test_a_small_job_gets_its_cores_from_a_large_pilot(stage: Stage) -> None:
    give_a_large_pilot_for_a_small_job(stage)


def test_pilots_do_not_go_for_ever_for_a_job_that_cannot_start(full: SlurmCluster, stage: Stage) -> None:
    """bob's job needs node1, whose pilot costs most; alice's next one starts where one has gone."""
    submit(full, "alice", 8, "--array=1-9")
    submit(full, "bob", 8, "--nodelist=node1", "--nice=1000000")  # alice is first, whatever both have used before
    clear = partial(full.run, ["scancel", "--user=alice", "--state=PENDING"])
    pause_the_demand_of_a_job_that_cannot_start(stage, "cms", 2, clear)
