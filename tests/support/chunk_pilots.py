"""alice's pilots of several jobs, on each batch system: a leader and three chunk jobs of two cores on one queue."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from pathlib import Path
from typing import Any

LEADERS, CHUNKS, CORES = 3, 3, 2
PILOTS = LEADERS * (1 + CHUNKS)
NODE_CORES = PILOTS * CORES
BOBS = (4, 4, 1, 1, 1, 1)
"""Cores of the jobs that bob comes with: half of the node."""
RECLAIM = """\
period = 2s
[reclaim]
policy = least-waste
drain_only = yes
grace = 3m
margin = 20s
min_age = 5s
"""
"""The end of a site file whose last section is [agent]."""
_LIBRARY = "/usr/share/drainwise"
_PROGRAM = f"import sys; sys.path.append({_LIBRARY!r}); from drainwise.cli.main import main; sys.exit(main())"
_OPTIONS = ("--seconds", "3600", "--poll", "0.5", "--heartbeat", "20", "--margin", "5")


def queue_of(leader: int | str) -> str:
    """The directory of payloads that a leader shares with its chunk jobs."""
    return f"/home/alice/queue-{leader}"


def filled_queue(queue: str) -> str:
    """A script of alice's that makes a queue: two payloads that run long come first, then many short ones."""
    lines = [f"mkdir -p {queue}"]
    for number in range(60):
        seconds, priority = (1800, 1) if number < 2 else (15, 0)
        payload = {
            "cores": CORES,
            "command": ["sleep", str(seconds)],
            "expected": seconds,
            "maximum": seconds + 60,
            "priority": priority,
        }
        lines.append(f"echo {shlex.quote(json.dumps(payload))} > {queue}/{number:02}.json")
    return "\n".join(lines)


def leader(queue: str, *options: str, idle_limit: int = 20) -> list[str]:
    """The words of a leader's job."""
    words = ["/usr/bin/python3", "-I", "-S", "-c", _PROGRAM, "pilot", "run", "--queue", queue, *_OPTIONS]
    return [*words, "--cores", str(CORES), "--idle-limit", str(idle_limit), "--chunk-cores", str(CORES), *options]


def records(queue: Path) -> list[dict[str, Any]]:
    """All that befell the payloads of a queue, as its pilots wrote it down."""
    path = queue / "records.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def running_pilots(queue: Path) -> dict[str, int]:
    """The pilots that run a payload of a queue now, and how long it takes: by their records."""
    runs: dict[str, tuple[str, int]] = {}
    for one in records(queue):
        if one["event"] == "started":
            runs[one["payload"]] = (one["pilot"], one["expected"])
        else:
            runs.pop(one["payload"], None)
    return dict(runs.values())


def kept_every_payload(queue: Path) -> bool:
    """Whether each payload of a queue waits, runs or is done, and none was started twice."""
    events = records(queue)
    started = Counter(one["payload"] for one in events if one["event"] == "started")
    # in the order in which a payload moves on: one that does so meanwhile is seen twice, and none is missed
    there = {file.name for place in ("*.json", "running/*/*.json", "done/*.json") for file in queue.glob(place)}
    kinds = {one["event"] for one in events}
    print(f"{queue.name}: {len(there)} payloads; {kinds}; started {max(started.values())} times at the most")
    return kinds <= {"started", "done"} and max(started.values()) == 1 and len(there) == 60
