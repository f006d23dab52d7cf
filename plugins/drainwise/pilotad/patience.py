"""How long a round may wait in all for what users write: one budget for many files.

Without it sixty-four jobs that hold their locks for ever would make a round wait sixty-four times.
"""

from __future__ import annotations

import time


class Patience:
    """Seconds left to wait; shared by the reads of one round."""

    __slots__ = ("_left",)

    def __init__(self, seconds: float) -> None:
        self._left = seconds

    def pause(self, seconds: float) -> bool:
        """Sleep for `seconds` and say True, or say False at once when that is more than what is left.

        What counts is how long it really slept: on a busy machine a millisecond lasts ten.
        """
        if seconds > self._left:
            return False
        begun = time.monotonic()
        time.sleep(seconds)
        self._left -= max(seconds, time.monotonic() - begun)
        return True
