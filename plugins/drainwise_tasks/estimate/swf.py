"""Accuracy of an estimate compared with the request, on a log in the Standard Workload Format.

Every job is asked for when it starts, with nothing known but the jobs that have ended by then and those that run, and
again after it has run for a while. See `swf_rows` for the columns.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from drainwise.common.run_times import Kind, RunTimes
from drainwise_tasks.estimate.records.record import NOT_A_ROW
from drainwise_tasks.estimate.records.swf_rows import COMMENT, Wrong, reason_to_skip, row_of
from drainwise_tasks.estimate.spread import Spread

AFTER = (0.0, 60.0, 600.0, 3600.0, 21600.0)
"""Seconds a job has run when it is asked for; jobs that ended before are not asked."""
WATCHED = 300.0
"""Seconds of the log after which it is looked anew at what runs."""


class LoggedJob(NamedTuple):
    """One job of a log: its kind (group, user, requested seconds), its start in s, and its run and request in s."""

    kind: Kind
    start: float
    seconds: float
    requested: float


@dataclass(frozen=True)
class Compared:
    """Error ratios of those jobs that still ran `after` seconds on: of the request, and of the estimate then."""

    after: float
    asked: Spread
    estimated: Spread


def read_swf(lines: Iterable[bytes], skips: Counter[str]) -> Iterator[LoggedJob]:
    """Yield the jobs of a log that say how long they ran and had asked to run; count the others."""
    for line in lines:
        if not line or line.startswith(COMMENT):
            continue
        row = row_of(line)
        reason = NOT_A_ROW if isinstance(row, Wrong) else reason_to_skip(row)
        if reason or isinstance(row, Wrong):
            skips[reason] += 1
        else:
            kind = (row.group, row.user, f"{row.requested:g}")
            yield LoggedJob(kind, row.submit + max(0.0, row.wait), row.run, row.requested)


def compare(jobs: Iterable[LoggedJob]) -> tuple[Compared, ...]:
    """Play the log; the error ratios of request and estimate, on the same jobs, at each moment of `AFTER`.

    A moment comes with what is known when it comes: jobs that end meanwhile are learned first. Where nobody can tell,
    the estimate is the request.
    """
    play = _Play()
    for job in sorted(jobs, key=lambda job: job.start):
        play.until(job.start)
        play.begin(job)
    play.until(float("inf"))
    return play.compared


class _Play:
    """The log as it went: what has ended is known, what is asked next lies ahead."""

    def __init__(self) -> None:
        self.compared = tuple(Compared(after, Spread(), Spread()) for after in AFTER)
        self._run_times = RunTimes()
        # (time, question or 0 for the end, number, job): ends at one time are learned before anybody is asked.
        self._ahead: list[tuple[float, int, int, LoggedJob]] = []
        self._running: dict[int, LoggedJob] = {}
        self._begun, self._watched = 0, -math.inf

    def until(self, now: float) -> None:
        """Let pass what happens up to `now`."""
        while self._ahead and self._ahead[0][0] <= now:
            moment, question, number, job = heapq.heappop(self._ahead)
            if question:
                self._ask(moment, number, job, question)
            else:
                del self._running[number]
                self._run_times.learn(job.kind, job.seconds)

    def begin(self, job: LoggedJob) -> None:
        """Start a job."""
        self._begun += 1
        self._running[self._begun] = job
        heapq.heappush(self._ahead, (job.start + job.seconds, 0, self._begun, job))
        self._ask(job.start, self._begun, job, 0)

    def _ask(self, now: float, number: int, job: LoggedJob, question: int) -> None:
        if now >= self._watched + WATCHED:
            self._watched = now
            self._run_times.watch((one.kind, now - one.start) for one in self._running.values())
        at = self.compared[question]
        found = self._run_times.expected(job.kind, at.after)
        at.asked.add(job.requested, job.seconds)
        at.estimated.add(job.requested if found is None else min(found, job.requested), job.seconds)
        following = question + 1
        if following < len(AFTER) and job.seconds > AFTER[following]:
            heapq.heappush(self._ahead, (job.start + AFTER[following], following, number, job))
