"""One measured figure, and the table of them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """A median in seconds, its ratio to the floor of its table, and the largest ratio that is good enough (or None).

    limit: seconds that are good enough on any machine of today, or None.
    """

    what: str
    seconds: float
    ratio: float
    target: float | None
    limit: float | None = None

    @property
    def missed(self) -> bool:
        """Whether it is slower than it may be."""
        too_many = self.target is not None and self.ratio > self.target
        return too_many or (self.limit is not None and self.seconds > self.limit)


def in_turns(
    runs: int, steps: Sequence[tuple[str, Callable[[], object], float | None]], clock: Callable[[], float]
) -> list[Figure]:
    """Return the medians of steps (what, the call, its target) that take turns; their ratios are to the first one.

    The first turn counts for nothing.
    """
    spent: list[list[float]] = [[] for _ in steps]
    for turn in range(runs + 1):
        for (_, step, _), times in zip(steps, spent):
            begin = clock()
            step()
            if turn:
                times.append(clock() - begin)
    medians = [statistics.median(times) for times in spent]
    return [Figure(what, median, median / medians[0], target) for (what, _, target), median in zip(steps, medians)]


def duration(seconds: float) -> str:
    """A duration with three digits, in s, ms or µs."""
    if seconds >= 1:
        return f"{seconds:.3g} s"
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} µs"


def table(figures: Sequence[Figure]) -> str:
    """The figures as a Markdown table."""
    lines = ["| what | median | ratio | target |", "|---|---:|---:|---:|"]
    for figure in figures:
        targets = ["" if figure.target is None else f"≤ {figure.target:g}×"]
        targets += ["" if figure.limit is None else f"≤ {duration(figure.limit)}"]
        target = ", ".join(filter(None, targets))
        target += " **missed**" if figure.missed else ""
        ratio = f"{figure.ratio:.2f}" if figure.ratio >= 0.01 else f"{figure.ratio:.2g}"
        lines.append(f"| {figure.what} | {duration(figure.seconds)} | {ratio}× | {target} |")
    return "\n".join(lines)
