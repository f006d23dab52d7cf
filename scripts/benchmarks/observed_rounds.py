"""A program: looks at the payloads of 64 pilots on a node with 2,000 more processes, beside the interpreter's start.

usage: python3 -IS observed_rounds.py LIBRARY RUNS

The pilots' processes are there, and sleep: each pilot has two, and 29 in its payload. Prints JSON: medians of CPU
seconds of the interpreter's start, of the first look, which reads command lines, and of the following ones.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import statistics
import sys
import time
from collections.abc import Callable

library, runs = sys.argv[1], int(sys.argv[2])
sys.path.append(library)

from drainwise.node.payloads.observer import ObservedRun, SeenJob, observe  # noqa: E402
from drainwise.node.payloads.payload_trees import PLAIN, PROFILES, job_processes, payload_trees  # noqa: E402
from drainwise.node.payloads.process_table import orphans_by_group, read_processes  # noqa: E402

PILOTS, IN_PAYLOAD = 64, 29
CORES = 8
OLD = 10**6
"""Ticks by which the processes are taken to be older than they are: command lines are read of new ones alone."""


def sleeping(children: Callable[[], object]) -> int:
    """Start a process that starts its children and sleeps until it is ended."""
    pid = os.fork()
    if pid == 0:
        try:
            children()
            signal.pause()
        finally:
            os._exit(0)
    return pid


def pilot() -> None:
    """Start a pilot's process, and its payload below that."""
    sleeping(lambda: sleeping(lambda: [sleeping(lambda: None) for _ in range(IN_PAYLOAD)]))


def look(pilots: list[int], before: dict[int, SeenJob]) -> dict[int, SeenJob]:
    """Do what a node does once a minute."""
    table = read_processes()
    if table is None:
        raise SystemExit("the processes cannot be read")
    orphans, now, found = orphans_by_group(table), int(time.time()), {}
    for pid in pilots:
        processes = job_processes(table, (pid,), orphans)
        if processes is None or len(processes.members) != IN_PAYLOAD + 2:
            raise SystemExit("a pilot's processes are not there")
        seen = before.get(pid)
        known = (seen.client, seen.marks, seen.looked + OLD) if seen is not None else (PLAIN, (), 0)
        trees = payload_trees(processes, table, PROFILES, *known)
        found[pid] = observe(trees, seen, ObservedRun(CORES, now - 1000), table.now, now)
    return found


def precisely(step: Callable[[], object]) -> float:
    """Return the CPU seconds of a step inside this process."""
    begin = time.process_time()
    step()
    return time.process_time() - begin


def of_children() -> float:
    """Return the CPU seconds of the processes that have ended; the kernel's clock ticks would be too coarse for one."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def start() -> None:
    """Start an interpreter that does nothing."""
    os.waitpid(os.posix_spawn(sys.executable, [sys.executable, "-IS", "-c", "pass"], {}), 0)


if os.getpgrp() != os.getpid():
    os.setsid()  # its processes end with it, and nobody else's
pilots = [sleeping(pilot) for _ in range(PILOTS)]
try:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        table = read_processes()
        jobs = [table and job_processes(table, (pid,)) for pid in pilots]
        if all(job and len(job.members) == IN_PAYLOAD + 2 for job in jobs):
            break
        time.sleep(0.2)
    times: dict[str, list[float]] = {"first": [], "later": []}
    begin = of_children()
    for _ in range(runs):
        start()
    interpreter = (of_children() - begin) / runs
    known: dict[int, SeenJob] = {}
    for _ in range(runs):
        times["first"].append(precisely(lambda: known.update(look(pilots, {}))))
        times["later"].append(precisely(lambda: look(pilots, known)))
    print(json.dumps({"interpreter": interpreter, **{what: statistics.median(them) for what, them in times.items()}}))
finally:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.killpg(0, signal.SIGTERM)
