"""The standard workloads: two whole logs and nine mixes of today's grid, each with its site."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO

from drainwise_simulate.scenario import DAY, Scenario
from drainwise_simulate.trace import Trace, read_trace, trace_in
from grid_mix import Mix, panda_rows, swf_lines

SHARES = {"quarter": 0.25, "twentieth": 0.05}
HORIZONS = {"2h": (7200, 600.0), "6h": (21600, 1800.0), "1d": (86400, 3600.0)}
"""The horizon, and how often a stepwise policy is asked, in s."""
PILOTS = {8: (1024, 11.0), 64: (4096, 6.0), 128: (4096, 6.0)}
"""Cores of a pilot: those of the site, so that a twentieth of it is a whole pilot, and the days that its log has."""
WIDE_SHARES = (80, 50, 20)
"""Per cent of a mix's core-hours that are in jobs of 8 cores."""


@dataclass(frozen=True)
class Workload:
    """A log, by the file that it is of, and the site on which it is played."""

    name: str
    file: str
    words: str
    site: Scenario
    read: Callable[[str], Trace]

    def rows(self) -> Mapping[str, Scenario]:
        """Return the scenario of each row by the row's name."""
        return {
            f"{self.name}/{share}/{horizon}": replace(
                self.site, reclaimed=part, step=step, site=replace(self.site.site, horizon=seconds)
            )
            for share, part in SHARES.items()
            for horizon, (seconds, step) in HORIZONS.items()
        }


def _mixed(path: str, share: float, cores: int, days: float) -> Trace:
    with open(path, newline="") as stream:
        lines = swf_lines(panda_rows(stream, path), Mix(share, cores, days), os.path.basename(path))
        return trace_in(BytesIO("\n".join(lines).encode()), os.path.basename(path))


def workloads(most_days: float = Mix.days) -> Sequence[Workload]:
    """Return all of them, the logs first. most_days: of a mix."""
    several = ((8, 0.25), (16, 0.25), (32, 0.25), (64, 0.25))
    found = [
        Workload("lcg", "LCG-2005-1.swf.gz", "LCG, pilots of 8 cores", Scenario(), read_trace),
        Workload(
            "metacentrum",
            "wagap-2013.swf.gz",
            "MetaCentrum, pilots of 8 to 64 cores",
            Scenario(mix=several, lease=15 * DAY),
            read_trace,
        ),
    ]
    for wide in WIDE_SHARES:
        for size, (cores, days) in PILOTS.items():
            words = f"grid mix on {cores} cores, {wide} % in jobs of 8 cores, pilots of {size} cores"
            site = Scenario(cores=cores, mix=((size, 1.0),))
            read = partial(_mixed, share=wide / 100, cores=cores, days=min(days, most_days))
            found.append(Workload(f"mix-{wide}/{size}", "panda-bnl-2025-01-100-anon.csv", words, site, read))
    return found
