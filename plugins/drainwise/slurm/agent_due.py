"""Which jobs slurmctld is asked for in a round: each node costs it the same, however many jobs there are.

The mark of orders on a node (see `order_mark`) says whose lease was changed; who changed one without a mark is found
because the jobs take turns. New jobs are asked for until they run, and a node whose mark is somebody else's as it was
before there were marks: pilots each round, and others now and then.
"""

from __future__ import annotations

from collections.abc import Mapping

from drainwise.slurm.agent_jobs import Key, NodeJob
from drainwise.slurm.agent_query import RUNNING

Jobs = dict[Key, NodeJob]
Marks = Mapping[str, "dict[str, str] | None"]

TURN_ROUNDS = 3
"""Rounds from one turn to the next: with 64 jobs on the node and rounds of 30 s each has its turn in 96 min."""
TRIES = 3
"""Rounds in which a job that does not run yet, or is not clear, is asked for each time."""
SILENT_ROUNDS = 4
"""Rounds between two questions for such a job later, and for one that reports nothing where there are no marks."""


class Due:
    """What is due on this host, round by round."""

    def __init__(self) -> None:
        self._round = 0
        self._seen: dict[str, dict[str, str] | None] = {}

    def at_first(self, jobs: Jobs) -> Jobs:
        """Begin a round: the jobs to be asked for together with their nodes' marks."""
        self._round += 1
        due = {key: job for key, job in jobs.items() if self._is_unsettled(job)}
        settled = [key for key in jobs if key not in due]
        if settled and self._round % TURN_ROUNDS == 0:
            first = min(settled, key=lambda key: jobs[key].asked)
            due[first] = jobs[first]
        return due

    def by_marks(self, jobs: Jobs, marks: Marks) -> Jobs:
        """The jobs to be asked for because of what the marks of the nodes say, by node."""
        return {key: job for key, job in jobs.items() if job.node in marks and self._is_marked(job, marks[job.node])}

    def seen(self, marks: Marks) -> None:
        """Take note of the marks: what they say has been looked at."""
        self._seen.update(marks)

    def asked(self, jobs: Jobs) -> None:
        """Take note that these jobs were asked for."""
        for job in jobs.values():
            job.asked = self._round

    def was_asked(self, job: NodeJob) -> bool:
        """Whether the job was asked for in this round."""
        return job.asked == self._round

    def _is_unsettled(self, job: NodeJob) -> bool:
        if job.facts is not None and job.facts.state == RUNNING:
            job.tries = 0
            return False
        job.tries += 1
        return job.tries <= TRIES or job.tries % SILENT_ROUNDS == 0

    def _is_marked(self, job: NodeJob, mark: dict[str, str] | None) -> bool:
        if self.was_asked(job) or job.facts is None:
            return False
        if mark is None:
            return job.reports or self._round % SILENT_ROUNDS == 0
        before = self._seen.get(job.node)
        # Before the first mark of this agent's, and where there was none to be read, any change may have been missed.
        return mark.get(job.lease.job) != (before or {}).get(job.lease.job) if before is not None else True
