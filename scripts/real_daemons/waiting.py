"""Waiting for a condition with a deadline, instead of sleeping."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from real_daemons.errors import DeadlineError

T = TypeVar("T")

STALLS = 3
"""How many times as long as on an idle machine anything may take: a limit costs time only where it is reached."""
_FIRST_PAUSE, _LONGEST_PAUSE, _SELDOM = 0.005, 0.8, 2.5  # seconds
_LONGER = 1.3  # each pause than the one before: what takes long is seen a quarter of that later at most
_TIMES = 3  # a look that takes long, as a command does, is followed by a pause so many times as long, up to _SELDOM


def wait_for(
    condition: Callable[[], T], seconds: float = 30.0, what: str = "a condition", explain: Callable[[], str] = str
) -> T:
    """Call `condition` until it gives something true and return that; `seconds`: how long that may take when idle.

    Raises DeadlineError after STALLS times as long, with the last value and what `explain` says then.
    """
    seconds *= STALLS
    end = time.monotonic() + seconds
    pause = _FIRST_PAUSE
    while True:
        began = time.monotonic()
        value = condition()
        if value:
            return value
        now = time.monotonic()
        if now > end:
            raise DeadlineError(f"waited {seconds:g} s for {what}; last value: {value!r}\n{explain()}".rstrip())
        time.sleep(max(pause, min(_SELDOM, _TIMES * (now - began))))
        pause = min(_LONGEST_PAUSE, _LONGER * pause)
