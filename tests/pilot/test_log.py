"""One printable line for each thing, whatever is said, and a fault once."""

from __future__ import annotations

import os

from hypothesis import given
from hypothesis import strategies as st

from drainwise.pilot.log import LINE_LIMIT, Faults, Log, one_line


@given(st.text(max_size=500))
def test_a_line_is_printable_ascii_and_bounded(text: str) -> None:
    """HOSTILE 41: no line break, no escape, nothing that is not ASCII, at most 200 characters."""
    line = one_line(text)
    assert len(line) <= LINE_LIMIT
    assert all(" " <= letter <= "~" for letter in line)


def test_a_line_has_its_time() -> None:
    """UTC, as the records of a batch system need it."""
    read, write = os.pipe()
    Log(lambda: 1_795_249_000.0, write)("payload \x1b[31mp\n failed")
    os.close(write)
    with open(read) as stream:
        assert stream.read() == "2026-11-21T08:16:40Z pilot: payload ?[31mp failed\n"


def test_a_broken_log_is_no_reason_to_fail() -> None:
    """Nobody reads any more; the pilot goes on."""
    read, write = os.pipe()
    os.close(read)
    Log(descriptor=write)("anything")
    os.close(write)
    Log(descriptor=write)("anything")


def test_a_fault_is_said_once_and_once_when_it_is_over() -> None:
    """Not at every event; again when it is another; and a place without a fault says nothing."""
    said: list[str] = []
    faults = Faults(said.append)
    for text in ("", "full", "full", "gone", "", "", "full"):
        faults.set("disk", text)
    assert said == ["disk: full", "disk: gone", "disk: all right again", "disk: full"]
