"""Pressure: the expected seconds from the start of a job to the end of the longest chain behind it. Source: SPEC §5."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from drainwise.launch.work import DONE, FAILED, SKIPPED, Job

_ENDED = frozenset({DONE, FAILED})


def needed_for(targets: Iterable[Job]) -> list[Job]:
    """What is not over of the targets and of all that must be done before them, each after whatever comes after it.

    What is before a target that is skipped is needed still: one failure does not decide what else is run.
    """
    seen: set[int] = set()
    found: list[Job] = []
    for target in targets:
        if target.index in seen or target.state in _ENDED:
            continue
        seen.add(target.index)
        path = [(target, iter(target.after))]
        while path:
            job, left = path[-1]
            for before in left:
                if before.index not in seen and before.state not in _ENDED:
                    seen.add(before.index)
                    path.append((before, iter(before.after)))
                    break
            else:
                path.pop()
                if job.state != SKIPPED:
                    found.append(job)
    found.reverse()
    return found


def pressure_of(job: Job, known: Mapping[int, float]) -> float:
    """Its own time, and the most demanding of those after it whose pressure is `known`, by index."""
    if not job.dependants:
        return job.ete
    return job.ete + max((known.get(after.index, 0.0) for after in job.dependants), default=0.0)


def pressures(jobs: Iterable[Job]) -> dict[int, float]:
    """The pressure of each by index; each stands after whatever comes after it."""
    known: dict[int, float] = {}
    for job in jobs:
        known[job.index] = pressure_of(job, known)
    return known


def raise_before(jobs: Iterable[Job], known: dict[int, float]) -> tuple[list[Job], list[Job]]:
    """Jobs have come, or come after others now: raise the pressure of them and of what is before them.

    Those that were raised, and those of them that were not known: they are needed from now on.
    """
    raised, fresh = [], []
    for job in needed_for(jobs):
        pressure, old = pressure_of(job, known), known.get(job.index)
        if old is None:
            fresh.append(job)
        if old is None or pressure > old:
            known[job.index] = pressure
            raised.append(job)
    return raised, fresh
