#!/usr/bin/python3
"""A small pilot whose payloads sleep: it reports what it would waste and goes when it is asked to.

usage: sleeping_pilot.py [--deaf] CORESxSECONDS …

Each argument is a payload that starts anew whenever it has ended. What the site told this pilot is written to
`told.json`. With --deaf it reports like any other but takes no notice of anything, SIGTERM included.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from dataclasses import dataclass

sys.path.append("/usr/share/drainwise")

from drainwise.pilotad.pilot_ad import write_pilot_ad
from drainwise.pilotad.report import PilotReport
from drainwise.pilotad.site_ad import read_site_ad

HEARTBEAT = 20  # seconds


@dataclass
class Payload:
    """One sleeping payload: `cores` for `seconds` since `start`; it is gone when `running` is False."""

    cores: int
    seconds: int
    start: int
    running: bool = True

    @property
    def end(self) -> int:
        """When it ends, UNIX seconds."""
        return self.start + self.seconds


def report(payloads: list[Payload], cores: int, draining: bool, now: int) -> PilotReport:
    """The nine attributes from the running payloads (the derivation of SPEC §2)."""
    running = [payload for payload in payloads if payload.running]
    if not running:
        return PilotReport(
            now,
            used_cpu=0.0,
            last_job_start=now,
            first_exp_job_end=now,
            last_exp_job_end=now,
            last_max_job_end=now,
            add_uncom_time=0.0,
            add_final_exp_waste=0.0,
            priority_factor=0,
            can_postpone_last_job=not draining,
        )
    last_start = max(payload.start for payload in running)
    first_end, last_end = min(payload.end for payload in running), max(payload.end for payload in running)
    busy_after_first = sum(payload.cores * (payload.end - first_end) for payload in running)
    return PilotReport(
        now,
        used_cpu=float(sum(payload.cores for payload in running)),
        last_job_start=last_start,
        first_exp_job_end=first_end,
        last_exp_job_end=last_end,
        last_max_job_end=last_end,
        add_uncom_time=float(sum(payload.cores * (last_start - payload.start) for payload in running)),
        add_final_exp_waste=float(cores * (last_end - first_end) - busy_after_first),
        priority_factor=0,
        can_postpone_last_job=not draining,
    )


def told() -> dict[str, str]:
    """What stands in the site's three channels now."""
    found = {}
    for name, path in (
        (".site.ad", ".site.ad"),
        ("shutdowntime_job", os.environ.get("JOBFEATURES", "") + "/shutdowntime_job"),
        ("shutdowntime", os.environ.get("MACHINEFEATURES", "") + "/shutdowntime"),
    ):
        try:
            with open(path, encoding="ascii") as stream:
                found[name] = stream.read()
        except OSError:
            continue
    return found


def main(arguments: list[str]) -> int:
    """Run until asked to go (0), or for ever."""
    deaf = "--deaf" in arguments
    if deaf:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with open(os.environ["JOBFEATURES"] + "/allocated_cpu", encoding="ascii") as stream:
        cores = int(stream.read())
    now = int(time.time())
    pairs = [argument.split("x") for argument in arguments if argument != "--deaf"]
    payloads = [Payload(int(count), int(seconds), now) for count, seconds in pairs]
    draining, written = False, 0
    while True:
        now = int(time.time())
        changed = now - written >= HEARTBEAT
        site, _ = read_site_ad(".")
        if site is not None and site.vacate_desired and not draining and not deaf:
            draining = changed = True
            with open("told.json", "w", encoding="ascii") as stream:
                json.dump({"now": now, **told()}, stream)
        for payload in payloads:
            if payload.running and payload.end <= now:
                payload.running, payload.start, changed = not draining, now, True
        if changed:
            write_pilot_ad(".", report(payloads, cores, draining, now), cores)
            written = now
        if draining and not any(payload.running for payload in payloads):
            return 0
        time.sleep(0.5)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
