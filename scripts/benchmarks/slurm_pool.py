"""A snapshot of a real Slurm cluster with 5,000 jobs, against the `squeue --json` that it cannot do without.

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
from drainwise.siteconfig.schema import SlurmSection
from drainwise.slurm.commands import SlurmCommands
from drainwise.slurm.job_record import jobs_in
from drainwise.slurm.pool import SlurmPool
from slurm_cluster import SlurmCluster

JOBS = 5000
_ARRAY = 1000  # Slurm's MaxArraySize is 1001
_SECONDS = 120.0


def figures(release: str, runs: int) -> list[Figure]:
    """Medians of `runs` questions each, asked in turn, to a cluster of a Debian release."""
    with SlurmCluster(nodes=4, cpus=8, release=release, config="MaxJobCount=20000\n") as cluster:
        commands = SlurmCommands(cluster.outside_env()["PATH"].split(os.pathsep)[0], _SECONDS)
        fill(cluster)
        settings = replace(SlurmSection(), bin_dir=cluster.outside_env()["PATH"].split(os.pathsep)[0])
        pool = SlurmPool(settings)
        count = len(jobs_in(commands.start("squeue", "--json").output()))
        if count < JOBS:
            raise RuntimeError(f"only {count} jobs")
        version = ".".join(str(number) for number in cluster.version[:2])
        steps: list[tuple[str, Callable[[], object], float | None]] = [
            (
                f"squeue --json of {count} jobs, {version[:2]}.{int(version[3:]):02d}",
                lambda: commands.start("squeue", "--json").output(),
                None,
            ),
            ("snapshot of the pool", lambda: pool.snapshot(int(time.time())), 1.5),
        ]
        spent: list[list[float]] = [[] for _ in steps]
        for turn in range(runs + 1):
            for (_, step, _), times in zip(steps, spent):
                begin = time.perf_counter()
                step()
                if turn:
                    times.append(time.perf_counter() - begin)
        cluster.run(["scancel", "--user=alice"])
        cluster.run(["scancel", "--user=bob"])
    medians = [statistics.median(times) for times in spent]
    return [Figure(what, median, median / medians[0], target) for (what, _, target), median in zip(steps, medians)]


def fill(cluster: SlurmCluster) -> None:
    """Have JOBS jobs: as many as there are cores run, the others wait."""
    cores = ["--ntasks=1", "--cpus-per-task=1"]
    cluster.submit("exec sleep 3600", "alice", ["--array=1-32", *cores])
    cluster.wait_for(lambda: len(cluster.jobs("--states=running")) == 32, 60, "all cores to be in use")
    for turn in range(JOBS // _ARRAY):
        user = ("alice", "bob")[turn % 2]
        number = cluster.submit("exec sleep 3600", user, [f"--array=0-{_ARRAY - 1}", *cores])
        cluster.run(["scontrol", "update", f"JobId={number}_[0-{_ARRAY - 2}]", "Nice=1"], check=False)
