"""The mark of orders on a node: which of its jobs' leases were changed, in the AdminComment of one of its jobs.

    {"drainwise":1,"job":12,"start":1795248000,…,"orders":"17:1795249999,18:1795334400"}

Who changes the end of a run writes the job's number and the new end there; the newest stands last. That job is the one
with the smallest number of those that run on this node alone and have no comment of somebody else's: both sides find
it by themselves. The node's agent asks for this job each period, and for another one when its entry has changed: one
question in place of one for each job. The lease itself is the truth, and a mark that is missing costs nothing but time.
A node's own record is no such place: it takes two questions, and the answer to `scontrol show node` has all nodes.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from drainwise.facts.errors import PoolError
from drainwise.slurm.jobs.admin_comment import MARKED, is_ours, lacks_directories
from drainwise.slurm.jobs.commands import SlurmCommands
from drainwise.slurm.jobs.job import SlurmJob
from drainwise.slurm.jobs.publish import is_foreign, is_publishable, publish
from drainwise.slurm.jobs.scontrol_jobs import ask

MOST = 16
"""Entries of a mark: older ones were read long ago, and a comment is no longer than 1,024 characters."""
_CARRIERS = 3  # that are tried: jobs end

_ORDERS = re.compile(r',"orders":"((?:\d{1,10}:\d{1,12}(?:,|(?=")))*)"(?=\})')
# What a mark can be put behind: a user may have spelled something else in his job's name, and it must fit.
_WHOLE = re.compile(r'\{"drainwise":[a-zA-Z0-9_".,:+-]{1,580}\}')


def entries_in(comment: str) -> dict[str, str]:
    """Return the ends (UNIX s as text, 0 without end) by job in the mark of a comment."""
    found = _ORDERS.search(comment) if is_ours(comment) else None
    pairs = (entry.partition(":") for entry in found[1].split(",") if entry) if found else ()
    return {job: end for job, _, end in pairs}


def unmarked(comment: str) -> str:
    """Return the comment without its mark."""
    return _ORDERS.sub("", comment)


def marked(comment: str, entries: Mapping[str, str]) -> str:
    """Return the comment, one of ours or none, with this mark in place of the one that it has.

    Of a comment that no agent wrote, because it is not whole or too long, nothing is kept.
    """
    kept = ",".join(f"{job}:{end}" for job, end in list(entries.items())[-MOST:])
    rest = unmarked(comment)
    if _WHOLE.fullmatch(rest) is None or rest.count('"') % 2:
        rest = MARKED
    return f'{rest[:-1]},"orders":"{kept}"}}' if kept else rest


def with_entry(entries: Mapping[str, str], job: str, end: int) -> dict[str, str]:
    """Return the entries with a new one, last."""
    return {**{name: value for name, value in entries.items() if name != job}, job: str(end)}


def can_carry(facts: SlurmJob) -> bool:
    """Decide whether a job can carry the mark of its node.

    One whose user spells an AdminComment in its name would hide it.
    """
    return is_publishable(facts) and not is_foreign(facts) and len(facts.comments) <= 1


@dataclass
class Carrier:
    """A job that can carry its node's mark, with its comment as it was seen last."""

    number: int
    label: str
    comment: str


def carriers_of(jobs: Iterable[SlurmJob]) -> dict[str, list[Carrier]]:
    """Return the jobs that can carry the mark of each node, the first one first."""
    found: dict[str, list[Carrier]] = defaultdict(list)
    for job in sorted(jobs, key=lambda one: one.number):
        comment = job.admin_comment
        if job.runs and job.single and is_ours(comment) and not lacks_directories(comment, job.number, job.start):
            found[job.node].append(Carrier(job.number, job.label, comment))
    return found


class OrderMarks:
    """Marks nodes by Slurm's commands; needs root or SlurmUser."""

    def __init__(self, commands: SlurmCommands) -> None:
        self._commands = commands
        self._carriers: dict[str, list[Carrier]] = {}
        self._passed_over: set[int] = set()

    def learn(self, jobs: Collection[SlurmJob]) -> None:
        """Take note of all jobs as they are now."""
        self._passed_over &= {job.number for job in jobs}
        self._carriers = carriers_of(job for job in jobs if job.number not in self._passed_over)

    def entry(self, node: str, job: int) -> str | None:
        """Return the end of a job's lease as its node is marked; None when it is not."""
        carriers = self._carriers.get(node)
        return entries_in(carriers[0].comment).get(str(job)) if carriers else None

    def has_carrier(self, node: str) -> bool:
        """Decide whether a job on the node can carry its mark."""
        return bool(self._carriers.get(node))

    def write(self, node: str, job: int, end: int) -> str:
        """Have the agent of `node` look at `job`; why it cannot, "" when it will. It does so some time later anyhow."""
        carriers = self._carriers.get(node, [])
        try:
            for carrier in carriers[:_CARRIERS]:
                before = self._comment_of(carrier)
                if before is None:
                    continue
                after = marked(before, with_entry(entries_in(before), str(job), end))
                publish(self._commands, {carrier.label: after})
                # Where a text of its user's looked like its comment, there are two now, and the node passes it over.
                if self._comment_of(carrier) == after:
                    carrier.comment = after
                    self._carriers[node] = carriers[carriers.index(carrier) :]
                    return ""
                self._passed_over.add(carrier.number)
        except PoolError as fault:
            return f"{node} is not marked: {fault}"
        return ""

    def _comment_of(self, carrier: Carrier) -> str | None:
        """Return what slurmctld has as its comment; None when it cannot carry a mark (any more).

        Raises PoolUnreachable.
        """
        facts = ask(self._commands, {str(carrier.number): carrier.label}).jobs.get(str(carrier.number))
        return facts.admin_comment if facts is not None and can_carry(facts) else None
