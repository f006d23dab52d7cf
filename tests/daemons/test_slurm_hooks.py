"""Prolog, task prolog and epilog on a real Slurm cluster: rendered as for a site, run by slurmd for real jobs."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

import pytest

from drainwise.common.wake import Wake
from drainwise.features.write import update_directory
from drainwise.siteconfig import FeaturesSection, SiteConfig, SlurmSection
from drainwise.slurm.node.host_list import hosts
from drainwise.slurm.node.job_tree import mark_complete
from drainwise.slurm.setup.render import fragment_path, render
from slurm_cluster import Job, SlurmCluster

PACKAGE = Path(__file__).parents[2] / "plugins" / "drainwise"
SITE = SiteConfig(features=FeaturesSection(hs06=Decimal(100)), slurm=SlurmSection(prolog_time_limit=2))
ENDED = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL"}
DEADLINE = 60.0


@dataclass
class Site:
    """A cluster on which a site has installed the hooks."""

    cluster: SlurmCluster

    def install(self, site: SiteConfig = SITE) -> None:
        """Put the hooks and the settings of all nodes into place; slurm.conf's part of it is there."""
        for file in render(site, "node"):
            if "systemd" not in file.path:
                self.cluster.write(file.path, file.text, mode=file.mode)

    def start(self, script: str, *options: str, user: str = "alice") -> int:
        """Submit a job whose output lands in its user's home."""
        return self.cluster.submit(script, user, (f"--output=/home/{user}/out.%A_%a", *options))

    def end_of(self, number: int) -> Job:
        """Wait until the job and all its epilogs have ended."""
        self.cluster.wait_for(lambda: self.cluster.job(number).state in ENDED, DEADLINE, f"the end of job {number}")
        job = self.cluster.job(number)
        self.cluster.wait_for(
            lambda: not any(str(number) in self.trees(node) for node in job.nodes), DEADLINE, f"epilogs of job {number}"
        )
        return job

    def output(self, number: int, user: str = "alice") -> list[str]:
        """What a job that has ended printed."""
        names = [f"out.{number}_{task}" for task in ("4294967294", "")]
        for name in names:
            path = self.cluster.path(f"/home/{user}/{name}")
            if os.path.exists(path):
                return Path(path).read_text().splitlines()
        raise FileNotFoundError(names[0])

    def run(self, script: str, *options: str) -> list[str]:
        """Run a job of alice's to its end; what it printed."""
        number = self.start(script, *options)
        job = self.end_of(number)
        assert job.state == "COMPLETED", job
        return self.output(number)

    def trees(self, node: str) -> list[str]:
        """All that lies beside the jobs' trees of a node, hidden names too."""
        place = self.cluster.seen_on(node, f"/run/drainwise/{node}")
        return os.listdir(place) if os.path.isdir(place) else []

    def drained(self) -> list[str]:
        """The nodes that take no jobs any more, with Slurm's reason."""
        lines = self.cluster.run(["sinfo", "--noheader", "--Node", "--format=%N %T %E"]).stdout.splitlines()
        return [line for line in lines if line.split()[1].startswith(("drain", "down", "fail"))]


@pytest.fixture(scope="module")
def site(slurm_release: str) -> Iterator[Site]:
    """Three nodes of 8 cores with the hooks."""
    with SlurmCluster(nodes=3, cpus=8, release=slurm_release) as cluster:
        cluster.copy_in(str(PACKAGE), "/usr/share/drainwise/drainwise")
        made = Site(cluster)
        made.install()
        cluster.configure(next(file.text for file in render(SITE, "controller") if file.path == fragment_path(SITE)))
        cluster.restart()
        yield made


@pytest.fixture(autouse=True)
def _as_it_was(site: Site) -> Iterator[None]:
    """Whatever a test did: no node was drained by it, no job is left, and no tree."""
    yield
    drained = site.drained()
    site.cluster.cancel_all()
    assert drained == []
    site.cluster.wait_for(lambda: not any(map(site.trees, site.cluster.node_names)), DEADLINE, "no tree on any node")


def key(name: str) -> str:
    """A shell word for the value of a key of $JOBFEATURES, empty when there is none."""
    return f'"$(cat $JOBFEATURES/{name} 2>/dev/null)"'


# ---- what a job gets ----


def test_every_task_knows_its_own_node(site: Site) -> None:
    """An uneven job on three nodes: the batch script and each step see their node's directories and cores."""
    show = (
        "echo $SLURMD_NODENAME $JOBFEATURES $(cat $JOBFEATURES/allocated_cpu $JOBFEATURES/job_id)"
        " $(stat -c %U $JOBSTATUS)"
    )
    found = site.run(f"{show}\nsrun sh -c '{show}'", "--nodes=3", "--ntasks=5", "--cpus-per-task=2")
    seen = {tuple(line.split()) for line in found}
    assert len(found) == 6
    assert {node for node, *_ in seen} == {"node1", "node2", "node3"}
    assert sum(int(cores) for _, _, cores, _, _ in seen) == 10
    [number] = {job for *_, job, _ in seen}
    assert {(path, owner) for _, path, _, _, owner in seen} == {
        (f"/run/drainwise/{node}/{number}/.jobfeatures", "alice") for node, *_ in seen
    }


def test_the_variables_reach_containers_and_later_steps(site: Site) -> None:
    """All nine, in the batch script and in a step of a step; the directories are there under each name."""
    names = [
        f"{prefix}{name}"
        for prefix in ("", "APPTAINERENV_", "SINGULARITYENV_")
        for name in ("MACHINEFEATURES", "JOBFEATURES", "JOBSTATUS")
    ]
    show = " ".join(f"ls -d ${name};" for name in names)
    found = site.run(f"{show}\nsrun sh -c '{show}'")
    assert len(found) == 18
    assert found[:9] == found[9:]


def test_limits_and_start(site: Site) -> None:
    """Since 24.11 the time limit is known at once; before, and without a limit, the agent or the site has to say it."""
    show = f"echo {key('wall_limit_secs')} {key('jobstart_secs')} {key('cpu_limit_secs')}"
    dated = site.cluster.version >= (24, 11)
    number = site.start(show, "--time=10", "--cpus-per-task=2")
    job = site.end_of(number)
    [line] = site.output(number)
    words = line.split()
    if dated:
        assert words == ["600", str(job.start), "1200"]
    else:
        [start] = words
        assert 0 <= int(start) - job.start <= 5
    assert len(site.run(show, "--time=UNLIMITED")[0].split()) == 1


def test_what_the_submitter_had_in_its_environment_does_not_count(site: Site) -> None:
    """HOSTILE 46: variables of another job, of the loader and of Python, job and node made up."""
    evil = "MACHINEFEATURES=/evil,JOBSTATUS=/evil,PYTHONPATH=/evil,PYTHONHOME=/evil,SLURM_JOB_ID=1,SLURMD_NODENAME=evil"
    evil += ",LD_LIBRARY_PATH=/evil,IFS=/,BASH_ENV=/evil,SPANK_EVIL=1"
    number = site.start("PATH=/usr/bin:/bin; echo $MACHINEFEATURES $JOBSTATUS", f"--export=ALL,{evil}")
    job = site.end_of(number)
    tree = f"/run/drainwise/{job.nodes[0]}/{number}"
    assert site.output(number) == [f"{tree}/.machinefeatures {tree}/.jobstatus"]


def test_each_task_of_an_array_is_a_job_of_its_own(site: Site) -> None:
    """By the number that Slurm gives to each."""
    number = site.start(f"echo $SLURM_JOB_ID {key('job_id')}", "--array=1-3")
    site.end_of(number)
    paths = [Path(site.cluster.path(f"/home/alice/out.{number}_{task}")) for task in (1, 2, 3)]
    site.cluster.wait_for(lambda: all(path.exists() and path.read_text() for path in paths), DEADLINE, "the array")
    lines = [path.read_text().split() for path in paths]
    assert all(first == second for first, second in lines)
    assert len({first for first, _ in lines}) == 3


def test_a_heterogeneous_job_gets_no_strangers_features(site: Site) -> None:
    """The first component has its own; the others' steps go by the first one's number and are told nothing."""
    script = "#!/bin/sh\n#SBATCH --ntasks=1 --cpus-per-task=8\n#SBATCH hetjob\n#SBATCH --ntasks=1 --cpus-per-task=8\n"
    script += "srun --het-group=0,1 sh -c 'echo $SLURMD_NODENAME JF=$JOBFEATURES'\n"
    number = site.start(script)
    first = site.end_of(number)
    found = dict(line.split() for line in site.output(number))
    assert found.pop(first.nodes[0]) == f"JF=/run/drainwise/{first.nodes[0]}/{number}/.jobfeatures"
    assert list(found.values()) == ["JF="]


def test_the_agent_fills_in_what_the_prolog_cannot_know(site: Site) -> None:
    """The task starts when the agent has said that the features are complete, and finds what it wrote."""
    node = "node2"
    runtime = site.cluster.seen_on(node, "/run/drainwise")
    os.makedirs(runtime, mode=0o755, exist_ok=True)
    fifo = Wake(f"{runtime}/agent.wake")
    os.set_blocking(fifo.fileno(), True)

    def agent() -> None:
        os.read(fifo.fileno(), 100)
        [job] = [name for name in site.trees(node) if name.isdigit()]
        tree = f"{runtime}/{node}/{job}"
        update_directory(f"{tree}/.jobfeatures", {"max_rss_bytes": "16000000000"})
        descriptor = os.open(tree, os.O_RDONLY)
        mark_complete(descriptor)
        os.close(descriptor)

    playing = threading.Thread(target=agent, daemon=True)
    playing.start()
    try:
        assert site.run(f"echo {key('max_rss_bytes')}", f"--nodelist={node}") == ["16000000000"]
    finally:
        fifo.call()
        playing.join(DEADLINE)
        fifo.close()
        os.unlink(f"{runtime}/agent.wake")


def test_a_requeued_job_begins_anew(site: Site) -> None:
    """HOSTILE 48: the second run has a directory of its own, empty, and another start."""
    script = (
        f"echo run $SLURM_RESTART_COUNT {key('jobstart_secs')} $(ls -A $JOBSTATUS)\ntouch $JOBSTATUS/.site.ad\n"
        'test "$SLURM_RESTART_COUNT" = 1 || sleep 1000\n'
    )
    number = site.start(script, "--requeue", "--open-mode=append", "--nodelist=node1")
    report = site.cluster.seen_on("node1", f"/run/drainwise/node1/{number}/.jobstatus/.site.ad")
    site.cluster.wait_for(lambda: os.path.exists(report), DEADLINE, "the first run")
    site.cluster.run(["scontrol", "requeue", str(number)])
    site.cluster.wait_for(lambda: site.cluster.job(number).state == "PENDING", DEADLINE, "the requeue")
    # Not at once: slurmd 22.05 leaves out the prolog of a job that comes back within the second in which it ended.
    site.cluster.run(["scontrol", "update", f"JobId={number}", "StartTime=now+3"])
    assert site.end_of(number).state == "COMPLETED"
    first, second = (line.split() for line in site.output(number) if line.startswith("run "))
    assert (len(first), second[1], len(second)) == (2, "1", 3)
    assert int(second[2]) > int(first[1])


# ---- what the epilog finds ----


def test_the_epilog_removes_whatever_the_user_left(site: Site) -> None:
    """HOSTILE 1, 3, 10, 15, 26: links, closed and nested directories, odd names, many files; where links lead stays."""
    script = r"""
    mkdir $HOME/precious && touch $HOME/precious/file
    cd $JOBSTATUS
    ln -s $HOME/precious link; ln -s /etc etc; mkfifo fifo; ln $HOME/precious/file hard 2>/dev/null
    mkdir -p a/b/c/d && chmod 000 a/b
    touch "$(printf 'a\nb')" "$(printf '\033[2J')" "$(printf '\377')" ./-rf
    seq 2000 | xargs touch 2>/dev/null || :  # as many as fit
    """
    number = site.start(script, "--nodelist=node1")
    assert site.end_of(number).state == "COMPLETED"
    assert os.listdir(site.cluster.path("/home/alice/precious")) == ["file"]
    shutil.rmtree(site.cluster.path("/home/alice/precious"))


@pytest.mark.parametrize("moment", ["while it starts", "while it runs"])
def test_a_cancelled_job_leaves_nothing(site: Site, moment: str) -> None:
    """On none of its nodes."""
    number = site.start("touch $JOBSTATUS/x; sleep 1000", "--nodes=3")
    if moment == "while it runs":
        site.cluster.wait_for(lambda: site.cluster.job(number).state == "RUNNING", DEADLINE, "the job's start")
    site.cluster.run(["scancel", str(number)])
    assert site.end_of(number).state == "CANCELLED"


# ---- what is broken never drains a node ----


def moved_away(path: str) -> Callable[[Site], None]:
    """Take something away from all nodes."""
    return lambda site: os.rename(site.cluster.path(path), site.cluster.path(f"{path}.away"))


def no_python(site: Site) -> None:
    """The interpreter that the hooks name is not there."""
    site.install(replace(SITE, slurm=replace(SITE.slurm, python="/usr/bin/nopython")))


def endless_library(site: Site) -> None:
    """Importing the package never ends."""
    site.install(replace(SITE, slurm=replace(SITE.slurm, library_dir="/opt/endless")))
    site.cluster.write("/opt/endless/drainwise/__init__.py", "import time; time.sleep(1000)\n")


def open_runtime(site: Site) -> None:
    """Everybody may write where the trees are made: the hooks do not touch it."""
    for node in site.cluster.node_names:
        place = site.cluster.seen_on(node, "/run/drainwise")
        os.makedirs(place, exist_ok=True)
        os.chmod(place, 0o777)


FAULTS: dict[str, Callable[[Site], None]] = {
    "no package": moved_away("/usr/share/drainwise/drainwise"),
    "no settings": moved_away("/etc/drainwise/node.conf"),
    "no interpreter": no_python,
    "a library that never answers": endless_library,
    "a runtime directory that everybody may write": open_runtime,
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_hook_costs_the_features_and_no_node(site: Site, fault: str) -> None:
    """The job runs to its end, without the variables at worst, and the next one has them again."""
    FAULTS[fault](site)
    try:
        [line] = site.run("echo JF=$JOBFEATURES", "--nodelist=node1")
        expected = "JF=/run/drainwise/node1/" if fault == "no settings" else "JF="
        assert line.startswith(expected)
        assert (line == "JF=") is (fault != "no settings")
    finally:
        for path in ("/usr/share/drainwise/drainwise", "/etc/drainwise/node.conf"):
            away = site.cluster.path(f"{path}.away")
            if os.path.exists(away):
                os.rename(away, away[: -len(".away")])
        site.install()
        for node in site.cluster.node_names:
            place = site.cluster.seen_on(node, "/run/drainwise")
            if os.path.isdir(place):
                os.chmod(place, 0o755)
    assert site.run("echo $JOBFEATURES", "--nodelist=node1") != [""]


def test_why_the_hooks_are_installed_before_slurm_conf_names_them(site: Site) -> None:
    """Slurm itself drains a node whose prolog is missing: what the rendered order, and the words in it, are for."""
    prolog = next(file for file in render(SITE, "node") if file.path.endswith("prolog.d/50-drainwise"))
    os.unlink(site.cluster.path(prolog.path))
    site.start("true", "--nodelist=node3")
    site.cluster.wait_for(site.drained, DEADLINE, "the drained node")
    site.install()
    site.cluster.cancel_all()
    site.cluster.run(["scontrol", "update", "NodeName=node3", "State=RESUME"])
    site.cluster.wait_for(lambda: not site.drained(), DEADLINE, "the node to come back")


# ---- lists of hosts ----


@pytest.mark.parametrize("text", ["node[1-3]", "a[08-11,3]b[1-2]", "x[1-2]y[3-4]z[05-06]", "n7,n[7-8],login"])
def test_lists_of_hosts_as_this_release_expands_them(site: Site, text: str) -> None:
    """The expansion that needs no command agrees with the command."""
    assert hosts(text) == site.cluster.run(["scontrol", "show", "hostnames", text]).stdout.split()
