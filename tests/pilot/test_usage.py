"""What a payload used stands in its record: the kernel's count, of its children too."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path

import pytest

from apart import apart
from drainwise.pilot.decide.lease import Lease
from drainwise.pilot.decide.payload import Payload
from drainwise.pilot.lease_record import LeaseRecord
from drainwise.pilot.processes import Processes
from drainwise.pilot.queues.directory import DirectoryQueue
from drainwise_tasks.estimate.records.pilot_records import read_pilot_records
from real_daemons.waiting import wait_for

from .work import T0

PATIENCE = 20.0
BURN = "import os, time; x = bytearray(80_000_000)\nwhile time.process_time() < 0.3: pass"


@pytest.mark.daemons
@apart
def test_cpu_time_and_memory_reach_the_record(tmp_path: Path) -> None:
    """A shell whose child computes for 0.3 s in 80 MB: both are in the line, and in what the estimates read of it."""
    queue_path, said = tmp_path / "queue", list[str]()
    queue_path.mkdir()
    command = ["sh", "-c", f"{sys.executable} -S -c '{BURN}'; true"]
    content = {"command": command, "maximum": 60, "task": "burn", "cores": 2, "events": 500}
    (queue_path / "p.json").write_text(json.dumps(content))
    queue = DirectoryQueue(str(queue_path), "one", said.append)
    queue.look(T0)
    [payload] = queue.waiting()
    assert isinstance(payload, Payload) and queue.claim(payload, T0)
    processes = Processes(str(tmp_path), os.environ, "one", 0.5)
    processes.start(payload, T0)
    ended = processes.reap(T0)
    while not ended:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        ended = processes.reap(T0 + 1)
    [one] = ended
    LeaseRecord(Lease(2, T0, None), queue, said.append).book(one, T0 + 1)
    lines = (queue_path / "records.jsonl").read_bytes().splitlines()
    [job] = read_pilot_records(lines, Counter())
    assert (job.task, job.cores, job.events, job.good, job.seconds) == ("burn", 2, 500, True, 1)
    assert job.cpu_seconds is not None and 0.3 <= job.cpu_seconds < PATIENCE
    assert job.memory_bytes is not None and job.memory_bytes > 80_000_000
    assert not said


FOUR = """
import os, sys
for number in range(4):
    if os.fork() == 0:
        held = bytearray(os.urandom(1) * 50_000_000)
        open(f"{sys.argv[1]}/has-{number}", "w").close()
        os.read(os.open(f"{sys.argv[1]}/ends", os.O_RDONLY), 1)
        os._exit(0)
for _ in range(4):
    os.wait()
"""


@pytest.mark.daemons
@apart
def test_the_memory_of_all_processes_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four of 50 MB each are 200 MB, though none of them has more than that; what they share counts once."""
    monkeypatch.setattr("drainwise.pilot.processes._MEMORY_EVERY", 0.0)
    os.mkfifo(tmp_path / "ends")
    processes = Processes(str(tmp_path), os.environ, "one", 0.5)
    processes.start(Payload("p", 4, (sys.executable, "-S", "-c", FOUR, str(tmp_path)), 60.0, 60.0), T0)
    wait_for(lambda: len(list(tmp_path.glob("has-*"))) == 4)
    assert processes.reap(T0) == []
    [seen] = (process.memory for process in processes._by_name.values())
    assert 200_000_000 < seen < 240_000_000
    (tmp_path / "ends").write_text("....")
    [one] = wait_for(lambda: processes.reap(T0 + 1))
    # The kernel's own figure of a process begins with what its parent had when it forked.
    assert one.usage is not None and one.usage.memory_bytes >= seen
