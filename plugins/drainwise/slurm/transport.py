"""The road of questions to Slurm: all that a snapshot needs, asked at the same time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from drainwise.slurm import node_line, shares
from drainwise.slurm.commands import SlurmCommands
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


class CommandLine:
    """Slurm's own commands; `seconds`: how long the list of jobs may take. It alone grows with the cluster's work."""

    def __init__(self, commands: SlurmCommands, seconds: float = 120.0) -> None:
        self._commands, self._seconds = commands, seconds

    def answers(self) -> Answers:
        """See `Transport`."""
        asked = [self._commands.start("squeue", "--json", "--all", seconds=self._seconds)]
        try:
            asked += [self._commands.start(*command) for command in (node_line.COMMAND, shares.COMMAND)]
            # The quick ones first: when slurmctld is gone, their time is over sooner.
            nodes, tree = (one.output().decode("utf-8", "replace") for one in asked[1:])
            return Answers(jobs_in(asked[0].output()), nodes_in(nodes), shares_in(tree))
        finally:
            for one in asked:
                one.end()
