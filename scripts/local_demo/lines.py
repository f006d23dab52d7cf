"""The demonstration without a terminal: one plain line for each thing that happens, and the sums at the end.

No line is wider than 80 columns.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from local_demo.frame import Frame
from local_demo.outcome import DemoOutcome
from local_demo.sums import Sums, verdict
from local_demo.timeline import all_back, cumulative

HOW_TO_STOP = "Ctrl-C stops it and leaves nothing behind"
WIDTH = 80
_EVERY = 5.0  # seconds between two lines of the cores in use


class Lines:
    """Prints as things happen."""

    def __init__(self) -> None:
        self._next = 0.0
        print(HOW_TO_STOP, flush=True)

    def say(self, elapsed: float, text: str) -> None:
        """See `Display`."""
        print("\n".join(folded([f"{elapsed:6.1f} s  {text}"], " " * 12)), flush=True)

    def show(self, frame: Frame) -> None:
        """See `Display`."""
        if frame.elapsed < self._next or not frame.rows:
            return
        self._next = frame.elapsed + _EVERY
        use = ", ".join(f"{one.name} {one.cores_in_use:.0f}/{one.cores_owed:.0f}" for one in frame.accounts)
        busy = sum(row.used or 0 for row in frame.rows)
        self.say(frame.elapsed, f"cores in use/owed: {use}; {busy:.0f} busy")


class Silence:
    """Shows nothing."""

    def say(self, elapsed: float, text: str) -> None:
        """See `Display`."""

    def show(self, frame: Frame) -> None:
        """See `Display`."""


def summary(result: DemoOutcome, speed: float) -> list[str]:
    """Return the sums in a few lines; core-seconds of this clock."""
    sums = result.sums
    lines = ["", "what it cost (core-seconds); the last figure is what leaving wasted"]
    for leave in sums.leaves:
        lines.append(
            f"  {leave.name}: lease {leave.lease:.0f} = {leave.useful:.0f} useful + {leave.lost:.0f} lost"
            f" + {leave.idle:.0f} idle + {leave.failed:.0f} failed; {leave.wasted:.0f} wasted"
        )
    lines += [
        f"  expected by the plan {sums.predicted:.0f}, realised {sums.wasted:.0f}:"
        f" {sums.idle:.0f} idle while draining, {sums.lost:.0f} in payloads stopped",
        f"  {sums.rival.policy} would have killed {', '.join(sums.rival.pilots)} ({sums.rival.cores} cores):"
        f" {sums.rival.wasted:.0f} of running payloads lost",
        *_cores_back(sums),
        f"  1 second here is {speed / 60:g} minutes of the log; 1 core-second is {speed / 3600:.2f} core-hours there",
        "",
        verdict(sums.wasted, sums.rival.wasted),
    ]
    return folded(lines)


def folded(lines: Iterable[str], indent: str = " " * 4) -> list[str]:
    """Return the lines; one that is wider than 80 columns goes on in the next, behind the indent."""
    found: list[str] = []
    for line in lines:
        found += textwrap.wrap(line, WIDTH, subsequent_indent=indent, break_on_hyphens=False) or [""]
    return found


def _cores_back(sums: Sums) -> list[str]:
    steps = ", ".join(f"{cores} after {after:.0f} s" for after, cores in cumulative(sums.freed))
    waited = all_back(sums.freed, sums.cores)
    wait = "" if waited is None else f"; killing would have given them at once, draining took {waited:.0f} s"
    return [f"  cores back: {steps} of {sums.cores}{wait}"]
