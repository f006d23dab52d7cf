"""What Slurm before 23.02 needs, whose JSON is always of all jobs: the AdminComments out of `scontrol show job`.

That costs a fraction of the JSON. The lines hold what users chose, line ends included: who names a job so can print a
line for another one. But a job's line begins with its number, and each job has one: a number that begins two lines was
forged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from drainwise.slurm.jobs.admin_comment import may_lack_directories
from drainwise.slurm.jobs.commands import SlurmCommands
from drainwise.slurm.jobs.job import SlurmJob
from drainwise.slurm.jobs.scontrol_jobs import ask, name_and_comment
from drainwise.slurm.jobs.values import RUNNING
from drainwise.slurm.jobs.written import Written, with_written, written_in

COMMAND = ("scontrol", "--oneliner", "show", "job")
MOST_UNCLEAR = 256
"""Jobs that are asked for one by one; where users forge more lines than that, the JSON of all jobs costs less."""

_JOB_LINE = re.compile(rb"^JobId=(\d{1,10}) (.*)$", re.MULTILINE)
_COMMENT, _EXCLUDED = b" AdminComment=", b" ExcNodeList="


def texts_in(answer: bytes, running: Collection[int]) -> tuple[dict[int, Written], set[int]]:
    """Read the answer to COMMAND: the jobs' texts, nothing where another line than the job's own may say it.

    running: the jobs whose comments are looked for, up to a blank. Returned, too, which of them must be asked for
    alone.
    """
    lines: dict[int, bytes] = {}
    forged = set()
    for number, rest in _JOB_LINE.findall(answer):
        job = int(number)
        if job in lines:
            forged.add(job)
        lines[job] = rest
    wanted = set(running)
    found, unclear = {}, forged & wanted
    for job in lines.keys() - forged:
        rest = lines[job]
        nodes = _word_after(_EXCLUDED, rest)
        excluded = nodes if nodes != "(null)" and rest.count(_EXCLUDED) == 1 else ""
        if job in wanted:
            if rest.count(_COMMENT) > 1:
                unclear.add(job)
            comments = (_word_after(_COMMENT, rest),) if rest.count(_COMMENT) == 1 else ()
            found[job] = Written(comments, *name_and_comment(f" {rest.decode('utf-8', 'replace')}"), excluded)
        elif excluded:
            found[job] = Written(excluded=excluded)
    return found, unclear


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
    written, unclear = texts_in(answer_to(*COMMAND), running)
    is_sure = len(unclear) <= MOST_UNCLEAR
    if is_sure and unclear:
        for job in ask(commands, {str(job): str(job) for job in unclear}).jobs.values():
            written[job.number] = Written(tuple(filter(None, (job.admin_comment,))), job.name, job.comment)
    # A job without directories gets no order, and its user can spell that in its name: only the JSON is sure.
    if not is_sure or any(may_lack_directories(comment) for one in written.values() for comment in one.comments):
        written = written_in(answer_to("squeue", "--json", "--all"), "squeue --json printed")
    return with_written(listed, written)
