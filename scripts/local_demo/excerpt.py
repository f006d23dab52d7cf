"""The jobs of the committed excerpt of a real log, in the Standard Workload Format; what is not sound is refused."""

from __future__ import annotations

import os
from dataclasses import dataclass

EXCERPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lcg-excerpt.swf")
_FIELDS = 18
_RUN, _REQUESTED = 3, 8  # places of the run time and the requested time


class ExcerptError(Exception):
    """A line of the log is not what the format says."""


@dataclass(frozen=True)
class LoggedJob:
    """One job of the log: its number, how long it ran and was requested to run, in seconds; 0 < run ≤ requested."""

    number: int
    run: int
    requested: int


def read_excerpt(path: str = EXCERPT) -> tuple[LoggedJob, ...]:
    """All jobs of the file. Raises ExcerptError, which names the line, and OSError."""
    with open(path, encoding="ascii") as stream:
        text = stream.read()
    return parse(text, path)


def parse(text: str, path: str) -> tuple[LoggedJob, ...]:
    """The jobs in `text`: lines of 18 whole numbers; `;` begins a comment line. Raises ExcerptError."""
    jobs = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith(";") or not line.strip():
            continue
        try:
            fields = [int(field) for field in line.split()]
        except ValueError:
            raise ExcerptError(f"{path}:{number}: expected whole numbers") from None
        if len(fields) != _FIELDS:
            raise ExcerptError(f"{path}:{number}: expected {_FIELDS} fields, found {len(fields)}")
        run, requested = fields[_RUN], fields[_REQUESTED]
        if not 0 < run <= requested:
            raise ExcerptError(f"{path}:{number}: expected 0 < run time <= requested time, found {run} and {requested}")
        jobs.append(LoggedJob(fields[0], run, requested))
    if not jobs:
        raise ExcerptError(f"{path}: no job in it")
    return tuple(jobs)
