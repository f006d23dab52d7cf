"""What the lease supervisor and the job to be say of their troubles never becomes one more."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PLUGINS = str(Path(__file__).parents[3] / "plugins")


def test_a_complaint_that_cannot_be_written_is_dropped() -> None:
    """Attack 27: the disk with the supervisor's log is full; the supervisor goes on with its work."""
    program = f"import sys; sys.path.append({PLUGINS!r}); sys.dont_write_bytecode = True\n"
    program += "from drainwise.local.lease.records import complain\ncomplain('x')\nprint('goes on')\n"
    with open("/dev/full", "wb") as full:
        run = [sys.executable, "-I", "-c", program]
        ran = subprocess.run(run, stderr=full, stdout=subprocess.PIPE, text=True, check=False)
    assert ran.stdout == "goes on\n"
