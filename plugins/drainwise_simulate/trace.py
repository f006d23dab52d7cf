"""The jobs of a log in the Standard Workload Format, with its header; strict, since a figure rests on every row.

A row that breaks the format ends the reading with an error that names file, line and column. A row that is sound but of
no use (its run time is not known) is left out and counted under its reason.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, NamedTuple

from drainwise.common.printable import printable
from drainwise.facts.errors import UsageError
from drainwise_tasks.estimate.records.record import LONGEST_LINE, NO_CORES, opened, skipped_words
from drainwise_tasks.estimate.records.swf_rows import COMMENT, Wrong, reason_to_skip, row_of


class TraceJob(NamedTuple):
    """A payload to be. number: unique within the trace. submit: when it came, s since the beginning of the trace.

    run: how long it runs, requested: how long it says that it may run, in s and above 0. user, group: who sent it.
    """

    number: int
    submit: float
    run: float
    cores: int
    requested: float
    user: str
    group: str


MOST_JOBS = 5_000_000
"""Jobs of one log; more would not fit in memory."""
_MOST_HEADER = 5_000  # lines of it that are kept


@dataclass(frozen=True)
class Trace:
    """A log: where it was read, its jobs by submit time, the lines of its header, and how many rows were skipped why.

    The jobs' times count from the first submit.
    """

    name: str
    jobs: tuple[TraceJob, ...]
    header: tuple[str, ...] = ()
    skipped: Counter[str] = field(default_factory=Counter)

    def said(self, key: str) -> str:
        """Return what the header says under a name such as `Computer`; "" when it says nothing."""
        for line in self.header:
            name, colon, value = line.lstrip("; \t").partition(":")
            if colon and name.strip() == key:
                return value.strip()
        return ""


def read_trace(path: str) -> Trace:
    """Read the log at `path`, gzipped or not; "-" is the standard input.

    Raises UsageError, which names the file, the line and the column, for what cannot be read or breaks the format, and
    for a log without any job that can be used.
    """
    with opened(path) as stream:
        return trace_in(stream, path)


def trace_in(stream: BinaryIO, name: str) -> Trace:
    """Read the log in a stream; `name` is what errors call it. Raises as `read_trace`."""
    jobs: list[TraceJob] = []
    header: list[str] = []
    skipped: Counter[str] = Counter()
    lines_of: dict[int, int] = {}
    for place, line in _lines(stream, name):
        if line.startswith(COMMENT):
            if len(header) < _MOST_HEADER:
                header.append(_text(line))
            continue
        row = row_of(line)
        if isinstance(row, Wrong):
            raise UsageError(f"{name}: line {place}: {row}")
        reason = reason_to_skip(row) or ("" if row.cores else NO_CORES)
        if reason:
            skipped[reason] += 1
            continue
        earlier = lines_of.setdefault(row.number, place)
        if earlier != place:
            twice = Wrong(1, str(row.number), f"each number once (it is line {earlier}'s)")
            raise UsageError(f"{name}: line {place}: {twice}")
        if len(jobs) == MOST_JOBS:
            raise UsageError(f"{name}: line {place}: expected at most {MOST_JOBS} jobs; cut the log")
        jobs.append(TraceJob(row.number, row.submit, row.run, row.cores, row.requested, row.user, row.group))
    if not jobs:
        raise UsageError(f"{name}: no job in it that can be used{skipped_words(skipped)}")
    jobs.sort(key=lambda job: job.submit)
    begin = jobs[0].submit
    shifted = tuple(job._replace(submit=job.submit - begin) for job in jobs) if begin else tuple(jobs)
    return Trace(name, shifted, tuple(header), skipped)


def largest_owner(jobs: Sequence[TraceJob], owner: Callable[[TraceJob], str]) -> tuple[str, float]:
    """Return who has most of the core-seconds, and which share of them; of equals the first by name."""
    sums: dict[str, float] = {}
    for job in jobs:
        name = owner(job)
        sums[name] = sums.get(name, 0.0) + job.run * job.cores
    total = math.fsum(sums.values())
    largest = max(sorted(sums), key=lambda name: sums[name])
    return largest, sums[largest] / total if total else 0.0


def _lines(stream: BinaryIO, name: str) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank, with their numbers; one that is too long is never held as a whole."""
    for place in itertools.count(1):
        line = stream.readline(LONGEST_LINE + 1)
        if not line:
            return
        if len(line) > LONGEST_LINE:
            raise UsageError(f"{name}: line {place}: expected at most {LONGEST_LINE} bytes")
        if not line.isspace():
            yield place, line


def _text(line: bytes) -> str:
    """Return a line of the header without what is no text; as long as a person reads."""
    return printable(line[:500].decode("utf-8", "replace").strip().replace("\t", " "))
