"""HTCondor 23.9 becomes 25.14 below pilots that run, one of them ordered: the central machine first, then a node.

As a package manager does it: the new release's files take the old ones' places while every daemon runs on, then the
daemons are restarted one machine after the other, on a node after its runs, as HTCondor's own peaceful restart does it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import drainwise
from condor_jobs import described, node_config
from condor_pool import CondorPool, obtain_root
from drainwise.htcondor.pool.slots import WAITS
from drainwise.siteconfig import load
from new_release import bring

pytestmark = pytest.mark.in_turn("two releases at once", "live upgrade on HTCondor")
PLUGINS = str(Path(drainwise.__file__).parents[1])
VACATE_SECONDS = 3
SITE = f"""\
[htcondor]
max_vacate_time = {VACATE_SECONDS}s
retirement = 0s
update_interval = 10s
slot_update_interval = 3s
[reclaim]
grace = 1m
margin = {VACATE_SECONDS}s
min_age = 0s
"""
# Orders the pilot in a slot, or with the deadline 0 withdraws its order. Arguments: slot, deadline.
ACT = """
import sys, time
from drainwise.htcondor.pool.pool import HTCondorPool
pool, (slot, deadline) = HTCondorPool(order_seconds=30.0), sys.argv[1:]
[pilot] = [one for one in pool.snapshot(int(time.time())).pilots if one.name == slot]
if int(deadline):
    pool.give_order(pilot, int(deadline), "bob waits")
else:
    pool.withdraw_order(pilot, "bob has left")
"""
# Says why the pilot in a slot cannot be ordered. Argument: slot.
REFUSED = """
import sys, time
from drainwise.htcondor.pool.pool import HTCondorPool
[pilot] = [one for one in HTCondorPool().snapshot(int(time.time())).pilots if one.name == sys.argv[1]]
print(pilot.cannot)
"""


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[CondorPool]:
    """Two nodes of 16 cores with 23.9 that take orders, full of pilots of alice's that never end."""
    site_file = tmp_path / "site.ini"
    site_file.write_text(SITE)
    own = "\nCLAIM_WORKLIFETIME = 0\n"
    with CondorPool(2, 16, "trixie", {"execute": node_config(load(str(site_file))) + own}) as running:
        running.submit(described(3000, count=4), "alice")
        running.wait_for(lambda: len(runs(running)) == 4, 90, "four running pilots")
        yield running


def runs(pool: CondorPool) -> dict[str, str]:
    """Slot → the run in it, of busy and retiring slots."""
    ads = pool.slots('Activity == "Busy" || Activity == "Retiring"', ["Name", "GlobalJobId", "JobStart"])
    return {ad.text("Name"): f"{ad['GlobalJobId']}@{ad['JobStart']}" for ad in ads if "JobStart" in ad}


def deadlines(pool: CondorPool) -> dict[str, int]:
    """Slot → deadline, of slots with an order."""
    rows = pool.run(["condor_status", "-af", "Name", "PilotReclaimDeadline"]).stdout.split()
    return {name: int(deadline) for name, deadline in zip(rows[::2], rows[1::2]) if deadline != "undefined"}


def activities(pool: CondorPool, node: str) -> set[str]:
    """What the slots with runs on a node do."""
    return {ad.text("Activity") for ad in pool.slots(f'Machine == "{pool.node(node).host}"', ["Activity"])}


def act(pool: CondorPool, slot: str, deadline: int) -> None:
    """Order the pilot in a slot, or with the deadline 0 withdraw its order, once the negotiator tells who uses what."""
    argv, environment = [sys.executable, "-c", ACT, slot, str(deadline)], {"PYTHONPATH": PLUGINS}

    def is_done() -> bool:
        ended = pool.run_outside(argv, environment=environment, check=False)
        assert ended.returncode == 0 or "is the negotiator up?" in ended.stderr, ended.stderr
        return ended.returncode == 0

    pool.wait_for(is_done, 60, f"an act on {slot}")


def releases(pool: CondorPool) -> dict[str, str]:
    """Machine → the release of its startd, by the collector."""
    ads = pool.slots('SlotType == "Partitionable"', ["Machine", "CondorVersion"])
    return {ad.text("Machine").partition(".")[0]: ad.text("CondorVersion").split()[1][:5] for ad in ads}


def test_an_order_stands_and_nobody_is_harmed(pool: CondorPool) -> None:
    """With an older node below a newer central machine, orders are given and withdrawn; then a node follows."""
    before = runs(pool)
    here = sorted(slot for slot in before if slot.endswith("@node1.pool.test"))
    ordered, other = here
    deadline = int(time.time()) + 3600
    act(pool, ordered, deadline)
    pool.wait_for(lambda: deadlines(pool) == {ordered: deadline}, 30, "the order to be shown")
    assert releases(pool) == {"node1": "23.9.", "node2": "23.9."}

    bring(pool, obtain_root("sid"), "/usr/lib/condor")
    assert (runs(pool), deadlines(pool)) == (before, {ordered: deadline}), "new tools, old daemons"
    pool.restart("central")
    pool.wait_for(lambda: runs(pool) == before, 60, "the pilots to be seen again")
    found = [(2, 2)] * 4  # they run, and each has a second shadow, which found it where it was
    states = ("JobStatus", "NumShadowStarts")
    pool.wait_for(lambda: [tuple(map(ad.get, states)) for ad in pool.queue()] == found, 60, "the schedd to have them")
    assert runs(pool) == before
    assert pool.version[:2] == (25, 14)
    pool.wait_for(lambda: deadlines(pool) == {ordered: deadline}, 30, "the order to be shown again")

    act(pool, ordered, 0)
    pool.wait_for(lambda: deadlines(pool) == {}, 30, "the order to be withdrawn")
    assert runs(pool) == before
    soon = int(time.time()) + 60
    act(pool, other, soon)
    pool.wait_for(lambda: deadlines(pool) == {other: soon}, 30, "the order to be shown")
    pool.wait_for(lambda: before[other] not in runs(pool).values(), 90, "the end of the ordered run")
    assert time.time() >= soon - VACATE_SECONDS

    elsewhere = {slot: run for slot, run in before.items() if slot not in here}
    pool.run(["condor_restart", "-peaceful", "-startd", "-name", pool.node("node1").host])
    pool.wait_for(lambda: "Retiring" in activities(pool, "node1"), 30, "the node to wait for its runs")
    assert runs(pool)[ordered] == before[ordered]
    asks, environment = [sys.executable, "-c", REFUSED, ordered], {"PYTHONPATH": PLUGINS}
    said = f"{WAITS}\n"
    pool.wait_for(lambda: pool.run_outside(asks, environment=environment).stdout == said, 30, "a slot that shows it")
    left = [run.split("#")[1] for slot, run in runs(pool).items() if slot.endswith("@node1.pool.test")]
    pool.run(["condor_rm", *left])
    pool.wait_for(lambda: releases(pool) == {"node1": "25.14", "node2": "23.9."}, 90, "the newer startd")
    assert elsewhere.items() <= runs(pool).items()

    pool.submit(described(3000), "alice")
    again = min(pool.wait_for(lambda: runs(pool).keys() - elsewhere.keys(), 90, "a run on the newer node"))
    later = int(time.time()) + 600
    act(pool, again, later)
    pool.wait_for(lambda: deadlines(pool) == {again: later}, 30, "an order to the newer node")
    assert elsewhere.items() <= runs(pool).items()
