"""Ask what runs of several nodes have on each of them: no list of jobs says that, only `scontrol --details show job`.

One question for each such run, once: what a run has does not change while its nodes and cores stay the same. The
answer mixes facts with what users chose, so it counts only when it adds up to what the list of jobs says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from drainwise.facts.errors import PoolUnreachable
from drainwise.slurm.jobs.commands import SlurmCommands
from drainwise.slurm.jobs.gres import Gres, gres_in
from drainwise.slurm.jobs.job import SlurmJob
from drainwise.slurm.jobs.scontrol_jobs import answers
from drainwise.slurm.node.host_list import hosts

MOST = 512
"""Runs that are asked for at a time; each costs slurmctld about a millisecond. The others' turn comes later."""
_PART = re.compile(r" Nodes=(\S{1,4096}) CPU_IDs=([0-9,-]{1,4096}) Mem=([0-9]{1,12}) GRES=(\S{0,4096})")


@dataclass(frozen=True)
class NodeShare:
    """What a run has on one node: cores, memory in MiB, generic resources."""

    node: str
    cores: int
    memory: int
    gres: Gres = ()


Allocation = tuple[NodeShare, ...]


def allocation_in(block: str, job: SlurmJob) -> Allocation:
    """Read what a run has on each of its nodes; () where that does not add up to its nodes and cores."""
    found: list[NodeShare] = []
    try:
        for nodes, numbers, memory, gres in _PART.findall(block):
            held = gres_in(gres)
            found += [NodeShare(node, _count(numbers), int(memory), held) for node in hosts(nodes)]
        names = hosts(job.node)
    except ValueError:
        return ()
    is_whole = sorted(one.node for one in found) == sorted(names) and sum(one.cores for one in found) == job.cores
    return tuple(found) if is_whole else ()


def _count(numbers: str) -> int:
    """Return how many numbers are in a list such as `0-3,8`. Raises ValueError."""
    count = 0
    for part in numbers.split(","):
        first, dash, last = part.partition("-")
        count += int(last if dash else first) - int(first) + 1
    return count


class Allocations:
    """What is known of the runs of several nodes."""

    def __init__(self, commands: SlurmCommands) -> None:
        self._commands = commands
        self._known: dict[tuple[object, ...], Allocation] = {}

    def of(self, jobs: Iterable[SlurmJob]) -> Mapping[int, Allocation]:
        """Return what each running job of several nodes or components has on its nodes, by its number.

        One that ended meanwhile, or that nobody could be asked for, is absent.
        """
        wanted = {_run(job): job for job in jobs if job.runs and not job.single}
        self._known = {run: known for run, known in self._known.items() if run in wanted}
        new = [run for run in wanted if run not in self._known][:MOST]
        if new:
            try:
                questions = [f"show job {_only(wanted[run])}" for run in new]
                blocks = answers(self._commands, questions, "--details")
            except PoolUnreachable:
                blocks = []  # the snapshot's own questions say whether slurmctld answers
            for run, block in zip(new, blocks):
                found = allocation_in(block, wanted[run])
                if found:
                    self._known[run] = found
        return {wanted[run].number: known for run, known in self._known.items()}


def _only(job: SlurmJob) -> str:
    """Return what scontrol takes for this job alone; a component's number lies as far from the first one's."""
    return job.label if job.het is None else f"{job.het}+{job.number - job.het}"


def _run(job: SlurmJob) -> tuple[object, ...]:
    return job.number, job.start, job.node, job.cores
