"""A pilot on two nodes of a real cluster: seen as one, chosen where it costs least, asked, told on both, and gone."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from acting_agent import ENVIRONMENT
from drainwise.siteconfig import SiteConfig
from slurm_cluster import SlurmCluster
from slurm_site import SECONDS, SlurmSite

pytestmark = pytest.mark.play
SITE_FILE = """\
[slurm]
bin_dir = {tools}
[agent]
state_dir = {state}
[reclaim]
policy = {policy}
grace = 80s
margin = 20s
min_age = 0s
min_grace = 0s
drain_only = yes
"""
REPORT = """
say() { echo $2 >$JOBSTATUS/$1; }
now=$(date +%s)
say last_job_start $now; say first_exp_job_end $((now + 30)); say last_exp_job_end $((now + @seconds@))
say last_max_job_end $((now + 4000)); say used_CPU @used@; say add_uncom_time 0; say add_final_exp_waste @waste@
say can_postpone_last_job True
"""
HEARS = """
srun --nodes=$SLURM_NNODES --ntasks-per-node=1 sh -c '
until [ -e $JOBSTATUS/.site.ad ] && [ -e $MACHINEFEATURES/shutdowntime ]; do sleep 0.2; done
cat $JOBSTATUS/.site.ad $MACHINEFEATURES/shutdowntime $JOBFEATURES/shutdowntime_job >$HOME/heard.$SLURMD_NODENAME'
"""
TWO_NODES = ("--nodes=2", "--ntasks-per-node=1", "--cpus-per-task=4", "--nodelist=node[1-2]", "--time=120")


TWO_JOBS = ("--array=1-2", "--cpus-per-task=4")
ONE_JOB = ("--nodes=2", "--ntasks-per-node=1", "--cpus-per-task=4")


class Several:
    """node1 and node2 are shared by two pilots of 4 cores on each, one cheap and one dear; node3 has a dear one."""

    def __init__(self, cluster: SlurmCluster, place: Path, policy: str) -> None:
        self.site, self.cluster = SlurmSite(cluster, SiteConfig()), cluster
        self.site.install()
        for node in cluster.node_names:
            self.site.start_agent(node)
        tools = cluster.outside_env("root")["PATH"].split(os.pathsep)[0]
        file = place / "site.ini"
        file.write_text(SITE_FILE.format(tools=tools, state=place / "state", policy=policy))
        self.words = ("--pool", "slurm", "--site", str(file))
        self.dear = self.pilot(*TWO_NODES, seconds=3000, used=1, waste=21_000)
        self.cheap = self.pilot(*TWO_NODES, seconds=35, used=8, waste=0)
        one = ("--ntasks=1", "--cpus-per-task=8", "--nodelist=node3", "--time=120")
        self.single = self.pilot(*one, seconds=3000, used=1, waste=21_000)
        everyone = (self.dear, self.cheap, self.single)
        cluster.wait_for(lambda: all(map(self.site.published, everyone)), 90, "pilots that report")

    def pilot(self, *options: str, **figures: int) -> int:
        script = REPORT
        for name, value in figures.items():
            script = script.replace(f"@{name}@", str(value))
        return self.cluster.submit(script + HEARS, "alice", options)

    def command(self, *words: str) -> Any:
        json_option = () if words[0] == "snapshot" else ("--json",)
        argv = [sys.executable, "-m", "drainwise", *words, *self.words, *json_option]
        return json.loads(self.cluster.run_outside(argv, environment=ENVIRONMENT).stdout)


@pytest.fixture
def several(slurm_release: str, tmp_path: Path, policy: str) -> Iterator[Several]:
    with SlurmCluster(nodes=3, cpus=8, release=slurm_release) as cluster:
        yield Several(cluster, tmp_path, policy)


@pytest.mark.parametrize(("policy", "asks"), [("least-waste", TWO_JOBS), ("open-need", ONE_JOB)])
def test_a_pilot_of_two_nodes_is_asked_and_goes_from_both(several: Several, asks: tuple[str, ...]) -> None:
    """bob waits for two jobs of 4 cores, or for one with 4 on each of two nodes: the cheap pilot makes room on both
    nodes, hears on both, and leaves. By the default policy, too, although all leases end within two hours.
    """
    cluster, site = several.cluster, several.site
    seen = {one["name"]: one for one in several.command("snapshot")["pilots"]}
    pieces = [(piece["node"], piece["place"], piece["holds"]["cores"]) for piece in seen[str(several.cheap)]["pieces"]]
    assert pieces == [("node1", "node1", 4), ("node2", "node2", 4)]
    assert {one["cannot"] for one in seen.values()} == {""}
    bob = cluster.submit("exec sleep 600", "bob", (*asks, "--time=30"))
    cluster.wait_for(
        lambda: "Resources" in {job.reason for job in cluster.jobs(f"--jobs={bob}")}, SECONDS, "bob to wait"
    )
    before = time.time()
    done = several.command("reclaim", "--once", "--act")
    orders = [order for user in done["users"] for order in user["orders"]]
    assert [(order["name"], order["room"]["place"]) for order in orders] == [(str(several.cheap), "node1, node2")]
    deadline = orders[0]["deadline"]  # of the order: a job that has left already ended when it did
    assert before < deadline < before + 90
    again = several.command("plan")
    assert not any(user["orders"] for user in again["users"]), "what comes back on both nodes serves all that waits"
    assert not again.get("withdrawals")
    ended = site.end_of(several.cheap)
    assert ended.state == "COMPLETED" and ended.end <= deadline, "it left by itself"
    for node in ("node1", "node2"):
        heard = cluster.run(["cat", f"/home/alice/heard.{node}"]).stdout
        assert heard == f"VACATE_DESIRED = True\nPAYLOAD_DEADLINE = {deadline}\n{deadline}\n{deadline}\n"

    def started() -> set[str]:
        running = [job for job in cluster.jobs() if job.user == "bob" and job.state == "RUNNING"]
        return {node for job in running for node in job.nodes}

    cluster.wait_for(lambda: started() == {"node1", "node2"}, SECONDS, "bob's jobs to start on both nodes")
    assert cluster.job(several.dear).state == cluster.job(several.single).state == "RUNNING"
