"""The road of questions to Slurm: all that a snapshot needs, asked at the same time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from drainwise.slurm import node_line, shares
from drainwise.slurm.commands import SlurmCommands
from drainwise.slurm.controller_clock import ControllerClock
from drainwise.slurm.job_record import Job, jobs_in
from drainwise.slurm.node_line import Node, nodes_in
from drainwise.slurm.shares import Shares, shares_in


@dataclass(frozen=True)
class Answers:
    """What Slurm said about its jobs, its nodes and its accounts, within one moment."""

    jobs: list[Job]
    nodes: list[Node]
    shares: Shares


class Transport(Protocol):
    """Whoever can ask Slurm."""

    def answers(self) -> Answers:
        """All answers. Raises PoolUnreachable when one is missing, late or not whole."""


class JobQuestion(Protocol):
    """The question for the jobs, which has been asked."""

    def jobs(self) -> list[Job]:
        """The jobs. Raises PoolUnreachable when the answer is missing, late or not whole."""

    def end(self) -> None:
        """Have whoever was asked gone."""


class Squeue:
    """`squeue --json`, running; `seconds`: how long it may take."""

    def __init__(self, commands: SlurmCommands, seconds: float) -> None:
        self._running = commands.start("squeue", "--json", "--all", seconds=seconds)

    def jobs(self) -> list[Job]:
        """See `JobQuestion`."""
        return jobs_in(self._running.output())

    def end(self) -> None:
        """See `JobQuestion`."""
        self._running.end()


class CommandLine:
    """Slurm's own commands; `seconds`: how long the list of jobs may take. It alone grows with the cluster's work."""

    def __init__(self, commands: SlurmCommands, seconds: float = 120.0) -> None:
        self._commands, self._seconds = commands, seconds

    def answers(self) -> Answers:
        """See `Transport`."""
        return all_answers(self._commands, Squeue(self._commands, self._seconds))


def all_answers(commands: SlurmCommands, question: JobQuestion) -> Answers:
    """The answer to the question for the jobs with those of sinfo and sshare.

    Raises PoolUnreachable, also when slurmctld's clock is another one than this machine's.
    """
    clock = ControllerClock(commands)
    asked = []
    try:
        asked += [commands.start(*command) for command in (node_line.COMMAND, shares.COMMAND)]
        # The quick ones first: when slurmctld is gone, their time is over sooner.
        clock.require_same()
        nodes, tree = (one.output().decode("utf-8", "replace") for one in asked)
        return Answers(question.jobs(), nodes_in(nodes), shares_in(tree))
    finally:
        question.end()
        clock.end()
        for one in asked:
            one.end()
