"""The chunk jobs of a leader: what each is started with, and what becomes of them when the leader ends."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import pytest

from drainwise.cli import pilot
from drainwise.cli.command_line.options import build
from drainwise.facts.errors import ActionRefused, PoolUnreachable, UsageError
from drainwise.pilot.chunks import ChunkPlan, chunk_jobs_here, chunk_jobs_of, chunks
from drainwise.pilot.decide.lease import Lease
from drainwise.systems.chunk_jobs import ChunkJob

WORDS = ("pilot", "run", "--queue", "q", "--cores", "8", "--chunks", "3", "--seconds", "900", "--poll", "2")
LEASE = Lease(8, 1000.0, 1900.0)


class MadeUpBatchSystem:
    """Takes `room` chunk jobs, then fails."""

    node = "node7"

    def __init__(self, room: int = 99, fault: Exception | None = None) -> None:
        self.room, self.fault = room, fault
        self.taken: list[ChunkJob] = []
        self.removed: list[str] = []

    def submit(self, job: ChunkJob) -> str:
        if len(self.taken) == self.room:
            raise self.fault or ActionRefused("sbatch refused: no more")
        self.taken.append(job)
        return str(len(self.taken))

    def remove_waiting(self, ids: Sequence[str]) -> None:
        self.removed += ids
        if self.fault:
            raise self.fault


def plan(count: int = 3, cores: int = 2) -> ChunkPlan:
    return ChunkPlan("node7-42-a1", count, cores, WORDS, ("--queue", "/data/q"), ("--qos=grid",))


def parsed(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    build(parser.add_subparsers(), "pilot", pilot.COMMAND)
    return parser.parse_args(words)


def test_a_chunk_job_is_the_same_pilot_on_its_own_cores() -> None:
    """All options of the leader count but for its cores, its queue's path, its directory, and that it leads."""
    jobs = chunk_jobs_of(plan(), LEASE, now=1100.0)
    assert [job.name for job in jobs] == ["node7-42-a1.1", "node7-42-a1.2", "node7-42-a1.3"]
    for job in jobs:
        assert (job.cores, job.share, job.seconds, tuple(job.options)) == (2, 0.25, 800, ("--qos=grid",))
        args = parsed(job.argv[job.argv.index("pilot") :])
        assert (args.chunks, args.cores, args.queue, args.directory, args.seconds) == (0, 2, "/data/q", ".", 800.0)
        assert args.poll == 2.0


def test_those_that_wait_are_removed_when_the_leader_ends() -> None:
    """Asked for when it begins, not before; at its end the batch system is told all of them."""
    system, said = MadeUpBatchSystem(), list[str]()
    leader = chunks(system, plan(), LEASE, 1100.0, said.append)
    assert system.taken == []
    with leader:
        assert len(system.taken) == 3
        assert system.removed == []
    assert system.removed == ["1", "2", "3"]
    assert said == ["asked for 3 chunk jobs of 2 cores on node7: 1, 2, 3"]


@pytest.mark.parametrize("fault", [ActionRefused("sbatch refused: limit"), PoolUnreachable("no sbatch on this node")])
def test_a_batch_system_that_fails_costs_log_lines(fault: Exception) -> None:
    """The leader goes on; what was taken is removed all the same."""
    system, said = MadeUpBatchSystem(1, fault), list[str]()
    with chunks(system, plan(), LEASE, 1100.0, said.append):
        assert len(system.taken) == 1
    assert system.removed == ["1"]
    assert said[0] == f"2 chunk jobs are not asked for: {fault}"
    assert said[-1] == f"chunk jobs that still wait are not removed: {fault}"


def test_nothing_is_removed_where_nothing_was_taken() -> None:
    """An empty list of jobs might mean all of them to a batch system."""
    system = MadeUpBatchSystem(0)
    with chunks(system, plan(), LEASE, 1100.0, list[str]().append):
        pass
    assert system.removed == []


def test_outside_of_a_job_there_is_nobody_to_ask() -> None:
    """A variable of the features does not make a job."""
    with pytest.raises(UsageError, match="in no job"):
        chunk_jobs_here({"PATH": "/usr/bin", "JOBFEATURES": "/somewhere"}, "/")


def test_the_features_of_the_leader_are_no_chunk_jobs() -> None:
    """Nor those that a container would get: the site gives each job its own."""
    environment = {"SLURMD_NODENAME": "n1", "JOBSTATUS": "x", "APPTAINERENV_JOBFEATURES": "y", "MACHINEFEATURES": "z"}
    jobs = chunk_jobs_here({**environment, "SLURM_JOB_ID": "7", "HOME": "/home/a"}, "/")
    assert vars(jobs)["_environment"] == {"HOME": "/home/a"}
