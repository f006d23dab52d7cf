"""Nodes of one version and the agent of another, the older one a commit of long ago: each finds the other's words.

A pilot reports, is ordered, is told so, and its order is withdrawn. Each side is rendered and run by its own version.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from condor_jobs import scripted
from condor_pool import CondorPool
from drainwise.siteconfig import load
from scenario.condor_site import place_tree
from slurm_cluster import SlurmCluster
from slurm_site import LIBRARY, PILOT_JOB, SECONDS, SlurmSite

pytestmark = pytest.mark.play
TREE = Path(__file__).parents[2]
OLD = "7b4dcb72754c3859678db6c4dd73c575a34c7993"
"""A commit with 0.1.0, 569 commits before this test."""
TURN = "two releases at once"
SITE = """\
[slurm]
agent_period = 1s
[htcondor]
cron_period = 1s
update_interval = 2s
initial_update_interval = 1s
slot_update_interval = 1s
[reclaim]
min_age = 0s
[agent]
state_dir = {}
"""
REPORT = """\
LAST_JOB_START = {now}
FIRST_EXP_JOB_END = {first}
LAST_EXP_JOB_END = {last}
LAST_MAX_JOB_END = {last}
USED_FRACTION1k = 1024
ADD_UNCOM_TIME1k = 0
ADD_FINAL_EXP_WASTE1k = 0
PRIORITY_FACTOR = 0
CAN_POSTPONE_LAST_JOB = True
"""
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree as it was; a clone without its history has none."""
    if subprocess.run(["git", "-C", TREE, "cat-file", "-e", OLD], capture_output=True, check=False).returncode:
        pytest.skip("this clone has no commit of then")
    place = tmp_path_factory.mktemp("old")
    packed = subprocess.run(["git", "-C", TREE, "archive", OLD], capture_output=True, check=True)
    subprocess.run(["tar", "-x", "-C", place], input=packed.stdout, check=True)
    return place


@pytest.fixture(params=["node", "agent"])
def sides(request: pytest.FixtureRequest, old: Path) -> tuple[Path, Path]:
    """The trees of the nodes and of the agent, either of which is the old one."""
    return (old, TREE) if request.param == "node" else (TREE, old)


@pytest.fixture
def site_file(tmp_path: Path) -> str:
    (tmp_path / "site.ini").write_text(SITE.format(tmp_path))
    return str(tmp_path / "site.ini")


def rendered(tree: Path, site_file: str, system: str, role: str, *words: str) -> Path:
    """The files of a role, by this version."""
    out = Path(site_file).parent / role
    argv = [sys.executable, "-m", "drainwise", "config", system, "--role", role, "--site", site_file, *words]
    subprocess.run([*argv, "--out", out], env={"PYTHONPATH": f"{tree}/plugins"}, capture_output=True, check=True)
    return out


def is_ordered_and_back(run: Run, tree: Path, system: str, site_file: str, is_told: Callable[[bool], None]) -> None:
    """Have alice's pilot give back its cores by a request, and cancel that; `is_told` waits for what a pilot sees."""

    def drainwise(*words: str) -> str:
        argv = [sys.executable, "-m", "drainwise", *words, "--pool", system, "--site", site_file]
        ended = run(argv, environment={"PYTHONPATH": f"{tree}/plugins"}, check=False)
        assert ended.returncode == 0, f"{words}\n{ended.stdout}{ended.stderr}"
        return ended.stdout

    assert re.search(r"\bfresh\b", drainwise("status"))
    said = drainwise("reclaim", "--cores", "8", "--user", "alice", "--by", "+3h", "--act")
    is_told(True)
    [name] = re.findall(r"^request ([-\w]+):", said, re.MULTILINE)
    drainwise("reclaim", "--cancel", name)
    drainwise("reclaim", "--once", "--act")
    is_told(False)


@pytest.mark.in_turn(TURN, "one side old on Slurm")
def test_slurm(sides: tuple[Path, Path], site_file: str) -> None:
    nodes, agent = sides
    with SlurmCluster(1, 8, "trixie") as cluster:
        site = SlurmSite(cluster, load(site_file))
        cluster.copy_in(f"{nodes}/plugins/drainwise", f"{LIBRARY}/drainwise")
        cluster.write(PILOT_JOB, (nodes / "scripts/scenario/pilot_job.py").read_text())
        tree = rendered(nodes, site_file, "slurm", "node", "--live", "none")
        for file in (one for one in tree.rglob("*") if one.is_file() and "systemd" not in str(one)):
            cluster.write(f"/{file.relative_to(tree)}", file.read_text(), mode=file.stat().st_mode & 0o777)
        controller = rendered(agent, site_file, "slurm", "controller", "--live", "none")
        cluster.configure((controller / "etc/slurm/drainwise.conf").read_text())
        cluster.restart()
        site.start_agent("node1")
        job = site.running(site.pilot("8x3000", options=("--time=20:00:00", "--cpus-per-task=8")))
        notice = site.tree(job) / ".jobstatus/.site.ad"

        def is_told(wanted: bool) -> None:
            cluster.wait_for(lambda: notice.exists() == wanted, SECONDS, "what the node tells")
            assert (cluster.job(job.id).end < job.end) == wanted

        cluster.wait_for(lambda: '"standing":"fresh"' in site.comment(job.id), SECONDS, "a report")
        tools = cluster.outside_env()["PATH"].partition(":")[0]
        agent_file = Path(site_file).with_name("agent.ini")
        agent_file.write_text(Path(site_file).read_text().replace("[slurm]", f"[slurm]\nbin_dir = {tools}"))
        is_ordered_and_back(cluster.run_outside, agent, "slurm", str(agent_file), is_told)
        assert (cluster.job(job.id).start, cluster.job(job.id).end) == (job.start, job.end)


@pytest.mark.in_turn(TURN, "one side old on HTCondor")
def test_htcondor(sides: tuple[Path, Path], site_file: str) -> None:
    nodes, agent = sides
    with CondorPool(1, 8, "trixie") as pool:
        pool.copy_in(f"{nodes}/plugins/drainwise", "/usr/share/drainwise/drainwise")
        place_tree(pool, str(rendered(nodes, site_file, "htcondor", "execute")), ("node1",))
        pool.restart("node1")
        now = int(time.time())
        report = REPORT.format(now=now, first=now + 7000, last=now + 9000)
        Path(f"{pool.root}/home/alice/report").write_text(report)
        script = "cat report > .new; mv .new .pilot.ad; exec sleep 900"
        pool.submit(scripted(script, "node1", "transfer_input_files = report"), "alice")
        fresh = 'PilotReportStanding == "fresh"'
        [slot] = pool.wait_for(lambda: pool.slots(fresh, ["Name", "JobStart"]), SECONDS, "a report")
        sandboxes = Path(f"{pool.root}{pool.node('node1').execute_dir}")

        def is_told(wanted: bool) -> None:
            ordered = "PilotReclaimDeadline isnt undefined"
            pool.wait_for(lambda: bool(pool.slots(ordered, ["Name"])) == wanted, SECONDS, "what the slot shows")
            pool.wait_for(lambda: bool([*sandboxes.glob("*/.site.ad")]) == wanted, SECONDS, "what the node tells")

        is_ordered_and_back(pool.run_outside, agent, "htcondor", site_file, is_told)
        again = pool.slots(fresh, ["Name", "JobStart"])
        assert [(ad["Name"], ad["JobStart"]) for ad in again] == [(slot["Name"], slot["JobStart"])]
