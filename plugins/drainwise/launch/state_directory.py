"""Where a launch keeps what it knows: its state, what jobs print, and what they add; one process holds it."""

from __future__ import annotations

import fcntl
import os
import secrets
from contextlib import suppress

from drainwise.errors import PoolError, UsageError
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
            owner = os.stat(self.path).st_uid
            if owner != os.geteuid():  # who may write there decides what is run
                raise UsageError(f"{self.path}: belongs to uid {owner}; --state names a directory of your own")
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

    @property
    def output(self) -> str:
        """The directory of what jobs print."""
        return f"{self.path}/{OUTPUT}"

    @property
    def jobs(self) -> str:
        """The file to which jobs append jobs."""
        return f"{self.path}/{JOBS}"

    def open_store(self, durable: bool, again: bool) -> Store:
        """The state. again: nothing counts as done any more; how long jobs take is remembered where it can be read.

        Raises UsageError, PoolError.
        """
        if again:
            with suppress(FileNotFoundError):
                os.unlink(self.jobs)
            try:
                store = Store(self.path, durable)
            except UsageError:
                for name in (stores.FILE, f"{stores.FILE}-wal", f"{stores.FILE}-shm"):
                    with suppress(FileNotFoundError):
                        os.unlink(f"{self.path}/{name}")
            else:
                store.forget_results()
                return store
        return Store(self.path, durable)

    @staticmethod
    def state_of(store: Store) -> str:
        """What all tags of this launch begin with."""
        return store.fact("state", secrets.token_hex(_STATE_BYTES))

    def close(self) -> None:
        """Let others have it."""
        os.close(self._lock)
