"""Unmodified pilots of four kinds on a real Slurm cluster: ranked with figures, and a kill loses what they promise."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from acting_agent import acting_agent
from brought_programs import copy_condor
from condor_pool import obtain_root
from drainwise.siteconfig import FeaturesSection, SiteConfig
from drainwise.siteconfig.schema import ClientsSection
from four_kinds import ALL_CORES, PANDA, PAYLOAD, PROGRAM, Stage, assert_kills_lose_what_the_plan_promises, four_kinds
from outside_slurm import command, site_file
from pilot_clients import bring_panda_pilot, panda_pilot
from slurm_cluster import SlurmCluster
from slurm_site import SlurmSite

pytestmark = [pytest.mark.play, pytest.mark.in_turn("four kinds", "Slurm")]
ROWS = {"alice": "name=JAliEn*", "panda": "comment=panda*"}
SITE = SiteConfig(features=FeaturesSection(hs06=Decimal(100)), clients=ClientsSection(**ROWS))
RELEASE = "trixie"
MARKS = {"alice": "--job-name=JAliEn.7", "panda": "--comment=panda-pilot"}
SECONDS = 400.0
INTERVAL = 90  # seconds: a look each minute, and the agent's rounds


def test_kills_lose_what_the_plan_promises(tmp_path: Path) -> None:
    """All four at once; the draining waste of what the node sees is the agent's own."""
    pilot = panda_pilot()
    rows = "".join(f"{name} = {row}\n" for name, row in ROWS.items())
    metrics = tmp_path / "metrics"
    reclaim = "[reclaim]\npolicy = least-waste\ndrain_only = no\nmin_age = 0s"
    more = f"period = 5s\n[metrics]\ntextfile = {metrics}\n{reclaim}\n[clients]\n{rows}"
    with SlurmCluster(nodes=1, cpus=ALL_CORES, release=RELEASE) as cluster:
        copy_condor(Path(obtain_root(RELEASE).path), cluster)
        bring_panda_pilot(cluster, pilot, PANDA)
        cluster.write(PROGRAM, PAYLOAD, mode=0o755)
        site = SlurmSite(cluster, SITE)
        site.install()
        site.start_agent("node1")
        jobs = {}
        for kind, one in four_kinds("/home/alice").items():
            options = [
                "--time=120",
                f"--cpus-per-task={one.cores}",
                "--output=/dev/null",
                *([MARKS[kind]] if kind in MARKS else []),
            ]
            place = "mkdir $HOME/$SLURM_JOB_ID && cd $HOME/$SLURM_JOB_ID\n"
            jobs[kind] = cluster.submit(place + one.script, "alice", options)
        for number in jobs.values():
            site.running(number)
        file = site_file(site, tmp_path, more)

        def kill() -> None:
            cluster.run(["scancel", "--signal=KILL", "--full", *map(str, jobs.values())])
            cluster.wait_for(
                lambda: all(cluster.job(job).state != "RUNNING" for job in jobs.values()), 60, "their ends"
            )

        stage = Stage(
            home=Path(f"{cluster.root}/home/alice"),
            names={kind: str(number) for kind, number in jobs.items()},
            command=lambda *words: command(site, file, *words),
            agent=lambda: acting_agent(cluster, "--pool", "slurm", "--site", str(file)),
            metrics=metrics,
            kill=kill,
            wait_for=cluster.wait_for,
            interval=INTERVAL,
            seconds=SECONDS,
            user="alice",
        )
        assert_kills_lose_what_the_plan_promises(stage)
