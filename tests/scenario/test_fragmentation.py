"""Room for the jobs that wait makes more of the cores taken than cores that are counted; on a real log."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.daemons  # it takes its time


def test_more_of_what_is_taken_is_of_use_where_room_is_made() -> None:
    command = [sys.executable, str(ROOT / "scripts/fragmentation"), "--windows", "8"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    counted, room = ([float(cell) for cell in row.split("|")[2:-1]] for row in printed[-2:])
    assert counted[0] == room[0]
    assert room[3] > 2 * counted[3]
    assert room[3] <= 1
