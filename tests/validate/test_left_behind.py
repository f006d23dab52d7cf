"""What a run leaves behind is a user's: no link is followed, nothing is waited for, nothing reaches a terminal."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from drainwise_tasks.validate.start import REPORT, last_line, report_in


def test_the_report_and_the_last_line(tmp_path: Path) -> None:
    """The last line of a long stderr, made fit for a terminal (HOSTILE 41); an empty report is none."""
    (tmp_path / REPORT).write_text("")
    assert report_in(str(tmp_path)) is None
    (tmp_path / REPORT).write_text("{}")
    (tmp_path / "err").write_text("first\n" * 10**6 + "it \x1b[31mbroke\n\n")
    assert (report_in(str(tmp_path)), last_line(f"{tmp_path}/err")) == (b"{}", "it [31mbroke")


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_what_is_no_file_says_nothing(tmp_path: Path, make: Callable[[str], None]) -> None:
    """A directory or a FIFO (HOSTILE 5, 8)."""
    make(f"{tmp_path}/err")
    make(f"{tmp_path}/{REPORT}")
    assert (report_in(str(tmp_path)), last_line(f"{tmp_path}/err")) == (None, "")


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    """A job cannot make somebody else's file its report (HOSTILE 1)."""
    os.symlink("/etc/passwd", tmp_path / REPORT)
    os.symlink("/etc/passwd", tmp_path / "err")
    assert (report_in(str(tmp_path)), last_line(f"{tmp_path}/err")) == (None, "")
