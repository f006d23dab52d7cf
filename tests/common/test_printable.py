"""Whatever users, nodes and files say, a log, a terminal and a page get printable text of bounded length."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.common.printable import Log, ascii_line, one_line, printable, printable_ascii, write_line


@pytest.mark.parametrize(
    ("text", "shown", "plain"),
    [
        ("alice@pool", "alice@pool", "alice@pool"),
        ("al\x1b[2Jice\r\n", "al[2Jice", "al?[2Jice??"),
        ("\x9b31m", "31m", "?31m"),
        ("a\u202eb\u2066", "ab", "a?b?"),
        ("žluťoučký", "žluťoučký", "?lu?ou?k?"),
        ("\x7f\x00", "", "??"),
    ],
)
def test_what_is_not_printable_goes(text: str, shown: str, plain: str) -> None:
    """HOSTILE 15, 41."""
    assert printable(text) == shown
    assert printable_ascii(text) == plain


@given(st.text(max_size=3000), st.integers(1, 300))
def test_a_line_is_one_printable_bounded_line(text: str, longest: int) -> None:
    assert one_line(text, longest).isprintable()
    assert len(one_line(text, longest)) <= longest
    line = ascii_line(text, longest)
    assert line.isascii() and line.isprintable() and len(line) <= longest


@given(st.text(st.sampled_from("ab \t\r\n\x1b\u00a0\u2028\ud7fc"), max_size=40), st.integers(1, 30))
def test_the_line_of_a_line_is_the_same_one(text: str, longest: int) -> None:
    """What was read back is what was written, wherever an unprintable character or the limit stood."""
    for line in one_line, ascii_line:
        made = line(text, longest)
        assert line(made, longest) == made == made.strip()


def test_blanks_and_line_breaks_become_one_blank() -> None:
    assert one_line("  a\n\tb\u2028c  \x1b") == "a b c"
    assert ascii_line("  a\n\tb\u2028c  \x1b") == "a b c ?"


def test_a_text_of_any_length_takes_no_time() -> None:
    assert ascii_line("x" * (1 << 24)) == "x" * 200


def test_a_line_is_one_line_of_printable_characters(capfd: pytest.CaptureFixture[str]) -> None:
    """HOSTILE 41: line ends, escapes, length; and a standard error that is closed is no reason to fail."""
    write_line("drainwise: a\nb\r\x1b[2Jc\u2028d" + "x" * 1000)
    line = capfd.readouterr().err
    assert line.startswith("drainwise: a b ?[2Jc d") and len(line) == 201 and line[:-1].isprintable()
    saved = os.dup(2)
    try:
        os.close(2)
        write_line("x")
    finally:
        os.dup2(saved, 2)
        os.close(saved)


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
