"""Choose the jobs that a round queries slurmctld for: each node costs it the same, however many jobs there are.

The mark of orders on a node (see `order_mark`), carried by one of its jobs, says whose lease was changed; one that was
changed without a mark is found because the jobs take turns. New jobs are asked for until they run, and where no job can
carry a mark all are asked for: pilots and jobs of several nodes each round, and others now and then.
"""

from __future__ import annotations

from drainwise.slurm.jobs.order_mark import can_carry, entries_in
from drainwise.slurm.node_agent.jobs import Key, NodeJob

Jobs = dict[Key, NodeJob]

TURN_ROUNDS = 3
"""Rounds from one turn to the next: with 64 jobs on the node and rounds of 30 s each has its turn in 96 min."""
TRIES = 3
"""Rounds in which a job that does not run yet, or is not clear, is asked for each time."""
SILENT_ROUNDS = 4
"""Rounds between two questions for such a job later, and for one that reports nothing where there are no marks."""


class Due:
    """The jobs that are due on this host, round by round."""

    def __init__(self) -> None:
        self._round = 0
        self._seen: dict[Key, str] = {}

    def at_first(self, jobs: Jobs) -> Jobs:
        """Begin a round: the jobs to be asked for first, those that carry the marks before all others.

        So a lease that is changed in between is seen by its mark in the next round.
        """
        self._round += 1
        self._seen = {key: end for key, end in self._seen.items() if key in jobs}
        due = self._carriers(jobs)
        due.update((key, job) for key, job in jobs.items() if self._is_unsettled(job))
        due.update((key, job) for key, job in jobs.items() if job.reports and _is_wide(job))
        others = [key for key in jobs if key not in due]
        if others and self._round % TURN_ROUNDS == 0:
            first = min(others, key=lambda key: jobs[key].asked)
            due[first] = jobs[first]
        return due

    def carriers_left(self, jobs: Jobs) -> Jobs:
        """Return the jobs that carry marks now, as those that did have ended, and were not asked for in this round."""
        return {key: job for key, job in self._carriers(jobs).items() if not self.was_asked(job)}

    def by_marks(self, jobs: Jobs) -> Jobs:
        """Return the other jobs to be asked for, because a mark says so or there is none to be read."""
        carriers = {job.node: job for job in self._carriers(jobs).values()}
        changed = {}
        for key, job in jobs.items():
            carrier = carriers.get(job.node)
            if carrier is None:
                is_due = job.reports or _is_wide(job) or self._round % SILENT_ROUNDS == 0
                if job.facts is not None and is_due and not self.was_asked(job):
                    changed[key] = job
        for carrier in carriers.values():
            for name, end in _mark_of(carrier).items():
                key = (carrier.node, name)
                if key in jobs and self._seen.get(key) != end and jobs[key] is not carrier:
                    changed[key] = jobs[key]
        return changed

    def seen(self, jobs: Jobs) -> None:
        """Take note of the marks: what they say has been looked at."""
        for carrier in self._carriers(jobs).values():
            self._seen.update(((carrier.node, name), end) for name, end in _mark_of(carrier).items())

    def has_no_carrier(self, jobs: Jobs) -> bool:
        """Decide whether jobs run here whose node has none that could carry its mark."""
        nodes = {job.node for job in self._carriers(jobs).values()}
        return any(job.facts is not None and job.facts.single and job.node not in nodes for job in jobs.values())

    def asked(self, jobs: Jobs) -> None:
        """Take note that these jobs were asked for."""
        for job in jobs.values():
            job.asked = self._round

    def was_asked(self, job: NodeJob) -> bool:
        """Decide whether the job was asked for in this round."""
        return job.asked == self._round

    def _carriers(self, jobs: Jobs) -> Jobs:
        """Find for each node the job that carries its mark, as far as is known."""
        found: dict[str, Key] = {}
        for key, job in sorted(jobs.items(), key=lambda item: int(item[1].lease.job)):
            if job.node not in found and job.facts is not None and can_carry(job.facts):
                found[job.node] = key
        return {key: jobs[key] for key in found.values()}

    def _is_unsettled(self, job: NodeJob) -> bool:
        if job.facts is not None and job.facts.runs:
            job.tries = 0
            return False
        job.tries += 1
        return job.tries <= TRIES or job.tries % SILENT_ROUNDS == 0


def _is_wide(job: NodeJob) -> bool:
    """Decide whether a job has several nodes, whose agents all write its comment."""
    return job.facts is not None and job.facts.node_count > 1


def _mark_of(carrier: NodeJob) -> dict[str, str]:
    return entries_in(carrier.facts.admin_comment) if carrier.facts is not None else {}
