"""The progress of a launch, in numbers and as one line."""

from __future__ import annotations

from collections import Counter

from drainwise.launch.choice.engine import Engine

_BAR, _LEAST_BAR = 30, 5


class Progress:
    """`eta`: when all will be done, UNIX s. queued: of those that are started, how many wait in a batch system."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.eta = 0.0
        self.queued = 0

    def counts(self) -> Counter[str]:
        """Return the number of jobs by state; costs the number of jobs."""
        return Counter(job.state for job in self._engine.graph.jobs)

    def line(self, now: float, width: int = 80) -> str:
        """Return one line for people, of at most `width` columns; the bar has what the words leave."""
        left = self._engine.left()
        over = self._engine.over
        running = len(self._engine.started) - self.queued
        queued = f", {self.queued} queued" if self.queued else ""
        words = f"{over}/{over + left} over, {running} running{queued}, ETA {span(self.eta - now)}"
        bar = min(_BAR, width - len(words) - 3)
        if bar < _LEAST_BAR:
            return words[:width]
        filled = bar * over // max(over + left, 1)
        return f"[{'#' * filled}{'.' * (bar - filled)}] {words}"


def span(seconds: float) -> str:
    """Return a duration as h:mm:ss, with the days before it."""
    whole = max(0, round(seconds))
    days, rest = divmod(whole, 86400)
    text = f"{rest // 3600}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{days} d {text}" if days else text
