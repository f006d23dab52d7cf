"""Waiting for a condition with a deadline, instead of sleeping."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from real_daemons.errors import DeadlineError

T = TypeVar("T")

STALLS = 3
"""How many times as long as on an idle machine anything may take: a limit costs time only where it is reached."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.2  # seconds


def wait_for(condition: Callable[[], T], seconds: float, what: str, explain: Callable[[], str] = str) -> T:
    """Call `condition` until it gives something true and return that; `seconds`: how long that may take when idle.

    Raises DeadlineError after STALLS times as long, with the last value and what `explain` says then.
    """
    seconds *= STALLS
    end = time.monotonic() + seconds
    pause = _FIRST_PAUSE
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise DeadlineError(f"waited {seconds:g} s for {what}; last value: {value!r}\n{explain()}".rstrip())
        time.sleep(pause)
        pause = min(_LONGEST_PAUSE, 1.5 * pause)
