"""On a real pool: a small job gets its cores from large pilots, and nothing is taken for ever that nobody can use."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import drainwise
from condor_pool import CondorPool, DeadlineError
from drainwise.htcondor.render import drop_in_path, render
from drainwise.siteconfig import SiteConfig, load

PACKAGES = str(Path(drainwise.__file__).parents[1])
ENVIRONMENT = {"PYTHONPATH": PACKAGES, "PYTHONDONTWRITEBYTECODE": "1"}
SITE = """\
[htcondor]
max_vacate_time = 2s
retirement = 0s
slot_update_interval = 3s
[reclaim]
drain_only = no
min_age = 2s
time_to_start = 8s
demand_pause = 1h
[agent]
state_dir = {state}
"""
JOBS = """\
executable = /bin/sleep
transfer_executable = False
arguments = 3000
request_cpus = {cores}
request_memory = 64
request_disk = 1MB
requirements = {needs}
queue {count}
"""


def node_config(site: SiteConfig) -> str:
    """What the execute node's drop-in says of orders; hooks and cron, whose files are not there, are left out."""
    [drop_in] = [file.text for file in render(site, "execute") if file.path == drop_in_path("execute")]
    foreign = ("HOOK", "STARTD_CRON", "STARTER_")
    return "\n".join(line for line in drop_in.splitlines() if not any(word in line for word in foreign))


@pytest.fixture(scope="module")
def site_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("site") / "site.ini"
    path.write_text(SITE.format(state=path.parent))
    return str(path)


@pytest.fixture(scope="module")
def full_pool(site_file: str) -> Iterator[CondorPool]:
    """Two nodes of 16 cores without group quotas: alice has four pilots of 8 there, and more of them wait."""
    own = "\nCLAIM_WORKLIFETIME = 0\n"
    with CondorPool(nodes=2, cpus=16, config={"execute": node_config(load(site_file)) + own}) as pool:
        submit(pool, "alice", 8, 12)
        pool.wait_for(lambda: len(running(pool, "alice")) == 4, 60, "four pilots")
        yield pool


def submit(pool: CondorPool, user: str, cores: int, count: int = 1, needs: str = "True") -> None:
    pool.submit(JOBS.format(cores=cores, count=count, needs=needs), user=user)


def running(pool: CondorPool, user: str) -> set[str]:
    """The runs of a user."""
    ads = pool.slots('Activity == "Busy"', ["GlobalJobId", "RemoteOwner", "Cpus"])
    return {ad.text("GlobalJobId") for ad in ads if ad.text("RemoteOwner").partition("@")[0] == user}


def cycles(pool: CondorPool, site_file: str, seconds: float, stop: Any) -> list[Any]:
    """Single cycles that act, as cron starts them, until `stop` is true of one: what each decided."""
    done: list[Any] = []

    def cycle() -> bool:
        argv = [sys.executable, "-m", "drainwise", "reclaim", "--once", "--act", "--json", "--site", site_file]
        answer = pool.run_outside(argv, environment=ENVIRONMENT, check=False)
        assert answer.returncode in {0, 1}, answer.stderr
        done.append(json.loads(answer.stdout))
        return bool(stop(done[-1]))

    try:
        pool.wait_for(cycle, seconds, "the end of the cycles")
    except DeadlineError as error:
        raise DeadlineError(f"{error}\n{[(one['summary'], one['acts'], one['cores']) for one in done]}") from None
    return done


def asked(cycle: Any) -> int:
    return sum(act["outcome"] == "done" for act in cycle["acts"])


def test_a_small_job_gets_its_cores_from_a_large_pilot(full_pool: CondorPool, site_file: str) -> None:
    """bob wants 4 cores and uses none of his 16: one of alice's pilots of 8 goes, and his next job takes the rest."""
    submit(full_pool, "bob", 4)
    done = cycles(full_pool, site_file, 60, lambda _: running(full_pool, "bob"))
    [first] = [one for one in done if asked(one)]
    assert first["summary"].startswith("1 pilot gives back 8 of 4 cores")
    submit(full_pool, "bob", 4)
    later = cycles(full_pool, site_file, 60, lambda _: len(running(full_pool, "bob")) == 2)
    assert sum(map(asked, later)) == 0
    assert len(running(full_pool, "alice")) == 3


def test_pilots_do_not_go_for_ever_for_a_job_that_cannot_start(full_pool: CondorPool, site_file: str) -> None:
    """bob's job needs what no node has; alice's next pilot starts where one has gone. His next job is served."""
    submit(full_pool, "bob", 8, needs="TARGET.HasNoNode =?= True")
    done = cycles(full_pool, site_file, 120, lambda cycle: cycle.get("paused_demand"))
    assert sum(map(asked, done)) == 2, [(one["taken"], one["summary"], one["acts"], one["cores"]) for one in done]
    [paused] = done[-1]["paused_demand"]
    assert (paused["principal"], paused["cores"], paused["failed"]) == ("bob@pool.test", 8.0, 2)
    quiet = iter(range(4))
    after = cycles(full_pool, site_file, 60, lambda _: next(quiet) == 3)
    assert [asked(cycle) for cycle in after] == [0, 0, 0, 0]
    assert after[-1]["summary"] == "only demand that is paused waits: nothing to give back"
    for command in ("plan", "status"):
        argv = [sys.executable, "-m", "drainwise", command, "--site", site_file]
        shown = full_pool.run_outside(argv, environment=ENVIRONMENT).stdout
        assert "bob@pool.test waits for 8 cores that do not count from" in shown
    before = running(full_pool, "bob")
    submit(full_pool, "bob", 8)
    served = cycles(full_pool, site_file, 60, lambda _: running(full_pool, "bob") - before)
    assert sum(map(asked, served)) == 1
