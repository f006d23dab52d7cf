"""On a real pool: a small job gets its cores from large pilots, and nothing is taken for ever that nobody can use."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

import drainwise
from condor_jobs import described, node_config
from condor_pool import CondorPool, DeadlineError
from drainwise.siteconfig import load
from useful_orders import Stage, asked, give_a_large_pilot_for_a_small_job, pause_the_demand_of_a_job_that_cannot_start

pytestmark = [pytest.mark.play, pytest.mark.in_turn("useful orders", "HTCondor")]
PACKAGES = str(Path(drainwise.__file__).parents[1])
ENVIRONMENT = {"PYTHONPATH": PACKAGES, "PYTHONDONTWRITEBYTECODE": "1"}
SITE = """\
[htcondor]
max_vacate_time = 2s
retirement = 0s
slot_update_interval = 3s
[reclaim]
policy = least-waste
drain_only = no
min_age = 0s
time_to_start = 20s
[agent]
state_dir = {state}
"""
# What no ad of a pool tells: which jobs its negotiator leaves out.
NEVER = "NEGOTIATOR_JOB_CONSTRAINT = never =!= true\n"


@pytest.fixture(scope="module")
def site_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("site") / "site.ini"
    path.write_text(SITE.format(state=path.parent))
    return str(path)


@pytest.fixture(scope="module")
def full_pool(site_file: str) -> Iterator[CondorPool]:
    """Two nodes of 16 cores without group quotas: alice has four pilots of 8 there, and more of them wait."""
    own = "\nCLAIM_WORKLIFETIME = 0\n"
    config = {"execute": node_config(load(site_file)) + own, "central": NEVER}
    with CondorPool(nodes=2, cpus=16, config=config) as pool:
        submit(pool, "alice", 8, 12)
        pool.wait_for(lambda: len(running(pool, "alice")) == 4, 60, "four pilots")
        yield pool


def submit(pool: CondorPool, user: str, cores: int, count: int = 1, *more: str) -> int:
    return pool.submit(described(3000, *more, cores=cores, count=count), user=user)


def running(pool: CondorPool, user: str) -> set[str]:
    """The runs of a user."""
    ads = pool.slots('Activity == "Busy"', ["GlobalJobId", "RemoteOwner", "Cpus"])
    return {ad.text("GlobalJobId") for ad in ads if ad.text("RemoteOwner").partition("@")[0] == user}


def waits(pool: CondorPool, user: str) -> bool:
    """Decide whether the collector knows that a user's jobs wait."""
    said = pool.run(["condor_status", "-submitters", "-af", "Name", "IdleJobs"]).stdout.splitlines()
    return any(line.split()[0].partition("@")[0] == user and line.split()[1] != "0" for line in said)


@pytest.fixture
def stage(full_pool: CondorPool, site_file: str) -> Stage:
    def command(*words: str) -> str:
        argv = [sys.executable, "-m", "drainwise", *words, "--site", site_file]
        answer = full_pool.run_outside(argv, environment=ENVIRONMENT, check=False)
        assert answer.returncode in {0, 1}, answer.stderr
        return answer.stdout

    return Stage(partial(submit, full_pool), partial(running, full_pool), command, full_pool.wait_for, DeadlineError)


def test_a_small_job_gets_its_cores_from_a_large_pilot(stage: Stage) -> None:
    give_a_large_pilot_for_a_small_job(stage)


def test_a_job_that_no_node_can_run_costs_nobody_anything(full_pool: CondorPool, stage: Stage) -> None:
    """bob's job needs what no node has: it is no demand, and it does not hold up his next one."""
    cluster = submit(full_pool, "bob", 8, 1, "requirements = TARGET.HasNoNode =?= True")
    full_pool.wait_for(lambda: waits(full_pool, "bob"), 30, "bob's submitter ad")
    quiet = iter(range(4))
    assert [asked(cycle) for cycle in stage.cycles(60, lambda _: next(quiet) == 3)] == [0, 0, 0, 0]
    full_pool.run(["condor_rm", str(cluster)])
    full_pool.wait_for(lambda: not waits(full_pool, "bob"), 30, "nothing that waits")


def test_pilots_do_not_go_for_ever_for_a_job_that_cannot_start(full_pool: CondorPool, stage: Stage) -> None:
    """The negotiator leaves bob's job out, which asks for something of its own; alice's next pilot starts instead."""
    submit(full_pool, "bob", 8, 1, "+never = true", "requirements = TARGET.HasNoNode =!= True")
    pause_the_demand_of_a_job_that_cannot_start(stage, "bob@pool.test", 8)
