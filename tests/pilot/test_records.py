"""The record of each payload: lines of JSON that pilots can share, and never a reason to stop."""

from __future__ import annotations

import json
import os
from pathlib import Path

from drainwise.pilot.queues.records import Records, append_line

from .work import payload


def test_a_record_says_what_befell_whom(tmp_path: Path) -> None:
    """Time, pilot, event, payload and what else there is, a line each, in the order of the events."""
    records = Records(str(tmp_path / "records.jsonl"), "pilot-1", print)
    records.started(payload("p", cores=4, maximum=20, expected=5), 1000.12345)
    records.add("done", "p", 1005, code=0)
    lines = [json.loads(line) for line in (tmp_path / "records.jsonl").read_text().splitlines()]
    same = {"pilot": "pilot-1", "payload": "p"}
    assert lines == [
        {"time": 1000.123, "event": "started", "cores": 4, "expected": 5, "maximum": 20, **same},
        {"time": 1005, "event": "done", "code": 0, **same},
    ]


def test_many_pilots_append_to_one_file(tmp_path: Path) -> None:
    """No line is mixed with another's."""
    path = str(tmp_path / "records.jsonl")
    children = []
    for number in range(4):
        pid = os.fork()
        if pid == 0:
            for _ in range(200):
                append_line(path, json.dumps({"pilot": number, "text": "x" * 300}))
            os._exit(0)
        children.append(pid)
    for pid in children:
        os.waitpid(pid, 0)
    lines = [json.loads(line) for line in Path(path).read_text().splitlines()]
    assert [sum(line["pilot"] == number for line in lines) for number in range(4)] == [200] * 4


def test_what_cannot_be_written_is_said_once(tmp_path: Path) -> None:
    """HOSTILE 5, 8, 27: a directory, a FIFO that nobody reads, a full device: one line, no waiting."""
    for number, make in enumerate((os.mkdir, os.mkfifo)):
        said: list[str] = []
        path = str(tmp_path / f"records{number}")
        make(path)
        records = Records(path, "pilot-1", said.append)
        records.add("done", "p", 1)
        records.add("done", "p", 2)
        assert len(said) == 1 and f"records{number}: " in said[0]
    assert append_line("/dev/full", "line") == "No space left on device"
