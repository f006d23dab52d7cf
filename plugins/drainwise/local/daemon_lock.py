"""The daemon lock: held by the daemon of a directory as long as it lives, and stamped with the time of each round."""

from __future__ import annotations

import os
from dataclasses import dataclass

from drainwise.common.process_lock import ProcessLock, holder_words, last_stamp
from drainwise.facts.errors import PoolError, PoolUnreachable
from drainwise.processes.process import Process, birth_of

LOCK = "daemon.lock"
STALE_AFTER = 10.0
"""Seconds without a round after which the daemon counts as stuck."""

_PATIENCE = 1.0  # seconds; whoever looks whether there is a daemon holds the lock for a moment


@dataclass(frozen=True)
class FoundDaemon:
    """The daemon as found: its process (None: not known), and when its last round ended, UNIX s."""

    process: Process | None
    last_round: float


class DaemonLock(ProcessLock):
    """Held by the one daemon of a directory (or by whoever acts in its place). Raises PoolError when it is held."""

    def __init__(self, directory: str) -> None:
        super().__init__(os.path.join(directory, LOCK), str(birth_of(os.getpid()) or 0))
        try:
            taken = self.take(_PATIENCE)
        except OSError as error:
            raise PoolError(f"{self.path}: cannot be written: {error.strerror}") from None
        if not taken:
            holder = _process_in(self.path)
            who = "" if holder is None else f" (pid {holder.pid})"
            raise PoolError(f"{directory}: a daemon serves it already{who}; `drainwise local stop` stops it")
        self.stamp(0)  # no round yet


def find_daemon(directory: str) -> FoundDaemon | None:
    """Find the daemon that serves `directory`; None when there is none."""
    path = os.path.join(directory, LOCK)
    last = last_stamp(path)
    return None if last is None else FoundDaemon(_process_in(path), last)


def require_daemon(directory: str, now: float, stale_after: float = STALE_AFTER) -> None:
    """Raise PoolUnreachable unless a daemon serves `directory` and has done a round within `stale_after` s of `now`."""
    found = find_daemon(directory)
    if found is None:
        raise PoolUnreachable(f"no daemon serves the local batch system in {directory}: `drainwise local start` it")
    age = now - found.last_round
    if abs(age) > stale_after:
        who = "" if found.process is None else f" (pid {found.process.pid})"
        since = "it has not done a round yet" if not found.last_round else f"its last round was {age:.0f} s ago"
        raise PoolUnreachable(f"the daemon of the local batch system in {directory}{who} does not answer: {since}")


def _process_in(path: str) -> Process | None:
    words = holder_words(path) or []
    if len(words) != 2 or not all(word.isdecimal() for word in words):
        return None
    return Process(int(words[0]), int(words[1]))
