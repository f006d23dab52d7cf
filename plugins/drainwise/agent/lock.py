"""One agent per pool: a lock on a file in the state directory.

A child that is giving an order holds the lock with its parent: when the agent is killed in the middle of an order, the
next one begins when that order has ended, and never beside it.
"""

from __future__ import annotations

import os
import re

from drainwise.common.local_file import make_public
from drainwise.common.process_lock import ProcessLock, holder_words
from drainwise.facts.errors import PoolError, UsageError

_LONGEST_NAME = 100

LOOP = "loop"
"""What stands behind the pid in the lock of an agent that goes on cycle after cycle."""


def lock_path(state_dir: str, pool: str) -> str:
    """Return where the lock of the agent of `pool` lies; whatever is no letter or digit in its name becomes a dash."""
    name = re.sub("[^A-Za-z0-9]+", "-", pool).strip("-")[-_LONGEST_NAME:]
    return os.path.join(state_dir, f"agent-{name}.lock")


class AgentLock(ProcessLock):
    """The right to act on a pool; `path` as `lock_path` gives it. Nothing is done before `take`."""

    def take(self, patience: float = 0.0) -> bool:
        """Take the lock; False when another process holds it. Its directory is made (0755) where it is missing.

        Raises UsageError when there is no place for it.
        """
        self.make_place()
        try:
            return super().take(patience)
        except OSError as fault:
            raise self._no_place(fault) from None

    def must_take(self) -> None:
        """Take the lock. Raises PoolError naming the holder when another process holds it, UsageError as `take`."""
        if not self.take():
            raise PoolError(f"another agent acts on this pool ({self.holder()}); it holds {self.path}")

    def holder(self) -> str:
        """Return who holds it as text: `pid 123` as the holder wrote it."""
        words = holder_words(self.path)
        if words is None:
            return "nobody"
        return f"pid {int(words[0])}" if words and words[0].isdecimal() else "its pid is not known"

    def is_of_loop(self) -> bool:
        """Return whether an agent holds it that goes on, and not a command that does one cycle."""
        return (holder_words(self.path) or [])[1:] == [LOOP]

    def make_place(self) -> None:
        """Make its directory where it is missing; `take` does so too. Raises UsageError when that cannot be done."""
        try:
            make_public(os.path.dirname(self.path))
        except OSError as fault:
            raise self._no_place(fault) from None

    def _no_place(self, fault: OSError) -> UsageError:
        what = f"{self.path}: the agent's lock cannot be kept there ({fault.strerror}); see [agent] state_dir"
        return UsageError(what)
