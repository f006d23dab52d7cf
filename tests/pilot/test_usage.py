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
from drainwise.pilot.queues.records import PayloadUsage
from drainwise_tasks.estimate.records.pilot_records import read_pilot_records
from real_daemons.waiting import wait_for

from .work import T0

PATIENCE = 20.0
BURN = """\
import os, time
x = bytearray(80_000_000)
os.mkdir("out")
with open("out/data", "wb") as file:
    file.write(x[:3_000_000])
    os.fsync(file.fileno())
while time.process_time() < 0.3: pass
"""


@pytest.mark.daemons
@apart
def test_what_was_used_and_left_reaches_the_record(tmp_path: Path) -> None:
    """A shell whose child computes for 0.3 s in 80 MB and leaves 3 MB: it is in the line, and the estimates read it."""
    queue_path, said = tmp_path / "queue", list[str]()
    queue_path.mkdir()
    command = ["sh", "-c", f"{sys.executable} -S -c '{BURN}'; echo well done; true"]
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
    assert job.written_bytes is not None and 3_000_000 <= job.written_bytes < 4_000_000
    assert job.read_bytes is not None
    assert (job.work_bytes, job.output_bytes) == (3_000_000, 3_000_000)
    assert not said


@pytest.mark.daemons
@apart
def test_what_a_directory_had_meanwhile_counts_as_its_size_and_not_as_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it has too many files, nothing is said of either."""
    monkeypatch.setattr("drainwise.pilot.processes._LOOK_EVERY", 0.0)
    os.mkfifo(tmp_path / "ends")
    script = f"head -c 5000 /dev/zero >a; ln -s / all; echo made >{tmp_path}/made; read x <{tmp_path}/ends; rm a all"

    def usage() -> PayloadUsage:
        processes = Processes(str(tmp_path), os.environ, "one", 0.5)
        processes.start(Payload("p", 1, ("sh", "-c", script), 60.0, 60.0), T0)
        wait_for((tmp_path / "made").exists)
        assert processes.reap(T0) == []
        (tmp_path / "ends").write_text("\n")
        (tmp_path / "made").unlink()
        [one] = wait_for(lambda: processes.reap(T0 + 1))
        assert one.usage is not None
        return one.usage

    found = usage()
    assert found.output_bytes == 0 and found.work_bytes is not None and found.work_bytes >= 5000
    monkeypatch.setattr("drainwise.pilot.processes._MOST_FILES", 3)
    found = usage()
    assert (found.work_bytes, found.output_bytes) == (None, 0)


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
    monkeypatch.setattr("drainwise.pilot.processes._LOOK_EVERY", 0.0)
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
