"""Jobs and what comes after what. Knows neither time nor choice."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from drainwise.facts.errors import UsageError
from drainwise_launch.choice.work import BLOCKED, DONE, FAILED, OVER, READY, SKIPPED, LaunchJob, Work

_SHOWN = 8


class Graph:
    """All jobs, in the order in which they came."""

    def __init__(self) -> None:
        self.jobs: list[LaunchJob] = []
        self.ordered: list[LaunchJob] = []
        """The same, each after those before it."""
        self._by_name: dict[str, LaunchJob] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def find(self, name: str) -> LaunchJob:
        """Return the job of that name. Raises UsageError."""
        try:
            return self._by_name[name]
        except KeyError:
            raise UsageError(f"job {name[:100]!a}: there is no such job") from None

    def add(self, works: Iterable[Work]) -> list[LaunchJob]:
        """Add all jobs, which may come after each other, once and before any starts.

        Raises UsageError for a name that stands twice, for one that comes after what is not there, and for cycles.
        """
        for work in works:
            if work.name in self._by_name:
                raise UsageError(f"job {work.name[:100]!a}: stands twice: give each job a name of its own")
            self._by_name[work.name] = LaunchJob(len(self._by_name), work)
        self.jobs = list(self._by_name.values())
        for job in self.jobs:
            if job.work.after:
                job.after = tuple(self._before(job, name) for name in dict.fromkeys(job.work.after))
                job.missing, job.state = len(job.after), BLOCKED
                for before in job.after:
                    before.add_dependant(job)
        self.ordered = _in_order(self.jobs)
        if len(self.ordered) < len(self.jobs):
            raise _cycle(self.jobs, {job.index for job in self.ordered})
        return self.jobs

    def _before(self, job: LaunchJob, name: str) -> LaunchJob:
        found = self._by_name.get(name)
        if found is None:
            raise UsageError(f"job {job.name[:100]!a}: after = {name[:100]!a}: there is no such job")
        return found


def _in_order(jobs: Sequence[LaunchJob]) -> list[LaunchJob]:
    """Return the jobs, each after those before it; without those that form a cycle, and what comes after them."""
    missing = [job.missing for job in jobs]
    ordered = [job for job in jobs if not job.missing]
    for job in ordered:  # which grows
        for after in job.dependants or ():
            missing[after.index] -= 1
            if not missing[after.index]:
                ordered.append(after)
    return ordered


def _cycle(jobs: Iterable[LaunchJob], ordered: Container[int]) -> UsageError:
    """Return the error for a cycle: every job that is not `ordered` comes after another such job."""
    seen: dict[int, int] = {}
    path: list[LaunchJob] = []
    job = next(job for job in jobs if job.index not in ordered)
    while job.index not in seen:
        seen[job.index] = len(path)
        path.append(job)
        job = next(before for before in job.after if before.index not in ordered)
    shown = [f"{job.name[:60]!a}" for job in (*path[seen[job.index] :], job)]
    if len(shown) > _SHOWN:
        shown = [*shown[: _SHOWN - 1], "…", shown[-1]]
    return UsageError(f"jobs in a circle, none can be first: {' comes after '.join(shown)}")


_PAST = {FAILED: "failed", SKIPPED: "been skipped"}


def done(job: LaunchJob) -> list[LaunchJob]:
    """Note that the job is done; return the jobs that can start for it."""
    job.state = DONE
    freed = []
    for after in job.dependants or ():
        after.missing -= 1
        if after.state == BLOCKED and not after.missing:
            after.state = READY
            freed.append(after)
    return freed


def failed(job: LaunchJob, why: str) -> list[LaunchJob]:
    """Note that the job has failed for good; skip all that comes after it, and return that."""
    job.state, job.why = FAILED, why
    skipped, open_ends = [], [job]
    while open_ends:
        lost = open_ends.pop()
        for after in lost.dependants or ():
            if after.state not in OVER:
                after.state, after.why = SKIPPED, f"{lost.name} has {_PAST[lost.state]}"
                skipped.append(after)
                open_ends.append(after)
    return skipped
