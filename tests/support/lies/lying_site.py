"""A site that two users share by halves: the pilots of one may lie. It keeps how each of its pilots ended."""

from __future__ import annotations

from collections.abc import Sequence

from drainwise.pilot.decide.decision import Decision, decide
from drainwise.pilot.decide.estimates import RunTimeEstimates
from drainwise.pilot.decide.lease import LEASE, Lease, SiteOrders
from drainwise.pilot.decide.payload import Backlog, Payload
from drainwise.pilot.decide.settings import PilotSettings
from drainwise.pilotad.report import PilotReport
from drainwise.pool.facts import Ending
from drainwise.reclaim.settings import ReclaimSettings
from drainwise_simulate.demand_burst import run_name
from drainwise_simulate.sim_pilot import SimPilot
from drainwise_simulate.site import Site
from drainwise_simulate.workload import SimulatedEstimates, SiteWorkload
from lies.lie import Lie

USERS = ("one", "other")
"""The user whose pilots may lie, and the other one."""


class LyingPilot(SimPilot):
    """A pilot that tells a lie in place of each report."""

    __slots__ = ("_lie", "_settings")

    def __init__(self, run: int, place: int, lease: Lease, lie: Lie, settings: ReclaimSettings) -> None:
        super().__init__(run, place, lease)
        self._lie, self._settings = lie, settings

    def report(self, estimates: RunTimeEstimates | None, settings: PilotSettings, now: float) -> PilotReport | None:
        """See `SimPilot`: the lie."""
        made, site = super().report(estimates, settings, now), self._settings
        leaves = int(now) + min(site.horizon, site.grace, site.max_grace) - site.margin
        return None if made is None else self._lie.tell(made, self.lease, leaves)

    def give_order(self, deadline: int, settings: PilotSettings, now: float) -> None:
        """See `SimPilot`; one that stays is ended by the site at the deadline, and does nothing else about it."""
        super().give_order(deadline, settings, now)
        if self._lie.stays:
            self.orders = SiteOrders(leave=False, deadline=deadline, draining=False, source=LEASE)

    def seconds_left(self, settings: PilotSettings, now: float) -> float:
        """See `SimPilot`; one that stays starts what fits its lease."""
        if self._lie.stays and self.lease.end is not None:
            return self.lease.end - now
        return super().seconds_left(settings, now)

    def decide(self, waiting: Sequence[Payload], settings: PilotSettings, now: float) -> Decision:
        """See `SimPilot`."""
        if not self._lie.stays:
            return super().decide(waiting, settings, now)
        orders = SiteOrders(leave=False, deadline=self.lease.end, draining=False, source=LEASE)
        return decide(self.workload, Backlog(waiting), self.lease, orders, settings, now, more_may_come=True)


class LyingSite(Site):
    """A site whose places belong to `USERS` in turn. ended: by run, how a pilot ended, as a batch system records it."""

    def __init__(
        self, workload: SiteWorkload, estimates: SimulatedEstimates | None, lie: Lie | None, settings: ReclaimSettings
    ) -> None:
        super().__init__(workload, estimates)
        self._lie, self._settings = lie, settings
        self.ended: dict[str, Ending] = {}

    @staticmethod
    def user_of(place: int) -> str:
        """Return whose pilots have a place."""
        return USERS[place % len(USERS)]

    def new_pilot(self, run: int, place: int, lease: Lease, odds: Sequence[float]) -> SimPilot:
        """See `Site`."""
        if self._lie is None or self.user_of(place) != USERS[0]:
            return super().new_pilot(run, place, lease, odds)
        return LyingPilot(run, place, lease, self._lie, self._settings)

    def _leave(self, pilot: SimPilot) -> None:
        was_ended = bool(pilot.workload.running)
        super()._leave(pilot)
        held = pilot.lease.cores * (self.now - pilot.lease.start)
        worked = held - pilot.idle - pilot.drained
        name = run_name(pilot.run)
        self.ended[name] = Ending(name, int(self.now), was_ended, max(0.0, worked))
