"""A glidein that nobody changed, in a job of a real Slurm cluster: live figures without its word, asked, is gone."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from brought_programs import bring_condor, copy_condor
from condor_pool import obtain_root
from drainwise.facts.waste import bounded_draining_waste
from drainwise.siteconfig import FeaturesSection, SiteConfig
from drainwise.slurm.jobs.admin_comment import Published
from glidein_job import Payloads, finished, glidein_script
from slurm_cluster import SlurmCluster
from slurm_site import SlurmSite

pytestmark = [pytest.mark.play, pytest.mark.in_turn("glidein", "Slurm")]
SITE = SiteConfig(features=FeaturesSection(hs06=Decimal(100)))
CONDOR = "trixie"
"""The release whose HTCondor the glidein brings, on each: Debian 12 has none."""
CORES, STAY, LOOK = 8, 20, 4
RUNNING = (Payloads(1, 2, 120, 2), Payloads(1, 4, 240, 4))
WAITING = Payloads(1, CORES, 30, 60)
SECONDS = 150.0


@pytest.fixture(scope="module")
def site(slurm_release: str) -> Iterator[SlurmSite]:
    """One node of 8 cores with its agent; HTCondor's programs are there as a glidein brings them."""
    with SlurmCluster(nodes=1, cpus=CORES, release=slurm_release) as cluster:
        if slurm_release == CONDOR:
            copy_condor(Path(obtain_root(CONDOR).path), cluster)
        else:
            bring_condor(Path(obtain_root(CONDOR).path), Path(cluster.root))
        made = SlurmSite(cluster, SITE)
        made.install()
        made.start_agent("node1")
        yield made


def starts(work_dir: Path) -> dict[int, int]:
    """When the payload of so many cores began, by the ads that the glidein's own startd has written."""
    found = {}
    for ad in work_dir.glob("glide_*/execute/dir_*/.job.ad"):
        cores = re.search(r"(?m)^Cpus = (\d+)$", (ad.parent / ".machine.ad").read_text())
        start = re.search(r"(?m)^JobCurrentStartDate = (\d+)$", ad.read_text())
        if cores and start:
            found[int(cores[1])] = int(start[1])
    return found


def test_a_glidein_is_seen_asked_and_gone(site: SlurmSite) -> None:
    """Its nine figures are those by hand; what it says to waste is what really idled, within 20 %."""
    script = glidein_script(*RUNNING, WAITING, cores=CORES, stay=STAY, look=LOOK)
    script = f"mkdir $HOME/$SLURM_JOB_ID && cd $HOME/$SLURM_JOB_ID\n{script}"
    options = ("--time=60", f"--cpus-per-task={CORES}", "--output=/home/alice/glidein.out")
    number = site.cluster.submit(script, "alice", options)
    site.running(number)

    def seen() -> Published | None:
        said = site.published(number)
        return said if said is not None and said.report.used_cpu == 6 else None

    said = site.cluster.wait_for(seen, SECONDS, "the glidein's figures")
    assert said is not None and said.standing == "glidein"
    begun = starts(Path(f"{site.cluster.root}/home/alice/{number}"))
    last, first_end, last_end = max(begun.values()), begun[2] + 120, begun[4] + 240
    leaves, found = last_end + STAY + LOOK // 2, said.report
    assert (found.last_job_start, found.first_exp_job_end) == (last, first_end)
    assert (found.last_exp_job_end, found.last_max_job_end) == (leaves, last_end + STAY + LOOK)
    assert found.add_uncom_time == sum(cores * (last - start) for cores, start in begun.items())
    assert found.add_final_exp_waste == CORES * (leaves - first_end) - 4 * (last_end - first_end)
    asked = int(time.time())
    deadline = leaves + 60
    site.cluster.run(["scontrol", "update", f"JobId={number}", f"EndTime=uts{deadline}"])
    stated = bounded_draining_waste(CORES, 6, found.first_exp_job_end, found.add_final_exp_waste, asked)
    site.cluster.wait_for(lambda: site.cluster.job(number).state != "RUNNING", 400, "the glidein's end")
    ended = site.end_of(number)
    assert ended.state == "COMPLETED" and ended.end <= deadline
    end = finished(Path(f"{site.cluster.root}/home/alice/glidein.out").read_text())
    assert end.codes == {0} and end.left == 1, "all that had started ended well; the one that waited is still the VO's"
    realised = CORES * (end.time - asked) - sum(
        cores * (ended - asked) for cores, ended in zip((2, 4), sorted(end.ends))
    )
    print(f"draining waste {stated}, in the end {realised} core-seconds")
    assert stated == pytest.approx(realised, rel=0.2)
