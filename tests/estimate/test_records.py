"""A record is sound, or it is skipped and counted under a reason: never a wrong number."""

from __future__ import annotations

import io
import json
import tracemalloc
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise_tasks.estimate.records import record as records
from drainwise_tasks.estimate.records.record import FLAGS, KEYS, LONGEST_LINE, NUMBERS, Finished, finished_of, lines_in

from .jobs import T0, as_lines, read, record


def test_a_whole_record_is_read() -> None:
    """Every key reaches its field."""
    numbers = {name: place + 1 for place, name in enumerate(NUMBERS)}
    one = finished_of({**record(cores=8, state="failed", **dict.fromkeys(FLAGS, True)), **numbers})
    assert one == Finished._make(("t", T0, T0 + 100, False, 8, *range(1, 16), True, True, True, ""))
    assert set(KEYS) == {*record(), *NUMBERS, *FLAGS, "state", "qos"}
    assert isinstance(one, Finished) and one.seconds == 100


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"task": None}, records.NO_TASK),
        ({"task": ""}, records.NO_TASK),
        ({"task": "a\x1bb"}, records.NO_TASK),
        ({"task": "x" * 201}, records.NO_TASK),
        ({"start": None}, records.NO_TIMES),
        ({"end": None}, records.NO_TIMES),
        ({"end": "now"}, records.NO_TIMES),
        ({"end": T0 - 1}, records.END_BEFORE_START),
        ({"start": -5}, records.BAD_NUMBER),
        ({"end": float("nan")}, records.BAD_NUMBER),
        ({"start": float("nan")}, records.BAD_NUMBER),
        ({"end": float("inf")}, records.BAD_NUMBER),
        ({"start": True}, records.NO_TIMES),
        ({"cores": 0}, records.NO_CORES),
        ({"cores": 1.5}, records.NO_CORES),
        ({"cores": True}, records.NO_CORES),
        ({"events": 0}, records.NO_EVENTS),
        ({"events": -1}, records.BAD_NUMBER),
        ({"events": 1e-300}, records.NO_EVENTS),
        ({"start": 1e-300, "end": 2e-300}, records.BAD_NUMBER),
        ({"events": "many"}, records.BAD_NUMBER),
        ({"events": True}, records.BAD_NUMBER),
        ({"memory_bytes": float("nan")}, records.BAD_NUMBER),
        ({"output_bytes": -1}, records.BAD_NUMBER),
        ({"input_bytes": 10**30}, records.BAD_NUMBER),
        ({"state": "odd"}, records.BAD_STATE),
        ({"state": []}, records.BAD_STATE),
    ],
)
def test_a_wrong_one_has_a_reason(changed: dict[str, object], reason: str) -> None:
    """HOSTILE 36, 37 and the bad inputs: one reason each, for the object and for its line, NaN included."""
    assert finished_of(record(**changed)) == reason
    found, skips = read(as_lines(record(), record(**changed), record()))
    assert len(found) == 2 and skips == {reason: 1}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"nonsense", records.NOT_JSON),
        (b'{"task": ', records.NOT_JSON),
        (b"\xff\xfe", records.NOT_JSON),
        (b"[" * 100_000, records.NOT_JSON),
        (b"1" * 5000, records.NOT_JSON),
        (b"[1]", records.NOT_AN_OBJECT),
        (b"null", records.NOT_AN_OBJECT),
        (b'{"task": "' + b"x" * LONGEST_LINE + b'"}', records.TOO_LONG),
        (b"x" * (3 * LONGEST_LINE), records.TOO_LONG),
    ],
    ids=lambda value: str(value[:12]),
)
def test_a_broken_line_costs_itself_alone(line: bytes, reason: str) -> None:
    """HOSTILE 20, 21, 34, 36: garbage, deep nesting, 5,000 digits, a line of megabytes; its neighbours are read."""
    found, skips = read(as_lines(record()) + line + b"\n" + as_lines(record(), record()))
    assert len(found) == 3 and skips == {reason: 1}


def test_blank_lines_and_a_missing_newline_are_nothing() -> None:
    """Neither is an error, and the last line counts."""
    found, skips = read(b"\n\r\n  \n" + as_lines(record()).rstrip())
    assert len(found) == 1 and not skips


@given(st.lists(st.binary(max_size=20), max_size=20), st.integers(1, 30))
def test_lines_are_those_of_the_file(parts: list[bytes], piece: int) -> None:
    """However the bytes come in: the same lines as splitting all of it; of blank ones nothing is left but that."""

    class Drop(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return super().read(piece)

    text = b"\n".join(parts)
    *lines, last = (b"" if not line.strip() else line for line in text.split(b"\n"))
    expected = [*lines, last] if last else lines
    assert list(lines_in(Drop(text), Counter())) == expected


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


hardly_changed = st.dictionaries(st.sampled_from(sorted(NUMBERS)), st.floats(0, 1e9) | json_values, max_size=2).map(
    lambda some: {**record(), **some}
)
some_json = json_values | st.dictionaries(st.sampled_from(KEYS), json_values)


@given(st.sampled_from((hardly_changed, hardly_changed, some_json)).flatmap(lambda kind: kind))
def test_whatever_json_says_it_is_sound_or_has_a_reason(found: object) -> None:
    """Nothing raises, and what comes out is in range: times, cores, numbers."""
    one = finished_of(found)
    if isinstance(one, Finished):
        assert one.seconds >= 0 and one.cores >= 1 and one.events != 0
        assert all(value is None or value >= 0 for value in one[5:17])
    else:
        assert isinstance(one, str) and one


@pytest.mark.daemons
def test_memory_is_flat() -> None:
    """Ten times the lines take no more memory: nothing is kept."""

    def peak(count: int) -> int:
        class Endless(io.RawIOBase):
            left = count

            def readable(self) -> bool:
                return True

            def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
                line = json.dumps(record()).encode() + b"\n"
                take = min(self.left, len(buffer) // len(line))
                self.left -= take
                buffer[: take * len(line)] = line * take
                return take * len(line)

        tracemalloc.start()
        skips: Counter[str] = Counter()
        read_ = sum(1 for _ in records.read_json_lines(lines_in(io.BufferedReader(Endless()), skips), skips))
        highest = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert read_ == count
        return highest

    assert peak(30_000) < peak(3_000) + 100_000, "3,000 lines are more than a buffer"
