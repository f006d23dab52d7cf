"""Choose the jobs that a round queries slurmctld for: each node costs it the same, however many jobs there are.

The mark of orders on a node (see `order_mark`), carried by one of its jobs, says whose lease was changed; one that was
changed without a mark is found because the jobs take turns. New jobs are asked for until they run, and where no job can
carry a mark all are asked for: pilots and jobs of several nodes each round, and others now and then.
"""

from __future__ import annotations

from collections.abc import Callable

from drainwise.slurm.jobs.order_mark import can_carry, entries_in
from drainwise.slurm.node_agent.jobs import Jobs, Key, NodeJob

TURN_ROUNDS = 3
"""Rounds from one turn to the next: with 64 jobs on the node and rounds of 30 s each has its turn in 96 min."""
CARRIERS = 3
"""Jobs that are asked for one after the other in a round, where those that carried the mark of a node have ended."""
TRIES = 3
"""Rounds in which a job that does not run yet, or is not clear, is asked for each time."""
SILENT_ROUNDS = 4
"""Rounds between two questions for such a job later, and for one that reports nothing where there are no marks."""


class Due:
    """The jobs that are due on this host, round by round. learn: asks for jobs at a time; whether it did so."""

    def __init__(self, learn: Callable[[Jobs, int], bool]) -> None:
        self._learn = learn
        self._round = 0
        self._seen: dict[Key, str] = {}

    def look(self, jobs: Jobs, now: int) -> bool:
        """Ask for the jobs whose lease may have changed; whether slurmctld was asked. Raises PoolUnreachable.

        Those that carry the marks come before all others: so a lease that is changed in between is seen by its mark in
        the next round.
        """
        self._round += 1
        self._seen = {key: end for key, end in self._seen.items() if key in jobs}
        first = _carriers(jobs)
        first.update((key, job) for key, job in jobs.items() if _is_unsettled(job) or (job.reports and _is_wide(job)))
        others = [key for key in jobs if key not in first]
        if others and self._round % TURN_ROUNDS == 0:
            turn = min(others, key=lambda key: jobs[key].asked)
            first[turn] = jobs[turn]
        has_asked = self.ask(first, now)
        for _ in range(CARRIERS):  # those that did carry them may have ended
            self.ask({key: job for key, job in _carriers(jobs).items() if not self.was_asked(job)}, now)
        self.ask(self._by_marks(jobs), now)
        for carrier in _carriers(jobs).values():
            self._seen.update(((carrier.node, name), end) for name, end in _mark_of(carrier).items())
        return has_asked

    def ask(self, jobs: Jobs, now: int) -> bool:
        """Ask for these jobs, whether they are due or not. Raises PoolUnreachable."""
        has_asked = self._learn(jobs, now)
        for job in jobs.values():
            job.asked = self._round
        return has_asked

    def was_asked(self, job: NodeJob) -> bool:
        """Decide whether the job was asked for in this round."""
        return job.asked == self._round

    def _by_marks(self, jobs: Jobs) -> Jobs:
        """Return the other jobs to be asked for, because a mark says so or there is none to be read."""
        carriers = {job.node: job for job in _carriers(jobs).values()}
        changed = {}
        for key, job in jobs.items():
            is_due = job.reports or _is_wide(job) or self._round % SILENT_ROUNDS == 0
            if job.node not in carriers and job.facts is not None and is_due and not self.was_asked(job):
                changed[key] = job
        for carrier in carriers.values():
            for name, end in _mark_of(carrier).items():
                key = (carrier.node, name)
                if key in jobs and self._seen.get(key) != end and jobs[key] is not carrier:
                    changed[key] = jobs[key]
        return changed


def has_no_carrier(jobs: Jobs) -> bool:
    """Decide whether jobs run here whose node has none that could carry its mark."""
    nodes = {job.node for job in _carriers(jobs).values()}
    return any(job.facts is not None and job.facts.single and job.node not in nodes for job in jobs.values())


def _carriers(jobs: Jobs) -> Jobs:
    """Find for each node the job that carries its mark, as far as is known."""
    found: dict[str, Key] = {}
    for key, job in sorted(jobs.items(), key=lambda item: int(item[1].lease.job)):
        if job.node not in found and job.facts is not None and can_carry(job.facts):
            found[job.node] = key
    return {key: jobs[key] for key in found.values()}


def _is_unsettled(job: NodeJob) -> bool:
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
