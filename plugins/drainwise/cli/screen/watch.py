"""Show the same thing again and again: redrawn in place on a terminal, one block after the other elsewhere.

A pool that does not answer is said so and asked again; what was seen last stays below, with its age.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from drainwise.cli.screen.layout import RED, Paper, cut, standard_output
from drainwise.common.printable import printable
from drainwise.facts.errors import PoolError

_HOME, _TO_LINE_END, _TO_SCREEN_END = "\033[H", "\033[K", "\033[J"
_CLEAR = _HOME + "\033[2J"

Render = Callable[[Paper], "list[str]"]


class Watch:
    """Keep the pool's last answer and its time from round to round."""

    def __init__(self, render: Render, seconds: float) -> None:
        self._render, self._seconds = render, seconds
        self._lines: list[str] = []
        self._seen: float | None = None

    def round(self, paper: Paper, now: float) -> list[str]:
        """Render one round at `now` (UNIX s); never raises PoolError."""
        clock = time.strftime("%H:%M:%S", time.localtime(now))
        try:
            self._lines = self._render(paper)
        except PoolError as fault:
            since = "" if self._seen is None else f"; last answer {now - self._seen:.0f} s ago"
            said = printable(" ".join(str(fault).split()))
            line = f"{clock}  no answer: {said}{since}; asked again in {self._seconds:g} s"
            old = ["", *self._lines] if paper.terminal and self._lines else []
            shown = line if paper.width is None else cut(line, paper.width)
            return [paper.styled(shown, RED), *old]
        self._seen = now
        return [f"{clock}  every {self._seconds:g} s", "", *self._lines]


def repeat(render: Render, seconds: float, bare: bool = False) -> int:
    """Show the lines of `render` every `seconds` until Ctrl-C, which is its orderly end: 0.

    bare: for programs; nothing but what `render` gives goes to standard output, faults go to standard error.
    """
    watch, first = Watch(render, seconds), True
    try:
        while True:
            if bare:
                _show_bare(render)
            else:
                paper = standard_output()
                lines = watch.round(paper, time.time())
                print(on_screen(lines, paper, first) if paper.terminal else "\n".join([*lines, ""]), flush=True)
            first = False
            time.sleep(seconds)
    except KeyboardInterrupt:
        return 0


def _show_bare(render: Render) -> None:
    try:
        print("\n".join(render(Paper())), flush=True)
    except PoolError as fault:
        print(f"drainwise: {printable(' '.join(str(fault).split()))}", file=sys.stderr, flush=True)


def on_screen(lines: list[str], paper: Paper, first: bool) -> str:
    """Return text that draws the lines over those before; lines beyond the window's height are counted."""
    room = (paper.height or 24) - 1
    if len(lines) > room:
        lines = [*lines[: room - 1], f"... {len(lines) - room + 1} more lines: a higher window, or --user, shows them"]
    body = (_TO_LINE_END + "\n").join(lines) + _TO_LINE_END
    return (_CLEAR if first else _HOME) + body + _TO_SCREEN_END
