"""Cores and a node on request, on a real HTCondor pool: in time, at the waste that was promised, and back again."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from acting_agent import acting_agent, journal_events, wasted
from condor_pool import CondorPool
from scenario import condor_site

pytestmark = [pytest.mark.play, pytest.mark.in_turn("on request", "HTCondor")]
SETTINGS = "period = 2s\n" + condor_site.RECLAIM  # of [agent], which comes before
AHEAD, LATE = 100, 20  # seconds


def runs_on(pool: CondorPool, node: str) -> set[str]:
    """The runs on a node that have not ended."""
    ads = pool.slots(f'Machine == "{node}" && State == "Claimed" && Activity != "Idle"', ["GlobalJobId", "JobStart"])
    return {f"{ad['GlobalJobId']}@{ad['JobStart']}" for ad in ads if "JobStart" in ad}


def state_of(pool: CondorPool, node: str) -> tuple[str, str]:
    """A node's own state, and why it drains."""
    [ad] = pool.slots(f'Machine == "{node}" && DynamicSlot =!= true', ["State", "DrainReason"])
    return ad.text("State"), ad.text("DrainReason") if "DrainReason" in ad else ""


class Play:
    """Nine pilots of alice's on three nodes, and nobody whom anything is owed."""

    def __init__(self, pool: CondorPool) -> None:
        self.pool, self.state = pool, Path(f"{pool.root}/var/lib/drainwise")
        self.site = ["--site", condor_site.install(pool, reclaim=SETTINGS, quotas=(72, 0))]
        clusters = condor_site.submit_pilots(pool)
        pool.wait_for(lambda: condor_site.all_pilots_report(pool, len(clusters)), 90, "nine pilots that report")
        self.slots = {mix: slot for slot, mix in condor_site.mix_in_slot(pool, clusters).items()}

    def command(self, *words: str) -> Any:
        """What a command of the administrator prints as JSON."""
        return condor_site.in_pool_json(self.pool, [*words, *self.site])

    def explained(self, run: str) -> str:
        journal = next(iter(self.state.glob("agent-*.journal")))
        return condor_site.in_pool(self.pool, ["explain", run, "--journal", str(journal), *self.site]).stdout

    def ended(self, runs: set[str]) -> list[dict[str, Any]]:
        return [one for one in journal_events(self.state, "ended") if one["run"] in runs]


@pytest.fixture(scope="module")
def play(release: str) -> Iterator[Play]:
    with CondorPool(nodes=condor_site.NODES, cpus=condor_site.CPUS, release=release) as pool:
        yield Play(pool)


def test_cores_come_from_the_least_wasteful_and_go_back_when_that_is_cancelled(play: Play) -> None:
    """By a command alone: no agent is there."""
    pool = play.pool
    cores = ("reclaim", "--cores", "16", "--user", "alice", "--by", "+10m")
    planned = condor_site.orders(play.command("plan", *cores[1:]))
    dry = play.command(*cores)
    assert condor_site.orders(dry).keys() == planned.keys()
    assert not condor_site.under_order(pool)
    acted = play.command(*cores, "--act")
    assert [one["outcome"] for one in acted["acts"]] == ["done", "done"], json.dumps([planned, acted])[:6000]
    assert set(condor_site.orders(acted)) < {play.slots[mix] for mix in condor_site.CHEAPEST}
    assert all(deadline <= acted["request"]["by"] for deadline in condor_site.orders(acted).values())
    play.command("reclaim", "--cancel", acted["request"]["name"])
    pool.wait_for(lambda: not condor_site.under_order(pool), 20, "no order")


def test_a_node_is_empty_in_time_at_the_waste_that_was_promised_and_opens_again(play: Play) -> None:
    """With an agent that goes on; what starts on the node before its time goes with the others, and none after it."""
    pool, node = play.pool, play.slots["long-1"].partition("@")[2]
    condor_site.submit_pilots(pool, {f"queued-{number}": "8x1500" for number in range(3)})
    with acting_agent(pool, *play.site):
        pool.wait_for(
            lambda: [lock.read_text().split()[1:] for lock in play.state.glob("agent-*.lock")] == [["loop"]],
            20,
            "the agent's lock",
        )
        there = runs_on(pool, node)
        shown = play.command("drain", node, "--by", f"+{AHEAD}s", "--reason", "new disks", "--act")
        by, name = shown["request"]["by"], shown["request"]["name"]
        assert "carries that out in its next cycles" in shown["notes"][0]
        pool.wait_for(lambda: {one["run"] for one in journal_events(play.state, "order")} >= there, 40, "all orders")
        orders = [one for one in journal_events(play.state, "order") if one["request"] == name]
        assert {(one["node"], one["deadline"], one["outcome"]) for one in orders} == {(node, by, "done")}
        assert all(slot.endswith(node) for slot in condor_site.under_order(pool)), "nobody else is touched"

        drained = pool.wait_for(lambda: state_of(pool, node)[1], AHEAD + LATE, "a node that is drained")
        assert drained.startswith(f"drainwise-{name}: ")
        assert drained.endswith("new disks")
        pool.wait_for(lambda: state_of(pool, node)[0] == "Drained" and not runs_on(pool, node), LATE, "an empty node")
        assert time.time() <= by + 2 * LATE
        pool.wait_for(lambda: len(play.ended(there)) == len(there), 120, "the endings in the journal")
        promised, lost = wasted(play.ended(there))
        assert lost <= promised + len(there) * condor_site.PILOT_CORES * LATE, (promised, lost)
        lines = play.explained(orders[0]["run"]).splitlines()
        [why] = [line for line in lines if f"for request {name} of root, made " in line]
        assert why.endswith(": new disks")
        assert pool.queue("JobStatus == 1", ["ProcId"]), "jobs wait"
        assert not runs_on(pool, node), "and none starts on the closed node"

        said = play.command("drain", "--cancel", name)
        assert "cancelled; the agent (pid " in said["notes"][0]
        pool.wait_for(lambda: len(runs_on(pool, node)) == 3, 120, "a node that takes jobs again")
    assert [one["detail"] for one in journal_events(play.state, "followup")] == [
        f"{node} is drained: it starts no job until {name} is cancelled",
        f"the drain of {node} is cancelled: it takes jobs again",
    ]
    # After a drain that was cancelled a startd may give nobody any retirement; then it refuses orders, and says why.
    host = node.partition(".")[0]
    pool.restart(host)
    pool.wait_for(lambda: len(runs_on(pool, node)) == 3, 180, "jobs on the node")
    again = play.command("drain", node, "--by", "+10m", "--act")
    assert [one["outcome"] for one in again["acts"]] == ["done"] * 3, (
        "a startd that was restarted takes orders as before"
    )
