"""What earlier runs did: how their jobs ended, also those of this machine that succeeded while no launcher saw it."""

from __future__ import annotations

import fcntl
import json
import time
from contextlib import suppress

from drainwise_launch.choice.engine import Engine
from drainwise_launch.choice.work import DONE, READY, digest_of
from drainwise_launch.run.starts import is_of
from drainwise_launch.run.store import EndedJob, Store

_PATIENCE = 5.0
"""Seconds until the supervisor of a launcher that was killed has seen the end of what has been ended now."""
_LOOK = 0.02
_MOST = 1 << 27


def recall(engine: Engine, store: Store) -> int:
    """Tell the engine how its jobs ended in earlier runs; return how many need not be run again.

    A job is done when it was done as it is now: the same command, after jobs that are the same and done.
    """
    ordered = engine.graph.ordered
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


def take_in_unseen_ends(engine: Engine, store: Store, path: str, again: bool) -> None:
    """Write down in the store which jobs succeeded unseen, by the supervisor's file `path`, and empty that.

    Only jobs that are as they were count, and none where all is to be done `again`. To be called when all jobs that a
    killed launcher left have been ended, and before anything is recalled from the store. Raises UsageError, PoolError,
    as the store.
    """
    try:
        file = open(path, "rb+")  # noqa: SIM115 - closed below
    except OSError:
        return  # no job was ever started here
    with file:
        _wait_for_writers(file.fileno())
        found = [] if again else list(filter(None, map(_end_in, file.read(_MOST).splitlines())))
        if found:
            for job in engine.graph.ordered:
                job.digest = digest_of(job.work, [before.digest for before in job.after])
        store.ended(
            EndedJob(name, engine.graph.find(name).digest, DONE, 0, ended, seconds, None, seconds, "")
            for name, tag, seconds, ended in found
            if name in engine.graph and is_of(tag, engine.graph.find(name).digest)
        )
        store.commit()
        file.truncate(0)


def _wait_for_writers(descriptor: int) -> None:
    """Wait until nobody writes any more, for a while: one that the kernel does not let go of has nothing to say."""
    ends = time.monotonic() + _PATIENCE
    while True:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        if time.monotonic() >= ends:
            return
        time.sleep(_LOOK)


def _end_in(line: bytes) -> tuple[str, str, float, float] | None:
    """Read a line: name, tag, seconds, UNIX s; None for what is none, such as the last line of a full disk."""
    try:
        found = json.loads(line)
        name, tag, seconds, ended = (found[key] for key in ("name", "tag", "seconds", "ended"))
        return str(name), str(tag), float(seconds), float(ended)
    except (ValueError, KeyError, TypeError):
        return None
