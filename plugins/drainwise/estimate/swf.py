"""How much closer to the truth an estimate is than the request, measured on a log in the Standard Workload Format.

Every job is asked for when it starts, with nothing known but the jobs that have ended by then, and again after it has
run for a while. What stands in a row is told in `swf_rows`.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from drainwise.estimate.expected_end import LEAST_JOBS, MEDIAN, History, Kind
from drainwise.estimate.records import NOT_A_ROW
from drainwise.estimate.run_times import WINDOW
from drainwise.estimate.spread import Spread
from drainwise.estimate.swf_rows import COMMENT, Wrong, reason_to_skip, row_of

AFTER = (0.0, 60.0, 600.0, 3600.0, 21600.0)
"""Seconds a job has run when it is asked for; jobs that ended before are not asked."""


class LoggedJob(NamedTuple):
    """One job of a log: its kind (group, user, requested seconds), its start in s, and its run and request in s."""

    kind: Kind
    start: float
    seconds: float
    requested: float


@dataclass(frozen=True)
class Compared:
    """Error ratios of those jobs that still ran after so many seconds: of the request, and of the estimate then."""

    after: float
    asked: Spread
    estimated: Spread


def read_swf(lines: Iterable[bytes], skips: Counter[str]) -> Iterator[LoggedJob]:
    """The jobs of a log that say how long they ran and had asked to run; the others are counted."""
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


def compare(
    jobs: Iterable[LoggedJob], quantile: float = MEDIAN, window: int = WINDOW, least_jobs: int = LEAST_JOBS
) -> tuple[Compared, ...]:
    """Play the log; the error ratios of request and estimate, on the same jobs, at each moment of `AFTER`.

    A moment comes with what is known when it comes: jobs that end meanwhile are learned first. Where nobody can tell,
    the estimate is the request.
    """
    play = _Play(quantile, History(window, least_jobs))
    for job in sorted(jobs, key=lambda job: job.start):
        play.until(job.start)
        play.begin(job)
    play.until(float("inf"))
    return play.compared


class _Play:
    """The log as it went: what has ended is known, what is asked next lies ahead."""

    def __init__(self, quantile: float, history: History) -> None:
        self.compared = tuple(Compared(after, Spread(), Spread()) for after in AFTER)
        self._quantile, self._history = quantile, history
        # (time, question or 0 for the end, number, job): ends at one time are learned before anybody is asked.
        self._ahead: list[tuple[float, int, int, LoggedJob]] = []
        self._number = 0

    def until(self, now: float) -> None:
        """Let pass what happens up to `now`."""
        while self._ahead and self._ahead[0][0] <= now:
            _, question, _, job = heapq.heappop(self._ahead)
            if question:
                self._ask(job, question)
            else:
                self._history.learn(job.kind, job.seconds)

    def begin(self, job: LoggedJob) -> None:
        """A job starts."""
        self._push(job.start + job.seconds, 0, job)
        self._ask(job, 0)

    def _ask(self, job: LoggedJob, question: int) -> None:
        at = self.compared[question]
        found = self._history.run_time(job.kind, at.after, self._quantile, job.requested)
        at.asked.add(job.requested, job.seconds)
        at.estimated.add(job.requested if found is None else found, job.seconds)
        following = question + 1
        if following < len(AFTER) and job.seconds > AFTER[following]:
            self._push(job.start + AFTER[following], following, job)

    def _push(self, moment: float, question: int, job: LoggedJob) -> None:
        self._number += 1
        heapq.heappush(self._ahead, (moment, question, self._number, job))
