"""On a real cluster: a small job gets its cores from large pilots, and nothing is taken for ever in vain."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import drainwise
from slurm_cluster import DeadlineError, SlurmCluster

PACKAGES = str(Path(drainwise.__file__).parents[1])
ENVIRONMENT = {"PYTHONPATH": PACKAGES, "PYTHONDONTWRITEBYTECODE": "1"}
SITE = """\
[slurm]
bin_dir = {tools}
vacate = cancel
[reclaim]
drain_only = no
min_age = 0s
time_to_start = 6s
demand_pause = 1h
[agent]
state_dir = {state}
"""
SLEEP = "exec sleep 1000"


@pytest.fixture
def full(slurm: SlurmCluster) -> Iterator[SlurmCluster]:
    """alice, who has two thirds, has a pilot on each of four nodes of 8 cores, the oldest on node1."""
    submit(slurm, "alice", 8, "--nodelist=node1")
    slurm.wait_for(lambda: running(slurm, "alice"), 30, "the first pilot")
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


def drainwise_command(cluster: SlurmCluster, site_file: str, *words: str) -> str:
    argv = [sys.executable, "-m", "drainwise", *words, "--pool", "slurm", "--site", site_file]
    return cluster.run_outside(argv, environment=ENVIRONMENT).stdout


def cycles(cluster: SlurmCluster, site_file: str, seconds: float, stop: Callable[[Any], object]) -> list[Any]:
    """Single cycles that act, as cron starts them, until `stop` is true of one: what each decided."""
    done: list[Any] = []

    def cycle() -> bool:
        done.append(json.loads(drainwise_command(cluster, site_file, "reclaim", "--once", "--act", "--json")))
        return bool(stop(done[-1]))

    try:
        cluster.wait_for(cycle, seconds, "the end of the cycles")
    except DeadlineError as error:
        raise DeadlineError(f"{error}\n{[(one['summary'], one['acts'], one['cores']) for one in done]}") from None
    return done


def asked(cycle: Any) -> int:
    return sum(act["outcome"] == "done" for act in cycle["acts"])


def test_a_small_job_gets_its_cores_from_a_large_pilot(full: SlurmCluster, site_file: str) -> None:
    """bob wants 4 cores and uses none of his third: a pilot of 8 goes, and his next job takes the rest."""
    submit(full, "bob", 4)
    done = cycles(full, site_file, 60, lambda _: running(full, "bob"))
    [first] = [one for one in done if asked(one)]
    assert first["summary"].startswith("1 pilot gives back 8 of 4 cores")
    submit(full, "bob", 4)
    later = cycles(full, site_file, 60, lambda _: len(running(full, "bob")) == 2)
    assert sum(map(asked, later)) == 0
    assert len(running(full, "alice")) == 3


def test_pilots_do_not_go_for_ever_for_a_job_that_cannot_start(full: SlurmCluster, site_file: str) -> None:
    """bob's job needs node1, whose pilot costs most; alice's next one starts where one has gone. His next is served."""
    submit(full, "alice", 8, "--array=1-9")
    submit(full, "bob", 8, "--nodelist=node1")
    done = cycles(full, site_file, 120, lambda cycle: cycle.get("paused_demand"))
    assert sum(map(asked, done)) == 2, [(one["taken"], one["summary"], one["acts"], one["cores"]) for one in done]
    [paused] = done[-1]["paused_demand"]
    assert (paused["principal"], paused["cores"], paused["failed"]) == ("cms", 8.0, 2)
    quiet = iter(range(4))
    after = cycles(full, site_file, 60, lambda _: next(quiet) == 3)
    assert [asked(cycle) for cycle in after] == [0, 0, 0, 0]
    assert after[-1]["summary"] == "only demand that is paused waits: nothing to give back"
    for command in ("plan", "status"):
        assert "cms waits for 8 cores that do not count from" in drainwise_command(full, site_file, command)
    full.run(["scancel", "--user=alice", "--state=PENDING"])  # here who came first is first, whatever its share
    submit(full, "bob", 2)
    served = cycles(full, site_file, 60, lambda _: running(full, "bob"))
    assert sum(map(asked, served)) == 1
