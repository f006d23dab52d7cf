"""One line per act, whatever the names in it are made of."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.errors import DrainwiseError, UsageError
from drainwise.reclaim.journal import JournalFile, JournalOf, journal_line


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.none() | st.booleans()))
def test_an_act_is_one_line_without_control_characters_and_reads_back_the_same(act: dict[str, object]) -> None:
    """HOSTILE 41: no CR, LF, ESC, DEL or C1 of a user's name reaches the log raw, and nothing is lost."""
    line = journal_line(act)
    assert line.endswith("\n")
    assert all(" " <= letter <= "~" for letter in line[:-1])
    assert json.loads(line) == act


def test_a_name_with_escape_sequences_stays_data() -> None:
    line = journal_line({"user": "al\x1b[2Jice\r\nfake\x7f\x9b"})
    assert line == '{"user":"al\\u001b[2Jice\\r\\nfake\\u007f\\u009b"}\n'


def test_a_number_that_json_does_not_know_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        journal_line({"waste": float("nan")})


def test_lines_are_appended(tmp_path: Path) -> None:
    """And the file is nobody else's to read: it says who lost what."""
    path = tmp_path / "journal"
    for number in (1, 2):
        journal = JournalFile(str(path))
        journal.write({"act": number})
        journal.close()
    assert [json.loads(line)["act"] for line in path.read_text().splitlines()] == [1, 2]
    assert path.stat().st_mode & 0o777 & ~0o640 == 0


@pytest.mark.parametrize("kind", ["symlink", "directory", "fifo", "no directory", "nul"])
def test_only_a_regular_file_is_a_journal(tmp_path: Path, kind: str) -> None:
    """HOSTILE 1, 5, 8: refused at once, with the path, before anything is asked."""
    path = tmp_path / "journal"
    if kind == "symlink":
        path.symlink_to(tmp_path / "elsewhere")
    elif kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    name = {"no directory": f"{path}/x", "nul": f"{path}\0"}.get(kind, str(path))
    with pytest.raises(UsageError, match="the journal"):
        JournalFile(name)
    assert not (tmp_path / "elsewhere").exists()


def test_a_full_disk_is_an_error_that_stops_the_acts() -> None:
    """HOSTILE 27."""
    descriptor = os.open("/dev/full", os.O_WRONLY)
    try:
        with pytest.raises(DrainwiseError, match="No space left on device"):
            JournalOf(descriptor).write({"act": 1})
    finally:
        os.close(descriptor)
