"""Jobs and what comes after what; both grow while jobs run. Knows neither time nor choice."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from drainwise.facts.errors import UsageError
from drainwise.launch.choice.work import BLOCKED, DONE, FAILED, OVER, READY, SKIPPED, STARTED, Buckets, LaunchJob, Work

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
        """Add jobs that may come after each other and after older ones; all of them or, with UsageError, none.

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
        for job in in_order(job for job in new.values() if job.after):
            _settle(job)
        return list(new.values())

    def _before(self, job: LaunchJob, name: str, new: dict[str, LaunchJob]) -> LaunchJob:
        found = new.get(name) or self._by_name.get(name)
        if found is None:
            raise UsageError(f"job {job.name[:100]!a}: after = {name[:100]!a}: there is no such job")
        return found

    def add_dependencies(self, job: LaunchJob, before: Collection[LaunchJob]) -> list[LaunchJob]:
        """Put the job after those, too, from now on; return the jobs that are skipped because one of those has failed.

        Raises UsageError when it has started already, and when one of them comes after it: then nothing is added.
        """
        known = {one.index for one in job.after}
        new = [one for one in dict.fromkeys(before) if one.index not in known]
        if not new:
            return []
        if job.state == STARTED or job.state in OVER:
            raise UsageError(f"job {job.name[:100]!a} has {_PAST[job.state]}: nothing can be put before it any more")
        way = _way(new, job)
        if way:
            raise _cycle([*way, way[0]])
        job.after = (*job.after, *new)
        for one in new:
            one.add_dependant(job)
        _settle(job)
        return [job, *skip_after(job)] if job.state == SKIPPED else []


_PAST = {STARTED: "started", DONE: "been done", FAILED: "failed", SKIPPED: "been skipped"}


def _settle(job: LaunchJob) -> None:
    """Say whether the job can start, from those before it."""
    job.missing = sum(before.state != DONE for before in job.after)
    lost = next((before for before in job.after if before.state in {FAILED, SKIPPED}), None)
    if lost is not None:
        job.state, job.why = SKIPPED, f"{lost.name} has {_PAST[lost.state]}"
    else:
        job.state = BLOCKED if job.missing else READY


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


def _way(starts: Sequence[LaunchJob], goal: LaunchJob) -> list[LaunchJob]:
    """Return the path from one of `starts` through the jobs it comes after to `goal`; empty when there is none."""
    came: dict[int, LaunchJob | None] = {start.index: None for start in starts}
    open_ends = list(starts)
    while open_ends:
        job = open_ends.pop()
        if job is goal:
            path, at = [job], came[job.index]
            while at is not None:
                path.append(at)
                at = came[at.index]
            return path[::-1]
        for before in job.after:
            if before.index not in came:
                came[before.index] = job
                open_ends.append(before)
    return []


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
    """Note that the job has failed for good; return those that are skipped for it."""
    job.state, job.why = FAILED, why
    return skip_after(job)


def skip_after(job: LaunchJob) -> list[LaunchJob]:
    """Skip all that comes after a job that is never done; those that were."""
    skipped, open_ends = [], [job]
    while open_ends:
        lost = open_ends.pop()
        for after in lost.dependants or ():
            if after.state not in OVER:
                after.state, after.why = SKIPPED, f"{lost.name} has {_PAST[lost.state]}"
                skipped.append(after)
                open_ends.append(after)
    return skipped
