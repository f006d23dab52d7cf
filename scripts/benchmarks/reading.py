"""Reading one pilot's report inside a process, against a plain `open().read()` of the same file."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable

from benchmarks.figures import Figure
from drainwise.pilotad.node_reader import read_report
from drainwise.pilotad.pilot_ad import parse_pilot_ad
from drainwise.pilotad.safe_open import open_dir, read_file
from made_up_node import pilot_ad

LIMIT = 16384
CALLS = 2000


def _per_call(step: Callable[[], object]) -> float:
    begin = time.perf_counter()
    for _ in range(CALLS):
        step()
    return (time.perf_counter() - begin) / CALLS


def figures(directory: str, now: int, runs: int) -> list[Figure]:
    """Medians over `runs` rounds of 2,000 calls each, the four in turn."""
    path = f"{directory}/.pilot.ad"
    with open(path, "w", encoding="ascii") as stream:
        stream.write(pilot_ad(now))
    descriptor, uid = open_dir(directory), os.geteuid()
    content = read_file(descriptor, ".pilot.ad", uid, LIMIT)[0]

    def plain() -> str:
        with open(path, encoding="ascii") as stream:
            return stream.read()

    steps: list[tuple[str, Callable[[], object], float | None]] = [
        ("open().read()", plain, None),
        ("safe reading of the file", lambda: read_file(descriptor, ".pilot.ad", uid, LIMIT), 2.0),
        ("parsing its bytes", lambda: parse_pilot_ad(content, 8, now), None),
        ("both, `$JOBSTATUS` not looked for", lambda: read_report(descriptor, uid, 8), None),
    ]
    times: list[list[float]] = [[] for _ in steps]
    for _ in range(runs):
        for (_, step, _), spent in zip(steps, times):
            spent.append(_per_call(step))
    os.close(descriptor)
    medians = [statistics.median(spent) for spent in times]
    return [Figure(what, spent, spent / medians[0], target) for (what, _, target), spent in zip(steps, medians)]
