"""What waits on a real pool of mixed nodes, by kind; where each kind could run; what a node that is drained tells.

node1 has 8 cores and 16 GiB, node2 little memory, node3 GPUs and a licence (made up), node4 refuses bob's jobs, node5
has two static slots. alice's pilots hold all cores.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import drainwise
from condor_jobs import described, scripted
from condor_pool import CondorPool
from drainwise.htcondor.setup.render import render
from drainwise.install.rendered_tree import write_tree
from drainwise.siteconfig import load
from scenario.condor_site import PACKAGE, place_tree

pytestmark = [pytest.mark.play, pytest.mark.in_turn("room", "HTCondor")]
ENVIRONMENT = {"PYTHONPATH": str(Path(drainwise.__file__).parents[1]), "PYTHONDONTWRITEBYTECODE": "1"}
RETIREMENT = 1200
SITE = f"""\
[features]
hs06 = 240.5
[htcondor]
cron_period = 2s
slot_update_interval = 2s
update_interval = 2s
initial_update_interval = 1s
max_vacate_time = 3s
retirement = {RETIREMENT}s
"""
NODES = {
    "node2": "MEMORY = 2048\nNUM_SLOTS_TYPE_1 = 1\nSLOT_TYPE_1 = 100%\nSLOT_TYPE_1_PARTITIONABLE = True\n"
    "NUM_SLOTS_TYPE_2 = 1\nSLOT_TYPE_2 = 100%\nSLOT_TYPE_2_PARTITIONABLE = True\nSLOT_TYPE_2_BACKFILL = True\n",
    "node3": "MACHINE_RESOURCE_INVENTORY_GPUs = $(LIBEXEC)/condor_gpu_discovery -properties -nested -simulate:2,2\n"
    "MACHINE_RESOURCE_Licence = 3\nHasFast = True\n"
    "STARTD_ATTRS = $(STARTD_ATTRS) HasFast\n",
    "node4": 'START = TARGET.Owner =!= "bob"\n',
    "node5": "NUM_SLOTS_TYPE_1 = 2\nSLOT_TYPE_1 = cpus=4, mem=50%, swap=50%, disk=50%\n"
    "SLOT_TYPE_1_PARTITIONABLE = False\n",
}
SNAPSHOT = """
import json, sys, time
from drainwise.htcondor.pool.pool import HTCondorPool
from drainwise.pool.snapshot_json import snapshot_as_json
print(json.dumps(snapshot_as_json(HTCondorPool().snapshot(int(time.time())))))
"""
# A pilot that copies what its node tells it to its user's home.
PILOT = "while sleep 0.3; do for f in .site.ad .machinefeatures/shutdowntime .jobfeatures/shutdowntime_job; do"
PILOT += " cat $f; done > /home/alice/told-`uname -n` 2>/dev/null; done"
PILOTS = ("node1", 8, 1), ("node2", 8, 1), ("node3", 7, 1), ("node4", 8, 1), ("node5", 4, 2)
"""Where alice's pilots run, their cores, and how many there are."""

DEVICES = "request_gpus = 1", "request_licence = 1"
WAIT_SECS = 60
WHOLE_NODE = (
    "request_cpus = ifThenElse(isUndefined(TotalCpus), 1, TotalCpus)",
    "requirements = TARGET.TotalCpus == TARGET.Cpus",
)
"""A job for all of a node, as HTCondor-CE routes it."""


@pytest.fixture(scope="module")
def pool(release: str) -> Iterator[CondorPool]:
    """The pool of this module, full of alice's pilots, one for each release."""
    with CondorPool(nodes=5, cpus=8, release=release, config={**NODES, "central": "DB_LIMIT = 5\n"}) as running:
        with tempfile.TemporaryDirectory() as place:
            Path(place, "site.ini").write_text(SITE)
            site = load(f"{place}/site.ini")
            running.copy_in(PACKAGE, f"{site.htcondor.library_dir}/drainwise")
            write_tree(render(site, "execute"), f"{place}/tree")
            place_tree(running, f"{place}/tree", running.node_names)
        for name in running.node_names:
            running.restart(name)
        running.submit(scripted("sleep 3000", "node2", "requirements = TARGET.BackfillSlot", cores=4), user="bob")
        running.wait_for(lambda: busy(running), 90, "a job in a backfill slot, while the node is free")
        for node, cores, count in PILOTS:
            running.submit(scripted(PILOT, node, cores=cores, count=count), user="alice")
        running.submit(scripted(PILOT, "node3", *DEVICES, "concurrency_limits = db:2", cores=1), user="alice")
        running.wait_for(lambda: len(busy(running)) == 8, 90, "seven pilots")
        yield running


@pytest.fixture(autouse=True)
def nothing_waits(pool: CondorPool) -> Iterator[None]:
    """No test leaves a waiting job to the next one."""
    yield
    pool.run(["condor_rm", "-constraint", "JobStatus =!= 2"], check=False)
    pool.wait_for(lambda: not snapshot(pool)["kinds"], WAIT_SECS, "nothing that waits")


def busy(pool: CondorPool) -> list[str]:
    return [ad.text("Name") for ad in pool.slots('Activity == "Busy"', ["Name"])]


def snapshot(pool: CondorPool) -> Any:
    return json.loads(pool.run_outside([sys.executable, "-c", SNAPSHOT], environment=ENVIRONMENT).stdout)


def wait(pool: CondorPool, *lines: str, cores: int = 4, count: int = 1, user: str = "bob") -> int:
    return pool.submit(described(3000, *lines, cores=cores, count=count), user=user)


def told(pool: CondorPool, kinds: int) -> Any:
    """A snapshot with so many kinds."""

    def found() -> Any:
        seen = snapshot(pool)
        return seen if len(seen["kinds"]) == kinds else None

    return pool.wait_for(found, WAIT_SECS, f"{kinds} kinds of jobs")


def nodes_of(seen: Any) -> list[dict[str, Any]]:
    """Each kind's jobs, needs, account, and the nodes on which it may run, in the snapshot's order."""
    classes = {place["name"]: (place["node"].partition(".")[0], place["node_class"]) for place in seen["places"]}
    return [
        {**kind, "nodes": sorted({node for node, label in classes.values() if label in kind["classes"]})}
        for kind in seen["kinds"]
    ]


def test_places_are_all_slots_to_which_cores_go_back(pool: CondorPool) -> None:
    """Also those of which nothing is left; what the pilots hold and what is free make up the whole."""
    seen = snapshot(pool)
    places = {place["name"].replace(".pool.test", ""): place for place in seen["places"]}
    assert sorted(places) == ["slot1@node1", "slot1@node2", "slot1@node3", "slot1@node4", "slot1@node5", "slot2@node5"]
    assert {name: place["divisible"] for name, place in places.items() if not place["divisible"]} == {
        "slot1@node5": False,
        "slot2@node5": False,
    }
    assert [places[f"slot1@node{number}"]["total"]["memory"] for number in (1, 2)] == [16_384, 2048]
    gpu_node = places["slot1@node3"]
    assert (gpu_node["total"]["gpus"], gpu_node["total"]["others"]) == (2, {"licence": 3})
    assert (gpu_node["free"]["gpus"], gpu_node["free"]["others"]) == (1, {"licence": 2})
    assert sum(place["free"]["cores"] for place in places.values()) == 0
    pilots = [pilot for pilot in seen["pilots"] if "backfill slot" not in pilot["cannot"]]
    assert (len(pilots), len(seen["pilots"])) == (7, 8)
    in_use = {account["name"]: account["cores_in_use"] for account in seen["accounts"]}
    assert in_use == {"alice@pool.test": 8 + 8 + 7 + 8 + 2 * 4 + 1}, "the job in the backfill slot holds nothing"
    for pilot in pilots:
        place = places[pilot["place"].replace(".pool.test", "")]
        assert place["node"] == pilot["node"]
        if place["name"].startswith("slot1@node3"):
            continue
        for amount in ("cores", "memory"):
            assert place["free"][amount] + pilot["holds"][amount] == place["total"][amount]
    [with_gpu] = [pilot["holds"] for pilot in pilots if pilot["holds"]["gpus"]]
    assert (with_gpu["cores"], with_gpu["gpus"], with_gpu["others"]) == (1, 1, {"licence": 1})
    assert (seen["kinds"], seen["notices"]) == ([], [])


def test_who_is_at_his_floor_is_not_ordered_below_it(pool: CondorPool) -> None:
    """Of alice's 39 cores her oldest pilots with 20 stay; the others may go. The administrator gave her the floor."""

    def kept() -> list[int]:
        found = snapshot(pool)["pilots"]
        why = "alice@pool.test would have less than its floor of 20 cores"
        return [pilot["cores"] for pilot in found if pilot["cannot"] == why]

    pool.run(["condor_userprio", "-setfloor", "alice@pool.test", "20"])
    cores = pool.wait_for(kept, WAIT_SECS, "the floor in the accounting")
    pool.run(["condor_userprio", "-setfloor", "alice@pool.test", "0"])
    assert 20 <= sum(cores) < 20 + cores[-1] + 8
    pool.wait_for(lambda: not kept(), WAIT_SECS, "no floor")


def test_each_kind_knows_the_nodes_that_could_run_it(pool: CondorPool) -> None:
    """By memory, GPUs, START and requirements, as if the nodes were empty; what no node can run is no demand."""
    wait(pool, "request_memory = 4000", count=3)
    wait(pool, "request_memory = 64", "request_gpus = 1", cores=1)
    wait(pool, "request_memory = 64", "request_gpus = 2", "require_gpus = Capability >= 7.0", cores=1)
    wait(pool, "request_memory = 64", "request_gpus = 2", "require_gpus = Capability >= 8.0", cores=1)
    wait(pool, "requirements = HasFast", "request_licence = 2", cores=2, count=2)
    wait(pool, "requirements = HasNone =?= True")
    wait(pool, "accounting_group = group_x", cores=6)
    wait(pool, "request_memory = 64", 'requirements = Machine != "node1.pool.test"', cores=8, user="alice")
    wait(pool, "request_memory = 64", *WHOLE_NODE)
    seen = told(pool, 9)
    small, gpu, usual, newest, fast, none, group, alices, whole = sorted(
        nodes_of(seen), key=lambda kind: int(kind["example"].split("#")[1][:-2])
    )
    assert (small["account"], small["jobs"], small["needs"]["memory"]) == ("bob@pool.test", 3, 4096)
    assert small["nodes"] == ["node1", "node3", "node5"]
    assert (gpu["needs"]["gpus"], gpu["nodes"]) == (1, ["node3"])
    assert (usual["nodes"], newest["nodes"]) == (["node3"], [])
    assert (fast["jobs"], fast["needs"]["others"], fast["nodes"]) == (2, {"licence": 2}, ["node3"])
    assert fast["asks"] == "HasFast"
    assert (none["nodes"], none["asks"]) == ([], "HasNone is true")
    assert (group["account"], group["nodes"]) == ("group_x.bob@pool.test", ["node1", "node2", "node3"])
    assert (alices["account"], alices["nodes"]) == ("alice@pool.test", ["node2", "node3", "node4"])
    assert (whole["needs"]["cores"], whole["whole"], whole["nodes"]) == (8, True, ["node1", "node2", "node3"])
    wanted = {account["name"]: account["cores_wanted"] for account in seen["accounts"]}
    assert wanted == {"bob@pool.test": 3 * 4 + 1 + 1 + 2 * 2 + 8, "group_x.bob@pool.test": 6, "alice@pool.test": 8}
    assert seen["notices"] == []


def test_jobs_that_their_schedd_would_not_run_now_are_no_demand(pool: CondorPool) -> None:
    """Held ones, those with a start time ahead, those that a job router has taken, those that cool down."""
    wait(pool, "hold = True")
    wait(pool, '+Managed = "External"')
    wait(pool, "+JobCoolDownExpiration = time() + 3600")
    wait(pool, "+JobCoolDownExpiration = time() - 5", "request_memory = 29000")
    wait(pool, "deferral_time = (CurrentTime + 86400)")
    wait(pool, "request_memory = 30000 + 128 * ProcId", count=2)
    seen = told(pool, 3)
    assert [kind["nodes"] for kind in nodes_of(seen)] == [[], [], []]
    assert {account["name"]: account["cores_wanted"] for account in seen["accounts"]} == {
        "alice@pool.test": 0,
        "bob@pool.test": 0,
    }


def test_an_access_point_that_hangs_leaves_demand_as_it_was_before(pool: CondorPool) -> None:
    """Its jobs count by cores, wherever they fit, and the administrator reads why."""
    wait(pool, "request_memory = 30000", count=2)
    told(pool, 1)
    idle = ["condor_status", "-submitters", "-af", "Name", "IdleJobs"]
    pool.wait_for(
        lambda: "bob@pool.test 2" in pool.run(idle).stdout, 60, "the access point to tell of these jobs alone"
    )
    pids = pool.run(["pgrep", "-x", "condor_schedd"]).stdout.split()
    pool.run(["kill", "-STOP", *pids])
    try:
        seen = snapshot(pool)
    finally:
        pool.run(["kill", "-CONT", *pids])
    [kind] = nodes_of(seen)
    assert (kind["jobs"], kind["needs"]["cores"], kind["nodes"]) == (2, 4, [f"node{number}" for number in range(1, 6)])
    demand, *others = sorted(seen["notices"], key=lambda notice: "who sent the pilots" in notice)
    assert "the jobs of central.pool.test count by their cores alone" in demand
    assert len(others) <= 1, "who sent pilots that have begun since may be unknown"


def test_a_pilot_on_a_node_that_is_drained_is_on_its_way_and_knows_until_when(pool: CondorPool) -> None:
    """condor_drain: its place takes no jobs, and both its shutdown files and `.site.ad` name the deadline."""
    before = {pilot["node"]: pilot for pilot in snapshot(pool)["pilots"]}
    host = pool.node("node1").host
    assert not before[host]["leaving"]
    pool.run(["condor_drain", "-graceful", host])
    try:

        def leaving() -> Any:
            seen = snapshot(pool)
            found = {pilot["node"]: pilot for pilot in seen["pilots"]}
            # A claim may show the drain in one report of the node, and the slot that it is a part of in the next.
            closed = host not in {place["node"] for place in seen["places"]}
            return (seen, found[host]) if closed and host in found and found[host]["leaving"] else None

        seen, pilot = pool.wait_for(leaving, WAIT_SECS, "the drain in the snapshot, of the pilot and of its place")
        deadline = pilot["started"] + RETIREMENT
        assert abs(pilot["lease_end"] - deadline) <= 10
        assert not any(other["leaving"] for other in seen["pilots"] if other["node"] != host)
        file = Path(f"{pool.root}/home/alice/told-{host}")

        def words() -> list[int]:
            found = file.read_text().split() if file.exists() else []
            return [int(word) for word in found if word.isdigit()]

        pool.wait_for(lambda: len(words()) == 3, WAIT_SECS, "the pilot to know it")
        assert all(abs(word - deadline) <= 10 for word in words()), words()
    finally:
        pool.run(["condor_drain", "-cancel", host])


def test_jobs_beyond_a_concurrency_limit_are_no_demand(pool: CondorPool) -> None:
    """One of alice's pilots takes 2 of 5; of three jobs of bob's that take 2 each, one could start."""
    wait(pool, "concurrency_limits = DB:2", count=3)

    def limited() -> Any:
        seen = snapshot(pool)
        return seen if [kind["jobs"] for kind in seen["kinds"]] == [1] else None

    seen = pool.wait_for(limited, WAIT_SECS, "the pilot's use of the limit, which the negotiator counts in its cycles")
    assert [account["cores_wanted"] for account in seen["accounts"] if account["name"].startswith("bob")] == [4]
    assert any("DB_LIMIT lets no more start" in notice for notice in seen["notices"]), seen["notices"]
