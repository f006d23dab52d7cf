"""A file of finished payloads that is followed while it grows: what a pilot knows of run times.

What runs is in the same file, too: the starts without an end, of all pilots that write there. A pilot's own alone
would not do, since those that have ended are everybody's.

It may be the queue's own `records.jsonl`, so that what ends here or in any pilot of the queue is learned at the next
look, or a file of records. Both are lines of JSON; a line that is not whole yet is read the next time.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from drainwise.common.run_times import kind_of
from drainwise.facts.errors import DrainwiseError, UsageError
from drainwise.features.read import open_features
from drainwise_tasks.estimate.parameters import DEFAULT_CORE_POWER, Parameters
from drainwise_tasks.estimate.records.pilot_records import Pairing
from drainwise_tasks.estimate.records.record import LONGEST_LINE, NOT_JSON, TOO_LONG, Finished, json_of, sound_one
from drainwise_tasks.estimate.settings import Settings
from drainwise_tasks.estimate.survey import ALL_OTHERS, Survey

PIECE = 1 << 22
"""Bytes that are read at a time."""
MOST_AT_A_LOOK = 1 << 23
"""Bytes that are read in one look after the first, so that a pilot is never kept from its payloads for long."""
NEWEST = 1 << 25
"""Bytes at the end of a file that are read in the first look: what is older says less."""
_OPEN = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class FaultLog(Protocol):
    """Reports what is wrong with the file, once for as long as it lasts."""

    def set(self, place: str, text: str) -> None:
        """Say it; "" when nothing is wrong any more."""


class FollowedRecords:
    """The records at `path`, now and as they grow.

    core_power: HS06 of a core here, None when nobody says; then all cores count as equal. An absent file says nothing
    yet. Raises UsageError for what is there and is not a regular file that can be read.
    """

    def __init__(self, path: str, core_power: float | None, faults: FaultLog) -> None:
        self._path, self._power, self._faults = path, core_power, faults
        self.skips: Counter[str] = Counter()
        self._looked: float | None = None  # the last look, while nobody has been asked for since
        self._forget()
        fault = self._read(most=None)
        if fault:
            raise UsageError(f"--estimate {path}: {fault}")

    def look(self, now: float) -> None:
        """Take in what was appended, and for how long what has not ended runs at `now`, UNIX s.

        A file that became shorter or another one is read from its beginning.
        """
        self._faults.set("estimate", self._read(MOST_AT_A_LOOK))
        self._looked = now

    def run_time(self, task: str, cores: int, events: float, elapsed: float) -> float | None:
        """Return the seconds that a payload of this task takes in all after `elapsed`; None: nobody can tell."""
        self._watch()
        found = self._survey.tasks.get(task)
        if found is None:
            return self._survey.run_times.expected(kind_of(task), elapsed)
        asked = Finished(task, 0, 0, cores=cores, events=events or None, core_power=self._power)
        return found.expected(asked, elapsed)

    def still_running(self, task: str, elapsed: float, ages: Sequence[float]) -> list[float] | None:
        """Return the probability that a payload of this task runs still at each age in s; None: nobody can tell."""
        self._watch()
        return self._survey.run_times.still_running(kind_of(task), elapsed, ages)

    def _watch(self) -> None:
        if self._looked is not None:
            running = self._pairing.running(self._looked)
            self._survey.run_times.watch((kind_of(task), elapsed) for task, elapsed in running)
            self._looked = None

    def _forget(self) -> None:
        # A record without a power is taken to be from a node like this one.
        like_here = Parameters(core_power=self._power or DEFAULT_CORE_POWER)
        self._survey = Survey(Settings(), {ALL_OTHERS: like_here}, self.skips)
        self._pairing = Pairing(self.skips)
        self._at, self._file, self._rest, self._cut = 0, (0, 0), b"", False

    def _read(self, most: int | None) -> str:
        """Read on, at most `most` bytes; return in short what went wrong, "" when nothing did."""
        try:
            descriptor = os.open(self._path, _OPEN)
        except FileNotFoundError:
            return ""
        except (OSError, ValueError) as fault:
            return getattr(fault, "strerror", None) or "not a path"
        try:
            facts = os.fstat(descriptor)
            if not stat.S_ISREG(facts.st_mode):
                return "expected a regular file"
            same = (facts.st_dev, facts.st_ino)
            if self._file != same or facts.st_size < self._at:
                self._forget()
                self._file, self._at = same, max(0, facts.st_size - NEWEST)
                self._cut = self._at > 0
            self._survey.add_all(self._finished(descriptor, most))
        except OSError as fault:
            return fault.strerror or "cannot be read"
        finally:
            os.close(descriptor)
        return ""

    def _finished(self, descriptor: int, most: int | None) -> Iterator[Finished]:
        left = most
        while left is None or left > 0:
            piece = os.pread(descriptor, PIECE, self._at)
            if not piece:
                return
            self._at += len(piece)
            left = None if left is None else left - len(piece)
            *lines, self._rest = (self._rest + piece).split(b"\n")
            if self._cut and lines:
                del lines[0]  # half a line: the file was not read from its beginning
                self._cut = False
            if len(self._rest) > LONGEST_LINE:
                self.skips[TOO_LONG] += 1
                self._rest = b"\0"  # what follows up to the end of the line makes no JSON
            for line in lines:
                one = self._one(line)
                if one is not None:
                    yield one

    def _one(self, line: bytes) -> Finished | None:
        if not line.strip():
            return None
        found = json_of(line) if len(line) <= LONGEST_LINE else TOO_LONG
        if found in (TOO_LONG, NOT_JSON):
            self.skips[str(found)] += 1
            return None
        if isinstance(found, dict) and "event" in found:
            return self._pairing.take_object(found)
        return sound_one(found, self.skips)


def core_power_here(environment: Mapping[str, str], cores: int) -> float | None:
    """Return the HS06 of one core of this job; None when the site does not say, or says nothing that could be read.

    cores: of the job, where $JOBFEATURES does not say. Source: HSF-TN-2016-02.
    """
    location = environment.get("JOBFEATURES")
    if not location:
        return None
    try:
        reader = open_features(location)
        power = reader.decimal("hs06_job")
        allocated = reader.integer("allocated_cpu") or reader.integer("allocated_CPU") or cores
    except DrainwiseError:
        return None
    return None if power is None or allocated < 1 else power / allocated
