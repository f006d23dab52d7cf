"""A plan as plain values for JSON: times are UNIX s, remaining is in s, wastes are core-seconds, null is not known."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from drainwise.identity.identity import as_values
from drainwise.pool.job_kinds import RoomFor
from drainwise.reclaim.candidates import KILL, Candidate
from drainwise.reclaim.paused_demand import Paused

if TYPE_CHECKING:
    from drainwise.reclaim.plan import Order, PartOrder, Plan, Spared
    from drainwise.reclaim.quota import Balance

_NUMBERS = ("gpus", "returned", "can_return", "asked")
"""Of a pilot with GPUs, and of one that can return a part of its cores: each shown where it is not 0."""


def balance_as_json(balance: Balance) -> dict[str, float]:
    """Return the cores of a balance as plain values: wanted, free, on their way, over quota, to be given back."""
    return {
        "demand": balance.demand,
        "free": balance.free,
        "leaving": balance.leaving,
        "surplus": balance.surplus,
        "deficit": balance.deficit,
    }


def as_json(plan: Plan) -> dict[str, object]:
    """Return the whole plan: the balance, and per user who gets an order and who is spared."""
    return {
        "taken": plan.taken,
        "policy": plan.policy,
        "summary": plan.summary,
        "cores": balance_as_json(plan.balance),
        "expected_waste": plan.waste,
        "cores_usable": plan.usable,
        "notices": list(plan.notices),
        "paused_demand": [paused_as_json(one) for one in plan.paused],
        "unplaced_jobs": [asdict(one) for one in plan.unplaced],
        "needs": _needs(plan),
        "users": [
            {
                "account": user.account,
                "user": user.user,
                "cores": user.cores,
                "cores_given": user.cores_given,
                "cores_later": user.later,
                "limit": user.limit,
                "request": user.request,
                "orders": [{**order_as_json(one), "price": user.prices.get(one.pilot.run)} for one in user.orders],
                "spared": [spared_as_json(one) for one in user.spared],
                **({"returns": [part_as_json(one) for one in user.returns]} if user.returns else {}),
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
                "instead": list(one.instead),
            }
            for one in plan.withdrawals
        ],
        **({"asked_no_more": [one.run for one in plan.asked_no_more]} if plan.asked_no_more else {}),
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
        "instead_of": list(order.instead_of),
        **({"extra": order.extra} if order.extra else {}),
    }


def spared_as_json(one: Spared) -> dict[str, object]:
    """Return one pilot that is left alone as plain values."""
    return {**candidate_as_json(one.candidate), "reason": one.reason, "code": one.reason.code, "price": one.price}


def _needs(plan: Plan) -> list[dict[str, object]]:
    """Return each need that gets orders: an account, or a kind of jobs, with the cheapest other choice for it."""
    return [
        {
            "name": name,
            "cores": sum(part.cores for part in parts.values()),
            "runs": list(parts),
            "next_best": None if (other := plan.next_best(parts)) is None else spared_as_json(other),
        }
        for name, parts in plan.parts.items()
    ]


def part_as_json(part: PartOrder) -> dict[str, object]:
    """Return one order for a part as plain values; cores_back null: not all of them are expected in time."""
    return {
        **candidate_as_json(part.candidate),
        "act": "return",
        "cores_returned": part.cores,
        "asked_in_all": part.in_all,
        "by": part.by,
        "chunk": part.chunk,
        "cores_back": part.cores_back,
        "expected_waste": part.waste,
        "reason": part.reason,
        "stands": part.stands,
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
        "client": pilot.client,
        "standing": one.standing,
        "rule": one.rule,
        "ends": one.ends or None,
        "remaining": one.remaining,
        "remaining_max": one.remaining_max,
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
        "identity": as_values(pilot.identity),
        **{name: cores for name in _NUMBERS if (cores := getattr(pilot, name))},
    }
