"""One event in the reference pilot: a payload ends, another starts, the sums and both channels are written anew."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable

from benchmarks.figures import Figure
from drainwise.pilot.channels import Channels
from drainwise.pilot.decide.lease import Lease
from drainwise.pilot.decide.payload import Payload
from drainwise.pilot.decide.workload import Workload, report_of, running_since
from drainwise.pilotad.attributes import ATTRIBUTES, PILOT_AD
from drainwise.pilotad.jobstatus import SEAL
from drainwise.pilotad.pilot_ad import pilot_ad_text

TARGET = 5.0
EVENTS = 20


def bare_writes(files: list[tuple[str, bytes]]) -> None:
    """Each file whole at every moment, by a temporary one and a rename, and nothing else."""
    for path, content in files:
        descriptor = os.open(f"{path}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.write(descriptor, content)
        os.close(descriptor)
        os.rename(f"{path}.new", path)


def figures(directory: str, where: str, running: int, runs: int) -> list[Figure]:
    """Medians over `runs` rounds of 20 events with so many payloads running, against bare writes in turn with them."""
    begin = time.time()
    startup, status = f"{directory}/{running}", f"{directory}/{running}/status"
    os.makedirs(status)
    lease, workload = Lease(running, begin, begin + 90_000), Workload(begin)
    for place in range(running):
        workload.add(running_since(Payload(f"p{place}", 1, ("true",), 1000.0 + place, 5000.0 + place), begin))
    channels = Channels(startup, status, running, print)
    text = pilot_ad_text(report_of(workload, lease, True, 0, begin), running)
    two = [(f"{startup}/bare{PILOT_AD}", text), (f"{status}/bare.{SEAL.status_name}", b"8\n")]
    every = [two[0], *((f"{status}/bare.{row.status_name}", b"1795249000\n") for row in ATTRIBUTES)]
    place = 0

    def event() -> None:
        nonlocal place
        name, now = f"p{place % running}", begin + 300 + place / 100
        workload.remove(name)
        workload.add(running_since(Payload(name, 1, ("true",), 800.0 + place % 100, 4000.0), now))
        channels.publish(report_of(workload, lease, True, 0, now))
        place += 1

    steps: list[Callable[[], None]] = [lambda: bare_writes(two), lambda: bare_writes(every), event]
    times: list[list[float]] = [[] for _ in steps]
    for _ in range(runs):
        for step, spent in zip(steps, times):
            began = time.perf_counter()
            for _ in range(EVENTS):
                step()
            spent.append((time.perf_counter() - began) / EVENTS)
    two_files, ten_files, one_event = (statistics.median(spent) for spent in times)
    what = f"{running} payloads running; {where}"
    return [
        Figure(f"`.pilot.ad` and one status file, bare; {where}", two_files, 1.0, None),
        Figure(f"`.pilot.ad` and all nine status files, bare; {where}", ten_files, ten_files / two_files, None),
        Figure(f"an event of the pilot, against two bare files; {what}", one_event, one_event / two_files, None),
        Figure(
            f"the same, against the ten files that both channels are; {what}", one_event, one_event / ten_files, TARGET
        ),
    ]
