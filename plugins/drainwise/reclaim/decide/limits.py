"""How many cores a user may be ordered to give back now, and the key of the site file that sets this bound."""

from __future__ import annotations

from typing import NamedTuple

from drainwise.reclaim.history import (
    MOST_IN_HOUR,
    MOST_OF_USER,
    MOST_OF_USER_IN_HOUR,
    History,
    bounds_of_user,
    left_of_hour,
)
from drainwise.reclaim.settings import ReclaimSettings

MOST_OF_CYCLE, BETWEEN_ACTS = "max_cores_per_cycle", "min_between_acts"
LIMITS = (MOST_OF_CYCLE, MOST_OF_USER, MOST_OF_USER_IN_HOUR, MOST_IN_HOUR, BETWEEN_ACTS)
"""The keys of [reclaim] that can leave cores to a later cycle."""


class Allowed(NamedTuple):
    """So many `cores`; `key` of [reclaim] is the bound, and `words` say so."""

    cores: int
    key: str
    words: str


def allowed_cores(
    user: str, cycle: int, taken: int, wait: str, history: History, now: int, settings: ReclaimSettings
) -> Allowed:
    """Return what `user` may be ordered to give back at `now` (UNIX s).

    cycle: cores that this cycle may still order. taken: cores of the user that it has ordered already. wait: why no
    order may be given yet, or "".
    """
    if wait:
        return Allowed(0, BETWEEN_ACTS, wait)
    ordered = settings.max_cores - cycle  # by this cycle, of all users
    bounds = {MOST_OF_CYCLE: cycle, MOST_IN_HOUR: left_of_hour(history, now, settings) - ordered}
    bounds |= {key: most - taken for key, most in bounds_of_user(user, history, now, settings).items()}
    key = min(bounds, key=bounds.__getitem__)
    cores = max(0, bounds[key])
    return Allowed(cores, key, f"[reclaim] {key} allows {cores} cores now")
