"""The one call of whoever publishes on the node."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from drainwise.pilotad.jobstatus import write_jobstatus
from drainwise.pilotad.node_reader import read_report, reasons_line
from drainwise.pilotad.pilot_ad import write_pilot_ad
from drainwise.pilotad.report import PilotReport
from drainwise.pilotad.safe_open import open_dir

UID = os.geteuid()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[int]:
    """A descriptor of a job's directory with an empty $JOBSTATUS in it."""
    (tmp_path / "features" / "status").mkdir(parents=True)
    fd = open_dir(str(tmp_path))
    yield fd
    os.close(fd)


def read(place: int) -> tuple[PilotReport | None, tuple[str, ...]]:
    """As the cron does, for 8 cores."""
    return read_report(place, UID, 8, "features/status")


def test_a_job_that_says_nothing(place: int) -> None:
    """It is no pilot; that is no reason for a log line."""
    assert read(place) == (None, ())
    assert read_report(place, UID, 8) == (None, ())
    assert read_report(place, UID, 8, "no/such/place") == (None, ())


def test_either_source(place: int, tmp_path: Path) -> None:
    """Each alone is read, in the same units."""
    write_pilot_ad(str(tmp_path), PilotReport(0, used_cpu=6.0), 8)
    report, reasons = read(place)
    assert report is not None
    assert (report.used_cpu, report.source, reasons) == (6.0, ".pilot.ad", ())
    (tmp_path / ".pilot.ad").unlink()
    write_jobstatus(str(tmp_path / "features" / "status"), PilotReport(0, used_cpu=5.0))
    report, reasons = read(place)
    assert report is not None
    assert (report.used_cpu, report.source, reasons) == (5.0, "$JOBSTATUS", ())
    assert read_report(place, UID, 8) == (None, ())


def test_what_is_not_sound_is_named_by_its_source(place: int, tmp_path: Path) -> None:
    (tmp_path / ".pilot.ad").write_text("LAST_JOB_START = soon\n")
    (tmp_path / "features" / "status" / "used_CPU").write_text("many\n")
    assert read(place)[1] == (".pilot.ad: not sound: LAST_JOB_START", "$JOBSTATUS: not sound: used_CPU")


@pytest.mark.parametrize("age, source", [(10, "$JOBSTATUS"), (-10, ".pilot.ad")])
def test_the_newer_source_wins(place: int, tmp_path: Path, age: int, source: str) -> None:
    """By heartbeat."""
    write_pilot_ad(str(tmp_path), PilotReport(0, used_cpu=6.0), 8)
    write_jobstatus(str(tmp_path / "features" / "status"), PilotReport(0, used_cpu=5.0))
    beat = int((tmp_path / "features" / "status" / "used_CPU").stat().st_mtime)
    os.utime(tmp_path / ".pilot.ad", (beat - age, beat - age))
    report, _ = read(place)
    assert report is not None
    assert report.source == source


def test_a_pilot_ad_has_a_largest_size(place: int, tmp_path: Path) -> None:
    """HOSTILE 19: not one byte more is read."""
    write_pilot_ad(str(tmp_path), PilotReport(0, used_cpu=6.0), 8)
    file = tmp_path / ".pilot.ad"
    file.write_bytes(file.read_bytes().ljust(16_384, b"\n"))
    report, reasons = read(place)
    assert report is not None and (report.used_cpu, reasons) == (6.0, ())
    file.write_bytes(file.read_bytes() + b"\n")
    report, [reason] = read(place)
    assert report is None and reason.startswith(".pilot.ad: ")


def test_what_was_refused_is_told_and_the_other_source_counts(place: int, tmp_path: Path) -> None:
    """One bad source does not silence the other."""
    (tmp_path / ".pilot.ad").symlink_to("/etc/passwd")
    write_jobstatus(str(tmp_path / "features" / "status"), PilotReport(0, used_cpu=5.0))
    (tmp_path / "features" / "status" / "priority_factor").write_text("high")
    report, reasons = read(place)
    assert report is not None
    assert report.used_cpu == 5.0
    assert reasons == (".pilot.ad: symlink", "$JOBSTATUS: not sound: priority_factor")
    assert reasons_line(reasons) == ".pilot.ad: symlink; $JOBSTATUS: not sound: priority_factor"


def test_no_descriptor_is_lost(place: int, tmp_path: Path) -> None:
    """Whatever happens on the way down, the descriptors are closed and the caller's stays open."""
    write_jobstatus(str(tmp_path / "features" / "status"), PilotReport(0, used_cpu=5.0))
    before = len(os.listdir("/proc/self/fd"))
    for name in ("features/status", "features/none", "none/status", "features/../x", "features//status", "/"):
        read_report(place, UID, 8, name)
        read_report(place, UID + 1, 8, name)
    assert len(os.listdir("/proc/self/fd")) <= before  # the garbage collector may close some of other tests
    assert os.fstat(place)


def test_the_log_line_is_bounded() -> None:
    """200 characters at most."""
    assert len(reasons_line(("x" * 150, "y" * 150))) == 200
