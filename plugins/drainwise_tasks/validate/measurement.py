"""The measurement of one validation run, read from its report: a user's word, checked number by number.

The runner that the batch system starts (`validation_runner`) measures time, CPU and memory from outside; the program
itself says how many events it wrote, and how many bytes. Memory of runs, in MB (10⁶ bytes): CMS McM MultiValidation,
"Memory scaling in validation".
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from drainwise.common.typed_table import Kind, number, read_table, read_value, whole
from drainwise.facts.errors import UsageError

MB, KB = 10**6, 10**3
"""Bytes of the units of a request: memory in MB, size per event in kB."""
LARGEST = 10**18
"""No count, number of bytes or seconds beyond this is believed."""


@dataclass(frozen=True)
class Measurement:
    """One run that ended well: `events` were run and `written` of them came out with `output_bytes`.

    wall_seconds, cpu_seconds: of the whole run. peak_rss_bytes: the largest resident set of all its processes together.
    event_seconds: the part of wall_seconds in which events were processed, where the program says so. following: the
    further sequences of the run, in their order.
    """

    cores: int
    events: int
    written: int
    output_bytes: int
    wall_seconds: float
    cpu_seconds: float
    peak_rss_bytes: int
    event_seconds: float | None = None
    following: tuple[Measurement, ...] = ()

    @property
    def sequences(self) -> tuple[Measurement, ...]:
        """All sequences of the run, the first included."""
        return (self, *self.following)

    @property
    def whole_filter_efficiency(self) -> float:
        """The product over all sequences."""
        return math.prod(one.filter_efficiency for one in self.sequences)

    @property
    def whole_cpu_efficiency(self) -> float:
        """The mean over all sequences, each by its time per event, as McM has it."""
        if not self.following:
            return self.cpu_efficiency
        weights = [one.time_per_event for one in self.sequences]
        return sum(one.cpu_efficiency * by for one, by in zip(self.sequences, weights)) / sum(weights)

    @property
    def whole_peak_rss(self) -> float:
        """The largest peak of all sequences, in MB."""
        return max(one.peak_rss for one in self.sequences)

    @property
    def time_per_event(self) -> float:
        """Wall seconds per event that was run (the inverse of the event throughput)."""
        seconds = self.wall_seconds if self.event_seconds is None else self.event_seconds
        return seconds / self.events

    @property
    def size_per_event(self) -> float:
        """kB per event that was written; 0 when none was."""
        return self.output_bytes / KB / self.written if self.written else 0.0

    @property
    def filter_efficiency(self) -> float:
        """The part of the events that were run and came out."""
        return self.written / self.events

    @property
    def cpu_efficiency(self) -> float:
        """CPU time over cores × wall time."""
        return self.cpu_seconds / (self.cores * self.wall_seconds)

    @property
    def peak_rss(self) -> float:
        """The peak resident set in MB."""
        return self.peak_rss_bytes / MB


def parse_measurement(text: bytes, cores: int, events: int, sequences: int = 1) -> Measurement:
    """Read a run's report; `cores` it was given, `events` it had to run (the program may say it ran others).

    A further sequence runs what the one before wrote, unless it says other events. Raises ValueError, one line that
    names the key and the value, for anything that no figure can be made of.
    """
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("its report is not JSON") from None
    if not isinstance(found, dict):
        raise ValueError("its report is no JSON object")
    others = found.get("following", [])
    if not isinstance(others, list) or len(others) != sequences - 1:
        raise ValueError(f"its report is not of {sequences} sequences")
    run = _sequence_in(found, cores, events)
    following: list[Measurement] = []
    for place, other in enumerate(others, 2):
        try:
            if not isinstance(other, dict):
                raise ValueError("its report is no JSON object")
            following.append(_sequence_in(other, cores, (following or [run])[-1].written))
        except ValueError as fault:
            raise ValueError(f"sequence {place}: {fault}") from None
    return replace(run, following=tuple(following))


_SECONDS = number(0, LARGEST, "more than 0", above=True)
_EVENTS = whole(1, LARGEST, "a whole number, 1 or more: nothing can be said per event of none")
_PARTS: Mapping[str, Mapping[str, Kind[Any]]] = {
    "measured": {
        "wall_seconds": _SECONDS,
        "cpu_seconds": number(0, LARGEST, "a number, 0 or more"),
        "peak_rss_bytes": whole(1, LARGEST, "a whole number, 1 or more"),
    },
    "reported": {
        **dict.fromkeys(("written", "output_bytes"), whole(0, LARGEST, "a whole number, 0 or more")),
        "events": _EVENTS,
        "event_seconds": _SECONDS,
    },
}
"""The two parts of a report, by the runner and by the program, and the figures in each."""
_WHERE_STATED = ("events", "event_seconds")


def _sequence_in(found: Mapping[str, object], cores: int, events: int) -> Measurement:
    fault = found.get("fault")
    if isinstance(fault, str) and fault:
        raise ValueError(fault)
    figures: dict[str, Any] = {"events": events}
    for part, kinds in _PARTS.items():
        stated = found.get(part)
        if not isinstance(stated, dict):
            raise ValueError(f"its report has no {part!r}")
        known = {name: value for name, value in stated.items() if name in kinds}
        figures.update(read_table(known, kinds, _wrong, [name for name in kinds if name not in _WHERE_STATED]))
    read_value("events", figures["events"], _EVENTS, _wrong)
    run = Measurement(cores=cores, **figures)
    if run.written > run.events:
        raise ValueError(f"written = {run.written}: expected at most the {run.events} events that were run")
    if run.event_seconds is not None and run.event_seconds > run.wall_seconds * 1.01 + 1:
        raise ValueError(f"event_seconds = {run.event_seconds:g}: expected at most the run's {run.wall_seconds:g} s")
    return run


def _wrong(key: str, value: str, expected: str) -> ValueError:
    return ValueError(f"{key} = {ascii(value)[1:-1]}: expected {expected}")


LEAST_PER_CORE, MOST_PER_CORE = 500, 4000
"""Between these lies what a run of more cores than the request has threads gets for each core, MB."""
USUAL_SINGLE_CORE, SCALED_SINGLE_CORE = 2300, 2000
"""A request of one thread and 2300 MB is scaled as if it had 2000 MB."""
_MIB = 1 << 20


def single_core_memory(memory: int, threads: int) -> Fraction:
    """Return MB per core of a run that needs more than the request's: `memory` MB for `threads` threads.

    Raises UsageError where either is below 1.
    """
    _check(memory, threads)
    if threads == 1 and memory == USUAL_SINGLE_CORE:
        return Fraction(SCALED_SINGLE_CORE)
    return max(Fraction(LEAST_PER_CORE), min(Fraction(MOST_PER_CORE), Fraction(memory, threads)))


def memory_for_run(cores: int, memory: int, threads: int) -> int:
    """Return MB that a validation run on `cores` gets: the request's memory up to its threads, scaled beyond them.

    Whole MB, rounded up where memory / threads is none. Raises UsageError where one of them is below 1.
    """
    _check(memory, threads)
    if cores < 1:
        raise UsageError(f"cores: {cores}: expected 1 or more")
    return memory if cores <= threads else math.ceil(single_core_memory(memory, threads) * cores)


def mebibytes(megabytes: int) -> int:
    """Return MB as batch systems count them, in 2²⁰ bytes; rounded up."""
    return -(-megabytes * MB // _MIB)


def _check(memory: int, threads: int) -> None:
    for what, value in (("memory", memory), ("threads", threads)):
        if value < 1:
            raise UsageError(f"{what}: {value}: expected 1 or more")
