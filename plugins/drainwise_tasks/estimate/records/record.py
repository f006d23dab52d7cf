"""The record of a finished payload, as one JSON object per line, and the checks that keep a wrong number out.

What is not sound is skipped and counted under one of the reasons below; a line is never guessed at. Lines are read as
a stream, so a million of them take no more memory than one.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, NamedTuple, Union, cast

from drainwise.facts.errors import UsageError

LONGEST_LINE = 1 << 20
"""Bytes of one record; a longer line is skipped."""
LARGEST = 1e18
"""The largest number a record may hold, in any unit: sums and ratios of such stay finite."""
FEWEST_EVENTS = 1e-6
"""Fewer events (a part of one, where events are weighed) are none."""
TASK_LIMIT = 200
_PIECE = 1 << 16
"""Characters of a task's name."""

TOO_LONG, NOT_JSON, NOT_AN_OBJECT = "line too long", "not JSON", "not a JSON object"
NO_TASK, NO_TIMES, END_BEFORE_START = "no task", "no start or no end", "end before start"
NO_CORES, NO_EVENTS, BAD_NUMBER, BAD_STATE = "cores below 1", "zero events", "not a sound number", "unknown state"
UNFINISHED, NOT_A_ROW = "not finished", "wrong number of columns"
TOO_MANY_TASKS, TOO_MANY_OPEN = "too many tasks", "too many at a time"


class Finished(NamedTuple):
    """One payload that ended. What is not known is None.

    start, end: UNIX s. good: it did what it should. events: None where the input has none (each file counts as one).
    core_power: HS06 of one core there. cpu_seconds: over all cores. memory_bytes: the largest PSS, or RSS where only
    that is known. leak: bytes per second by which its memory grew. input_bytes to work_bytes: moved in and out, read
    and written on local disk, and the largest size of its directory. requested: seconds it was said to take at most.
    secondary_input_bytes: the part of its input that is not the task's main one. largest_output_bytes: of its output
    data sets. external: it failed by no fault of its own, such as data that could not be read. scratch: the site forced
    it to copy its input first. pseudo_input: its input is made up, so that its events say nothing. qos: the quality
    of service that Slurm gave it.
    """

    task: str
    start: float
    end: float
    good: bool = True
    cores: int = 1
    events: Union[float, None] = None
    files: Union[float, None] = None
    core_power: Union[float, None] = None
    cpu_seconds: Union[float, None] = None
    memory_bytes: Union[float, None] = None
    leak: Union[float, None] = None
    input_bytes: Union[float, None] = None
    output_bytes: Union[float, None] = None
    read_bytes: Union[float, None] = None
    written_bytes: Union[float, None] = None
    work_bytes: Union[float, None] = None
    requested: Union[float, None] = None
    secondary_input_bytes: Union[float, None] = None
    largest_output_bytes: Union[float, None] = None
    gpus: Union[float, None] = None
    external: bool = False
    scratch: bool = False
    pseudo_input: bool = False
    qos: str = ""

    @property
    def seconds(self) -> float:
        """The seconds for which it ran."""
        return self.end - self.start


NUMBERS = (
    *("events", "files", "core_power", "cpu_seconds", "memory_bytes", "leak_bytes_per_second"),
    *("input_bytes", "output_bytes", "read_bytes", "written_bytes", "work_bytes"),
    *("requested_seconds", "secondary_input_bytes", "largest_output_bytes", "gpus"),
)
"""The optional numbers of a record, 0 or more, in the order of `Finished`."""
FLAGS = ("external", "copied_to_scratch", "pseudo_input")
KEYS = ("task", "state", "start", "end", "cores", *NUMBERS, *FLAGS, "qos")
"""All keys that are read; others are passed over."""

_REAL = (int, float)
_new = tuple.__new__
_scan = json.JSONDecoder().raw_decode


def finished_of(found: object) -> Finished | str:
    """Return the payload that a JSON object describes, or the reason why it describes none."""
    if type(found) is not dict:
        return NOT_AN_OBJECT
    get: Callable[..., Any] = found.get
    task, start, end, cores = get("task"), get("start"), get("end"), get("cores", 1)
    if type(task) is not str or not 0 < len(task) <= TASK_LIMIT or not task.isprintable():
        return NO_TASK
    if type(start) not in _REAL or type(end) not in _REAL:
        return NO_TIMES
    # Every comparison is written so that a NaN fails it.
    if not (1 <= start <= LARGEST and 1 <= end <= LARGEST):
        return BAD_NUMBER
    if end < start:
        return END_BEFORE_START
    if type(cores) is not int or not 1 <= cores <= LARGEST:
        return NO_CORES
    numbers = [get(name) for name in NUMBERS]
    for value in numbers:
        if value is not None and (type(value) not in _REAL or not 0 <= value <= LARGEST):
            return BAD_NUMBER
    events = numbers[0]
    if events is not None and events < FEWEST_EVENTS:
        return NO_EVENTS
    state = get("state", "finished")
    if state not in ("finished", "failed"):
        return BAD_STATE
    flags = (get("external") is True, get("copied_to_scratch") is True, get("pseudo_input") is True)
    qos = found.get("qos")
    whole = (task, start, end, state == "finished", cores, *numbers, *flags, qos if type(qos) is str else "")
    return _new(Finished, whole)


def sound_one(found: object, skips: Counter[str]) -> Finished | None:
    """Return the payload that a JSON object describes; None for one that is not sound, which is counted."""
    one = finished_of(found)
    if isinstance(one, Finished):
        return one
    skips[one] += 1
    return None


def lines_in(stream: BinaryIO, skips: Counter[str]) -> Iterator[bytes]:
    """Yield the lines of a stream, blank ones as b""; one that is too long is counted and never held as a whole."""
    rest, too_long = b"", False
    while True:
        piece = stream.read(_PIECE)
        if not piece:
            break
        *lines, rest = (rest + piece).split(b"\n")
        if too_long and lines:
            too_long = False
            del lines[0]
        for line in lines:
            if len(line) > LONGEST_LINE:
                skips[TOO_LONG] += 1
            else:
                yield b"" if line.isspace() else line
        if len(rest) > LONGEST_LINE:
            skips[TOO_LONG] += not too_long
            rest, too_long = b"", True
    if rest and not too_long and not rest.isspace():
        yield rest


def json_of(line: bytes) -> object:
    """Return the value of a line of JSON; the reason NOT_JSON, as text, when it has none."""
    try:
        found: object = json.loads(line)
    except (ValueError, RecursionError):
        return NOT_JSON
    return found


def read_json_lines(lines: Iterable[bytes], skips: Counter[str]) -> Iterator[Finished]:
    """Yield the sound records among lines of JSON; count the others."""
    for line in lines:
        try:
            text = line.decode()
            # Most lines are one object and nothing else, which the decoder reads without a look at its surroundings.
            found, end = _scan(text) if text[0] == "{" else (None, 0)
            one = finished_of(found if end == len(text) else json.loads(text))
        except (ValueError, RecursionError):
            one = NOT_JSON
        if type(one) is Finished:
            yield one
        else:
            skips[str(one)] += 1


_GZIP = b"\x1f\x8b"


@contextlib.contextmanager
def opened(path: str) -> Iterator[BinaryIO]:
    """Open the file's bytes as a stream, unpacked where it is gzipped; "-" is the input. Raises UsageError."""
    with contextlib.ExitStack() as stack:
        try:
            plain = stack.enter_context(open(0 if path == "-" else path, "rb", closefd=path != "-"))
            packed = plain.peek(2)[:2] == _GZIP
        except (OSError, ValueError) as fault:
            raise UsageError(f"{path}: cannot be read: {_reason(fault)}") from None
        stream = cast("BinaryIO", gzip.GzipFile(fileobj=plain) if packed else plain)
        try:
            yield stream
        except (OSError, EOFError, zlib.error) as fault:
            raise UsageError(f"{path}: cannot be read to its end: {_reason(fault)}") from None


def _reason(fault: BaseException) -> str:
    return getattr(fault, "strerror", None) or str(fault)


def skipped_words(skipped: Counter[str]) -> str:
    """Return what was left out and why, for the end of a line; "" when nothing was."""
    if not skipped:
        return ""
    reasons = sorted(skipped.items(), key=lambda pair: (-pair[1], pair[0]))
    return f": {sum(skipped.values())} skipped: " + ", ".join(f"{count} {reason}" for reason, count in reasons)
