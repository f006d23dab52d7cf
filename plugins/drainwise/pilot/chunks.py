"""The chunk jobs of a leader: pilots of their own on its node that share its queue, each one removable by itself.

A batch system that takes no cores back from a running job takes back a whole job. A pilot in several jobs gives its
cores back in chunks. The leader asks for them once and removes at its end those that still wait. One that runs is a
pilot like any other: it reports, it has its own orders, it may outlive the leader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from drainwise.facts.errors import PoolError, UsageError
from drainwise.pilot.decide.lease import Lease
from drainwise.processes.children import isolated_program
from drainwise.systems.chunk_jobs import ChunkJob, ChunkJobs
from drainwise.systems.find import offering
from drainwise.systems.system import System

_OF_THE_JOB = ("MACHINEFEATURES", "JOBFEATURES", "JOBSTATUS")
"""What only the leader's job has: the site gives a chunk job its own."""


@dataclass(frozen=True)
class ChunkPlan:
    """The chunk jobs that `leader` (its id) asks for: `count` of `cores` each.

    words: the leader's own command line, after the program; overrides: what each chunk job has instead, the last one
    of an option counts. options: further ones of the batch system.
    """

    leader: str
    count: int
    cores: int
    words: Sequence[str]
    overrides: Sequence[str]
    options: Sequence[str] = ()


@contextmanager
def chunks(jobs: ChunkJobs, plan: ChunkPlan, lease: Lease, now: float, log: Callable[[str], None]) -> Iterator[None]:
    """Ask for the chunk jobs, and when the block is left remove those that still wait.

    A batch system that refuses or does not answer costs a log line: the leader goes on with what it has.
    """
    wanted, ids = chunk_jobs_of(plan, lease, now), list[str]()
    try:
        for job in wanted:
            ids.append(jobs.submit(job))
    except PoolError as fault:
        log(f"{len(wanted) - len(ids)} chunk jobs are not asked for: {fault}")
    if ids:
        log(f"asked for {len(ids)} chunk jobs of {wanted[0].cores} cores on {jobs.node}: {', '.join(ids)}")
    try:
        yield
    finally:
        if ids:
            try:
                jobs.remove_waiting(ids)
            except PoolError as fault:
                log(f"chunk jobs that still wait are not removed: {fault}")


def chunk_jobs_of(plan: ChunkPlan, lease: Lease, now: float) -> list[ChunkJob]:
    """Return the chunk jobs: each may run for as long as is left of the leader's lease at `now`, UNIX s. Pure."""
    seconds = max(1, int((now if lease.end is None else lease.end) - now))
    argv = (
        *isolated_program("drainwise.cli.main:main", *plan.words),
        *(*plan.overrides, "--chunks", "0", "--cores", str(plan.cores), "--seconds", str(seconds), "--directory", "."),
    )
    share = plan.cores / lease.cores
    return [
        ChunkJob(plan.cores, share, argv, f"{plan.leader}.{number}", seconds, tuple(plan.options))
        for number in range(1, plan.count + 1)
    ]


def chunk_jobs_here(environment: Mapping[str, str], directory: str) -> ChunkJobs:
    """Return the batch system that runs this job. directory: the leader's, absolute.

    Raises UsageError where there is none, or none that offers chunk jobs.
    """
    mine = {name: value for name, value in environment.items() if not name.endswith(_OF_THE_JOB)}
    for system in offering(System.chunk_jobs):
        found = system.chunk_jobs(mine, directory)
        if found is not None:
            return found
    raise UsageError("--chunks: this pilot is in no job of a batch system that offers chunk jobs")
