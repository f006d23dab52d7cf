"""When to ask how a pilot ended: at once when it has gone, then less and less often while the records do not tell."""

from __future__ import annotations

from collections.abc import Iterable

_FIRST, _LONGEST = 60, 3600  # seconds


class Inquiry:
    """What a loop remembers of its own questions; losing it costs some questions that were asked before."""

    def __init__(self) -> None:
        self._next: dict[str, tuple[int, int]] = {}  # by run: when to ask again (UNIX s), and the pause after that

    def due(self, runs: Iterable[str], now: int) -> list[str]:
        """Of the runs that have gone, those to ask for at `now` (UNIX s); others than these are forgotten."""
        known = {run: self._next.get(run, (now, _FIRST)) for run in runs}
        asked = [run for run, (when, pause) in known.items() if when <= now or when > now + pause]
        for run in asked:
            pause = known[run][1]
            known[run] = now + pause, min(2 * pause, _LONGEST)
        self._next = known
        return asked
