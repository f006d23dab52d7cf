"""Clients that nobody changed, on a real Slurm cluster: each is shown what it may see, before and under an order."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from drainwise.features import planned_shutdown
from drainwise.siteconfig import FeaturesSection, SiteConfig
from drainwise.siteconfig.schema import ClientsSection
from outside_slurm import command, site_file
from pilot_clients import PANDA_LOOK, PANDA_STOP, bring_panda_pilot, panda_pilot, panda_script, said, watching_script
from slurm_cluster import Job, SlurmCluster
from slurm_site import SlurmSite

pytestmark = [pytest.mark.play, pytest.mark.in_turn("clients", "Slurm")]
ROWS = {"alice": "name=JAliEn* user=alice", "panda": "comment=panda*"}
SITE = SiteConfig(features=FeaturesSection(hs06=Decimal(100)), clients=ClientsSection(**ROWS))
CORES, SECONDS, WINDING_DOWN = 4, 150.0, 60
INSTALLED = "/usr/share/panda-pilot"
PLANNED = 7200


@pytest.fixture(scope="module")
def site() -> Iterator[SlurmSite]:
    """One node with its agent, a shutdown of which is planned."""
    pilot = panda_pilot()
    with SlurmCluster(nodes=1, cpus=2 * CORES, release="trixie") as cluster:
        bring_panda_pilot(cluster, pilot, INSTALLED)
        made = SlurmSite(cluster, SITE)
        made.install()
        made.start_agent("node1")
        now = int(time.time())
        Path(cluster.path("/var/lib/drainwise", node="node1")).mkdir(parents=True, exist_ok=True)
        planned_shutdown.plan(cluster.path("/var/lib/drainwise/shutdowntime", node="node1"), now + PLANNED, now, 0)
        yield made


def shown(site: SlurmSite, job: Job) -> list[int | None]:
    """The times in the shutdown files of a job."""
    tree = site.tree(job)
    files = (tree / ".machinefeatures" / "shutdowntime", tree / ".jobfeatures" / "shutdowntime_job")
    return [int(file.read_text()) if file.exists() else None for file in files]


def client_of(site: SlurmSite, job: Job, tmp_path: Path) -> str:
    """What kind of client `drainwise status` takes a job for."""
    rows = "".join(f"{name} = {row}\n" for name, row in ROWS.items())
    said = json.loads(command(site, site_file(site, tmp_path, f"[clients]\n{rows}"), "status", "--json"))
    [pilot] = [one for one in said["pilots"] if one["name"] == str(job.id)]
    return str(pilot["client"])


def test_a_client_that_must_not_see_the_file_never_does(site: SlurmSite, tmp_path: Path) -> None:
    """Not at its start, while the machine's shutdown is planned, nor under an order; SIGTERM is its last word."""
    life = Path(f"{site.cluster.root}/home/alice/watched")
    script = watching_script("/home/alice/watched", "$JOBSTATUS/.site.ad")
    options = ("--time=60", f"--cpus-per-task={CORES}", "--job-name=JAliEn.7")
    job = site.running(site.cluster.submit(script, "alice", options))
    site.cluster.wait_for(lambda: "notice" in said(life), SECONDS, "the planned shutdown in .site.ad")
    assert shown(site, job) == [None, None]
    assert client_of(site, job, tmp_path) == "alice"
    deadline = int(time.time()) + 40
    site.cluster.run(["scontrol", "update", f"JobId={job.id}", f"EndTime=uts{deadline}"])
    site.cluster.wait_for(lambda: "term" in said(life), SECONDS, "SIGTERM")
    assert said(life).keys() == {"began", "notice", "term"}, "it saw no shutdown file"
    assert deadline <= said(life)["term"]


def test_pandas_pilot_stops_ten_minutes_before_its_deadline(site: SlurmSite, tmp_path: Path) -> None:
    """The real one: it drops its payload then, and has left long before slurmctld would end it."""
    life = Path(f"{site.cluster.root}/home/alice/life")
    script = f"mkdir $HOME/$SLURM_JOB_ID && cd $HOME/$SLURM_JOB_ID\n{panda_script(INSTALLED, '/home/alice/life', 3600)}"
    options = ("--time=120", f"--cpus-per-task={CORES}", "--comment=panda-pilot")
    job = site.running(site.cluster.submit(script, "alice", options))
    site.cluster.wait_for(lambda: "began" in said(life), SECONDS, "PanDA's payload")
    site.cluster.wait_for(lambda: None not in shown(site, job), SECONDS, "the planned shutdown")
    assert client_of(site, job, tmp_path) == "panda"
    stop = int(time.time()) + 40
    deadline = stop + PANDA_STOP
    site.cluster.run(["scontrol", "update", f"JobId={job.id}", f"EndTime=uts{deadline}"])
    site.cluster.wait_for(lambda: shown(site, job) == [deadline, deadline], SECONDS, "the order in both files")
    site.cluster.wait_for(lambda: site.cluster.job(job.id).state != "RUNNING", 400, "its end")
    found = said(life)
    print(f"stop of PanDA's pilot planned at {stop}: {found}")
    assert "ended" not in found, "the payload is lost"
    assert stop <= found["stopped"] <= stop + PANDA_LOOK + WINDING_DOWN
    assert stop <= found["left"] <= stop + PANDA_LOOK + 2 * WINDING_DOWN < deadline
