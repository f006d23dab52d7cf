"""Ask Slurm for all that a snapshot needs, at the same time."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from drainwise.common.bounded_command import Running
from drainwise.facts.errors import PoolUnreachable
from drainwise.pool.clocks import require_same_clock
from drainwise.slurm.cluster import limits, node_line, rules
from drainwise.slurm.cluster.groups import groups_of
from drainwise.slurm.cluster.limits import limits_in
from drainwise.slurm.cluster.node_line import SlurmNode, nodes_in
from drainwise.slurm.cluster.rules import ClusterRules, controller_time, rules_in
from drainwise.slurm.jobs import squeue_lines as job_lines
from drainwise.slurm.jobs.commands import SlurmCommands
from drainwise.slurm.jobs.job import SlurmJob
from drainwise.slurm.jobs.squeue_json import jobs_in
from drainwise.slurm.jobs.states import PENDING
from drainwise.slurm.pool import shares
from drainwise.slurm.pool.old_release import with_details
from drainwise.slurm.pool.shares import Shares, shares_in

FILTERED_JSON = (23, 2)
"""The release since which `squeue --json` writes the jobs that it is asked for, and no others."""
SHAPES = {(25, 11): "=v0.0.44", (24, 11): "=v0.0.42"}
"""The shape of JSON that is asked for since these releases, the latest first: one that is known, whatever is new."""
WITH_CORES = ("configuring", "running", "completing", "suspended", "stopped", "signaling", "resizing", "stage_out")
"""The states of jobs that have cores, or had until now, as squeue takes them."""
MOST_JOBS = 1 << 31
"""Bytes of an answer about all jobs: the JSON has 11 KB of each."""

_NUMBERS = re.compile(rb"\d+")


@dataclass(frozen=True)
class Answers:
    """Slurm's answers about its jobs, its nodes, its accounts and its rules for nodes, within one moment."""

    jobs: Sequence[SlurmJob]
    nodes: list[SlurmNode]
    shares: Shares
    rules: ClusterRules = field(default_factory=ClusterRules)


class Transport(Protocol):
    """Whoever can ask Slurm."""

    def answers(self) -> Answers:
        """Return all answers. Raises PoolUnreachable when one is missing, late or not whole."""


class JobQuestion(Protocol):
    """The question for the jobs, which has been asked."""

    def jobs(self) -> Sequence[SlurmJob]:
        """Return the jobs. Raises PoolUnreachable when the answer is missing, late or not whole."""

    def end(self) -> None:
        """Have whoever was asked gone."""


class Squeue:
    """Slurm's own commands, asked one after the other; `seconds`: how long each may take.

    Plain `squeue` first: what has started by the second question is in both. That one brings the reports, which only
    jobs with cores can have: the JSON of those, or `scontrol` before 23.02, where the JSON is always of all.
    """

    def __init__(self, commands: SlurmCommands, seconds: float) -> None:
        self._commands, self._seconds = commands, seconds
        self._asked: list[Running] = []
        self._ask("scontrol", "--version")
        self._ask(*job_lines.COMMAND)

    def _ask(self, *command: str) -> Running:
        running = self._commands.start(*command, seconds=self._seconds, most=MOST_JOBS)
        self._asked.append(running)
        return running

    def jobs(self) -> Sequence[SlurmJob]:
        """See `JobQuestion`."""
        version, lines = (asked.output() for asked in self._asked[:2])
        listed = job_lines.jobs_of_lines(lines)
        if _release(version) >= FILTERED_JSON:
            shape = next((shape for first, shape in SHAPES.items() if _release(version) >= first), "")
            states = f"--states={','.join(WITH_CORES)}"
            found = jobs_in(self._ask("squeue", f"--json{shape}", "--all", states).output())
            known = {job.number for job in found}
            return found + [job for job in listed if job.number not in known and PENDING in job.states]
        return with_details(listed, self._commands, lambda *command: self._ask(*command).output())

    def end(self) -> None:
        """See `JobQuestion`."""
        for asked in self._asked:
            asked.end()


def _release(version: bytes) -> tuple[int, ...]:
    """Return the first two numbers in `slurm-wlm 24.11.5`."""
    return tuple(int(number) for number in _NUMBERS.findall(version)[:2])


class CommandLine:
    """Slurm's own commands; `seconds`: how long the list of jobs may take. It alone grows with the cluster's work."""

    def __init__(self, commands: SlurmCommands, seconds: float = 120.0) -> None:
        self._commands, self._seconds = commands, seconds

    def answers(self) -> Answers:
        """See `Transport`."""
        return all_answers(self._commands, Squeue(self._commands, self._seconds))


def all_answers(commands: SlurmCommands, question: JobQuestion) -> Answers:
    """Return the answer to the question for the jobs with those to the small ones.

    Raises PoolUnreachable, also when slurmctld's clock is another one than this machine's.
    """
    asked: list[Running] = []
    begun = time.time()
    try:
        asked += [
            commands.start(*rules.COMMAND, stdin=rules.QUESTIONS),
            commands.start(*node_line.COMMAND),
            commands.start(*shares.COMMAND),
        ]
        # The quick ones first: when slurmctld is gone, their time is over sooner.
        config, nodes, tree = (one.output().decode("utf-8", "replace") for one in asked)
        require_same_clock(controller_time(config), begun, time.time(), "slurmctld's")
        found = rules_in(config)
        are_enforced = limits.ENFORCED in found.enforced
        if are_enforced:
            asked.append(commands.start(*limits.COMMAND, most=limits.MOST_BYTES))
        jobs = question.jobs()
        waiting = [job for job in jobs if PENDING in job.states]
        if waiting and are_enforced:
            found = replace(found, limits=limits_in(asked[-1].output().decode("utf-8", "replace")))
        found = replace(found, groups=groups_of(waiting, found.partitions))
        seen = nodes_in(nodes, found.release)
        if missing := found.nodes - {node.name for node in seen}:
            # An answer that is cut at a line's end looks whole.
            raise PoolUnreachable(f"incomplete answer: sinfo lacks {len(missing)} nodes, such as {min(missing)}")
        return Answers(jobs, found.on(seen), shares_in(tree), found)
    finally:
        question.end()
        for one in asked:
            one.end()
