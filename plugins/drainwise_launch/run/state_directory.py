"""The directory of a launch: its state and the output of its jobs; one process holds it."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress

from drainwise.common.process_lock import ProcessLock
from drainwise.facts.errors import DrainwiseError, PoolError, UsageError
from drainwise_launch.backend import UNSEEN
from drainwise_launch.run import store as stores
from drainwise_launch.run.store import Store

OUTPUT, LOCK = "out", "lock"
FORMER_JOBS = "jobs.jsonl"
"""The file to which jobs added jobs in an earlier release."""
_STATE_BYTES = 4


class StateDirectory:
    """The directory `path`, made and locked for this process until it is closed.

    Raises PoolError where another process holds it, UsageError where it cannot be made.
    """

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        try:
            os.makedirs(self.path, mode=0o700, exist_ok=True)
            found = os.stat(self.path)  # who may write there decides what is run
            if found.st_uid != os.geteuid():
                raise UsageError(f"{self.path}: belongs to uid {found.st_uid}; --state names a directory of your own")
            if found.st_mode & stat.S_IWOTH:
                raise UsageError(f"{self.path}: everybody may write there; --state names a directory of your own")
            os.makedirs(f"{self.path}/{OUTPUT}", mode=0o700, exist_ok=True)
            self._lock = ProcessLock(f"{self.path}/{LOCK}")
            taken = self._lock.take()
        except OSError as fault:
            raise UsageError(
                f"{self.path}: no place for a launch's state: {fault.strerror}; --state names one"
            ) from None
        if not taken:
            raise PoolError(f"{self.path}: another process runs this launch; it goes on there")

    def must_hold(self) -> None:
        """Raise PoolError when another process could take the directory now, as the lock's file was removed."""
        self._lock.must_hold("another launch could run")

    @property
    def output(self) -> str:
        """The directory of what jobs print."""
        return f"{self.path}/{OUTPUT}"

    @property
    def unseen(self) -> str:
        """The file of successes that no launcher saw."""
        return f"{self.path}/{UNSEEN}"

    def open_store(self, again: bool) -> Store:
        """Open the state. again: nothing counts as done; run times are kept where they can be read.

        Raises UsageError, PoolError.
        """
        if not again:
            return Store(self.path)
        with suppress(FileNotFoundError):
            os.unlink(f"{self.path}/{FORMER_JOBS}")
        store = None
        try:
            store = Store(self.path)
            store.forget_results()
        except UsageError:
            if store is not None:
                with suppress(DrainwiseError):
                    store.close()
            for name in (stores.FILE, f"{stores.FILE}-wal", f"{stores.FILE}-shm"):
                with suppress(FileNotFoundError):
                    os.unlink(f"{self.path}/{name}")
            return Store(self.path)
        return store

    @staticmethod
    def state_of(store: Store) -> str:
        """Return the beginning of all tags of this launch."""
        return store.fact("state", secrets.token_hex(_STATE_BYTES))

    def close(self) -> None:
        """Let others have it."""
        self._lock.release()
