"""One line per act, whatever the names in it are made of."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.errors import DrainwiseError, UsageError
from drainwise.journal.file import JournalFile, JournalOf, journal_line
from drainwise.journal.read import event_of, events_of, files_of


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
    name = {"no directory": f"{path}/y/x", "nul": f"{path}\0"}.get(kind, str(path))
    with pytest.raises(UsageError, match="the journal"):
        JournalFile(name)
    assert not (tmp_path / "elsewhere").exists()


def test_the_journals_directory_is_made(tmp_path: Path) -> None:
    """Nobody else makes /var/log/drainwise below condor_master; everybody can enter it, whatever the umask."""
    before = os.umask(0o077)
    try:
        JournalFile(str(tmp_path / "drainwise" / "journal")).close()
    finally:
        os.umask(before)
    assert (tmp_path / "drainwise").stat().st_mode & 0o777 == 0o755


def test_a_full_disk_is_an_error_that_stops_the_acts() -> None:
    """HOSTILE 27."""
    descriptor = os.open("/dev/full", os.O_WRONLY)
    try:
        with pytest.raises(DrainwiseError, match="No space left on device"):
            JournalOf(descriptor).write({"act": 1})
    finally:
        os.close(descriptor)


def numbers(path: Path) -> list[object]:
    return [event["number"] for event in events_of(files_of(str(path)))]


def event(number: int) -> dict[str, object]:
    return {"event": "state", "version": 2, "number": number}


def test_files_are_moved_on_by_size_and_read_back_in_order(tmp_path: Path) -> None:
    """A few are kept; none is larger than it may be; their mode stays."""
    path = tmp_path / "journal"
    journal = JournalFile(str(path), max_size=100, keep=3)
    for number in range(20):
        journal.write(event(number))
    assert sorted(one.name for one in tmp_path.iterdir()) == ["journal", "journal.1", "journal.2", "journal.3"]
    assert all(one.stat().st_size <= 100 and one.stat().st_mode & 0o777 & ~0o640 == 0 for one in tmp_path.iterdir())
    assert numbers(path) == list(range(12, 20))


def test_a_line_larger_than_a_file_is_kept_whole(tmp_path: Path) -> None:
    journal = JournalFile(str(tmp_path / "journal"), max_size=100, keep=3)
    for number in (1, 2):
        journal.write({**event(number), "reason": "x" * 500})
    assert numbers(tmp_path / "journal") == [1, 2]


def test_a_torn_line_spoils_no_other(tmp_path: Path) -> None:
    """HOSTILE 51: the writer was killed in the midst of a line."""
    path = tmp_path / "journal"
    path.write_text('{"event":"state","version":2,"numb')
    assert numbers(path) == []
    JournalFile(str(path)).write(event(1))
    assert numbers(path) == [1]


def test_a_crash_between_two_renames_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    for place, number in ((3, 1), (2, 2)):
        Path(f"{path}.{place}").write_text(journal_line(event(number)))
    path.write_text(journal_line(event(3)))
    journal = JournalFile(str(path), max_size=50, keep=8)
    for number in (4, 5):
        journal.write(event(number))
    assert numbers(path) == [1, 2, 3, 4, 5]


def test_a_file_that_somebody_moved_away_is_begun_anew(tmp_path: Path) -> None:
    """logrotate, or a second agent."""
    path = tmp_path / "journal"
    first, second = (JournalFile(str(path), max_size=100) for _ in range(2))
    for number in range(4):
        (first, second)[number % 2].write(event(number))
    assert numbers(path) == [0, 1, 2, 3]
    path.rename(tmp_path / "journal-of-yesterday")
    first.write(event(4))
    assert numbers(path) == [0, 1, 4]
    assert numbers(tmp_path / "journal-of-yesterday") == [2, 3]


def test_what_replaced_the_journal_is_not_written_to(tmp_path: Path) -> None:
    """HOSTILE 2: a symbolic link in its place."""
    path = tmp_path / "journal"
    journal = JournalFile(str(path))
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DrainwiseError, match="no further order"):
        journal.write(event(1))
    assert not (tmp_path / "elsewhere").exists()


def test_a_rotation_while_it_is_read_neither_hides_nor_doubles_a_line(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = JournalFile(str(path), max_size=50, keep=8)
    for number in (1, 2):
        journal.write(event(number))
    files = files_of(str(path))
    journal.write(event(3))  # .1 has become .2, and so on
    assert [one["number"] for one in events_of([f"{path}.2", *files])] == [1, 2, 3]


def test_a_journal_of_somebody_else_cannot_be_read(tmp_path: Path) -> None:
    """HOSTILE 5: and a pipe in its place holds nobody up."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="it is not a regular file"):
        list(events_of([str(tmp_path / "pipe")]))
    assert list(events_of([str(tmp_path / "absent")])) == []


@given(st.binary(max_size=60))
def test_whatever_stands_in_a_line_is_an_event_or_nothing(line: bytes) -> None:
    found = event_of(line)
    assert found is None or found["version"] in {1, 2}
