"""Who sent a pilot, on a real cluster of each release: from a job's comment and name to journal, explain and report."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import drainwise
from drainwise.siteconfig import SiteConfig
from slurm_cluster import SlurmCluster
from slurm_site import SlurmSite

pytestmark = [pytest.mark.play, pytest.mark.in_turn("identity", "Slurm")]
SITE_FILE = """\
[slurm]
bin_dir = {tools}
[agent]
state_dir = {state}
[reclaim]
policy = least-waste
grace = 1m
margin = 20s
min_age = 1s
[identity]
comment = vo={{vo}} dn={{subject}}; job={{ce_job}} {{}} | vo={{vo}} dn={{subject}}; job={{ce_job}} | {{}}vo={{vo}}
job_name = {{factory}}/{{entry}}
"""
CORES = 8
PACKAGES = str(Path(drainwise.__file__).parents[1])


@pytest.fixture
def site(slurm_release: str) -> Iterator[SlurmSite]:
    """One node of 8 cores; atlas (alice) has twice the share of cms (bob)."""
    with SlurmCluster(nodes=1, cpus=CORES, release=slurm_release) as cluster:
        made = SlurmSite(cluster, SiteConfig())
        made.install()
        made.start_agent("node1")
        yield made


def said(site: SlurmSite, site_file: Path, *words: str) -> str:
    """What a command of the administrator prints."""
    argv = [sys.executable, "-m", "drainwise", *words, "--site", str(site_file)]
    environment = {"PYTHONPATH": PACKAGES, "PYTHONDONTWRITEBYTECODE": "1"}
    return site.cluster.run_outside(argv, environment=environment).stdout


def pilots(site: SlurmSite, site_file: Path) -> dict[str, Any]:
    found = json.loads(said(site, site_file, "status", "--json", "--pool", "slurm"))["pilots"]
    return {one["name"]: one["identity"] for one in found}


def test_a_ticket_of_a_vo_is_answered(site: SlurmSite, tmp_path: Path) -> None:
    """By the rules of the site; a comment with a line end, an escape sequence or all that Slurm takes harms nobody."""
    cluster, site_file = site.cluster, tmp_path / "site.ini"
    tools = cluster.outside_env("root")["PATH"].split(":")[0]
    site_file.write_text(SITE_FILE.format(tools=tools, state=tmp_path / "state"))
    (tmp_path / "state").mkdir()
    written = [
        ("--comment=vo=atlas dn=/DC=ch/CN=Jane Doe; job=4711.0 route=x", "--job-name=harvester/w17"),
        ("--comment=ce: vo=lhcb", "--job-name=plain"),
        (
            f"--comment=vo=\x1b[2Jx\nJobId=1 JobName=y dn=a\u202eb; job={'9' * 900}",
            "--job-name=a\nJobId=2 JobName=z",
        ),
        ("--job-name=nobody",),
    ]
    numbers = [
        cluster.submit("exec sleep 1000", "alice", ["--ntasks=1", "--cpus-per-task=2", *options]) for options in written
    ]
    for number in numbers:
        site.running(number)
    first, second, hostile, silent = (str(one) for one in numbers)
    found = pilots(site, site_file)
    assert found[first] == {
        "vo": "atlas", "ce_job": "4711.0",
    }  # fmt: skip
    assert found[second] == {"vo": "lhcb"} and found[silent] is None
    assert all(text.isprintable() and len(text) <= 128 for text in (found[hostile] or {}).values())
    for _ in range(4):
        cluster.submit("exec sleep 1000", "bob", ["--ntasks=1", "--cpus-per-task=2"])

    def ordered() -> list[Any]:
        plan = json.loads(said(site, site_file, "reclaim", "--once", "--act", "--json", "--pool", "slurm"))
        return [order["name"] for user in plan["users"] for order in user["orders"]]

    names = cluster.wait_for(ordered, 60, "orders")
    assert names
    journal = ["--journal", str(next((tmp_path / "state").glob("*.journal")))]
    for vo, name in (("atlas", first), ("lhcb", second)):
        words = said(site, site_file, "explain", "--vo", vo, *journal)
        assert f"run {name}@" in words and f"VO {vo}" in words
        assert words.count("ordered to end by") + words.count("spared (") == 1
    report = json.loads(said(site, site_file, "report", "--json", *journal))
    by_vo = {one["vo"]: one["ordered"] for one in report["vos"]}
    expected = {first: "atlas", second: "lhcb"}
    assert {vo for vo in by_vo if vo in {"atlas", "lhcb"}} == {expected[one] for one in names if one in expected}
    assert "\x1b" not in said(site, site_file, "explain", hostile, *journal)
