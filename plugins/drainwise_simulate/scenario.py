"""The input of a simulation beside its trace: the site, its pilots, what is known of payloads, what is reclaimed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from drainwise.pilot.decide.settings import NOTHING
from drainwise.reclaim.settings import ReclaimSettings

REQUESTS = "requests"
"""A payload is expected to run for as long as it asked for."""
SCOUTS = "scouts"
"""It is expected to run as long as its like did that have ended by then, and as long as it asked for before that."""
EXACT = "exact"
"""It is known how long it runs: no pilot can have that; for validation."""
ESTIMATES = (REQUESTS, SCOUTS, EXACT)

DOMINANT = 0.5
"""An owner dominates with more than this share of the core-seconds."""
SIZES = (1, 8, 16, 32, 64)
HOUR, DAY = 3600.0, 86400.0
_UNLIMITED = 10**9


def site_settings(horizon: int = 7200, grace: int = 86400) -> ReclaimSettings:
    """Return the agent's settings in a simulation: no limit of a cycle, pilots may be killed, no notice.

    horizon: the cores must be back within this many seconds, else a way to end a pilot does not count.
    """
    return ReclaimSettings(
        policy="least-waste",
        horizon=horizon,
        grace=grace,
        max_grace=grace,
        heartbeat_limit=3600,
        max_cores=_UNLIMITED,
        max_cores_per_user=_UNLIMITED,
        max_cores_per_user_hour=_UNLIMITED,
        margin=60,
        min_grace=60,
        min_age=0,
        drain_only=False,
    )


def with_site_defaults(settings: ReclaimSettings, min_grace: int) -> ReclaimSettings:
    """Return the settings with the bounds of a site that sets nothing; min_grace: whole s."""
    default = ReclaimSettings
    return replace(settings, drain_only=default.drain_only, margin=default.margin, min_grace=min_grace)


class Checkpoints(NamedTuple):
    """Work is saved each `interval` s, which takes `seconds`; by a share of the pilots, or of the jobs of a log.

    on_demand: and when an order asks for it.
    """

    interval: int
    seconds: int
    share: float = 1.0
    on_demand: bool = False

    def last(self, begin: float, moment: float) -> float:
        """Return until when what began then is saved at a moment, both UNIX s; `begin` where nothing is."""
        return begin + max(0, (moment - self.seconds - begin) // self.interval) * self.interval


@dataclass(frozen=True)
class Scenario:
    """One run's inputs; equal scenarios and jobs give equal outcomes. Times in s. Raises UsageError for what is odd.

    cores: what the site has. mix: pilot sizes, (cores of a pilot, share of the site's cores). lease: how long a pilot
    may stay; a job that asks for more than that never starts. The first leases end at drawn times, so that pilots of
    every age are there.
    reclaimed: share of the pilots' cores that a burst of the other group wants. moments: how many bursts, each from the
    same state for all policies. quiet: share of the trace before the first burst may come, so that the site is full and
    something is known of run times. follow: how long after a burst its payloads are looked at, at least.
    estimates: one of `ESTIMATES`. error: sigma of the log-normal factor that every expected run time is off by.
    stuck: share of pilots whose payloads hang: they end at their maximum instead of by themselves.
    liars: share of pilots that claim to lose everything when they are ended. silent: share that report nothing.
    shrinking: share of pilots that can return a part of their cores and go on. chunk: cores of a waiting job; what is
    returned is of use in whole chunks, each free in one pilot.
    checkpoints: which pilots save the work of all their payloads together, and how often; None: nobody does.
    while_draining: what a pilot starts while it drains, see `pilot.settings`. `NOTHING` lets what a decision wastes
    depend on that decision alone.
    arrivals: "" for bursts. Else a group of the trace (a user, where there is one group alone) whose own jobs are the
    demand: it is owed the share `reclaimed` of the site, and the agent looks every `period` at who waits.
    step: how often a policy that decides again and again is asked, unless it says so itself.
    min_grace: of `site-least-waste` and `site-default`, whole s: see `ReclaimSettings`.
    site: the agent's settings; its policy is set by whoever compares. seed: of everything that is drawn by lot.
    """

    cores: int = 1024
    mix: tuple[tuple[int, float], ...] = ((8, 1.0),)
    lease: float = 4 * DAY
    reclaimed: float = 0.25
    moments: int = 20
    quiet: float = 0.25
    follow: float = 0.0
    estimates: str = SCOUTS
    error: float = 0.0
    stuck: float = 0.0
    liars: float = 0.0
    silent: float = 0.0
    shrinking: float = 0.0
    chunk: int = 1
    checkpoints: Checkpoints | None = None
    while_draining: str = NOTHING
    arrivals: str = ""
    period: float = 60.0
    step: float = 300.0
    min_grace: int = ReclaimSettings.min_grace
    site: ReclaimSettings = field(default_factory=site_settings)
    seed: int = 1

    @property
    def pilots(self) -> tuple[int, ...]:
        """The sizes of all places for a pilot on the site, in cores: one at least of each size, the smallest first."""
        whole = math.fsum(share for _, share in self.mix)
        return tuple(
            size for size, share in sorted(self.mix) for _ in range(max(1, round(self.cores * share / whole / size)))
        )
