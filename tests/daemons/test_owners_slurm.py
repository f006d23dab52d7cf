"""On a real cluster with made-up GPUs: owners take them from scavengers, by Slurm's own preemption and by drainwise.

Half of the scavengers save their work, half never do. Slurm takes the youngest; drainwise, by the same rule of who may
take from whom, those that lose least. Each that was requeued has its own time limit.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from pathlib import Path

import pytest

import slurm_cluster
from acting_agent import acting_agent
from drainwise.siteconfig import FeaturesSection, SiteConfig
from slurm_cluster import Qos, SlurmCluster
from slurm_cluster.layout import node_line
from slurm_site import SECONDS, SlurmSite

pytestmark = [pytest.mark.all_releases, pytest.mark.timeout(1200)]
FILES = ("null", "zero", "full", "random", "urandom", "tty")  # nobody uses them: a GPU must have one
CONFIG = "GresTypes=gpu\nAccountingStorageTRES=gres/gpu\nPreemptType=preempt/qos\nPreemptMode=REQUEUE\n" + node_line(
    "node1", 8, 16384, f"Gres=gpu:{len(FILES)}"
)
QOS = Qos("scavenge"), Qos("owner", ("Preempt=scavenge", "Priority=1000"))
SITE = """\
[slurm]
bin_dir = {tools}
agent_period = 1s
[reclaim]
policy = least-waste
entitlement = preemption
at_deadline = requeue
billing = GRES/gpu=1
min_age = 0s
min_grace = 0s
horizon = 2m
time_to_start = 20s
[agent]
state_dir = {state}
period = 2s
"""
EVERY, OLD, ARRIVALS = 20, 60, 3  # s between two saves, and until owners come; how many
SAVES = f"""\
while :; do
now=$(date +%s) end=$(($(date +%s) + 9999))
echo $now >> saves.${{SLURM_RESTART_COUNT:-0}}
[ -z "$JOBSTATUS" ] || cat > "$JOBSTATUS/.pilot.ad.new" <<END
LAST_JOB_START = $SLURM_JOB_START_TIME
FIRST_EXP_JOB_END = $end
LAST_EXP_JOB_END = $end
LAST_MAX_JOB_END = $end
USED_FRACTION1k = 1024
ADD_UNCOM_TIME1k = 0
ADD_FINAL_EXP_WASTE1k = 0
LAST_CHECKPOINT = $now
NEXT_CHECKPOINT = $((now + {EVERY}))
END
[ -z "$JOBSTATUS" ] || mv "$JOBSTATUS/.pilot.ad.new" "$JOBSTATUS/.pilot.ad"
sleep {EVERY}
done"""


def scavenger(cluster: SlurmCluster, number: int) -> int:
    """One that saves, and says so, where its number is even; in a directory of its own."""
    place = f"/home/alice/job{number}"
    cluster.run(["mkdir", place], user="alice")
    script = SAVES if number % 2 == 0 else "exec sleep 1000"
    options = ("--ntasks=1", "--gres=gpu:1", "--mem=100", "--qos=scavenge", "--requeue", f"--chdir={place}")
    return cluster.submit(script, "alice", (*options, "--time=1:00:00"))


@contextmanager
def by_slurm(release: str, _: Path) -> Iterator[SlurmCluster]:
    with SlurmCluster(1, 8, release, f"{CONFIG}PreemptParameters=youngest_first\n", qos=QOS, gres=gres()) as cluster:
        yield cluster


@contextmanager
def by_drainwise(release: str, place: Path) -> Iterator[SlurmCluster]:
    config = f"{CONFIG}PreemptParameters=min_exempt_priority=1\n"
    with SlurmCluster(1, 8, release, config, qos=QOS, gres=gres()) as cluster:
        site = SlurmSite(cluster, SiteConfig(features=FeaturesSection(hs06=Decimal(100))))
        site.install()
        site.start_agent("node1")
        tools = cluster.outside_env("root")["PATH"].split(os.pathsep)[0]
        (place / "site.ini").write_text(SITE.format(tools=tools, state=place / "state"))
        with acting_agent(cluster, "--pool", "slurm", "--site", str(place / "site.ini")):
            yield cluster


def gres() -> str:
    return "".join(f"NodeName=node1 Name=gpu File=/dev/{name}\n" for name in FILES)


def runs(cluster: SlurmCluster, job: int) -> bool:
    """Whether it runs, or has run."""
    return cluster.job(job).state in {"RUNNING", "COMPLETED"}


def played(cluster: SlurmCluster) -> tuple[int, float]:
    """GPU-seconds that scavengers lost, and how long owners waited on average."""
    scavengers = {}
    for number in range(2 * len(FILES)):
        job = scavenger(cluster, number)
        scavengers[job] = number
        if number < len(FILES):
            cluster.wait_for(partial(runs, cluster, job), 30, f"scavenger {number} to run")
    youngest = max(cluster.job(job).start for job in list(scavengers)[: len(FILES)])
    cluster.wait_for(lambda: time.time() > youngest + OLD, OLD + 10, "the time of the owners")
    came = {}
    for _ in range(ARRIVALS):
        owner = cluster.submit("exec sleep 60", "bob", ("--ntasks=1", "--gres=gpu:1", "--mem=100", "--qos=owner"))
        came[owner] = time.time()
        cluster.wait_for(partial(runs, cluster, owner), 120, "an owner to run")
    owners = [cluster.job(owner).start - at for owner, at in came.items()]
    return sum(lost_by(cluster, job, number) for job, number in scavengers.items()), sum(owners) / ARRIVALS


def lost_by(cluster: SlurmCluster, job: int, number: int) -> int:
    """GPU-seconds that the runs of a scavenger lost which were ended: since their start, or since their last save."""
    words = ["sacct", "-X", "-D", "-n", "-P", f"--jobs={job}", "--format=State,Start,End"]
    rows = cluster.run(words, environment={"SLURM_TIME_FORMAT": "%s"}).stdout.splitlines()
    rows_of_runs = [row.split("|") for row in rows]
    lost = 0
    for run, (state, start, end) in enumerate(one for one in rows_of_runs if one[1].isdigit() and one[2].isdigit()):
        assert state.partition(" ")[0] in {"PREEMPTED", "REQUEUED"}, rows
        saves = Path(cluster.path(f"/home/alice/job{number}/saves.{run}"))
        saved = [int(one) for one in saves.read_text().split() if int(one) <= int(end)] if saves.exists() else []
        lost += int(end) - max([int(start), *saved])
    limit = cluster.run(["squeue", "--noheader", f"--jobs={job}", "--format=%l"]).stdout.strip()
    assert limit == "1:00:00", "each has its own limit still"
    return lost


@pytest.mark.parametrize("release", ["trixie", "sid"])
def test_scavengers_lose_less_than_by_slurms_own_preemption(release: str, tmp_path: Path) -> None:
    slurm_cluster.obtain_root(release)
    figures = {}
    for way in (by_drainwise, by_slurm):
        with way(release, tmp_path) as cluster:
            figures[way.__name__] = played(cluster)
    (lost, waited), (lost_by_slurm, _) = figures["by_drainwise"], figures["by_slurm"]
    assert lost <= 0.4 * lost_by_slurm and waited < SECONDS, figures
