"""Whether freed cores lie together as the waiting jobs need them: four cores on each of two nodes are no help to a job
of eight.

The choice itself counts cores: which sets of pilots leave whole holes of the right sizes is another and much harder
question, and its answer would change how many cores a user gives back. So the plan says what of its cores is of use.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

from drainwise.free_cores import Hole, Waiting, usable_cores
from drainwise.pool import Pilot, Principal, Snapshot
from drainwise.reclaim.quota import owed


def jobs_waiting(snapshot: Snapshot) -> list[Waiting]:
    """The jobs that wait and that their principals are owed cores for."""
    return [job for job in map(_jobs, snapshot.principals) if job.jobs > 0]


def _jobs(principal: Principal) -> Waiting:
    cores = math.ceil(max(principal.cores_per_job, 1.0))
    return Waiting(cores, math.floor(owed(principal) / cores))


def usable(freed: Iterable[Pilot], jobs: Iterable[Waiting]) -> int:
    """Cores of those jobs that the cores of the `freed` pilots could hold, node by node.

    Not more is known: cores that are free already beside a pilot's may make a hole large enough.
    """
    nodes: Counter[str] = Counter()
    for pilot in freed:
        nodes[pilot.node] += pilot.cores
    return usable_cores([Hole(cores, divisible=True) for cores in nodes.values()], jobs)
