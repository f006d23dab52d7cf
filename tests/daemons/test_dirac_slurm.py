"""DIRAC's own pilot that nobody changed, as a job of a real Slurm cluster: version 8 learns of an order from sacct."""

from __future__ import annotations

import ast
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from dirac_modules import WITH_TIME_LEFT, dirac_modules
from dirac_pilot import DIRAC, asked, bring_dirac, dirac_script, lives
from drainwise.features import planned_shutdown
from drainwise.pilotad.observation import Observation
from drainwise.siteconfig import FeaturesSection, SiteConfig
from drainwise.siteconfig.schema import ClientsSection
from slurm_cluster import SlurmCluster
from slurm_site import SlurmSite

pytestmark = [pytest.mark.play, pytest.mark.in_turn("DIRAC", "Slurm")]
SITE = SiteConfig(features=FeaturesSection(hs06=Decimal(100)), clients=ClientsSection(dirac="name=DIRAC*"))
MINIMUM = 5000
"""Work (HS06 seconds) below which JobAgent fetches no further payload, after its first: its default."""
CORES, SECONDS, POWER = 2, 240.0, 20.0
LEFT = int(MINIMUM / POWER)
"""Seconds before the end of its job at which it fetches no further payload."""
ORDERED, ROUNDED, MINUTES, PLANNED = LEFT + 80, 60, 60, 1800
PLACE = "/home/alice"
OPTIONS = (f"--time={MINUTES}", f"--cpus-per-task={CORES}", "--job-name=DIRAC.7", "--output=/dev/null")
TIME_LEFT = """\
from DIRAC import gConfig
from DIRAC.Resources.Computing.BatchSystems.TimeLeft.TimeLeft import TimeLeft
gConfig.setOptionValue("/LocalSite/CPUNormalizationFactor", "1")
asked = TimeLeft()
left = asked.getTimeLeft()
print(asked.batchPlugin.getResourceUsage()["Value"], left["Value"] if left["OK"] else None, sep="; ")
"""
"""Prints what version 8 reads of the features that the environment names, and what is left by that, HS06 seconds."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmSite]:
    """One node with its agent, a shutdown of which is planned, and a VO with payloads for half an hour."""
    modules = dirac_modules(WITH_TIME_LEFT)
    with SlurmCluster(nodes=1, cpus=2 * CORES, release="trixie") as cluster:
        made = SlurmSite(cluster, SITE)
        made.install()
        made.start_agent("node1")
        now = int(time.time())
        Path(cluster.path("/var/lib/drainwise", node="node1")).mkdir(parents=True, exist_ok=True)
        planned_shutdown.plan(cluster.path("/var/lib/drainwise/shutdowntime", node="node1"), now + PLANNED, now, 0)
        bring_dirac(cluster, modules, tmp_path_factory.mktemp("certificate"), [100, *[30] * 60], PLACE, 0.1)
        yield made


def time_left(variable: str) -> str:
    """A line of the job: what DIRAC reads of the features, named as paths or as URLs."""
    names = " ".join(f"{name}={variable}${name}" for name in ("MACHINEFEATURES", "JOBFEATURES"))
    said = f">>{PLACE}/features 2>>{PLACE}/faults"
    return f"env -u SLURM_JOB_ID PYTHONPATH={DIRAC} {names} python3 -c '{TIME_LEFT}' {said}"


def test_it_fetches_no_payload_when_an_order_leaves_too_little_time(site: SlurmSite) -> None:
    """It asks sacct after each payload, so all that have begun end, and it has left before its deadline."""
    home = Path(f"{site.cluster.root}{PLACE}")
    begin = "mkdir $HOME/$SLURM_JOB_ID && cd $HOME/$SLURM_JOB_ID"
    script = f"{begin}\n{dirac_script(WITH_TIME_LEFT, 'InProcess', POWER, 60 * MINUTES, f'{PLACE}/pilot.log')}"
    job = site.running(site.cluster.submit(script, "alice", OPTIONS))
    site.cluster.wait_for(lambda: lives(home), SECONDS, "a payload")

    def found() -> Observation | None:
        said = site.published(job.id)
        return said.seen if said is not None and said.seen is not None and said.seen.payloads else None

    told = site.cluster.wait_for(found, SECONDS, "the payload seen")
    assert told is not None and (told.client, told.payloads) == ("dirac", 1)
    began = [life["began"] for life in lives(home)]
    assert asked(site.cluster)[0] - 5 <= told.begins[0] <= began[-1] + 5, "from its wrapper's start on"
    deadline = int(time.time()) + ORDERED
    site.cluster.run(["scontrol", "update", f"JobId={job.id}", f"EndTime=uts{deadline}"])
    seen = set()

    def has_ended() -> bool:
        said = site.published(job.id)
        assert said is not None and said.seen is not None
        seen.add((said.seen.client, said.seen.payloads))
        return site.cluster.job(job.id).state != "RUNNING"

    site.cluster.wait_for(has_ended, ORDERED, "its end")
    [line] = [line for line in (home / "pilot.log").read_text().splitlines() if "No more time left" in line][:1]
    left = int((home / "pilot.log.left").read_text().split()[1])
    print(f"deadline {deadline}, payloads asked for {asked(site.cluster)}, left {left}: {line}; {lives(home)}")
    assert max(asked(site.cluster)) <= deadline + ROUNDED - LEFT
    assert all("ended" in life for life in lives(home)), "none is lost"
    assert site.end_of(job.id).state == "COMPLETED" and left < deadline
    assert seen <= {("dirac", 0), ("dirac", 1)}, "one payload at a time, and none between two"


def test_of_features_it_takes_the_cpu_limit_alone(site: SlurmSite) -> None:
    """Without a batch system that it knows: paths are no URLs to it, and a shutdown that it reads changes nothing."""
    # Where a site has [clients], the node's agent writes shutdown files, a moment after the start. In the second of the
    # start DIRAC finds no limit: a wall clock of 0 is none to it.
    shown = "[ -s $MACHINEFEATURES/shutdowntime ] && [ $(date +%s) -gt $(cat $JOBFEATURES/jobstart_secs) ]"
    wait = f"until {shown}; do sleep 0.2; done"
    job = site.cluster.submit("\n".join([wait, time_left(""), time_left("file://")]), "alice", OPTIONS)
    ended = site.end_of(job)
    home = Path(f"{site.cluster.root}{PLACE}")
    assert ended.state == "COMPLETED", (home / "faults").read_text()[-3000:]
    paths, urls = (line for line in (home / "features").read_text().splitlines() if line.startswith("{"))
    print(f"of paths: {paths}; of URLs: {urls}")
    usage, left = paths.split("; ")
    assert left == "None" and not any(ast.literal_eval(usage).get(key) for key in ("CPULimit", "WallClockLimit"))
    usage, left = urls.split("; ")
    read = ast.literal_eval(usage)
    assert read["WallClockLimit"] < PLANNED + 60 and read["CPULimit"] == 60 * MINUTES * CORES
    # The wall clock, which DIRAC takes for CPU time where a plugin knows none; it is read twice, the second time later.
    assert 0 <= read["CPULimit"] - read["WallClock"] - float(left) <= 60
