"""A snapshot of a real Slurm cluster with 20,000 waiting jobs, against the answers that it cannot do without; and what
a round of a node's agent costs slurmctld.

Some jobs run; the others wait, and are jobs of their own to slurmctld: tasks of arrays, parted by an order to each of
them (an array that has not been touched is one record).
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import replace

from benchmarks.figures import Figure
from drainwise.siteconfig import SlurmSection
from drainwise.slurm.jobs import squeue_lines as job_lines
from drainwise.slurm.jobs.commands import SlurmCommands
from drainwise.slurm.jobs.scontrol_jobs import ask
from drainwise.slurm.jobs.squeue_lines import jobs_of_lines
from drainwise.slurm.node_agent.due import TURN_ROUNDS
from drainwise.slurm.pool import old_release
from drainwise.slurm.pool.pool import SlurmPool
from drainwise.slurm.pool.transport import FILTERED_JSON, MOST_JOBS, WITH_CORES
from slurm_cluster import SlurmCluster

JOBS = 20000
ON_NODE = 64
_ARRAY = 1000  # Slurm's MaxArraySize is 1001
_SECONDS = 120.0
_ROUNDS = 60


def figures(release: str, runs: int) -> list[Figure]:
    """Medians of `runs` questions each, asked in turn, to a cluster of a Debian release; then slurmctld's CPU time."""
    with SlurmCluster(nodes=4, cpus=ON_NODE, release=release, config="MaxJobCount=40000\n") as cluster:
        tools = cluster.outside_env()["PATH"].split(os.pathsep)[0]
        commands = SlurmCommands(tools, _SECONDS)
        numbers = fill(cluster)
        pool = SlurmPool(replace(SlurmSection(), bin_dir=tools, command_timeout=30))
        count = len(jobs_of_lines(commands.start(*job_lines.COMMAND).output()))
        if count < JOBS:
            raise RuntimeError(f"only {count} jobs")
        version = ".".join(f"{number:02d}" for number in cluster.version[:2])
        filtered = cluster.version[:2] >= FILTERED_JSON
        running = ("squeue", "--json", "--all", f"--states={','.join(WITH_CORES)}")
        reports = running if filtered else old_release.COMMAND
        steps: list[tuple[str, Callable[[], object]]] = [
            (f"plain squeue of {count} jobs, {version}", lambda: commands.start(*job_lines.COMMAND).output()),
            (f"`{' '.join(reports[:2])}` for the reports of those that run", lambda: commands.start(*reports).output()),
            (
                "squeue --json of all, for comparison",
                lambda: commands.start("squeue", "--json", most=MOST_JOBS).output(),
            ),
            ("snapshot of the pool", lambda: pool.snapshot(int(time.time()))),
        ]
        spent: list[list[float]] = [[] for _ in steps]
        for turn in range(runs + 1):
            for (_, step), times in zip(steps, spent):
                begin = time.perf_counter()
                step()
                if turn:
                    times.append(time.perf_counter() - begin)
        rounds = _rounds(cluster, commands, numbers)
    medians = [statistics.median(times) for times in spent]
    found = [Figure(what, median, median / medians[0], None) for (what, _), median in zip(steps[:3], medians)]
    return [*found, Figure(steps[3][0], medians[3], medians[3] / (2 * medians[0] + medians[1]), 1.0), *rounds]


def _rounds(cluster: SlurmCluster, commands: SlurmCommands, numbers: list[int]) -> list[Figure]:
    """slurmctld's CPU time for the questions of a node's round: each job, and one job with another now and then."""
    each = {str(number): str(number) for number in numbers}
    begin = _cpu_seconds(cluster)
    for _ in range(_ROUNDS):
        ask(commands, each)
    between = _cpu_seconds(cluster)
    for turn in range(_ROUNDS):
        ask(commands, dict(list(each.items())[: 1 if turn % TURN_ROUNDS else 2]))
    all_jobs, node = (between - begin) / _ROUNDS, (_cpu_seconds(cluster) - between) / _ROUNDS
    return [
        Figure(f"slurmctld: each of {len(each)} jobs of a node asked for", all_jobs, 1.0, None),
        Figure("slurmctld: a round of the node's agent without news", node, node / all_jobs, 0.1),
    ]


def _cpu_seconds(cluster: SlurmCluster) -> float:
    """The CPU time of slurmctld so far, user and system."""
    with open(f"{cluster.root}/proc/{cluster.daemon_pid('slurmctld')}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def fill(cluster: SlurmCluster) -> list[int]:
    """Have JOBS jobs that wait, beside those on all cores; the numbers of those on the first node."""
    cores = ["--ntasks=1", "--cpus-per-task=1", "--mem=10"]
    cluster.submit("exec sleep 3600", "alice", [f"--array=1-{ON_NODE}", "--nodelist=node1", *cores])
    whole = ["--ntasks=1", f"--cpus-per-task={ON_NODE}", "--array=1-3", "--mem=10"]
    cluster.submit("exec sleep 3600", "alice", whole)
    cluster.wait_for(lambda: len(cluster.jobs("--states=running")) == ON_NODE + 3, 120, "all cores to be in use")
    numbers = [job.id for job in cluster.jobs("--states=running") if job.nodes == ("node1",)]
    for turn in range(JOBS // _ARRAY):
        user = ("alice", "bob")[turn % 2]
        number = cluster.submit("exec sleep 3600", user, [f"--array=0-{_ARRAY - 1}", *cores])
        cluster.run(["scontrol", "update", f"JobId={number}_[0-{_ARRAY - 2}]", "Nice=1"], check=False)
    return numbers
