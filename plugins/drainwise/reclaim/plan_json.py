"""A plan as plain values for JSON: times are UNIX s, remaining is in s, wastes are core-seconds, null is not known."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from drainwise.facts.units import CORE_H
from drainwise.pool.identity import as_values
from drainwise.pool.job_kinds import RoomFor
from drainwise.reclaim.candidates import KILL, Candidate

if TYPE_CHECKING:
    from drainwise.reclaim.plan import Order, PartOrder, Plan, Spared, Withdrawal
    from drainwise.reclaim.quota import Balance

_WHOSE = ("run", "name", "node", "account", "user", "cores")
_NUMBERS = ("gpus", "returned", "can_return", "asked", "saved", "next_save")
"""Of a pilot with GPUs, of one that can return a part of its cores, of one that saves its work: each shown where it is
known and not 0.
"""


def _some(one: object, *names: str) -> dict[str, object]:
    return {name: getattr(one, name) for name in names}


def balance_as_json(balance: Balance) -> dict[str, object]:
    """Return the cores of a balance as plain values: wanted, free, on their way, over quota, to be given back."""
    return _some(balance, "demand", "free", "leaving", "surplus", "deficit")


def as_json(plan: Plan) -> dict[str, object]:
    """Return the whole plan: the balance, and per user who gets an order and who is spared."""
    return {
        **_some(plan, "taken", "policy", "summary"),
        "cores": balance_as_json(plan.balance),
        "expected_waste": plan.waste,
        **({"expected_billed": plan.billed, "unit": plan.unit} if plan.unit != CORE_H else {}),
        "cores_usable": plan.usable,
        "notices": list(plan.notices),
        "paused_demand": [asdict(one) for one in plan.paused],
        "unplaced_jobs": [asdict(one) for one in plan.unplaced],
        "needs": [
            {
                "name": name,
                "cores": sum(part.cores for part in parts.values()),
                "runs": list(parts),
                "next_best": None if (other := plan.next_best(parts)) is None else spared_as_json(other),
            }
            for name, parts in plan.parts.items()
        ],
        "users": [
            {
                **_some(user, "account", "user", "cores", "cores_given"),
                "cores_later": user.later,
                **_some(user, "limit", "request"),
                "orders": [{**order_as_json(one), "price": user.prices.get(one.pilot.run)} for one in user.orders],
                "spared": [spared_as_json(one) for one in user.spared],
                **({"returns": [part_as_json(one) for one in user.returns]} if user.returns else {}),
            }
            for user in plan.users
        ],
        "withdrawals": [withdrawal_as_json(one) for one in plan.withdrawals],
        **({"asked_no_more": [one.run for one in plan.asked_no_more]} if plan.asked_no_more else {}),
    }


def withdrawal_as_json(one: Withdrawal) -> dict[str, object]:
    """Return one order that is to be withdrawn as plain values."""
    pilot, why = one.pilot, _some(one, "saved", "reason")
    return {**_some(pilot, *_WHOSE), "ordered_deadline": pilot.deadline, **why, "instead": list(one.instead)}


def order_as_json(order: Order) -> dict[str, object]:
    """Return one order as plain values."""
    return {
        **candidate_as_json(order.candidate),
        "act": "vacate" if order.kind == KILL else "drain",
        **_some(order, "kind", "deadline", "cores_back"),
        "expected_waste": order.waste,
        **_some(order, "reason", "request"),
        "room": None if order.room is None else room_as_json(order.room),
        "instead_of": list(order.instead_of),
        **({"extra": order.extra} if order.extra else {}),
    }


def spared_as_json(one: Spared) -> dict[str, object]:
    """Return one pilot that is left alone as plain values."""
    return {**candidate_as_json(one.candidate), "reason": one.reason, "code": one.reason.code, "price": one.price}


def part_as_json(part: PartOrder) -> dict[str, object]:
    """Return one order for a part as plain values; cores_back null: not all of them are expected in time."""
    return {
        **candidate_as_json(part.candidate),
        "act": "return",
        "cores_returned": part.cores,
        "asked_in_all": part.in_all,
        **_some(part, "by", "chunk", "cores_back"),
        "expected_waste": part.waste,
        **_some(part, "reason", "stands"),
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
        **_some(pilot, *_WHOSE),
        "used_cpu": None if report is None else report.used_cpu,
        **_some(pilot, "started", "lease_end"),
        "heartbeat": None if report is None else report.heartbeat,
        "client": pilot.client,
        **_some(one, "standing", "rule"),
        "ends": one.ends or None,
        **_some(one, "remaining", "remaining_max", "draining_waste", "kill_waste"),
        "waste_if_drained": one.drained.waste,
        "options": [
            {"kind": way.kind, "expected_waste": way.waste, **_some(way, "deadline", "cores_back")}
            for way in one.options
        ],
        **_some(one, "priority_factor", "draining"),
        "ordered_deadline": pilot.deadline,
        **_some(pilot, "leaving", "cannot"),
        "identity": as_values(pilot.identity),
        **{name: cores for name in _NUMBERS if (cores := getattr(pilot, name))},
        **(_some(one, "billed", "unit") if one.unit != CORE_H else {}),
    }
