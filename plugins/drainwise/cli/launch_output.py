"""What `drainwise launch` shows: the progress bar, warnings between its moves, the plan, what became of each job."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import TextIO

from drainwise.cli.layout import Heading, standard_output, table
from drainwise.cli.text import printable
from drainwise.launch.engine import Engine
from drainwise.launch.forecast import Planned
from drainwise.launch.progress import Progress, span
from drainwise.launch.starts import Starts
from drainwise.launch.work import BLOCKED, DONE, FAILED, READY, SKIPPED, STARTED

_EVERY = 0.2
_SHOWN = 1000


class Console:
    """The progress bar on a terminal's last line; without a terminal only what is said."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty()
        self._next = 0.0
        self._shown = False

    def say(self, text: str) -> None:
        """One line that stays."""
        self.clear()
        print(f"drainwise: {printable(' '.join(text.split()))}", file=self._stream, flush=True)

    def show(self, progress: Progress) -> None:
        """Move the bar, a few times a second."""
        moment = time.monotonic()
        if not self._is_terminal or moment < self._next:
            return
        self._next = moment + _EVERY
        width = os.get_terminal_size(self._stream.fileno()).columns or 80
        print(f"\r{progress.line(time.time())[: width - 1]}\x1b[K", end="", file=self._stream, flush=True)
        self._shown = True

    def clear(self) -> None:
        """Take the bar away."""
        if self._shown:
            print("\r\x1b[K", end="", file=self._stream, flush=True)
            self._shown = False


def plan_lines(planned: Sequence[Planned], earlier: int) -> list[str]:
    """The plan as a table, the first thousand starts of it."""
    headings = [
        Heading("start", number=True),
        Heading("expected", number=True),
        Heading("pressure", number=True),
        Heading("cpu", number=True),
        Heading("mem MB", number=True),
        Heading("backend"),
        Heading("job", cuttable=True),
    ]
    rows = [
        (
            span(one.start),
            span(one.job.ete),
            span(one.pressure),
            str(one.job.reserved.cpu),
            str(one.job.reserved.mem),
            one.job.work.backend,
            printable(one.job.name),
        )
        for one in planned[:_SHOWN]
    ]
    lines, _ = table(headings, rows, standard_output())
    more = f" (the first {_SHOWN} are shown)" if len(planned) > _SHOWN else ""
    end = max((one.start + one.job.ete for one in planned), default=0.0)
    done = f", {earlier} are done already" if earlier else ""
    return [*lines, f"{len(planned)} jobs would run{more}{done}; all done after {span(end)}"]


def plan_json(planned: Sequence[Planned], earlier: int, pool: Mapping[str, int]) -> dict[str, object]:
    """The plan for programs; times in seconds from the beginning."""
    return {
        "jobs": [
            {
                "name": one.job.name,
                "backend": one.job.work.backend,
                "start": round(one.start, 3),
                "expected": round(one.job.ete, 3),
                "pressure": round(one.pressure, 3),
                "resources": one.job.reserved.as_dict(),
                "bucket": one.job.bucket.as_dict(),
            }
            for one in planned
        ],
        "done_earlier": earlier,
        "local": dict(pool),
        "seconds": round(max((one.start + one.job.ete for one in planned), default=0.0), 3),
    }


def result_lines(engine: Engine, earlier: int) -> list[str]:
    """What became of the jobs, in a line."""
    counts = _counts(engine)
    parts = [f"{counts[DONE]} done" + (f" ({earlier} of them earlier)" if earlier else "")]
    for state, words in ((FAILED, "failed"), (SKIPPED, "not run, as one before them failed")):
        if counts[state]:
            parts.append(f"{counts[state]} {words}")
    left = counts[BLOCKED] + counts[READY] + counts[STARTED]
    if left:
        parts.append(f"{left} left")
    return [", ".join(parts)]


def result_json(engine: Engine, starts: Starts) -> dict[str, object]:
    """What became of each job, for programs; times in seconds."""
    return {
        "jobs": [
            {
                "name": job.name,
                "state": job.state,
                "code": job.code,
                "seconds": None if job.seconds is None else round(job.seconds, 6),
                "backend": job.work.backend,
                "output": starts.output_of(job),
                "why": job.why,
            }
            for job in engine.graph.jobs
        ],
        "counts": _counts(engine),
    }


def _counts(engine: Engine) -> dict[str, int]:
    counts = dict.fromkeys((DONE, FAILED, SKIPPED, BLOCKED, READY, STARTED), 0)
    for job in engine.graph.jobs:
        counts[job.state] += 1
    return counts
