"""`.pilot.ad`, written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from drainwise.facts.errors import FeatureError
from drainwise.pilotad.pilot_ad import pilot_ad_text, write_pilot_ad
from drainwise.pilotad.report import PilotReport
from worked_example import worked_example


def test_the_worked_example_as_a_pilot_writes_it() -> None:
    """The specification's ad, byte by byte."""
    assert pilot_ad_text(worked_example(), 8).decode() == (
        "LAST_JOB_START = 1795247961\n"
        "FIRST_EXP_JOB_END = 1795256000\n"
        "LAST_EXP_JOB_END = 1795262000\n"
        "LAST_MAX_JOB_END = 1795290000\n"
        "USED_FRACTION1k = 768\n"
        "ADD_UNCOM_TIME1k = 3686400\n"
        "ADD_FINAL_EXP_WASTE1k = 7680000\n"
        "PRIORITY_FACTOR = 3\n"
        "CAN_POSTPONE_LAST_JOB = True\n"
    )


def test_unknown_values_are_left_out() -> None:
    """No empty line, no zero."""
    assert pilot_ad_text(PilotReport(0, used_cpu=0.0), 8) == b"USED_FRACTION1k = 0\n"


def test_more_cores_than_leased_are_all_of_them() -> None:
    """The fraction is 1024 at most."""
    assert pilot_ad_text(PilotReport(0, used_cpu=9.0), 8) == b"USED_FRACTION1k = 1024\n"


def test_written_by_path_and_by_descriptor(tmp_path: Path) -> None:
    """The file is readable by everyone, and nothing else is left in the directory."""
    before = os.umask(0o077)
    try:
        write_pilot_ad(str(tmp_path), worked_example(), 8)
    finally:
        os.umask(before)
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        write_pilot_ad(fd, worked_example(), 16)
    finally:
        os.close(fd)
    assert os.listdir(tmp_path) == [".pilot.ad"]
    assert (tmp_path / ".pilot.ad").read_bytes() == pilot_ad_text(worked_example(), 16)
    assert (tmp_path / ".pilot.ad").stat().st_mode & 0o777 == 0o644


def test_a_directory_that_is_not_there_is_one_clear_line(tmp_path: Path) -> None:
    """Named, with what was expected."""
    with pytest.raises(FeatureError, match="none': absent; expected the job's directory") as caught:
        write_pilot_ad(str(tmp_path / "none"), worked_example(), 8)
    assert len(str(caught.value)) < 200
