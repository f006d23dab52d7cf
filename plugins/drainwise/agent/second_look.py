"""Check the facts that a plan stood on against a second snapshot, order by order: nothing is decided again. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter

from drainwise.agent.cycle_facts import ON_ITS_WAY, RUN_GONE, CycleBasis
from drainwise.pool.facts import Pilot, Snapshot
from drainwise.pool.scope import with_scope
from drainwise.reclaim.history import void_orders, with_unanswered
from drainwise.reclaim.plan import Order, Plan, Withdrawal
from drainwise.reclaim.quota import Balance, owed, require_whole, weigh

_ROUNDING = 1e-6
OWNER = attrgetter("node", "account", "user")
_PLACE = attrgetter("node", "account", "user", "cores")
"""The facts of a run that the plan stood on and that must still hold; a part is asked of any size."""


class SecondLook:
    """What a snapshot of `now` (UNIX s) leaves of the reasons of a plan; basis: what that was decided on.

    What is missing, and what an account can give back, are as the plan has them, moved by as much as the batch system's
    own figures have moved since. given: the plan's orders that were given before. demand: cores that are owed to those
    who wait. running: the pilots by run. Raises PoolUnreachable for a snapshot that is not whole.
    """

    def __init__(self, plan: Plan, basis: CycleBasis, snapshot: Snapshot, now: int, given: Sequence[Order]) -> None:
        require_whole(snapshot)
        history, self._horizon, self.now = basis.history, basis.settings.horizon, now
        requested = {*history.requested, *(order.pilot.run for order in plan.orders if order.request)}
        ours = {order.pilot.run for order in given}

        def weighed(seen: Snapshot, at: int) -> Balance:
            pilots = with_unanswered(seen, history.unanswered).pilots
            own = (replace(one, deadline=None, leaving=False) if one.run in ours else one for one in pilots)
            own = (replace(one, reserved=True) if one.run in requested else one for one in own)
            return weigh(replace(seen, pilots=tuple(own)), at, self._horizon)

        before, after = weighed(basis.snapshot, basis.now), weighed(snapshot, now)
        self.running = {one.run: one for one in with_unanswered(snapshot, history.unanswered).pilots}
        self.demand = max(0.0, plan.balance.demand + after.demand - before.demand)
        self._more = _missing(after) - _missing(before)
        self._void = void_orders(with_scope(snapshot, basis.settings.scope), history)
        self._requests = {one.name for one in history.requests} | {one.name for one in snapshot.closures}
        planned, first, self._over = (_can_give(one, plan.balance) for one in (plan.balance, before, after))
        self._left = Counter({name: cores + self._over[name] - first[name] for name, cores in planned.items()})
        self._jobs = _without_room(plan.missing or {}, basis.snapshot, snapshot)
        kinds = {kind.name: kind for order in plan.orders if order.room is not None for kind, _ in order.room.jobs}
        cores = sum(kinds[name].cores * jobs for name, jobs in (plan.missing or {}).items() if name in kinds)
        self._cores = self._more + (_missing(plan.balance) if plan.missing is None else cores)
        self._begun = set[str]()
        for order in given:
            if order.pilot.run in self.running:  # of others the snapshot shows what came of it
                self.take_off(order)

    def why_not(self, order: Order, withdrawn: Collection[str]) -> str:
        """Return why an order is not given, or ""; withdrawn: runs whose orders were withdrawn just now."""
        current = self.running.get(order.pilot.run)
        if current is None or _PLACE(order.pilot) != _PLACE(current):
            return RUN_GONE
        ends, latest = current.deadline, order.deadline if order.request else self.now + self._horizon
        if current.leaving or current.unanswered is not None or (ends is not None and ends <= latest):
            return ON_ITS_WAY
        if order.request:
            return "" if order.request in self._requests else f"{order.request} does not stand any more"
        if order.instead_of:
            return "" if set(order.instead_of).issubset(withdrawn) else "an order that it was to replace stands"
        if not self._is_needed(order):
            return "enough cores are free or on their way by now"
        if self._left[current.account] < current.cores:
            return f"{current.account} holds less beyond its quota by now"
        return ""

    def _is_needed(self, order: Order) -> bool:
        """Return whether cores are still missing; where its room is for jobs, whether some of these kinds wait."""
        if order.room is not None and order.room.place in self._begun:
            return True
        kinds = [] if order.room is None else [self._jobs[kind.name] for kind, _ in order.room.jobs]
        return self._cores > _ROUNDING and (not kinds or max(kinds) > _ROUNDING)

    def take_off(self, order: Order) -> None:
        """Take off what an order makes room for, as it is given; all orders of one place make the same room."""
        if order.request or order.instead_of:
            return
        self._left[order.pilot.account] -= order.pilot.cores
        if order.room is None:
            self._cores -= order.pilot.cores
        elif order.room.place not in self._begun:
            self._begun.add(order.room.place)
            for kind, jobs in order.room.jobs:  # of one that needs several places each has a part
                self._jobs[kind.name] -= jobs / kind.places
                self._cores -= kind.cores * jobs / kind.places

    def why_stands(self, withdrawal: Withdrawal) -> str:
        """Return why an order is not withdrawn, or ""."""
        known = withdrawal.pilot
        current = self.running.get(known.run)
        if current is None or _PLACE(known) != _PLACE(current):
            return RUN_GONE
        if current.deadline != known.deadline:
            return "its order is another one by now"
        is_free = known.run in self._void or known.account not in self._over or self._more <= _ROUNDING
        if withdrawal.instead:
            is_free = all(takes_orders(self.running.get(run)) for run in withdrawal.instead)
        return "" if is_free else "its cores are needed again"


def _missing(balance: Balance) -> float:
    """Return the cores of those who wait for which none are free or on their way; below 0 where more come."""
    return balance.demand - balance.free - balance.leaving


def _can_give(balance: Balance, plan: Balance) -> Counter[str]:
    """Return what each account over quota can give back, in cores: down to its own share where the plan needs that."""
    return Counter({one.account: one.most if plan.below_share else one.cores for one in balance.over})


def takes_orders(pilot: Pilot | None) -> bool:
    """Return whether a pilot is there and has no order."""
    return pilot is not None and pilot.deadline is None and not pilot.leaving and pilot.unanswered is None


def _without_room(missing: Mapping[str, int], before: Snapshot, after: Snapshot) -> defaultdict[str, float]:
    """Return the jobs of each kind that have no room: fewer by those that wait no more; none where none are owed."""
    waited, waits = ({kind.name: kind for kind in seen.kinds or ()} for seen in (before, after))
    wanted, wants = ({one.name for one in seen.accounts if owed(one) > 0} for seen in (before, after))
    found = defaultdict[str, float](float, missing)
    for name in found.keys() & waited.keys():
        gone = waited[name].jobs - (waits[name].jobs if name in waits else 0)
        found[name] -= missing[name] if waited[name].account in wanted - wants else max(0, gone)
    return found
