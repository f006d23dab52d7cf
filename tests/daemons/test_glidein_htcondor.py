"""A glidein that nobody changed, in a job of a real pool: live figures without its own word, asked, drains, is gone."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from condor_jobs import TRANSFERRED, described
from condor_pool import CondorPool
from glidein_job import Payloads, finished, glidein_script
from scenario.condor_site import in_pool, in_pool_json, install

pytestmark = [pytest.mark.play, pytest.mark.in_turn("glidein", "HTCondor")]
RECLAIM = """\
[reclaim]
policy = least-waste
grace = 10m
margin = 30s
min_age = 0s
"""
CORES, STAY, LOOK = 8, 20, 4
RUNNING = (Payloads(1, 2, 120, 2), Payloads(1, 4, 240, 4))
WAITING = Payloads(1, CORES, 30, 60)
SECONDS = 120.0
SCRIPT = Path(__file__).parents[2] / "share" / "pilots" / "glideinwms" / "drainwise_report.sh"
VALUES = ("PilotUsedCpu", "PilotLastJobStart", "PilotFirstExpJobEnd", "PilotLastExpJobEnd", "PilotLastMaxJobEnd")
SUMS = ("PilotAddUncomTime", "PilotAddFinalExpWaste", "PilotReportStanding")


@pytest.fixture(scope="module")
def site(release: str) -> Iterator[tuple[CondorPool, str]]:
    """One node of 8 cores that are all bob's by right, with drainwise as a site installs it."""
    with CondorPool(nodes=1, cpus=CORES, release=release) as pool:
        yield pool, install(pool, reclaim=RECLAIM, quotas=(0, CORES))


def starts(pool: CondorPool) -> dict[int, int]:
    """When the payload of so many cores began, by the ads that the glidein's own startd has written."""
    execute = Path(pool.root + pool.node("node1").execute_dir)
    found = {}
    for ad in execute.rglob("glide_*/execute/dir_*/**/.job.ad"):
        cores = re.search(r"(?m)^Cpus = (\d+)$", (ad.parent / ".machine.ad").read_text())
        start = re.search(r"(?m)^JobCurrentStartDate = (\d+)$", ad.read_text())
        if cores and start:
            found[int(cores[1])] = int(start[1])
    return found


def submit_glidein(pool: CondorPool, *payloads: Payloads, reporter: str = "") -> int:
    """Submit a glidein of 8 cores as alice; its cluster."""
    script = f"{pool.root}/home/alice/glidein"
    with open(script, "w", encoding="ascii") as stream:
        text = glidein_script(*payloads, cores=CORES, stay=STAY, look=LOOK, reporter=reporter)
        stream.write(f"#!/bin/sh\n{text}")
    os.chmod(script, 0o755)
    more = ("accounting_group = group_alice", TRANSFERRED, "output = glidein.out", "error = glidein.err")
    text = described("", *more, cores=CORES, executable="glidein")
    return pool.submit(text.replace("transfer_executable = False", "transfer_executable = True"), user="alice")


def seen(pool: CondorPool, standing: str) -> Any:
    """The slot of the glidein, once six of its cores are in use by a report of this standing."""

    def found() -> Any:
        slot: Any = next(iter(pool.slots('State == "Claimed"', [*VALUES, *SUMS])), {})
        return slot if (slot.get("PilotUsedCpu"), slot.get("PilotReportStanding")) == (6, standing) else None

    return pool.wait_for(found, SECONDS, "the glidein's figures")


def by_the_ce(pool: CondorPool, begun: dict[int, int]) -> None:
    """Without a word of the node: what ending the glidein would lose, by the collector to which its startd reports."""
    [config] = Path(pool.root + pool.node("node1").execute_dir).rglob("vo_*/condor_config")
    found = re.search(r"(?m)^COLLECTOR_HOST = (\S+)$", config.read_text())
    assert found
    options = ["status", "--scheduler-only", "--ce-collector", found[1]]

    def told() -> Any:
        status = in_pool_json(pool, options)
        [glidein] = [one for one in status["pilots"] if one["cores"] == CORES]
        return (status["taken"], glidein) if glidein["standing"] == "observed" else None

    now, glidein = pool.wait_for(told, SECONDS, "what the glidein advertises")
    assert glidein["used_cpu"] == sum(begun)
    assert glidein["kill_waste"] == pytest.approx(sum(cores * (now - start) for cores, start in begun.items()), abs=30)


def test_a_glidein_with_the_periodic_script_reports_itself(site: tuple[CondorPool, str]) -> None:
    """Its startd runs the script as a factory's glidein does; its own report comes before what the node derives."""
    pool, _ = site
    pool.copy_in(str(SCRIPT), "/usr/share/drainwise_report.sh")
    cluster = submit_glidein(pool, *RUNNING, reporter="/usr/share/drainwise_report.sh")
    slot, begun = seen(pool, "fresh"), starts(pool)
    assert (slot["PilotLastJobStart"], slot["PilotFirstExpJobEnd"]) == (max(begun.values()), begun[2] + 120)
    pool.run(["condor_rm", str(cluster)])
    pool.wait_for(lambda: not pool.queue() and not pool.slots('State != "Unclaimed"'), SECONDS, "an empty pool")


def test_a_glidein_is_seen_asked_and_gone(site: tuple[CondorPool, str]) -> None:
    """Its nine figures are those by hand; the waste of the order is what really idled, within 20 %."""
    pool, site_file = site
    cluster, slot = submit_glidein(pool, *RUNNING, WAITING), seen(pool, "glidein")
    begun = starts(pool)
    last, first_end, last_end = max(begun.values()), begun[2] + 120, begun[4] + 240
    leaves = last_end + STAY + LOOK // 2
    assert {name: slot[name] for name in VALUES} == dict(
        zip(VALUES, (6, last, first_end, leaves, last_end + STAY + LOOK))
    )
    assert slot["PilotAddUncomTime"] == sum(cores * (last - start) for cores, start in begun.items())
    assert slot["PilotAddFinalExpWaste"] == CORES * (leaves - first_end) - 4 * (last_end - first_end)

    assert "glidein" in in_pool(pool, ["status", "--format", "name,standing", "--site", site_file]).stdout
    by_the_ce(pool, begun)

    pool.submit(described(600, "accounting_group = group_bob", cores=CORES), user="bob")

    def ordered() -> Any:
        plan = in_pool_json(pool, ["reclaim", "--once", "--act", "--site", site_file])
        orders = [order for user in plan["users"] for order in user["orders"]]
        return (plan["taken"], *orders) if orders else None

    asked, order = pool.wait_for(ordered, SECONDS, "an order")
    assert (order["standing"], order["act"]) == ("glidein", "drain")
    pool.wait_for(lambda: pool.history(f"ClusterId == {cluster}"), 600, "the glidein's end")
    [job] = pool.history(f"ClusterId == {cluster}", ["JobStatus", "CompletionDate"])
    assert job["JobStatus"] == 4 and job["CompletionDate"] <= order["deadline"]
    with open(f"{pool.root}/home/alice/glidein.out", encoding="ascii") as stream:
        end = finished(stream.read())
    assert end.codes == {0} and end.left == 1, "all that had started ended well; the one that waited is still the VO's"
    busy = sum(cores * (ended - asked) for cores, ended in zip((2, 4), sorted(end.ends)))
    realised = CORES * (end.time - asked) - busy
    print(f"draining waste {order['draining_waste']}, in the end {realised} core-seconds")
    assert order["draining_waste"] == pytest.approx(realised, rel=0.2)
