"""The AdminComments of all jobs before Slurm 23.02, whose `squeue --json` writes every job whatever it is asked for.

`scontrol --oneliner show job` costs a fraction of that, but its lines hold what users chose, line ends included: who
names a job so can print a line for another one. A job's line begins with its number, though, and each job has one: a
number that begins two lines was forged, and is asked for alone, between marks (see `agent_query`).
"""

from __future__ import annotations

import re
from collections.abc import Collection

from drainwise.slurm.agent_query import ask
from drainwise.slurm.commands import SlurmCommands

COMMAND = ("scontrol", "--oneliner", "show", "job")
_LINE = re.compile(rb"^JobId=(\d{1,10}) (.*)$", re.MULTILINE)
_COMMENT = b" AdminComment="


def asked_alone(commands: SlurmCommands, jobs: Collection[int]) -> dict[int, str]:
    """The comments of these jobs, each asked for by its number. One that spells a comment in its name has none.

    Raises PoolUnreachable.
    """
    facts = ask(commands, {str(job): str(job) for job in jobs}).facts if jobs else {}
    return {int(job): one.comments[0] for job, one in facts.items() if len(one.comments) == 1}


def comments_in(answer: bytes, jobs: Collection[int]) -> tuple[dict[int, str], set[int]]:
    """The comments of these jobs, up to a blank, in the output of COMMAND; and the jobs whose comment is not sure."""
    found: dict[int, str] = {}
    unclear: set[int] = set()
    seen: set[int] = set()
    wanted = set(jobs)
    for number, rest in _LINE.findall(answer):
        job = int(number)
        if job not in wanted:
            continue
        if job in seen or rest.count(_COMMENT) > 1:
            unclear.add(job)
        elif _COMMENT in rest:
            found[job] = rest.partition(_COMMENT)[2].partition(b" ")[0].decode("utf-8", "replace")
        seen.add(job)
    return {job: comment for job, comment in found.items() if job not in unclear}, unclear
