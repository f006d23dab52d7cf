"""What a lease supervisor is told arrives as it was said, and what no process can be given is refused by name."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.errors import UsageError
from drainwise.local.lease.job_spec import (
    checked_command,
    checked_environment,
    clean_environment,
    read_spec,
    written_spec,
)

WORDS = st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), max_size=20)
NAMES = WORDS.map(lambda word: word.replace("=", "")).filter(bool)


def passed(spec: bytes) -> tuple[list[bytes], dict[bytes, bytes]]:
    """Read what fits a pipe at once."""
    reader, writer = os.pipe()
    os.write(writer, spec)
    os.close(writer)
    try:
        return read_spec(reader)
    finally:
        os.close(reader)


@given(st.lists(WORDS, min_size=1, max_size=6).filter(lambda words: words[0] != ""), st.dictionaries(NAMES, WORDS))
def test_an_order_arrives_as_it_was_said(words: list[str], variables: dict[str, str]) -> None:
    """Empty arguments, newlines, equals signs in values: all of it comes out as it went in."""
    command, environment = passed(written_spec(checked_command(words), checked_environment(variables)))
    assert [word.decode() for word in command] == words
    assert {name.decode(): value.decode() for name, value in environment.items()} == variables


def test_half_a_command_is_none() -> None:
    spec = written_spec([b"run", b"x"], {b"A": b"b"})
    for length in range(len(spec)):
        with pytest.raises(ValueError, match="incomplete"):
            passed(spec[:length])


def test_a_long_order_is_read_to_its_end() -> None:
    """A pipe gives what it has, piece by piece."""
    reader, writer = os.pipe()
    order = written_spec([b"run"], {b"LONG": b"x" * 300_000})
    if os.fork() == 0:
        os.close(reader)
        left = order
        while left:
            left = left[os.write(writer, left) :]
        os._exit(0)
    os.close(writer)
    try:
        assert read_spec(reader) == ([b"run"], {b"LONG": b"x" * 300_000})
    finally:
        os.close(reader)
        os.wait()


def test_bytes_that_are_no_text_pass() -> None:
    """A file name from a command line need not be UTF-8."""
    assert checked_command(["run", os.fsdecode(b"caf\xe9")]) == [b"run", b"caf\xe9"]


@pytest.mark.parametrize("words", [[], [""], ["run", "a\0b"], ["run", "\ud800"]])
def test_a_command_that_cannot_be_is_refused(words: list[str]) -> None:
    with pytest.raises(UsageError, match="command"):
        checked_command(words)


@pytest.mark.parametrize("variables", [{"": "x"}, {"A=B": "x"}, {"NAME": "a\0b"}, {"NA\0ME": "x"}])
def test_a_variable_that_cannot_be_is_refused_and_named(variables: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="variable"):
        checked_environment(variables)


def test_only_four_variables_are_taken_over_from_who_starts_a_job() -> None:
    """What the daemon was started with (attack 46) does not reach the jobs of others."""
    ours = {b"PATH": b"/opt/bin", b"HOME": b"/home/site", b"LD_PRELOAD": b"/x.so", b"BASH_ENV": b"/x", b"LANG": b""}
    environment = clean_environment(ours)
    assert set(environment) == {b"PATH", b"HOME", b"LANG", b"USER"}
    assert (environment[b"PATH"], environment[b"HOME"]) == (b"/opt/bin", b"/home/site")
    assert environment[b"LANG"] == b"C.UTF-8"
    assert all(environment.values())
