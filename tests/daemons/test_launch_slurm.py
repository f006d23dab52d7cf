"""`drainwise launch` in a real Slurm: 200 jobs, and what goes wrong with one, with slurmctld and with us."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator, Mapping

import pytest

import launch_checks as checks
from launch_on_site import USER, Accounted, LaunchOnSite, job
from slurm_cluster import SlurmCluster

pytestmark = [pytest.mark.play, pytest.mark.in_turn("launch", "Slurm")]
FULL_NAME = re.compile(r"[A-Za-z0-9_.-]+:(.+)\.[A-Za-z0-9_-]+")
# In the same place of both lists, so that all tests of one release come in the order in which they stand here.
BOTH_RELEASES = pytest.mark.parametrize("slurm_release", ["trixie", "bookworm"], indirect=True)
ONE_RELEASE = pytest.mark.parametrize("slurm_release", ["trixie"], indirect=True)
STATE = "/srv/central/state"
COMPONENTS = """\
echo "$SLURM_HET_SIZE $SLURM_CPUS_PER_TASK_HET_GROUP_1 $SLURM_MEM_PER_NODE_HET_GROUP_1"
squeue --noheader --jobs="$SLURM_JOB_ID" --format=%w
"""


class Slurm:
    """See `BatchSystem`."""

    backend = "slurm"
    slack = 2.0

    def __init__(self, site: SlurmCluster) -> None:
        self.site = site
        self.table: Mapping[str, object] = {"use_nice": True, "accounting_seconds": 2, "command_seconds": 5}

    def queued(self, waiting: bool) -> dict[str, str]:
        state = "PENDING" if waiting else "RUNNING"
        command = ["squeue", "--noheader", f"--user={USER}", f"--states={state}", "--format=%A|%j"]
        return {name: number for number, name in self._named(self.site.run(command, check=False).stdout)}

    def end(self, number: str) -> None:
        self.site.run(["scancel", number], user=USER)

    def accounted(self) -> list[tuple[str, Accounted]]:
        fields = "--format=JobIDRaw,JobName%200,Start,End"
        command = ["sacct", "--noheader", "--parsable2", "--allocations", "--duplicates", fields, f"--user={USER}"]
        said = self.site.run(command, environment={"SLURM_TIME_FORMAT": "%s"}).stdout
        found = []
        for line in said.splitlines():
            number, name, start, end = line.split("|")
            match = FULL_NAME.fullmatch(name)
            if match and start.isdigit() and end.isdigit():
                found.append((match[1], Accounted(int(number), int(start))))
        return found

    @staticmethod
    def _named(said: str) -> Iterator[tuple[str, str]]:
        for line in said.splitlines():
            number, _bar, name = line.partition("|")
            match = FULL_NAME.fullmatch(name)
            if match:
                yield number, match[1]


@pytest.fixture(scope="module")
def cluster(slurm_release: str) -> Iterator[SlurmCluster]:
    """Priorities large enough that nice values count, and an origin for these of yesterday."""
    yesterday = time.strftime("%Y-%m-%d %H:%M", time.localtime(time.time() - 86400))
    config = [
        f'PriorityParameters="time_origin={yesterday},nice_factor=10"',
        "PriorityWeightPartition=2000000000",
        "SchedulerParameters=bf_interval=1,sched_interval=1,batch_sched_delay=0",
        "Licenses=tool:4",
    ]
    with SlurmCluster(nodes=2, cpus=8, release=slurm_release, config="\n".join(config)) as running:
        yield running


@pytest.fixture(scope="module")
def launcher(cluster: SlurmCluster) -> Iterator[LaunchOnSite]:
    made = LaunchOnSite(Slurm(cluster))
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _no_job_left(cluster: SlurmCluster) -> Iterator[None]:
    yield
    cluster.cancel_all()


@BOTH_RELEASES
def test_two_hundred_jobs(launcher: LaunchOnSite, cluster: SlurmCluster) -> None:
    """5 buckets, never more than n_max_queued_jobs of one waiting, begun by pressure; one fails, one is cancelled."""
    checks.two_hundred(launcher)


@ONE_RELEASE
def test_the_next_launcher_takes_up_what_a_killed_one_left(launcher: LaunchOnSite) -> None:
    checks.launcher_killed(launcher)


@BOTH_RELEASES
def test_new_priorities_count_for_those_that_wait(launcher: LaunchOnSite, cluster: SlurmCluster) -> None:
    blocker = cluster.submit("sleep 300", "bob", ["--nodelist=node1", "--cpus-per-task=8"])
    cluster.wait_for(lambda: cluster.job(blocker).state == "RUNNING", 20, "all cores to be in use")
    resources: dict[str, object] = {"cpu": 8, "nodes": "node1"}
    checks.reprioritised(launcher, resources, lambda: cluster.run(["scancel", str(blocker)]))


@BOTH_RELEASES
def test_attributes_are_slurm_s_own(launcher: LaunchOnSite, cluster: SlurmCluster) -> None:
    """Licences that Slurm declares, a heterogeneous job, names with shell characters; what Slurm has not is refused.

    All under a limit on submitted jobs, and as if the launcher ran in a job itself.
    """
    evil = "a'b\"c $(id) `id` ;|&<> #SBATCH -N x"
    script = "scontrol --oneliner show job $SLURM_JOB_ID"
    jobs = [
        job("partition", ["true"], partition="nowhere"),
        job("gres", ["true"], ssd=1),
        job("large", ["true"], memory=1_000_000),
        job("components", ["sh", "-c", COMPONENTS], cpu1=2, mem1="32M", wckey="k1"),
        job("licensed", ["true"], tool=4, nodes="node1", qos="normal", features0="x"),
        {**job("licences", ["sh", "-c", script], tool=2, nodes="node1"), "environment": {"SLURM_JOB_ID": "1"}},
        job(evil, ["printf", "%s", evil]),
        *(job(f"more-{place}", ["true"]) for place in range(2)),
    ]
    cluster.run(["sacctmgr", "-i", "modify", "user", USER, "set", "MaxSubmitJobs=3"])
    code, ended, said = launcher.launch("odd", jobs, repo_key="odd one:").end()
    cluster.run(["sacctmgr", "-i", "modify", "user", USER, "set", "MaxSubmitJobs=-1"])
    assert code == 1, said
    assert said.count("AssocMaxSubmitJobLimit") == 1, said
    states = {name: one["state"] for name, one in ended.items()}
    assert states == {
        **dict.fromkeys(("partition", "gres", "large", "licensed"), "failed"),
        **dict.fromkeys(("components", "licences", evil, "more-0", "more-1"), "done"),
    }, ended
    assert "nvalid partition" in str(ended["partition"]["why"])

    def printed(name: str) -> str:
        with open(cluster.root + str(ended[name]["output"]), encoding="utf-8") as file:
            return file.read()

    assert printed(evil) == evil
    assert printed("components").split() == ["2", "2", "32", "k1", "k1"]
    assert "Licenses=tool:2" in printed("licences") and "NodeList=node1 " in printed("licences")
    assert "JobName=odd_one:licences." in printed("licences")


@BOTH_RELEASES
def test_a_licence_of_another_component_is_refused_before_slurm_does(
    launcher: LaunchOnSite, cluster: SlurmCluster
) -> None:
    """Nothing of the launch begins; asked all the same, 24.11 refuses it, and 22.05 takes it."""
    jobs = [job("other", ["true"]), job("one", ["true"], licence1="tool:1")]
    code, ended, said = launcher.launch("licence1", jobs).end()
    assert code == 2 and not ended and "licence1: Slurm takes licences for the first component" in said, said
    words = ["--wrap=true", "--licenses=tool:1", ":", "--licenses=tool:1"]
    asked = cluster.run(["sbatch", "--chdir=/", "--output=/dev/null", *words], user=USER, check=False)
    takes = cluster.release == "bookworm"
    assert (asked.returncode == 0, "Invalid license" in asked.stderr) == (takes, not takes), asked


@ONE_RELEASE
def test_a_job_that_vanishes_is_started_once_more(launcher: LaunchOnSite, cluster: SlurmCluster) -> None:
    """A controller that is restored from an older state knows nothing of younger jobs, and gives their numbers anew:
    to a job of this user's own (HOSTILE 48), which is left alone."""
    blockers = []

    def prepare() -> None:
        blockers.append(cluster.submit("sleep 300", "bob", ["--licenses=tool:4"]))
        cluster.wait_for(lambda: cluster.job(blockers[0]).state == "RUNNING", 20, "all licences to be in use")
        cluster.kill_daemon("slurmctld", signal.SIGTERM)
        cluster.run(["cp", "-a", STATE, f"{STATE}.older"])
        cluster.start_daemon("slurmctld")
        cluster.wait_until_complete()

    def lose(number: str) -> None:
        cluster.kill_daemon("slurmctld", signal.SIGKILL)
        cluster.run(["sh", "-c", f"rm -r {STATE} && mv {STATE}.older {STATE}"])
        cluster.start_daemon("slurmctld")
        assert cluster.submit("exec sleep 300", USER) == int(number)
        cluster.wait_until_complete()
        cluster.run(["scancel", str(blockers[0])])
        others.append(int(number))

    others: list[int] = []
    checks.vanished(launcher, "tool", prepare, lose)
    assert cluster.job(others[0]).state == "RUNNING"


@BOTH_RELEASES
def test_a_job_whose_node_fails_is_started_once_more(launcher: LaunchOnSite, cluster: SlurmCluster) -> None:
    """It says nothing about the job; submitted with --no-requeue, Slurm itself would leave it at that."""
    begun = f"/home/{USER}/begun"
    again = f"test -e {begun} || {{ touch {begun}; exec sleep 300; }}"
    launched = launcher.launch("fails", [job("unlucky", ["sh", "-c", again], nodes="node2", account="atlas")])
    # Slurm says that it runs before it does; a run that ended before its first command would sleep the second time.
    cluster.wait_for(lambda: cluster.run(["test", "-e", begun], check=False).returncode == 0, 30, "the job to run")
    cluster.run(["scontrol", "update", "NodeName=node2", "State=DOWN", "Reason=test"])

    def is_back() -> bool:
        cluster.run(["scontrol", "update", "NodeName=node2", "State=RESUME"], check=False)
        return cluster.run(["sinfo", "--noheader", "--nodes=node2", "--format=%T"]).stdout.strip() in {"idle", "mixed"}

    cluster.wait_for(is_back, 30, "node2 to be of use again")
    code, ended, said = launched.end()
    assert (code, ended["unlucky"]["state"]) == (0, "done"), said
    assert said.count("vanished from slurm: NODE_FAIL; it is started once more") == 1, said


@ONE_RELEASE
def test_slurmctld_goes_away_comes_back_and_hangs(launcher: LaunchOnSite, cluster: SlurmCluster) -> None:
    def launched() -> int:
        return sum(cluster.log(node).count("Launching batch job") for node in cluster.node_names)

    def leave() -> None:
        # Of a job that is allocated but not launched yet when it ends, a slurmctld says for minutes that it runs.
        cluster.wait_for(lambda: launched() >= before + 4, 20, "the first four jobs to be launched")
        cluster.kill_daemon("slurmctld", signal.SIGTERM)

    def come_back() -> None:
        cluster.start_daemon("slurmctld")
        cluster.wait_until_complete()
        number = str(cluster.daemon_pid("slurmctld"))
        cluster.run(["kill", "-STOP", number])
        # Longer than a command of the launcher's may take.
        assert cluster.run(["timeout", "4", "squeue"], check=False).returncode == 124
        cluster.run(["kill", "-CONT", number])

    before = launched()
    checks.away(launcher, "away", leave, come_back)


@ONE_RELEASE
def test_ctrl_c_ends_what_was_started(launcher: LaunchOnSite) -> None:
    checks.interrupted(launcher)
