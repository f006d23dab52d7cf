"""Count PRIORITY_FACTOR: what a pilot's end costs its user, its waste and how much the user values it.

The factor is "user specific": higher is better, and only one user's pilots can be compared by it. So neither its unit
nor its range means anything: what counts is where a pilot's factor lies between the lowest and the highest of those
among which is chosen. It moves no core to anybody else, as pilots are chosen within one user.
"""

from __future__ import annotations

import numpy as np

from drainwise.reclaim.figures import Figures
from drainwise.reclaim.settings import ReclaimSettings
from drainwise.reclaim.totals.arrays import Real, Whole


def cost_of(it: Figures, settings: ReclaimSettings) -> Real:
    """Return in whole core-seconds what the end of each pilot costs its user; nothing where its protection has run out.

    With an order by priority it is so much for each higher factor that no waste outweighs it, core for core; else the
    pilot of the highest factor costs `priority_weight` seconds more on each of its cores than that of the lowest. What
    waiting for the cores is worth counts as waste, where it has a cost.
    """
    return np.where(it.unprotected, 0.0, valued(it.price, it.columns.cores, it.priority, settings))


def valued(waste: Real, cores: Whole, priority: Real, settings: ReclaimSettings) -> Real:
    """Return what the end of each pilot costs its user, whether its protection has run out or not; see `cost_of`."""
    if len(waste) and np.ptp(priority) > 0:
        if settings.priority_first:
            _, rank = np.unique(priority, return_inverse=True)
            waste = waste + rank * cores * (np.ceil(np.max(waste / cores)) + 1) * int(cores.max())
        elif settings.priority_weight:
            share = (priority - priority.min()) / np.ptp(priority)
            waste = waste + np.rint(settings.priority_weight * cores * share)
    return waste
