"""What earlier runs know of jobs: who is done still, and how long each takes."""

from __future__ import annotations

from collections.abc import Iterable

from drainwise.launch.engine import Engine
from drainwise.launch.graph import in_order
from drainwise.launch.store import Store
from drainwise.launch.work import DONE, READY, Job, digest_of


def recall(engine: Engine, store: Store, jobs: Iterable[Job]) -> int:
    """Tell the engine of jobs that have just been added; how many need not be run again.

    A job is done when it was done as it is now: the same command, after jobs that are the same and done.
    """
    ordered = list(in_order(jobs))
    for job in ordered:
        job.digest = digest_of(job.work, [before.digest for before in job.after])
    new = {job.name: job for job in ordered}
    was_done: dict[int, float | None] = {}
    for row in store.known(new):
        job = new[row.name]
        engine.remember(job, row.last_success)
        if row.state == DONE and row.digest == job.digest:
            was_done[job.index] = row.wall
    count = 0
    for job in ordered:
        if job.index in was_done and job.state == READY:
            job.code, job.seconds = 0, was_done[job.index]
            engine.was_done(job)
            count += 1
    return count
