"""One row of a log: what it says, what is wrong in it by column, and why a sound one is of no use."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise_tasks.estimate.records.record import END_BEFORE_START
from drainwise_tasks.estimate.records.swf_rows import (
    COLUMNS,
    MOST_CORES,
    NO_REQUEST,
    NO_RUN_TIME,
    PART_OF_A_JOB,
    SwfRow,
    Wrong,
    reason_to_skip,
    row_of,
)

SOUND = ["7", "1000", "-1", "60", "4", "-1", "-1", "8", "600", "-1", "1", "12", "3", "-1", "-1", "-1", "-1", "-1"]


def line(**cells: object) -> bytes:
    """A sound row with other cells: c4=5 puts 5 into column 4."""
    row = list(SOUND)
    for name, value in cells.items():
        row[int(name[1:]) - 1] = str(value)
    return (" ".join(row) + "\n").encode()


def sound(**cells: object) -> SwfRow:
    row = row_of(line(**cells))
    assert isinstance(row, SwfRow), row
    return row


def test_what_a_row_says() -> None:
    """Each fact comes from its column; what follows the 18th does no harm, not even an underscore."""
    assert sound() == SwfRow(7, 1000.0, -1.0, 60.0, 4, 600.0, 1, "12", "3")
    assert row_of(line()[:-1] + b" {1,2} q_1d 1:ppn=2:x86_64\n") == sound()
    assert row_of(b"  " + line().replace(b" ", b"\t")) == sound()
    assert sound(c3=5, c4="1.5").run == 1.5


def test_cores_are_those_allocated_or_those_asked_for() -> None:
    """−1 is unknown in either column."""
    assert (sound(c5=-1).cores, sound(c5=0).cores, sound(c5=-1, c8=-1).cores) == (8, 8, 0)


@pytest.mark.parametrize(
    ("cells", "column", "expected"),
    [
        ({"c1": -5}, 1, "0 or more"),
        ({"c1": "1.5"}, 1, "a whole number"),
        ({"c2": -1}, 2, "0 or more"),
        ({"c2": "nan"}, 2, "a number"),
        ({"c3": -2}, 3, "-1 or more"),
        ({"c4": "nan"}, 4, "a number"),
        ({"c4": "inf"}, 4, "a number"),
        ({"c4": "1e400"}, 4, "a number"),
        ({"c4": "1_0"}, 4, "a number"),
        ({"c4": "x"}, 4, "a number"),
        ({"c5": "2.5"}, 5, "a whole number"),
        ({"c5": MOST_CORES + 1}, 5, "at most 1e+06"),
        ({"c8": -2}, 8, "-1 or more"),
        ({"c9": "--"}, 9, "a number"),
        ({"c12": "alice"}, 12, "a number"),
        ({"c12": "inf"}, 12, "a number"),
        ({"c18": "?"}, 18, "a number"),
    ],
)
def test_what_is_wrong_has_its_column(cells: dict[str, object], column: int, expected: str) -> None:
    """The first wrong cell, its name, what stands there and what was expected."""
    found = row_of(line(**cells))
    assert isinstance(found, Wrong) and (found.column, found.expected) == (column, expected)
    assert f"column {column} ({COLUMNS[column - 1]}): '" in str(found)


def test_too_few_columns() -> None:
    """A row that was cut off, and one that is no row at all."""
    assert str(row_of(b"1 2 3\n")) == "3 columns: expected 18 or more"
    assert isinstance(row_of(b"\x00\xff\xfe \x01"), Wrong)


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({}, ""),
        ({"c4": -1}, NO_RUN_TIME),
        ({"c4": -7}, END_BEFORE_START),
        ({"c9": -1}, NO_REQUEST),
        ({"c9": 0}, NO_REQUEST),
        ({"c4": 0}, ""),
        ({"c11": 2}, PART_OF_A_JOB),
        ({"c11": 4}, PART_OF_A_JOB),
        ({"c11": 5}, ""),
    ],
)
def test_why_a_sound_row_is_of_no_use(cells: dict[str, object], reason: str) -> None:
    """Each has one reason."""
    assert reason_to_skip(sound(**cells)) == reason


numbers = st.integers(-1, 10**6).map(str) | st.floats(width=32).map(str)
rows = st.lists(numbers, min_size=18, max_size=18).map(lambda cells: " ".join(cells).encode())
sound_but_one = st.tuples(st.integers(1, 18), numbers).map(lambda it: line(**{f"c{it[0]}": it[1]}))


@given(st.binary(max_size=200) | rows | sound_but_one)
def test_any_bytes_are_a_row_or_wrong(data: bytes) -> None:
    """HOSTILE: no bytes make it fail, and what it lets through is finite."""
    found = row_of(data)
    if isinstance(found, SwfRow):
        assert all(map(math.isfinite, (found.submit, found.wait, found.run, found.requested))) and found.cores >= 0
    else:
        assert str(found).isprintable()


@given(st.lists(st.sampled_from(["0", "-1", "7", "1e3", "nan", "-inf", "1e308", "0x1", "", "9" * 400]), max_size=20))
def test_odd_numbers_never_get_through(cells: list[str]) -> None:
    """Cells that Python's numbers may be: a row or the first wrong column, never an exception."""
    found = row_of(" ".join(cells).encode())
    assert isinstance(found, Wrong) or math.isfinite(found.submit + found.run + found.requested)
