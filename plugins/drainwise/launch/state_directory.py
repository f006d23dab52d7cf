"""Where a launch keeps what it knows: its state, what jobs print, and what they add; one process holds it."""

from __future__ import annotations

import fcntl
import os
import secrets
import stat
from contextlib import suppress

from drainwise.errors import DrainwiseError, PoolError, UsageError
from drainwise.launch import store as stores
from drainwise.launch.store import Store

OUTPUT, JOBS, LOCK = "out", "jobs.jsonl", "lock"
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
            self._lock = os.open(f"{self.path}/{LOCK}", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as fault:
            raise UsageError(
                f"{self.path}: no place for a launch's state: {fault.strerror}; --state names one"
            ) from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise PoolError(f"{self.path}: another process runs this launch; it goes on there") from None
        except OSError as fault:
            os.close(self._lock)
            raise UsageError(f"{self.path}: cannot be locked: {fault.strerror}; --state names another place") from None

    @property
    def output(self) -> str:
        """The directory of what jobs print."""
        return f"{self.path}/{OUTPUT}"

    @property
    def jobs(self) -> str:
        """The file to which jobs append jobs."""
        return f"{self.path}/{JOBS}"

    def open_store(self, again: bool) -> Store:
        """The state. again: nothing counts as done any more; how long jobs take is remembered where it can be read.

        Raises UsageError, PoolError.
        """
        if not again:
            return Store(self.path)
        with suppress(FileNotFoundError):
            os.unlink(self.jobs)
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
        """What all tags of this launch begin with."""
        return store.fact("state", secrets.token_hex(_STATE_BYTES))

    def close(self) -> None:
        """Let others have it."""
        os.close(self._lock)
