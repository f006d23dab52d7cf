"""Estimating from a million records of finished payloads, against only parsing the same lines with `json`."""

from __future__ import annotations

import json
import os
import random
import resource
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable

from benchmarks.figures import Figure
from drainwise_tasks.estimate.records.formats import JSON_LINES, read_as
from drainwise_tasks.estimate.records.record import lines_in
from drainwise_tasks.estimate.settings import Settings
from drainwise_tasks.estimate.survey import Survey

RECORDS, TASKS = 1_000_000, 50
BEGIN = 1_795_249_000


def write_records(path: str, count: int) -> None:
    """Made-up records of some tasks: run times spread over decades, one job in twenty failed."""
    dice = random.Random(20261121)  # noqa: S311 - made-up jobs, the same in every run
    with open(path, "w", encoding="ascii") as stream:
        for number in range(count):
            seconds, cores, events = dice.lognormvariate(8, 1), dice.choice((1, 1, 8)), dice.randrange(100, 5000)
            record = {
                "task": f"task{dice.randrange(TASKS)}",
                "state": "finished" if dice.random() < 0.95 else "failed",
                "start": BEGIN + number,
                "end": round(BEGIN + number + seconds, 3),
                "cores": cores,
                "events": events,
                "core_power": 11.5,
                "cpu_seconds": round(seconds * cores * 0.9, 1),
                "memory_bytes": dice.randrange(10**9, 4 * 10**9) * cores,
                "input_bytes": dice.randrange(10**10),
                "output_bytes": dice.randrange(10**10),
                "requested_seconds": 86400,
            }
            stream.write(json.dumps(record) + "\n")


def parse(path: str) -> int:
    """What anybody who reads the file must do."""
    count = 0
    with open(path, "rb") as stream:
        for line in stream:
            json.loads(line)
            count += 1
    return count


def estimate(path: str) -> Survey:
    """All of it: checks, figures per task, run times, and what was expected of each job beside what came true."""
    skips: Counter[str] = Counter()
    survey = Survey(Settings(), {}, skips)
    with open(path, "rb") as stream:
        survey.add_all(read_as(JSON_LINES, lines_in(stream, skips), skips))
    return survey


def peak_of(step: Callable[[str], object], path: str) -> int:
    """Largest resident memory in kB of a process of its own that does this."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        step(path)
        os.write(writer, str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss).encode())
        os._exit(0)
    os.close(writer)
    with open(reader, "rb") as stream:
        answer = stream.read()
    os.waitpid(pid, 0)
    return int(answer)


def figures(runs: int, count: int = RECORDS) -> list[Figure]:
    """Medians of `runs` in turn, of CPU time: the file is in memory, and other work must not count."""
    with tempfile.TemporaryDirectory() as base:
        path = f"{base}/records.jsonl"
        write_records(path, count)
        steps: tuple[Callable[[str], object], ...] = (parse, estimate)
        rounds = [[_seconds(step, path) for step in steps] for _ in range(runs)]
    parsing, whole = (statistics.median(times) for times in zip(*rounds))
    return [
        Figure(f"`json.loads` of {count:,} records, one per line", parsing, 1.0, None),
        Figure(f"estimates of their {TASKS} tasks, from the same file", whole, whole / parsing, 3.0),
    ]


def memory(count: int = RECORDS) -> tuple[int, int]:
    """Largest memory in kB for a tenth of the records, and for all of them."""
    with tempfile.TemporaryDirectory() as base:
        peaks = []
        for share in (10, 1):
            path = f"{base}/{share}.jsonl"
            write_records(path, count // share)
            peaks.append(peak_of(estimate, path))
    return peaks[0], peaks[1]


def _seconds(step: Callable[[str], object], path: str) -> float:
    begin = time.process_time()
    step(path)
    return time.process_time() - begin
