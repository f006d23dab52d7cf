"""Clients that nobody changed, on a real HTCondor pool: each is shown what it may see, and ends as the plan has it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from condor_jobs import TRANSFERRED, described
from condor_pool import CondorPool
from drainwise.features import planned_shutdown
from pilot_clients import PANDA_LOOK, PANDA_STOP, bring_panda_pilot, panda_pilot, panda_script, said, watching_script
from scenario.condor_site import in_pool, in_pool_json, install

pytestmark = [pytest.mark.play, pytest.mark.in_turn("clients", "HTCondor")]
RECLAIM = """\
[reclaim]
grace = 20m
horizon = 20m
min_grace = 20s
margin = 30s
min_age = 0s
[clients]
alice = user=bob
panda = job.ClientKind=pan*
"""
CORES, SECONDS, WINDING_DOWN = 4, 120.0, 60
INSTALLED = "/usr/share/panda-pilot"
PLANNED = 7200


@pytest.fixture(scope="module")
def site() -> Iterator[tuple[CondorPool, str]]:
    """One node, a shutdown of which is planned."""
    pilot = panda_pilot()
    with CondorPool(nodes=1, cpus=2 * CORES) as pool:
        site_file = install(pool, reclaim=RECLAIM, quotas=(CORES, CORES))
        bring_panda_pilot(pool, pilot, INSTALLED)
        now = int(time.time())
        planned_shutdown.plan(f"{pool.root}/var/lib/drainwise/shutdowntime", now + PLANNED, now, 0)
        yield pool, site_file


def submit(pool: CondorPool, user: str, script: str, *more: str) -> tuple[int, Path]:
    """Submit a script as a user's pilot; its cluster, and the file in which it writes down its life."""
    home = f"{pool.root}/home/{user}"
    with open(f"{home}/pilot", "w", encoding="ascii") as stream:
        stream.write(script)
    os.chmod(f"{home}/pilot", 0o755)
    text = described("", f"accounting_group = group_{user}", TRANSFERRED, *more, cores=CORES, executable="pilot")
    cluster = pool.submit(text.replace("transfer_executable = False", "transfer_executable = True"), user=user)
    return cluster, Path(f"{home}/life")


def shown(pool: CondorPool, owner: str) -> list[int | None]:
    """The times in the shutdown files of a user's job, by the node's own tree."""
    execute = Path(pool.root + pool.node("node1").execute_dir)
    uid = (Path(pool.root) / "home" / owner).stat().st_uid
    [place] = [one.parent for one in execute.rglob(".machinefeatures") if one.stat().st_uid == uid]
    files = (place / ".machinefeatures" / "shutdowntime", place / ".jobfeatures" / "shutdowntime_job")
    return [int(file.read_text()) if file.exists() else None for file in files]


def ordered(pool: CondorPool, site_file: str, user: str, by: str) -> Any:
    """Order a user's cores back by a time; the order."""
    words = ["reclaim", "--cores", str(CORES), "--user", user, "--by", by, "--act", "--site", site_file]
    plan = in_pool_json(pool, words)
    orders = [order for one in plan["users"] for order in one["orders"]]
    assert len(orders) == 1, plan["users"]
    [order] = orders
    return order


def test_a_client_that_must_not_see_the_file_never_does(site: tuple[CondorPool, str]) -> None:
    """Not at its start, while the machine's shutdown is planned, nor under an order; SIGTERM is its last word."""
    pool, site_file = site
    cluster, life = submit(pool, "bob", watching_script("/home/bob/life", ".site.ad"))
    pool.wait_for(lambda: "notice" in said(life), SECONDS, "the planned shutdown in .site.ad")
    assert shown(pool, "bob") == [None, None]
    status = in_pool(pool, ["status", "--format", "user,client", "--noheader", "--site", site_file]).stdout
    assert status.split()[1] == "alice"
    order = ordered(pool, site_file, "bob", "+90s")
    assert (order["client"], order["kind"]) == ("alice", "cut")
    assert "alice goes on until SIGTERM" in order["reason"]
    pool.wait_for(lambda: "term" in said(life), 2 * SECONDS, "SIGTERM")
    pool.run(["condor_rm", str(cluster)])
    found = said(life)
    assert found.keys() == {"began", "notice", "term"}, "it saw no shutdown file"
    assert order["deadline"] - 10 - 5 <= found["term"] <= order["deadline"] + 5


def test_pandas_pilot_stops_ten_minutes_before_its_deadline(site: tuple[CondorPool, str]) -> None:
    """The real one: it drops its payload then, as the plan has it, and has left long before the deadline."""
    pool, site_file = site
    cluster, life = submit(pool, "alice", panda_script(INSTALLED, "/home/alice/life", 3600), '+ClientKind = "panda"')
    pool.wait_for(lambda: "began" in said(life), SECONDS, "PanDA's payload")
    pool.wait_for(lambda: None not in shown(pool, "alice"), SECONDS, "the planned shutdown")
    pool.wait_for(lambda: pool.slots('PilotClient == "panda"', ["Name"]), SECONDS, "what its node found")
    order = ordered(pool, site_file, "alice", "+12m")
    deadline, stop = order["deadline"], order["deadline"] - PANDA_STOP
    assert (order["client"], order["kind"]) == ("panda", "cut")
    assert order["expected_waste"] == CORES * (stop - order["started"]), "a kill at its stop"
    pool.wait_for(lambda: shown(pool, "alice") == [deadline, deadline], SECONDS, "the order in both files")
    pool.wait_for(lambda: pool.history(f"ClusterId == {cluster}"), 300, "its end")
    found = said(life)
    print(f"stop of PanDA's pilot planned at {stop}: {found}")
    assert "ended" not in found, "the payload is lost"
    assert stop <= found["stopped"] <= stop + PANDA_LOOK + WINDING_DOWN
    assert stop <= found["left"] <= stop + PANDA_LOOK + 2 * WINDING_DOWN < deadline
    [job] = pool.history(f"ClusterId == {cluster}", ["JobStatus", "CompletionDate"])
    assert job["JobStatus"] == 4, "it left by itself"
