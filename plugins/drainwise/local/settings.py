"""How the daemon of the local batch system behaves, in seconds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """Each in seconds.

    kill_wait: from SIGTERM to SIGKILL of a lease that must end. period: between two looks at the leases; idle_period:
    the same while there is none. patience: what the reads of one round may wait in all for pilots that hold their lock.
    repair: how soon a word of the site that a job removed is written again. retry: until a job that could not be
    started is tried again. keep_ended: for how long an ended job and its directory are kept.
    """

    kill_wait: float = 10.0
    period: float = 1.0
    idle_period: float = 5.0
    patience: float = 0.5
    repair: float = 10.0
    retry: float = 10.0
    keep_ended: float = 7 * 86400.0
