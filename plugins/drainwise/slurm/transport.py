"""The road of questions to Slurm: all that a snapshot needs, asked at the same time."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field, replace
from typing import Protocol

from drainwise.clocks import require_same_clock
from drainwise.errors import PoolUnreachable
from drainwise.slurm import demand, job_comments, job_lines, node_line, shares
from drainwise.slurm.admin_comment import says_untold
from drainwise.slurm.commands import Running, SlurmCommands
from drainwise.slurm.demand import Selection, selection_in
from drainwise.slurm.job_comments import asked_alone, comments_in
from drainwise.slurm.job_record import PENDING, RUNNING, Job, jobs_in
from drainwise.slurm.node_line import Node, nodes_in
from drainwise.slurm.shares import Shares, shares_in

FILTERED_JSON = (23, 2)
"""The release since which `squeue --json` writes the jobs that it is asked for, and no others."""
WITH_CORES = ("configuring", "running", "completing", "suspended", "stopped", "signaling", "resizing", "stage_out")
"""The states of jobs that have cores, or had until now, as squeue takes them."""
MOST_UNCLEAR = 256
"""Jobs that are asked for one by one; where users forge more lines than that, the JSON of all jobs costs less."""

_NUMBERS = re.compile(rb"\d+")
_TIME = re.compile(r"Configuration data as of ([0-9]{9,10})\n")  # its clock, not when it read slurm.conf


@dataclass(frozen=True)
class Answers:
    """What Slurm said about its jobs, its nodes, its accounts and how nodes are shared, within one moment."""

    jobs: list[Job]
    nodes: list[Node]
    shares: Shares
    selection: Selection = field(default_factory=Selection)


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
        running = self._commands.start(*command, seconds=self._seconds)
        self._asked.append(running)
        return running

    def jobs(self) -> list[Job]:
        """See `JobQuestion`."""
        version, lines = (asked.output() for asked in self._asked[:2])
        listed = job_lines.jobs_of_lines(lines)
        if _release(version) >= FILTERED_JSON:
            found = jobs_in(self._ask("squeue", "--json", "--all", f"--states={','.join(WITH_CORES)}").output())
            known = {job.number for job in found}
            return found + [job for job in listed if job.number not in known and PENDING in job.states]
        running = {job.number for job in listed if RUNNING in job.states}
        if not running:
            return listed
        comments, unclear = comments_in(self._ask(*job_comments.COMMAND).output(), running)
        if len(unclear) > MOST_UNCLEAR:
            return jobs_in(self._ask("squeue", "--json", "--all").output())
        comments.update(asked_alone(self._commands, unclear))
        if any(says_untold(comment) for comment in comments.values()):
            # Such a job is not asked to leave, and its user can spell that in its name: only the JSON is sure.
            return jobs_in(self._ask("squeue", "--json", "--all").output())
        return [replace(job, admin_comment=comments.get(job.number, "")) for job in listed]

    def end(self) -> None:
        """See `JobQuestion`."""
        for asked in self._asked:
            asked.end()


def _release(version: bytes) -> tuple[int, ...]:
    """The first two numbers in `slurm-wlm 24.11.5`."""
    return tuple(int(number) for number in _NUMBERS.findall(version)[:2])


class CommandLine:
    """Slurm's own commands; `seconds`: how long the list of jobs may take. It alone grows with the cluster's work."""

    def __init__(self, commands: SlurmCommands, seconds: float = 120.0) -> None:
        self._commands, self._seconds = commands, seconds

    def answers(self) -> Answers:
        """See `Transport`."""
        return all_answers(self._commands, Squeue(self._commands, self._seconds))


def all_answers(commands: SlurmCommands, question: JobQuestion) -> Answers:
    """The answer to the question for the jobs with those to the small ones.

    Raises PoolUnreachable, also when slurmctld's clock is another one than this machine's.
    """
    asked: list[Running] = []
    begun = time.time()
    try:
        asked += [commands.start(*command) for command in (demand.COMMAND, node_line.COMMAND, shares.COMMAND)]
        # The quick ones first: when slurmctld is gone, their time is over sooner.
        config, nodes, tree = (one.output().decode("utf-8", "replace") for one in asked)
        require_same_clock(_controller_time(config), begun, time.time(), "slurmctld's")
        return Answers(question.jobs(), nodes_in(nodes), shares_in(tree), selection_in(config))
    finally:
        question.end()
        for one in asked:
            one.end()


def _controller_time(config: str) -> int:
    """What slurmctld's clock said when it answered demand.COMMAND, UNIX s. Raises PoolUnreachable."""
    match = _TIME.match(config)
    if match is None:
        raise PoolUnreachable("half an answer: scontrol show config does not tell slurmctld's time")
    return int(match[1])
