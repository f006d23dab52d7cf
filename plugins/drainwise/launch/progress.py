"""How far a launch is, in numbers and as one line."""

from __future__ import annotations

from collections import Counter

from drainwise.launch.engine import Engine

_BAR = 30


class Progress:
    """`eta`: when all will be done, UNIX s. queued: of those that are started, how many wait in a batch system."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.eta = 0.0
        self.queued = 0

    def counts(self) -> Counter[str]:
        """Jobs by state; costs the number of jobs."""
        return Counter(job.state for job in self._engine.graph.jobs)

    def line(self, now: float) -> str:
        """One line for people."""
        jobs = self._engine.graph.jobs
        total, left = len(jobs), self._engine.left()
        over = total - left
        filled = _BAR * over // max(total, 1)
        running = len(self._engine.started) - self.queued
        queued = f", {self.queued} queued" if self.queued else ""
        return (
            f"[{'#' * filled}{'.' * (_BAR - filled)}] {over}/{total} over, {running} running{queued}, "
            f"ETA {span(self.eta - now)}"
        )


def span(seconds: float) -> str:
    """A duration as h:mm:ss, days before it."""
    whole = max(0, round(seconds))
    days, rest = divmod(whole, 86400)
    text = f"{rest // 3600}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{days} d {text}" if days else text
