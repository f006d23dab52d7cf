"""One measured figure, and the table of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """A median in seconds, its ratio to the floor of its table, and the largest ratio that is good enough (or None)."""

    what: str
    seconds: float
    ratio: float
    target: float | None

    @property
    def missed(self) -> bool:
        """Whether it is slower than it may be."""
        return self.target is not None and self.ratio > self.target


def duration(seconds: float) -> str:
    """A duration with three digits, in ms or µs."""
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} µs"


def table(figures: Sequence[Figure]) -> str:
    """The figures as a Markdown table."""
    lines = ["| what | median | ratio | target |", "|---|---:|---:|---:|"]
    for figure in figures:
        target = "" if figure.target is None else f"≤ {figure.target:g}×" + (" **missed**" if figure.missed else "")
        lines.append(f"| {figure.what} | {duration(figure.seconds)} | {figure.ratio:.2f}× | {target} |")
    return "\n".join(lines)
