"""Hold the site's settings of reclaiming: every bound of an act and every rule of trust."""

from __future__ import annotations

from dataclasses import dataclass, field

from drainwise.facts.scope_rules import ScopeRules
from drainwise.pool.billing import CORES_ALONE, Billing
from drainwise.reclaim.seen_pilots import StuckRules

OPEN_NEED = "open-need"
"""The policy by which a need stays open, see `reclaim.decide.open_until`."""
BROKEN_PROMISES = 0.10
"""The probability that a pilot does not leave as it says, before anything is known of its user's pilots."""
LIMITS = "max_cores_per_cycle", "max_cores_per_hour", "max_cores_per_user_per_cycle", "max_cores_per_user_per_hour"
"""The keys of [reclaim] that can leave cores to a later cycle."""


@dataclass(frozen=True)
class ReclaimSettings:
    """The site's bounds for one cycle. Times are in seconds.

    policy: its name. horizon: the cores must be back within it, else an option does not count; cores that come back
    within it count as on their way. grace: longest time from the order to the deadline, never longer than max_grace.
    min_grace: shortest time that a pilot has to drain, from when it knows of the order until the batch system begins to
    end it, as far as grace and horizon let it.
    margin: what a pilot gets beyond the time that it says it needs; one that would not get it counts as cut. notice:
    the shortest time from an order to its deadline. vacate: how long before the deadline the batch system begins to end
    a pilot (a pilot may have its own). order_latency: seconds at most until a pilot knows of an order.
    drain_only: each pilot with an order gets time to drain; what is there at its deadline is ended. heartbeat_limit: an
    older report has lost its protection. max_cores: ordered in one cycle; max_cores_per_user: of one user in one cycle;
    max_cores_per_user_hour: of one user within any hour. min_age: a pilot younger than that is left alone; it has
    hardly begun, and HTCondor 23.9 was seen to keep a job that was preempted within a second of its start waiting for
    its whole job lease. time_to_start: so long after cores came back the jobs that they were for are given to start.
    waiting_cost: wasted core-hours that a core-hour of waiting for cores is worth. stuck: what of pilots in which
    nothing works. need_left: until the moment of a need that stays open; where each pilot gets time to drain it gets no
    more than that, but its least time; None: the whole horizon. extra_cores: that a user's reports may cost it beyond
    what facts take, None for as many as its largest pilot has, or a quarter of that; reports_compete: whose reports
    decide together, "user", "account" or "site". billing: what waste on a core counts when pilots are compared;
    most of it within any hour: max_billing_user_hour, max_billing_hour.
    """

    policy: str
    horizon: int
    grace: int
    max_grace: int
    heartbeat_limit: int
    max_cores: int
    max_cores_per_user: int
    max_cores_per_user_hour: int
    margin: int = 900
    min_grace: int = 300
    notice: int = 0
    vacate: int = 0
    order_latency: int = 0
    min_age: int = 60
    time_to_start: int = 180
    drain_only: bool = True
    waiting_cost: float = 0.0
    stuck: StuckRules = field(default_factory=StuckRules)
    need_left: int | None = None
    scope: ScopeRules = field(default_factory=ScopeRules)
    max_cores_hour: int = 10_000_000
    max_gpus_user_hour: int = 10_000_000
    max_billing_user_hour: int = 10_000_000
    max_billing_hour: int = 10_000_000
    extra_cores: int | None = None
    reports_compete: str = "user"
    billing: Billing = CORES_ALONE
