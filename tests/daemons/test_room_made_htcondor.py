"""On a pool of unlike nodes the pilots go whose room the waiting job then takes, and no others."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import drainwise
from condor_jobs import described, node_config
from condor_pool import CondorPool, DeadlineError
from drainwise.siteconfig import load
from useful_orders import Stage, asked, use_room_that_comes_back_in_pieces

pytestmark = [pytest.mark.play, pytest.mark.in_turn("room made", "HTCondor")]
PACKAGES = str(Path(drainwise.__file__).parents[1])
ENVIRONMENT = {"PYTHONPATH": PACKAGES, "PYTHONDONTWRITEBYTECODE": "1"}
DRAINED = "drain_only = yes\ngrace = 40s\nmargin = 5s"
SITE = """\
[htcondor]
max_vacate_time = 2s
retirement = 0s
update_interval = 10s
slot_update_interval = 3s
[reclaim]
policy = least-waste
drain_only = no
min_age = 0s
time_to_start = 20s
[agent]
state_dir = {state}
"""
CPUS = 8
NODES = {
    "node1": "MEMORY = 4096",
    "node2": "MEMORY = 16384\nHasFast = True\nSTARTD_ATTRS = $(STARTD_ATTRS) HasFast",
    "node3": "MEMORY = 16384\nMACHINE_RESOURCE_Sims = 1",
    "node4": 'MEMORY = 16384\nSTART = $(START) && TARGET.Owner =!= "bob"',
}
"""node1 is poor of memory, node2 has a feature, node3 a device, node4 is not for bob."""


@pytest.fixture(scope="module")
def site_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("site") / "site.ini"
    path.write_text(SITE.format(state=path.parent))
    return str(path)


@pytest.fixture(scope="module")
def unlike(site_file: str, release: str) -> Iterator[CondorPool]:
    own = "\nCLAIM_WORKLIFETIME = 0\n"
    config = {"execute": node_config(load(site_file)) + own, **NODES}
    with CondorPool(nodes=len(NODES), cpus=CPUS, config=config, release=release) as pool:
        yield pool


def running(pool: CondorPool, user: str) -> set[str]:
    """The nodes of a user's running jobs."""
    ads = pool.slots('Activity == "Busy"', ["Machine", "RemoteOwner"])
    return {ad.text("Machine") for ad in ads if ad.text("RemoteOwner").partition("@")[0] == user}


def submit(pool: CondorPool, user: str, cores: int, *lines: str, count: int = 1) -> None:
    pool.submit(described(3000, *lines, cores=cores, count=count), user=user)


@pytest.fixture
def full(unlike: CondorPool) -> Iterator[CondorPool]:
    """alice has two pilots of 4 cores on each node, with half of its memory each.

    Those that were vacated wait and would start again, as those of a pilot factory do.
    """
    for node in NODES:
        memory = 2048 if node == "node1" else 8192
        needs = f'requirements = TARGET.Machine == "{node}.pool.test"'
        submit(unlike, "alice", 4, f"request_memory = {memory}", needs, count=2)

    def count() -> bool:
        return len(unlike.slots('Activity == "Busy" && Cpus == 4', ["Name"])) == 2 * len(NODES)

    unlike.wait_for(count, 120, "all pilots")
    yield unlike
    for user in ("bob", "alice"):
        unlike.run(["condor_rm", user], user=user, check=False)
    unlike.wait_for(lambda: not unlike.slots('State != "Unclaimed"', ["Name"]), 120, "an empty pool")


@pytest.fixture
def stage(full: CondorPool, site_file: str, tmp_path: Path) -> Stage:
    return stage_with(full, site_file, tmp_path)


def stage_with(full: CondorPool, site_file: str, tmp_path: Path) -> Stage:
    def command(*words: str) -> str:
        argv = [sys.executable, "-m", "drainwise", *words]
        argv += ["--journal", str(tmp_path / "journal")] if words[0] in {"explain", "reclaim"} else []
        argv += [] if words[0] == "explain" else ["--site", site_file]
        answer = full.run_outside(argv, environment=ENVIRONMENT, check=False)
        assert answer.stdout, answer.stderr
        return answer.stdout

    return Stage(partial(submit, full), partial(running, full), command, full.wait_for, DeadlineError)


def orders_until_bob_runs(stage: Stage) -> list[Any]:
    """Return the orders that were given until bob's job runs."""
    done = stage.cycles(60, lambda _: stage.running("bob"))
    return [order for cycle in done if asked(cycle) for user in cycle["users"] for order in user["orders"]]


@pytest.mark.parametrize(
    ("cores", "lines", "nodes", "pilots"),
    [
        (4, ("request_memory = 8192",), {"node2", "node3"}, 1),
        (8, ("request_memory = 16384",), {"node2", "node3"}, 2),
        (2, ("request_memory = 12288",), {"node2", "node3"}, 2),
        (2, ("requirements = TARGET.HasFast =?= True",), {"node2"}, 1),
        (2, ("request_sims = 1",), {"node3"}, 1),
        (2, ("requirements = TARGET.TotalMemory < 8000",), {"node1"}, 1),
    ],
    ids=["memory", "whole memory", "more memory than cores", "feature", "device", "small memory"],
)
def test_the_pilots_go_whose_room_the_job_takes(
    stage: Stage, cores: int, lines: tuple[str, ...], nodes: set[str], pilots: int
) -> None:
    """All of one node, as many as the job needs there, and the job starts on it."""
    stage.submit("bob", cores, *lines)
    orders = orders_until_bob_runs(stage)
    assert len(orders) == pilots
    (node,) = {order["node"] for order in orders}
    assert node.partition(".")[0] in nodes
    assert set(stage.running("bob")) == {node}
    assert {job["account"] for order in orders for job in order["room"]["jobs"]} == {"bob@pool.test"}
    assert f"on {orders[0]['room']['place']} for 1 of bob@pool.test" in stage.command("explain", orders[0]["name"])


def test_a_job_that_can_run_nowhere_costs_nobody_anything(full: CondorPool, stage: Stage) -> None:
    """More memory than any node has, and what no node offers; the plan names both."""
    for line in ("request_memory = 999999", "requirements = TARGET.HasNoNode =?= True"):
        submit(full, "bob", 2, line)
    full.wait_for(lambda: stage.command("plan").count("fit no node of the pool") == 2, 60, "both kinds in the plan")
    quiet = iter(range(4))
    done = stage.cycles(60, lambda _: next(quiet) == 3)
    assert not any(map(asked, done))
    told = json.loads(stage.command("plan", "--json"))
    assert told["cores"]["deficit"] == 0


def test_room_that_comes_back_in_pieces_is_the_waiting_jobs(full: CondorPool, tmp_path: Path) -> None:
    """alice has further pilots waiting that would fit into the first piece."""
    site = tmp_path / "site.ini"
    site.write_text(SITE.format(state=tmp_path).replace("drain_only = no", DRAINED))
    submit(full, "alice", 4, "request_memory = 2048", count=6)
    use_room_that_comes_back_in_pieces(
        stage_with(full, str(site), tmp_path),
        lambda order: full.run(["condor_rm", order["run"].split("#")[1]], user="alice"),
        "request_memory = 8192",
    )
