"""Jobs and what comes after what. Knows neither time nor choice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from drainwise.facts.errors import UsageError
from drainwise_launch.choice.work import BLOCKED, DONE, FAILED, OVER, READY, SKIPPED, Buckets, LaunchJob, Work

_SHOWN = 8


class Graph:
    """All jobs, in the order in which they came."""

    def __init__(self) -> None:
        self.jobs: list[LaunchJob] = []
        self._by_name: dict[str, LaunchJob] = {}
        self._buckets = Buckets()

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def find(self, name: str) -> LaunchJob:
        """Return the job of that name. Raises UsageError."""
        try:
            return self._by_name[name]
        except KeyError:
            raise UsageError(f"job {name[:100]!a}: there is no such job") from None

    def add(self, works: Iterable[Work]) -> list[LaunchJob]:
        """Add jobs that may come after each other and after older ones, before any starts; all or none of them.

        Raises UsageError for a name that stands twice, for one that comes after what is not there, and for cycles.
        """
        new: dict[str, LaunchJob] = {}
        for work in works:
            if work.name in new or work.name in self._by_name:
                raise UsageError(f"job {work.name[:100]!a}: stands twice: give each job a name of its own")
            bucket = self._buckets.of(work.reserved or work.resources)
            new[work.name] = LaunchJob(len(self.jobs) + len(new), work, bucket)
        for job in new.values():
            if job.work.after:
                job.after = tuple(self._before(job, name, new) for name in dict.fromkeys(job.work.after))
        _refuse_cycles(new)
        for name, job in new.items():
            self._by_name[name] = job
            self.jobs.append(job)
            for before in job.after:
                before.add_dependant(job)
            if job.after:
                job.missing, job.state = len(job.after), BLOCKED
        return list(new.values())

    def _before(self, job: LaunchJob, name: str, new: dict[str, LaunchJob]) -> LaunchJob:
        found = new.get(name) or self._by_name.get(name)
        if found is None:
            raise UsageError(f"job {job.name[:100]!a}: after = {name[:100]!a}: there is no such job")
        return found


_PAST = {FAILED: "failed", SKIPPED: "been skipped"}


def in_order(jobs: Iterable[LaunchJob]) -> Iterator[LaunchJob]:
    """Yield the jobs, each after those before it."""
    waiting = {job.index: job for job in jobs}
    missing = {index: sum(before.index in waiting for before in job.after) for index, job in waiting.items()}
    free = [job for index, job in waiting.items() if not missing[index]]
    while free:
        job = free.pop()
        yield job
        for after in job.dependants or ():
            if after.index in missing:
                missing[after.index] -= 1
                if not missing[after.index]:
                    free.append(after)


def _refuse_cycles(new: dict[str, LaunchJob]) -> None:
    """Refuse cycles of new jobs. Old jobs cannot come after new ones, so no other cycle is possible."""
    missing: dict[int, int] = {}
    after: dict[int, list[LaunchJob]] = {}
    for job in new.values():
        count = 0
        for before in job.after:
            if new.get(before.name) is before:
                after.setdefault(before.index, []).append(job)
                count += 1
        if count:
            missing[job.index] = count
    free = [index for index in after if index not in missing]
    while free:
        for job in after.pop(free.pop(), ()):
            missing[job.index] -= 1
            if not missing[job.index]:
                del missing[job.index]
                free.append(job.index)
    if missing:
        raise _cycle(_some_cycle([job for job in new.values() if job.index in missing], missing))


def _some_cycle(left: Sequence[LaunchJob], missing: dict[int, int]) -> list[LaunchJob]:
    """Return a cycle, first and last the same: every job that is left comes after another one that is left."""
    seen: dict[int, int] = {}
    path: list[LaunchJob] = []
    job = left[0]
    while job.index not in seen:
        seen[job.index] = len(path)
        path.append(job)
        job = next(before for before in job.after if before.index in missing)
    return [*path[seen[job.index] :], job]


def _cycle(path: Sequence[LaunchJob]) -> UsageError:
    """Return the error for a cycle; each of the path comes after the next."""
    shown = [f"{job.name[:60]!a}" for job in path]
    if len(shown) > _SHOWN:
        shown = [*shown[: _SHOWN - 1], "…", shown[-1]]
    return UsageError(f"jobs in a circle, none can be first: {' comes after '.join(shown)}")


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
