"""The agent's ends in condor_master's log, as 23.9.6 and 25.14.1 write them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from drainwise.htcondor.setup.machine_facts import endings_in, is_below_master, tail_of

NOW = time.mktime(time.strptime("2026-11-22 09:19:50", "%Y-%m-%d %H:%M:%S"))
LOG = """\
11/22/26 08:00:00 The DRAINWISE_AGENT (pid 11) exited with status 1
11/22/26 09:19:34 Started process "/usr/bin/agent", pid and pgroup = 118
11/22/26 09:19:34 The DRAINWISE_AGENT (pid 118) exited with status 2
11/22/26 09:19:34 Sending obituary for "/usr/bin/agent"
11/22/26 09:19:34 restarting /usr/bin/agent in 2 seconds
11/22/26 09:19:36 The STARTD (pid 157) exited with status 4
11/22/26 09:19:39 The DRAINWISE_AGENT (pid 159) died due to signal 9
99/99/99 99:99:99 The DRAINWISE_AGENT (pid 159) exited with status 5
"""


def test_the_ends_of_the_agent_and_of_nobody_else_are_counted() -> None:
    assert endings_in(LOG, NOW - 3600) == ["2", "9"]
    assert endings_in(LOG, NOW) == []


def test_only_the_end_of_a_long_log_is_read(tmp_path: Path) -> None:
    log = tmp_path / "MasterLog"
    log.write_bytes(b"\xff" * (3 << 20) + LOG.encode())
    assert len(tail_of(str(log))) <= 1 << 20
    assert endings_in(tail_of(str(log)), NOW - 3600) == ["2", "9"]
    assert tail_of(f"{log}.none") == ""


@pytest.mark.parametrize(
    ("value", "below"), [("MASTER, DRAINWISE_AGENT", True), ("MASTER drainwise_agent", True), ("MASTER SCHEDD", False)]
)
def test_the_daemons_list_tells_who_keeps_it(value: str, below: bool) -> None:
    assert is_below_master(value) is below
