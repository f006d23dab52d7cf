"""The WorkDirs of a user's running jobs on all nodes, as slurmctld has them.

A WorkDir often lies on a shared file system, where jobs on other nodes can have the same. The question is for one user:
slurmctld then sends that user's jobs alone (REQUEST_JOB_USER_INFO). It is asked when a site notice is to be
written there, or a report was found there, and seldom otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from drainwise.facts.errors import PoolUnreachable
from drainwise.slurm.jobs.commands import SlurmCommands
from drainwise.slurm.node_agent.jobs import Key, NodeJob
from drainwise.slurm.node_agent.user_task import SHARED, UserTaskResult

_STATES = "running,configuring,suspended,stopped,signaling,resizing"
_FORMAT = "--Format=JobID:|,WorkDir:|"
_LINE = re.compile(rb"^(\d{1,10})\|(/[^\n]*)\|$", re.MULTILINE)


def work_dirs_in(answer: bytes) -> dict[str, bytes]:
    """Read the WorkDir of each job, by number. A name with a line end in it is cut, or none: it is its user's."""
    return {number.decode("ascii"): path for number, path in _LINE.findall(answer)}


def told_apart(
    work_dirs: WorkDirs,
    jobs: Mapping[Key, NodeJob],
    found: Mapping[Key, UserTaskResult],
    now: int,
    note: Callable[[NodeJob, str], None],
) -> dict[Key, UserTaskResult]:
    """Return the results without reports from a WorkDir that another job has, on whatever node: whose it is nobody
    can tell. Asked when such a report has changed; while slurmctld does not answer it counts as before.
    """
    apart = dict(found)
    for key, result in found.items():
        if not result.in_work_dir or result.report is None:
            continue
        job = jobs[key]
        if job.apart is None or job.apart[0] != result.report.heartbeat:
            try:
                is_alone = work_dirs.is_alone(job.lease.uid, job.lease.job, job.lease.work_dir, now)
                job.apart = (result.report.heartbeat, is_alone)
            except PoolUnreachable:
                job.apart = (0, job.apart is not None and job.apart[1])
        if not job.apart[1]:
            job.refused = SHARED
            note(job, SHARED)
            apart[key] = replace(result, report=None, refused=SHARED, in_work_dir=False)
    return apart


class WorkDirs:
    """Answers by user, each asked for once in a round."""

    def __init__(self, commands: SlurmCommands) -> None:
        self._commands = commands
        self._round, self._known = 0, dict[int, dict[str, bytes]]()

    def of_user(self, uid: int, now: int) -> dict[str, bytes]:
        """Return the WorkDirs of a user's running jobs by number; `now`, of the round, in UNIX s.

        Raises PoolUnreachable.
        """
        if now != self._round:
            self._round, self._known = now, {}
        if uid in self._known:
            return self._known[uid]
        question = ("--noheader", "--all", "--local", f"--user={uid}", f"--states={_STATES}", _FORMAT)
        found = work_dirs_in(self._commands.start("squeue", *question).output())
        self._known[uid] = found
        return found

    def is_alone(self, uid: int, job: str, work_dir: bytes, now: int) -> bool:
        """Decide whether slurmctld has this job's WorkDir as it is known here, and no other job's of the user's as
        the same. Raises PoolUnreachable.
        """
        found = self.of_user(uid, now)
        return found.get(job) == work_dir and list(found.values()).count(work_dir) == 1
