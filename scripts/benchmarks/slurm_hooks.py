"""Slurm's hooks as whole processes against the bare start of the interpreter.

Prolog and epilog as root, the task prolog as the job's user. The runtime directory is in memory, as it is on a node.
"""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.figures import Figure
from benchmarks.processes import Command, against_floor
from made_up_slurm_node import MadeUpJob, SlurmNode

TARGET = 1.6


def as_root(node: SlurmNode, job: MadeUpJob, runs: int) -> list[Figure]:
    """Prolog and epilog (this process is root): each run is that of another job."""
    environment, numbers = job.environment(), iter(range(1_000_000, 2_000_000))

    def next_job() -> None:
        environment["SLURM_JOB_ID"] = str(next(numbers))

    def started_job() -> None:
        next_job()
        node.prolog(job, SLURM_JOB_ID=environment["SLURM_JOB_ID"])

    prolog = Command(
        "Slurm prolog: the job's tree made",
        (node.hook("prolog"),),
        TARGET,
        environment,
        before=next_job,
    )
    epilog = Command(
        "Slurm epilog: the job's tree removed", (node.hook("epilog"),), None, environment, before=started_job
    )
    return against_floor([prolog, epilog], runs)[1:]


def as_user(node: SlurmNode, job: MadeUpJob, runs: int) -> Callable[[], list[Figure]]:
    """Lay out a job for its task prolog, as root; what measures it, to be called as the job's user."""
    node.prolog(job)
    command = Command(
        "Slurm task prolog: the variables printed", (node.hook("task_prolog"),), TARGET, job.environment()
    )
    return lambda: against_floor([command], runs)[1:]
