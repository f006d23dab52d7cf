"""A full pool played for hours with the real agent: where nothing is reported waiting costs no more than it saves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.daemons  # it takes its time


def test_who_reports_nothing_wastes_no_more_by_default_than_the_youngest_that_are_killed_with_notice() -> None:
    """And jobs that are owed cores wait no more than twice as long."""
    command = [sys.executable, str(ROOT / "scripts/played_pool"), "--seeds", "1", "--hours", "4"]
    only = "node,obey,respond,default,least-kill min_grace"
    printed = subprocess.run([*command, "--only", only], check=True, capture_output=True, text=True).stdout.splitlines()
    assert printed[0] == "| pilots | default | least-kill min_grace |" and len(printed) == 5
    for row in printed[2:]:
        (wasted, waited), (killed, least) = ((float(one) for one in cell.split("+")) for cell in row.split("|")[2:-1])
        assert wasted <= killed and waited <= 2 * least, row
