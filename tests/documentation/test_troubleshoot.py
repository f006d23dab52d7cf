"""docs/troubleshoot.md has each fault that is played on whole machines, with the next step that is typed there."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "troubleshoot.md").read_text()
PLAYED = runpy.run_path(str(ROOT / "tests" / "daemons" / "test_faults_whole.py"))


@pytest.mark.parametrize("system", ["Slurm", "HTCondor"])
def test_each_fault_has_a_row_with_its_next_step(system: str) -> None:
    """And no other fault is said to be played."""
    table = PAGE.partition(f"\n| {system}: what is broken |")[2].partition("\n\n")[0]
    rows = dict(re.findall(r"(?m)^\| ([^|`]+) \| `([^`]+)`", table))
    faults = PLAYED[system.upper().removeprefix("HT")]
    assert set(rows) == set(faults)
    for name, fault in faults.items():
        assert rows[name].startswith(fault.next) or fault.next.startswith(rows[name]), name
