"""One cycle's decision: for each pilot chosen and spared, the figures and the rule in words; and as JSON.

In JSON times are UNIX s, remaining is in s, wastes are core-seconds, and null is not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property

import numpy as np

from drainwise.facts.units import core_hours
from drainwise.pool.facts import Pilot
from drainwise.pool.job_kinds import RoomFor
from drainwise.pool.kept_room import KeptRoom
from drainwise.reclaim.candidates import KILL, Candidate, Candidates
from drainwise.reclaim.paused_demand import Paused
from drainwise.reclaim.policy import Need
from drainwise.reclaim.quota import Balance
from drainwise.reclaim.totals.arrays import Whole
from drainwise.reclaim.unmet_demand import AccountPart
from drainwise.reclaim.withdrawal import Withdrawal


@dataclass(frozen=True)
class Order:
    """One pilot that is ordered to end by `deadline` (UNIX s); `waste` in core-seconds is what that should cost.

    cores_back: when its cores should be free, UNIX s. promised: the waste by the pilot's own claims, in core-seconds,
    which is less than `waste` where its user's claims are moved for want of trust. request: the request or closing of
    nodes that it is for, "" when it is for those who wait. room: what its pilot makes room for, with others there; None
    where cores are counted. kept: what must be kept there for it, where no pilot makes that room alone.
    """

    candidate: Candidate
    kind: str
    deadline: int
    cores_back: int
    waste: int
    promised: int
    reason: str
    request: str = ""
    room: RoomFor | None = None
    kept: KeptRoom | None = None

    @property
    def pilot(self) -> Pilot:
        """The pilot that gets the order."""
        return self.candidate.pilot


@dataclass(frozen=True)
class Spared:
    """One pilot of a user who gives cores back that is left alone, and why."""

    candidate: Candidate
    reason: str


@dataclass(frozen=True)
class UserPlan:
    """One user's part: `cores` to give back for `account`, who gets an order and who is spared.

    need: what a policy has to find for it, rounded up to whole pilots where that is right. later: cores that a limit
    of the cycle leaves to the next one; they are not put on anybody else. limit: that limit in words, or "". open: the
    pilots among which was chosen; closed: those that may get no order, with why by run. request: as in `Order`.
    """

    account: str
    user: str
    cores: int
    later: int
    limit: str
    orders: tuple[Order, ...]
    open: Candidates = field(repr=False, compare=False)
    closed: tuple[Candidates, Mapping[str, str]] = field(repr=False, compare=False)
    need: Need
    request: str = ""

    @property
    def cores_given(self) -> int:
        """Cores of the pilots that get an order."""
        return sum(order.pilot.cores for order in self.orders)

    @cached_property
    def spared(self) -> tuple[Spared, ...]:
        """Those that are left alone, each with its reason: made when they are looked at, for they may be many."""
        ordered = {order.pilot.run for order in self.orders}
        others, why = self.closed
        spared = [Spared(one, _not_needed(one, self.limit)) for one in self.open if one.pilot.run not in ordered]
        return (*spared, *(Spared(one, why[one.pilot.run]) for one in others))

    @cached_property
    def spared_rows(self) -> Whole:
        """The rows of `open` that might have got an order and have none, the least wasteful per core first."""
        ordered = {order.pilot.run for order in self.orders}
        rows = np.array([row for row, pilot in enumerate(self.open.pilots) if pilot.run not in ordered], dtype=np.int64)
        return rows[np.argsort(self.open.figures.least[rows] / self.open.sizes[rows], kind="stable")]

    def spared_at(self, row: int) -> Spared:
        """Return one of `spared_rows` with its reason."""
        return Spared(self.open[row], _not_needed(self.open[row], self.limit))


@dataclass(frozen=True)
class Plan:
    """One cycle's decision on the snapshot taken at `taken` (UNIX s), and the sentence that sums it up.

    usable: cores of the orders that lie together as the waiting jobs need them; None when the jobs are not known.
    withdrawals: of the orders whose reason has gone. notices: what the decision could not count on, a sentence each.
    closed_nodes: nodes with pilots that can get no order. waiting: cores that accounts are owed and wait for, by
    account. parts: for each of these, its parts of the pilots with an order, by run. paused: demand that does not
    count now.
    """

    taken: int
    policy: str
    balance: Balance
    users: tuple[UserPlan, ...]
    withdrawals: tuple[Withdrawal, ...]
    usable: int | None
    summary: str
    notices: tuple[str, ...] = ()
    closed_nodes: int = 0
    waiting: Mapping[str, float] = field(default_factory=dict)
    parts: Mapping[str, Mapping[str, AccountPart]] = field(default_factory=dict)
    paused: tuple[Paused, ...] = ()

    @property
    def orders(self) -> tuple[Order, ...]:
        """All orders, in the order in which they would be given."""
        return tuple(order for user in self.users for order in user.orders)

    @property
    def waste(self) -> int:
        """Expected waste of all orders in core-seconds."""
        return sum(order.waste for order in self.orders)


def _not_needed(one: Candidate, limit: str) -> str:
    how = "killing" if one.best.kind == KILL else "draining"
    return f"not needed; {how} it would waste {core_hours(one.best.waste)}" + (f"; {limit}" if limit else "")


def as_json(plan: Plan) -> dict[str, object]:
    """Return the whole plan: the balance, and per user who gets an order and who is spared."""
    balance = plan.balance
    return {
        "taken": plan.taken,
        "policy": plan.policy,
        "summary": plan.summary,
        "cores": {
            "demand": balance.demand,
            "free": balance.free,
            "leaving": balance.leaving,
            "surplus": balance.surplus,
            "deficit": balance.deficit,
        },
        "expected_waste": plan.waste,
        "cores_usable": plan.usable,
        "notices": list(plan.notices),
        "paused_demand": [paused_as_json(one) for one in plan.paused],
        "users": [
            {
                "account": user.account,
                "user": user.user,
                "cores": user.cores,
                "cores_given": user.cores_given,
                "cores_later": user.later,
                "limit": user.limit,
                "request": user.request,
                "orders": [order_as_json(order) for order in user.orders],
                "spared": [{**candidate_as_json(one.candidate), "reason": one.reason} for one in user.spared],
            }
            for user in plan.users
        ],
        "withdrawals": [
            {
                "run": one.pilot.run,
                "name": one.pilot.name,
                "node": one.pilot.node,
                "account": one.pilot.account,
                "user": one.pilot.user,
                "cores": one.pilot.cores,
                "ordered_deadline": one.pilot.deadline,
                "saved": one.saved,
                "reason": one.reason,
            }
            for one in plan.withdrawals
        ],
    }


def paused_as_json(one: Paused) -> dict[str, object]:
    """Return paused demand as plain values; times in UNIX s."""
    return asdict(one)


def order_as_json(order: Order) -> dict[str, object]:
    """Return one order as plain values."""
    return {
        **candidate_as_json(order.candidate),
        "act": "vacate" if order.kind == KILL else "drain",
        "kind": order.kind,
        "deadline": order.deadline,
        "cores_back": order.cores_back,
        "expected_waste": order.waste,
        "reason": order.reason,
        "request": order.request,
        "room": None if order.room is None else room_as_json(order.room),
    }


def room_as_json(room: RoomFor) -> dict[str, object]:
    """Return what room is made for as plain values."""
    jobs = [
        {"kind": kind.name, "account": kind.account, "jobs": number, "asks": kind.in_words(), "example": kind.example}
        for kind, number in room.jobs
    ]
    return {"place": room.place, "jobs": jobs}


def candidate_as_json(one: Candidate) -> dict[str, object]:
    """Return one pilot's identity and figures as plain values; null = not known or not believed."""
    pilot, report = one.pilot, one.pilot.report
    return {
        "run": pilot.run,
        "name": pilot.name,
        "node": pilot.node,
        "account": pilot.account,
        "user": pilot.user,
        "cores": pilot.cores,
        "used_cpu": None if report is None else report.used_cpu,
        "started": pilot.started,
        "lease_end": pilot.lease_end,
        "heartbeat": None if report is None else report.heartbeat,
        "standing": one.standing,
        "rule": one.rule,
        "remaining": one.remaining,
        "draining_waste": one.draining_waste,
        "kill_waste": one.kill_waste,
        "waste_if_drained": one.drained.waste,
        "options": [
            {"kind": way.kind, "expected_waste": way.waste, "deadline": way.deadline, "cores_back": way.cores_back}
            for way in one.options
        ],
        "priority_factor": one.priority_factor,
        "draining": one.draining,
        "ordered_deadline": pilot.deadline,
        "leaving": pilot.leaving,
        "cannot": pilot.cannot,
    }
