"""What a pilot says when it ends."""

from __future__ import annotations

import json
from pathlib import Path

from drainwise.pilot.lease_record import Drain, ExitReport, LeaseCoreSeconds, write_exit_report

SPENT = LeaseCoreSeconds(lease=1000.0, useful=700.0, failed=100.0, lost=50.0, idle=150.0)
REPORT = ExitReport("pilot-1", 4, 1000.0, 1250.0, "draining", 7, 1, 2, 12, 0.1, SPENT, None)


def test_the_line_for_a_person() -> None:
    """Payloads, core-seconds, and how long after the request it was gone."""
    assert REPORT.as_line() == (
        "draining: 7 payloads done, 1 failed, 2 requeued; "
        "of 1000 core-s 700 useful (70.0 %), 100 failed, 50 lost, 150 idle"
    )
    asked = ExitReport(**{**vars(REPORT), "drain": Drain(1200.0, 50.04, ".site.ad", 20.0, 50.0)})
    assert asked.as_line() == f"{REPORT.as_line()}; gone 50.0 s after the order (.site.ad)"
    empty = LeaseCoreSeconds(0.0, 0.0, 0.0, 0.0, 0.0)
    assert "of 0 core-s 0 useful, 0 failed" in ExitReport(**{**vars(REPORT), "core_seconds": empty}).as_line()


def test_the_file_for_a_program(tmp_path: Path) -> None:
    """All fields, by name, in `pilot-report.json`; where it cannot be written the reason comes back."""
    assert write_exit_report(str(tmp_path), REPORT) == ""
    found = json.loads((tmp_path / "pilot-report.json").read_text())
    assert found == {**vars(REPORT), "core_seconds": vars(SPENT)}
    assert write_exit_report(str(tmp_path / "gone"), REPORT) == "No such file or directory"
