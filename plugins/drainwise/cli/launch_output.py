"""The output of `drainwise launch`: progress bar, warnings between its moves, plan, the end of each job."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import TextIO

from drainwise.cli.screen.layout import headings_of, standard_output, table
from drainwise.common.printable import printable
from drainwise.facts.errors import PoolError
from drainwise.launch.choice.engine import Engine
from drainwise.launch.choice.work import BLOCKED, DONE, FAILED, READY, SKIPPED, STARTED
from drainwise.launch.run.forecast import Planned
from drainwise.launch.run.progress import Progress, span
from drainwise.launch.run.starts import Starts

_EVERY = 0.2
_SHARE = 20
"""The bar takes a twentieth of the time at most."""
_COLUMNS = 80
_SHOWN = 1000


class Console:
    """The progress bar on a terminal's last line; without a terminal only what is said.

    Nobody need be there to read it: a terminal that was closed ends nothing that runs.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty() and os.environ.get("TERM") != "dumb"
        self._next = 0.0
        self._shown = False

    def say(self, text: str) -> None:
        """Print one line that stays."""
        self._put(f"{self._taken_away()}drainwise: {printable(' '.join(text.split()))}\n")

    def show(self, progress: Progress) -> None:
        """Move the bar, a few times a second; ever more rarely where that takes its time."""
        begin = time.monotonic()
        if not self._is_terminal or begin < self._next:
            return
        self._put(f"\r{progress.line(time.time(), self._width() - 1)}\x1b[K")
        self._shown = True
        end = time.monotonic()
        self._next = end + max(_EVERY, _SHARE * (end - begin))

    def clear(self) -> None:
        """Take the bar away."""
        self._put(self._taken_away())

    def _taken_away(self) -> str:
        was_shown, self._shown = self._shown, False
        return "\r\x1b[K" if was_shown else ""

    def _width(self) -> int:
        try:
            return os.get_terminal_size(self._stream.fileno()).columns or _COLUMNS
        except OSError:
            return _COLUMNS

    def _put(self, text: str) -> None:
        if text:
            put(text, self._stream)


def put(text: str, stream: TextIO) -> OSError | None:
    """Write it at once; why it cannot be written, where nobody is there to read: then nothing is any more."""
    try:
        stream.write(text)
        stream.flush()
    except OSError as fault:
        with open(os.devnull, "wb") as null:  # what is buffered still would fail at the end again
            os.dup2(null.fileno(), stream.fileno())
        return fault
    return None


def check_written(fault: OSError | None) -> None:
    """Raise PoolError where the result could not be written, BrokenPipeError where its reader has gone."""
    if isinstance(fault, BrokenPipeError):
        raise fault
    if fault is not None:
        raise PoolError(f"the result cannot be written: {fault.strerror}")


def plan_lines(planned: Sequence[Planned], earlier: int, at_once: Mapping[str, int]) -> list[str]:
    """Write the plan as a table, its first thousand starts. at_once: how many run in systems without a pool."""
    headings = headings_of(">start", ">expected", ">pressure", ">cpu", ">mem MB", "backend", "job~")
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
    systems = " and ".join(f"{name} runs up to {count} of them at once" for name, count in at_once.items())
    given = f", if {systems}" if systems else ""
    return [*lines, f"{len(planned)} jobs would run{more}{done}; all done after {span(end)}{given}"]


def plan_json(
    planned: Sequence[Planned], earlier: int, at_once: Mapping[str, int], pool: Mapping[str, int]
) -> dict[str, object]:
    """Write the plan for programs; times in seconds from the beginning."""
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
        "at_once": dict(at_once),
        "seconds": round(max((one.start + one.job.ete for one in planned), default=0.0), 3),
    }


def result_lines(engine: Engine, earlier: int) -> list[str]:
    """Return the number of jobs by their ends, in a line."""
    counts = _counts(engine)
    parts = [f"{counts[DONE]} done" + (f" ({earlier} of them earlier)" if earlier else "")]
    for state, words in ((FAILED, "failed"), (SKIPPED, "not run, as one before them failed")):
        if counts[state]:
            parts.append(f"{counts[state]} {words}")
    left = counts[BLOCKED] + counts[READY] + counts[STARTED]
    if left:
        parts.append(f"{left} left")
    return [", ".join(parts)]


def result_json(engine: Engine, starts: Starts, earlier: int, refused: int) -> dict[str, object]:
    """Return the end of each job, for programs; times in seconds. refused: how many that were added were wrong."""
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
        "done_earlier": earlier,
        "refused": refused,
    }


def _counts(engine: Engine) -> dict[str, int]:
    counts = dict.fromkeys((DONE, FAILED, SKIPPED, BLOCKED, READY, STARTED), 0)
    for job in engine.graph.jobs:
        counts[job.state] += 1
    return counts
