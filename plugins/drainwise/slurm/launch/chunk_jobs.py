"""A leader's chunk jobs in Slurm: sbatch with the leader's node, partition, account and QOS; scancel of who waits."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence

from drainwise.common.bounded_command import Answer, run_in_path
from drainwise.facts.errors import ActionRefused
from drainwise.systems.chunk_jobs import ChunkJob, ChunkJobs

OUTPUT = "chunk.out"
"""The file for stdout and stderr in the directory of a chunk job."""
_SECONDS = 20.0  # for a submission
_LAST_SECONDS = 5.0  # for what a leader does when its time is over
# What the leader's job says of itself → the option of sbatch that asks for the same.
_INHERITED = {
    "SLURM_JOB_PARTITION": "partition",
    "SLURM_JOB_ACCOUNT": "account",
    "SLURM_JOB_QOS": "qos",
    "SLURM_JOB_RESERVATION": "reservation",
}
_OF_THE_LEADER = ("SLURM_", "SLURMD_", "SBATCH_", "SRUN_")
_KEPT = "SLURM_CONF"


def chunk_jobs(environment: Mapping[str, str], directory: str) -> ChunkJobs | None:
    """Return Slurm as the job in `environment` reaches it; None where this is no job of Slurm's.

    directory: of the leader, absolute; each chunk job has one of its own below it.
    """
    return SlurmChunkJobs(environment, directory) if environment.get("SLURMD_NODENAME") else None


class SlurmChunkJobs:
    """See `ChunkJobs`."""

    def __init__(self, environment: Mapping[str, str], directory: str) -> None:
        self.node, self._directory, self._job = environment["SLURMD_NODENAME"], directory, environment
        self._environment = {
            name: value for name, value in environment.items() if name == _KEPT or not name.startswith(_OF_THE_LEADER)
        }

    def submit(self, job: ChunkJob) -> str:
        """See `ChunkJobs`."""
        place = f"{self._directory}/{job.name}"
        try:
            os.makedirs(place, exist_ok=True)
        except OSError as fault:
            raise ActionRefused(f"{place}: cannot be made: {fault.strerror}") from None
        arguments = sbatch_options(job, self._job, place)
        answer = self._run(_SECONDS, "sbatch", *arguments, stdin=f"#!/bin/sh\nexec {shlex.join(job.argv)}\n")
        number = answer.text.strip().partition(";")[0]
        if answer.code or not number.isdigit():
            raise ActionRefused(f"sbatch refused: {answer.complaint}")
        return number

    def remove_waiting(self, ids: Sequence[str]) -> None:
        """See `ChunkJobs`."""
        answer = self._run(_LAST_SECONDS, "scancel", "--quiet", "--state=PENDING", *ids)
        if answer.code:
            raise ActionRefused(f"scancel failed: {answer.complaint}")

    def _run(self, seconds: float, name: str, *arguments: str, stdin: str = "") -> Answer:
        return run_in_path(name, *arguments, environment=self._environment, seconds=seconds, stdin=stdin)


def sbatch_options(job: ChunkJob, leader: Mapping[str, str], place: str) -> list[str]:
    """Return the options of sbatch for a chunk job. leader: the variables of the leader's job. Pure."""
    options = [
        *("--parsable", f"--nodelist={leader['SLURMD_NODENAME']}", "--nodes=1", "--ntasks=1"),
        *(f"--cpus-per-task={job.cores}", f"--time={-(-job.seconds // 60)}", f"--job-name={job.name}"),
        *(f"--chdir={place}", f"--output={OUTPUT}", "--export=ALL"),
        *(f"--{option}={leader[name]}" for name, option in _INHERITED.items() if leader.get(name)),
    ]
    memory, of_cpu = leader.get("SLURM_MEM_PER_NODE", ""), leader.get("SLURM_MEM_PER_CPU", "")
    if of_cpu.isdigit() and int(of_cpu):
        options.append(f"--mem-per-cpu={of_cpu}")
    elif memory.isdigit() and int(memory):
        options.append(f"--mem={max(1, int(int(memory) * job.share))}")
    return [*options, *job.options]
