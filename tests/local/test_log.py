"""A line is printable and short; the log does not grow for ever."""

from __future__ import annotations

from pathlib import Path

from drainwise.local import control as log
from drainwise.local.control import to_file


def test_a_line_is_printable_and_short(tmp_path: Path) -> None:
    """Attack 41: what a job named cannot forge a line of the log."""
    to_file(str(tmp_path))("job \x1b[2J\n2026 all is well\r" + "x" * 500)
    [line] = (tmp_path / "daemon.log").read_text().splitlines()
    assert line.isprintable() and len(line) < 250


def test_the_log_is_bounded(tmp_path: Path, monkeypatch: object) -> None:
    say = to_file(str(tmp_path))
    for _ in range(3):
        (tmp_path / "daemon.log").write_text("x" * (log._LARGEST + 1))
        say("more")
        assert (tmp_path / "daemon.log").stat().st_size < 100
    assert sorted(path.name for path in tmp_path.iterdir()) == ["daemon.log", "daemon.log.1"]


def test_where_nothing_can_be_written_the_daemon_goes_on(tmp_path: Path) -> None:
    to_file(str(tmp_path / "gone"))("nobody reads this")
