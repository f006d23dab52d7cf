"""Cores and a node on request, on a real Slurm cluster; a maintenance that the site has reserved."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from acting_agent import ENVIRONMENT, acting_agent, journal_events, wasted
from drainwise.siteconfig import SiteConfig
from slurm_cluster import SlurmCluster
from slurm_site import SlurmSite

pytestmark = [pytest.mark.play, pytest.mark.in_turn("on request", "Slurm")]
SITE_FILE = """\
[slurm]
bin_dir = {tools}
[agent]
state_dir = {state}
period = 2s
[reclaim]
grace = 1m
margin = 20s
min_age = 0s
"""
MIXES = ("4x50 4x55", "8x52", "8x1500")
"""The first two end soon, though not before the commands of an administrator on a busy machine are done."""
CORES, AHEAD, LATE = 8, 90, 45  # seconds: slurmctld looks at time limits every half minute, then KillWait passes


class Play:
    """Two nodes of 24 cores: on node1 two pilots of alice's that end soon and one that does not, on node2 one."""

    def __init__(self, cluster: SlurmCluster, place: Path) -> None:
        self.site, self.cluster, self.state = SlurmSite(cluster, SiteConfig()), cluster, place / "state"
        self.site.install()
        for node in cluster.node_names:
            self.site.start_agent(node)
        tools = cluster.outside_env("root")["PATH"].split(os.pathsep)[0]
        file = place / "site.ini"
        file.write_text(SITE_FILE.format(tools=tools, state=self.state))
        self.words = ("--pool", "slurm", "--site", str(file))
        self.there = [self.pilot("node1", mix) for mix in MIXES]
        self.other = self.pilot("node2", MIXES[-1])
        everyone = [*self.there, self.other]
        cluster.wait_for(lambda: all(self.site.published(one) for one in everyone), 90, "pilots that report")

    def pilot(self, node: str, mix: str) -> int:
        """Submit one."""
        options = (f"--cpus-per-task={CORES}", "--ntasks=1", "--time=120", f"--nodelist={node}")
        return self.site.pilot(*mix.split(), options=options)

    def command(self, *words: str, user: str = "root", check: bool = True) -> Any:
        """What a command of the administrator prints as JSON."""
        argv = [sys.executable, "-m", "drainwise", *words, *self.words, "--json"]
        ran = self.cluster.run_outside(argv, user=user, environment=ENVIRONMENT, check=check)
        return json.loads(ran.stdout)

    def running(self) -> set[int]:
        return {job.id for job in self.cluster.jobs() if job.state == "RUNNING"}

    def ends(self, numbers: list[int]) -> set[int]:
        return {self.cluster.job(number).end for number in numbers}

    def reservations(self) -> str:
        return self.cluster.run(["scontrol", "--oneliner", "show", "reservation"]).stdout


@pytest.fixture
def play(slurm_release: str, tmp_path: Path) -> Iterator[Play]:
    with SlurmCluster(nodes=2, cpus=24, release=slurm_release) as cluster:
        yield Play(cluster, tmp_path)


def ordered(shown: Any) -> dict[str, int]:
    return {order["name"]: order["deadline"] for user in shown["users"] for order in user["orders"]}


def test_a_node_is_empty_in_time_and_cores_come_from_the_least_wasteful(play: Play) -> None:
    """The whole life of two requests, with an agent beside the second one, nobody waiting."""
    cluster, state = play.cluster, play.state
    granted = {number: cluster.job(number).end for number in play.there}
    cores = ("reclaim", "--cores", "16", "--user", "alice", "--by", "+20m")
    planned = ordered(play.command("plan", *cores[1:]))
    acted = play.command(*cores, "--act")
    assert set(ordered(acted)) == set(planned) == {str(number) for number in play.there[:2]}
    assert [one["outcome"] for one in acted["acts"]] == ["done", "done"]
    back = play.command("reclaim", "--cancel", acted["request"]["name"])
    assert {one["outcome"] for one in back["withdrawn"]} == {"done"}, json.dumps(
        [
            back["withdrawn"],
            acted["acts"],
            back["notices"],
            [[s["name"], s["reason"]] for u in back["users"] for s in u["spared"]],
            journal_events(state, "order")[0],
            [vars(j) if hasattr(j, "__dict__") else str(j) for j in cluster.jobs()],
        ],
        default=str,
    )[:6000]
    assert {number: cluster.job(number).end for number in play.there} == granted, "the leases as they were"

    with acting_agent(cluster, *play.words):
        lock = next(iter(state.glob("agent-*.lock")))
        cluster.wait_for(lambda: lock.read_text().split()[1:] == ["loop"], 20, "the agent's lock")
        shown = play.command("drain", "node1", "--by", f"+{AHEAD}s", "--reason", "new disks", "--act")
        by, name = shown["request"]["by"], shown["request"]["name"]
        assert "carries that out in its next cycles" in shown["notes"][0]
        cluster.wait_for(lambda: f"ReservationName=drainwise-{name} " in play.reservations(), 20, "its reservation")
        late = cluster.submit("sleep 5", "bob", ["--ntasks=1", "--time=60", "--nodelist=node1"])
        cluster.wait_for(lambda: all(end <= by for end in play.ends(play.there)), 20, "the orders")
        cluster.wait_for(lambda: not play.running() & set(play.there), AHEAD + LATE, "an empty node")
        assert max(play.ends(play.there)) <= by + LATE
        assert play.other in play.running() and cluster.job(play.other).end > by + AHEAD
        assert cluster.job(late).state == "PENDING", "it could run beyond the time"
        cluster.wait_for(lambda: time.time() > by, AHEAD, "the time")
        early = cluster.submit("sleep 5", "bob", ["--ntasks=1", "--time=1", "--nodelist=node1"])
        cluster.wait_for(lambda: len(journal_events(state, "ended")) == 3, 60, "the endings in the journal")
        promised, lost = wasted(journal_events(state, "ended"))
        assert lost <= promised + len(MIXES) * CORES * LATE, (promised, lost)
        assert {cluster.job(number).state for number in (late, early)} == {"PENDING"}

        said = play.command("drain", "--cancel", name)
        assert "cancelled; the agent (pid " in said["notes"][0]
        cluster.wait_for(lambda: "drainwise-" not in play.reservations(), 20, "no reservation")
        for number in (late, early):
            assert play.site.end_of(number).state == "COMPLETED"
    followups = [one["detail"] for one in journal_events(state, "followup")]
    assert [words.partition(":")[0] for words in followups if "reservation" in words] == [
        f"reservation drainwise-{name} is made",
        f"reservation drainwise-{name} is deleted",
    ]


def test_rights_that_are_missing_are_said_in_a_line(play: Play) -> None:
    """A user's wrappers of the commands: slurmctld refuses the reservation and the orders, each for itself."""
    tools = play.cluster.outside_env("bob")["PATH"].split(os.pathsep)[0]
    site = Path(play.words[-1])
    site.write_text(SITE_FILE.format(tools=tools, state=play.state))
    shown = play.command("drain", "node2", "--by", "+20m", "--act", check=False)
    assert {one["outcome"] for one in shown["acts"]} == {"denied"}
    assert play.reservations().startswith("No reservations")


def test_a_maintenance_that_the_site_has_reserved_is_told_to_its_pilots_in_time(play: Play) -> None:
    """Nobody gives drainwise a word: the reservation alone does it."""
    start = int(time.time()) + AHEAD
    what = ("ReservationName=newdisks", "Nodes=node1", "Users=root", "Flags=maint,ignore_jobs", "Duration=60")
    play.cluster.run(["scontrol", "create", "reservation", *what, f"StartTime=uts{start}"])
    with acting_agent(play.cluster, *play.words):
        play.cluster.wait_for(lambda: all(end <= start for end in play.ends(play.there)), 30, "the orders")
        tree = play.site.tree(play.cluster.job(play.there[-1])) / ".jobfeatures" / "shutdowntime_job"
        play.cluster.wait_for(lambda: tree.exists() and int(tree.read_text()) <= start, 30, "its shutdown file")
        play.cluster.wait_for(lambda: not play.running() & set(play.there), AHEAD + LATE, "an empty node")
        assert max(play.ends(play.there)) <= start + LATE
    orders = [one for one in journal_events(play.state, "order") if one["outcome"] == "done"]
    assert {(one["request"], one["node"]) for one in orders} == {("newdisks", "node1")}
    assert play.other in play.running()
    for number in play.there[:2]:
        assert play.site.end_of(number).state == "COMPLETED", "it left by itself"
