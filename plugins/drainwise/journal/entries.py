"""The events of the journal, version 1: plain values, times in UNIX s, wastes in core-seconds, null where not known.

Each begins with `event`, `version` and `time`, in this order, so that a reader may pass over lines it does not need.
"""

from __future__ import annotations

import dataclasses
import heapq
from collections.abc import Mapping
from typing import TYPE_CHECKING

from drainwise.journal.event import CANCEL, DECISION, DONE, ENDED, ORDER, STATE, TENDED, VERSION, Event
from drainwise.journal.outcomes import OpenOrder, claims_of, realised_waste
from drainwise.pilotad.report import FRESH
from drainwise.pool import Ending, Snapshot
from drainwise.reclaim.plan_json import candidate_as_json, order_as_json
from drainwise.reclaim.snapshot_json import snapshot_hash

if TYPE_CHECKING:
    from drainwise.reclaim.cancel import Cancel
    from drainwise.reclaim.plan import Order, Plan, UserPlan

MOST_SPARED = 200
"""So many spared pilots are written with their figures."""


def _event(kind: str, now: int, /, **values: object) -> dict[str, object]:
    return {"event": kind, "version": VERSION, "time": now, **values}


def decision_event(plan: Plan, snapshot: Snapshot, acting: bool, now: int) -> dict[str, object]:
    """What was decided at `now`, and why: written before anything is done, so that no act is without it.

    snapshot: see `snapshot_hash`. chosen: the orders. spared: those left alone that would have been the
    next, the least wasteful first, at most MOST_SPARED of `spared_count`. spared_runs: all of them, where the site lets
    protection run out.
    """
    balance = plan.balance
    more: dict[str, object] = {}
    giving = [user for user in plan.users if user.orders]
    if any(user.open.settings.trust.spared > 0 for user in giving):
        more["spared_runs"] = [
            {
                "principal": user.principal,
                "user": user.user,
                "runs": [user.open.pilots[row].run for row in user.spared_rows.tolist()],
            }
            for user in giving
        ]
    return _event(
        DECISION,
        now,
        acting=acting,
        taken=plan.taken,
        snapshot=snapshot_hash(snapshot),
        policy=plan.policy,
        summary=plan.summary,
        demand=balance.demand,
        free=balance.free,
        leaving=balance.leaving,
        surplus=balance.surplus,
        deficit=balance.deficit,
        expected_waste=plan.waste,
        waiting=[{"principal": name, "cores": cores} for name, cores in plan.waiting.items()],
        users=[
            {
                "principal": user.principal,
                "user": user.user,
                "cores": user.cores,
                "cores_given": user.cores_given,
                "cores_later": user.later,
                "limit": user.limit,
            }
            for user in plan.users
        ],
        chosen=[_order(order, plan.taken) for order in plan.orders],
        cancels=[one.pilot.run for one in plan.cancels],
        spared_count=sum(len(user.open) - len(user.orders) for user in plan.users),
        spared=_spared(plan.users),
        **more,
    )


def _spared(users: tuple[UserPlan, ...]) -> list[dict[str, object]]:
    def of_user(user: UserPlan) -> list[tuple[float, str, int, UserPlan]]:
        least, sizes = user.open.figures.least, user.open.sizes
        rows = user.spared_rows[:MOST_SPARED].tolist()
        return [(float(least[row] / sizes[row]), user.open.pilots[row].run, row, user) for row in rows]

    first = heapq.nsmallest(MOST_SPARED, (one for user in users for one in of_user(user)), key=lambda one: one[:2])
    found = (user.spared_at(row) for _, _, row, user in first)
    return [{**candidate_as_json(one.candidate), "reason": one.reason} for one in found]


def _order(order: Order, taken: int) -> dict[str, object]:
    claims = claims_of(order.pilot, taken) if order.candidate.standing == FRESH else None
    return {
        **order_as_json(order),
        "promised": order.promised,
        "claims": None if claims is None else dataclasses.asdict(claims),
    }


def order_event(order: Order, outcome: str, detail: str, plan: Plan, now: int) -> dict[str, object]:
    """What became of one order of a plan: DONE, SKIPPED or FAILED, and why."""
    head = {"outcome": outcome, "detail": detail, "policy": plan.policy, "deficit": plan.balance.deficit}
    return _event(ORDER, now, **head, taken=plan.taken, **_order(order, plan.taken))


def found_order_event(chosen: Mapping[str, object], decision: Mapping[str, object], now: int) -> dict[str, object]:
    """An order that was given by an agent that did not live to write it down: the pool shows that it stands.

    chosen: as the decision of that agent has it. The order counts from that decision's time.
    """
    head = {name: decision[name] for name in ("policy", "deficit", "taken")}
    detail = "found in the batch system: the agent ended before it could write this down"
    time = decision["time"]
    return {**_event(ORDER, now), "time": time, "outcome": DONE, "detail": detail, **head, "found": now, **chosen}


def found_failed_event(order: Event, now: int) -> dict[str, object]:
    """An order that was written down as failed and stands: who took it had not said so in time.

    order: its event. It counts from then.
    """
    detail = "found in the batch system: it stands, though it had failed"
    return {**order, "outcome": DONE, "detail": detail, "found": now}


def cancel_event(cancel: Cancel, outcome: str, detail: str, now: int) -> dict[str, object]:
    """What became of taking back one request; saved: core-seconds that going on should save."""
    pilot = cancel.pilot
    return _event(
        CANCEL,
        now,
        outcome=outcome,
        detail=detail,
        run=pilot.run,
        name=pilot.name,
        node=pilot.node,
        principal=pilot.principal,
        user=pilot.user,
        cores=pilot.cores,
        asked_deadline=pilot.deadline,
        saved=cancel.saved,
        reason=cancel.reason,
    )


def found_cancel_event(order: OpenOrder, now: int) -> dict[str, object]:
    """A request that the batch system does not show any more: taken back, by us or somebody else, and not written."""
    names = ("run", "name", "node", "principal", "user", "cores")
    facts = {name: getattr(order, name) for name in names}
    detail = "found in the batch system: the request does not stand any more"
    more = {"asked_deadline": order.deadline, "saved": None, "reason": "not known", "found": now}
    return _event(CANCEL, now, outcome=DONE, detail=detail, **facts, **more)


def tended_event(what: str, now: int) -> dict[str, object]:
    """Something that an earlier order left to do and that is finished now, in words."""
    return _event(TENDED, now, detail=what)


def state_event(state: str, why: str, now: int) -> dict[str, object]:
    """The agent's state has changed: in one word or two, and why."""
    return _event(STATE, now, state=state, why=why)


def ended_event(order: OpenOrder, ending: Ending, now: int) -> dict[str, object]:
    """What became of one pilot that had been asked; wastes as `outcomes` defines them.

    believed: whether it promised anything. cores_freed: cores that came back by its end.
    """
    realised, possible = realised_waste(order, ending)
    return _event(
        ENDED,
        now,
        run=order.run,
        name=order.name,
        node=order.node,
        principal=order.principal,
        user=order.user,
        cores=order.cores,
        started=order.started,
        asked=order.asked,
        deadline=order.deadline,
        kind=order.kind,
        ended=ending.ended,
        vacated=ending.vacated,
        cpu_seconds=ending.cpu_seconds,
        believed=order.claims is not None,
        predicted=order.predicted,
        realised=realised,
        possible=possible,
        cores_freed=order.cores,
    )
