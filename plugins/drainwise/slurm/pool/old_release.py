"""What Slurm before 23.02 needs, whose JSON is always of all jobs: the AdminComments out of `scontrol show job`.

That costs a fraction of the JSON. The lines hold what users chose, line ends included: who names a job so can print a
line for another one. But a job's line begins with its number, and each job has one: a number that begins two lines was
forged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

from drainwise.slurm.jobs.admin_comment import may_lack_directories
from drainwise.slurm.jobs.commands import SlurmCommands
from drainwise.slurm.jobs.job import SlurmJob
from drainwise.slurm.jobs.scontrol_jobs import ask, name_and_comment
from drainwise.slurm.jobs.squeue_json import jobs_in
from drainwise.slurm.jobs.values import PENDING, RUNNING

COMMAND = ("scontrol", "--oneliner", "show", "job")
MOST_UNCLEAR = 256
"""Jobs that are asked for one by one; where users forge more lines than that, the JSON of all jobs costs less."""

_JOB_LINE = re.compile(rb"^JobId=(\d{1,10}) (.*)$", re.MULTILINE)
_COMMENT, _EXCLUDED = b" AdminComment=", b" ExcNodeList="


@dataclass
class JobDetails:
    """What the lines of plain squeue have not got, by job: nothing where another line than the job's own may say it.

    comments: AdminComments up to a blank; unclear: which of the jobs that run must be asked for alone. written: what
    the submitter called the job, and his comment. excluded: nodes that a job will not have, as Slurm writes them.
    """

    comments: dict[int, str] = field(default_factory=dict)
    unclear: set[int] = field(default_factory=set)
    written: dict[int, tuple[str, str]] = field(default_factory=dict)
    excluded: dict[int, str] = field(default_factory=dict)

    def completed(self, job: SlurmJob) -> SlurmJob:
        """Return a job of plain squeue with what is known here."""
        if job.number in self.comments or job.number in self.written:
            name, comment = self.written.get(job.number, ("", ""))
            admin = (self.comments[job.number],) if job.number in self.comments else ()
            return replace(job, comments=admin, name=name, comment=comment)
        excluded = self.excluded.get(job.number) if PENDING in job.states else None
        return job if excluded is None else replace(job, excluded=excluded)


def details_in(answer: bytes, running: Collection[int]) -> JobDetails:
    """Read the answer to COMMAND; running: the jobs whose comments are looked for."""
    lines: dict[int, bytes] = {}
    forged = set()
    for number, rest in _JOB_LINE.findall(answer):
        job = int(number)
        if job in lines:
            forged.add(job)
        lines[job] = rest
    found, wanted = JobDetails(unclear=forged & set(running)), set(running)
    for job, rest in lines.items():
        if job in forged:
            continue
        if rest.count(_EXCLUDED) == 1 and (nodes := _word_after(_EXCLUDED, rest)) != "(null)":
            found.excluded[job] = nodes
        if job in wanted:
            found.written[job] = name_and_comment(f" {rest.decode('utf-8', 'replace')}")
            if rest.count(_COMMENT) > 1:
                found.unclear.add(job)
            elif _COMMENT in rest:
                found.comments[job] = _word_after(_COMMENT, rest)
    return found


def _word_after(mark: bytes, line: bytes) -> str:
    return line.partition(mark)[2].partition(b" ")[0].decode("utf-8", "replace")


def with_details(
    listed: Sequence[SlurmJob], commands: SlurmCommands, answer_to: Callable[..., bytes]
) -> Sequence[SlurmJob]:
    """Return the jobs of plain squeue with their comments; answer_to: runs a command. Raises PoolUnreachable.

    What is unclear is asked for job by job: one that spells an AdminComment in its name has none.
    """
    running = {job.number for job in listed if RUNNING in job.states}
    if not running:
        return listed
    found = details_in(answer_to(*COMMAND), running)
    if len(found.unclear) <= MOST_UNCLEAR:
        alone = ask(commands, {str(job): str(job) for job in found.unclear}).jobs if found.unclear else {}
        for job in alone.values():
            found.written[job.number] = job.name, job.comment
            if job.admin_comment:
                found.comments[job.number] = job.admin_comment
        # A job without directories gets no order, and its user can spell that in its name: only the JSON is sure.
        if not any(may_lack_directories(comment) for comment in found.comments.values()):
            return [found.completed(job) for job in listed]
    return jobs_in(answer_to("squeue", "--json", "--all"))
