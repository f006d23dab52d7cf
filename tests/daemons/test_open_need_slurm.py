"""A need that stays open, on real clusters: an order is replaced when another pilot costs less by far."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

import drainwise
from drainwise.pilotad.report import PilotReport
from drainwise.slurm.jobs.admin_comment import Published, comment_text
from open_needs import replace_an_order
from slurm_cluster import DeadlineError, SlurmCluster
from useful_orders import Stage

pytestmark = [pytest.mark.play, pytest.mark.in_turn("open need", "Slurm")]
PACKAGES = str(Path(drainwise.__file__).parents[1])
ENVIRONMENT = {"PYTHONPATH": PACKAGES, "PYTHONDONTWRITEBYTECODE": "1"}
SITE = """\
[slurm]
bin_dir = {tools}
[reclaim]
policy = open-need
min_grace = 1h
min_age = 0s
[agent]
state_dir = {state}
"""
DAY = "--time=1-00:00:00"


@pytest.fixture
def full(slurm: SlurmCluster) -> Iterator[SlurmCluster]:
    """alice has a pilot on each of four nodes of 8 cores."""
    submit(slurm, "alice", 8, "--array=1-4")
    slurm.wait_for(lambda: len(running(slurm, "alice")) == 4, 30, "four pilots")
    yield slurm
    slurm.cancel_all(90)


def submit(cluster: SlurmCluster, user: str, cores: int, *options: str) -> int:
    return cluster.submit("exec sleep 3000", user, ["--ntasks=1", f"--cpus-per-task={cores}", DAY, *options])


def running(cluster: SlurmCluster, user: str) -> set[int]:
    """The running jobs of a user."""
    return {job.id for job in cluster.jobs() if job.state == "RUNNING" and job.user == user}


def say(cluster: SlurmCluster, name: str, used: float, seconds: int) -> None:
    """Publish what a pilot states, as the agent of its node would."""
    [job] = [job for job in cluster.jobs() if job.label == name]
    now = int(time.time())
    report = PilotReport(
        now, used, job.start, now + seconds, now + seconds, add_uncom_time=0.0, add_final_exp_waste=0.0
    )
    line = comment_text(Published(job.id, job.start, job.nodes[0], report))
    cluster.run(["scontrol", "update", f"JobId={job.id}", f"AdminComment={line}"])


def test_an_order_is_replaced_when_another_pilot_costs_less_by_far(full: SlurmCluster, tmp_path: Path) -> None:
    site_file = tmp_path / "site.ini"
    tools = full.outside_env("root")["PATH"].split(os.pathsep)[0]
    site_file.write_text(SITE.format(tools=tools, state=tmp_path / "state"))

    def command(*words: str) -> str:
        argv = [sys.executable, "-m", "drainwise", *words]
        argv += ["--journal", str(tmp_path / "journal")] if words[0] in {"explain", "reclaim"} else []
        argv += [] if words[0] == "explain" else ["--pool", "slurm", "--site", str(site_file)]
        return full.run_outside(argv, environment=ENVIRONMENT).stdout

    stage = Stage(partial(submit, full), partial(running, full), command, full.wait_for, DeadlineError)
    replace_an_order(stage, partial(say, full))
