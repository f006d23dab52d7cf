"""Count PRIORITY_FACTOR: what a pilot's end costs its user, its waste and how much the user values it.

The factor is "user specific": higher is better, and only one user's pilots can be compared by it. So neither its unit
nor its range means anything: what counts is where a pilot's factor lies between the lowest and the highest of those
among which is chosen. It moves no core to anybody else, as pilots are chosen within one user.
"""

from __future__ import annotations

import numpy as np

from drainwise.reclaim.figures import Figures
from drainwise.reclaim.settings import ReclaimSettings
from drainwise.reclaim.totals.arrays import Real


def cost_of(it: Figures, settings: ReclaimSettings) -> Real:
    """Return in whole core-seconds what the end of each pilot costs its user; nothing where its protection has run out.

    With an order by priority it is so much for each higher factor that no waste outweighs it, core for core; else the
    pilot of the highest factor costs `priority_weight` seconds more on each of its cores than that of the lowest.
    """
    waste = it.least
    if len(it) and np.ptp(it.priority) > 0:
        cores = it.columns.cores
        if settings.priority_first:
            _, rank = np.unique(it.priority, return_inverse=True)
            waste = waste + rank * cores * (np.ceil(np.max(waste / cores)) + 1) * int(cores.max())
        elif settings.priority_weight:
            share = (it.priority - it.priority.min()) / np.ptp(it.priority)
            waste = waste + np.rint(settings.priority_weight * cores * share)
    return np.where(it.unprotected, 0.0, waste)
