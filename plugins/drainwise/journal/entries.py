"""The events of the journal, version 2: plain values, times in UNIX s, wastes in core-seconds, null where not known.

Each begins with `event`, `version` and `time`, in this order, so that a reader may pass over lines it does not need.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from drainwise.facts.units import CORE_H
from drainwise.journal.event import Event, Kind, Outcome, new_event
from drainwise.journal.outcomes import EVER, OpenOrder, realised_waste
from drainwise.pilotad.partial_return import PartialReturn
from drainwise.pool.facts import Ending, Pilot, Snapshot
from drainwise.pool.identity import as_values
from drainwise.pool.snapshot_json import snapshot_hash
from drainwise.reclaim.candidates import KILL
from drainwise.reclaim.columns import claimed_values, saves_of
from drainwise.reclaim.plan_json import order_as_json, part_as_json, spared_as_json
from drainwise.requests.request import request_as_json

if TYPE_CHECKING:
    from drainwise.reclaim.plan import Order, Plan, UserPlan, Withdrawal
    from drainwise.requests.request import AdminRequest

MOST_SPARED = 200
"""Most spared pilots that are written with their figures."""
MOST_NODES = 50
"""Most nodes of a request that are written."""


_WHOSE = ("run", "name", "node", "account", "user", "cores")
"""The facts of a pilot by which readers find it."""


def _of(fact: object, *names: str) -> dict[str, object]:
    """Return these values of a fact, under the same names."""
    return {name: getattr(fact, name) for name in names}


def decision_event(
    plan: Plan, snapshot: Snapshot, acting: bool, now: int, requests: Sequence[AdminRequest] = ()
) -> dict[str, object]:
    """Return the event of the decision made at `now`; it is written before any act.

    snapshot: see `snapshot_hash`. chosen: the orders. spared: those left alone that would have been the
    next, the least wasteful first, at most MOST_SPARED of `spared_count`. requests: those that orders are for, of those
    that stand; of many nodes the first MOST_NODES.
    """
    served = {order.request for order in plan.orders}
    known = [_request(one) for one in requests if one.name in served]
    return new_event(
        Kind.DECISION,
        now,
        acting=acting,
        taken=plan.taken,
        snapshot=snapshot_hash(snapshot),
        policy=plan.policy,
        summary=plan.summary,
        **_of(plan.balance, "demand", "free", "leaving", "surplus", "deficit"),
        expected_waste=plan.waste,
        waiting=[{"account": name, "cores": cores} for name, cores in plan.waiting.items()],
        users=[
            {**_of(user, "account", "user", "cores", "cores_given"), "cores_later": user.later, "limit": user.limit}
            for user in plan.users
        ],
        chosen=[_order(order, plan.taken) for order in plan.orders],
        **({"returns": [part_as_json(one) for one in plan.returns]} if plan.returns else {}),
        withdrawals=[one.pilot.run for one in plan.withdrawals],
        spared_count=sum(len(user.open) - len(user.orders) - len(user.returns) for user in plan.users),
        spared=_spared(plan.users),
        **({"requests": known} if known else {}),
    )


def _request(request: AdminRequest) -> dict[str, object]:
    plain = request_as_json(request)
    names = ("name", "made", "who", "by", "reason", "cores", "user", "account")
    return {**{name: plain[name] for name in names}, "nodes": list(request.nodes[:MOST_NODES])}


def gist_of(decision: Event) -> object:
    """Return what makes a decision another one: time and figures alone do not."""

    def runs(name: str) -> list[object] | None:
        found = decision.get(name)
        return [one.get("run") for one in found if isinstance(one, dict)] if isinstance(found, list) else None

    return decision.get("policy"), decision.get("acting"), runs("chosen"), decision.get("withdrawals"), runs("returns")


def _spared(users: tuple[UserPlan, ...]) -> list[dict[str, object]]:
    def of_user(user: UserPlan) -> list[tuple[float, str, int, UserPlan]]:
        rows = [(row, user.open.pilots[row]) for row in user.spared_rows[:MOST_SPARED].tolist()]
        return [(user.prices[one.run] / one.cores, one.run, row, user) for row, one in rows]

    first = heapq.nsmallest(MOST_SPARED, (one for user in users for one in of_user(user)), key=lambda one: one[:2])
    return [spared_as_json(user.spared_at(row)) for _, _, row, user in first]


def _order(order: Order, taken: int) -> dict[str, object]:
    claims = claimed_values(order.pilot, taken, EVER) if order.candidate.remaining is not None else None
    said = None if claims is None else claims._asdict()
    plain = {**order_as_json(order), "promised": order.promised, "claims": said}
    if (saves := saves_of(order.pilot, taken, EVER)) is not None:
        plain["saves"] = {name: value for name, value in saves._asdict().items() if value < math.inf}
    return {**plain, "vacate": order.candidate.vacate} if order.candidate.vacate else plain


def order_event(order: Order, outcome: str, detail: str, plan: Plan, now: int, only: str = "") -> dict[str, object]:
    """Return the event of one order of a plan: its outcome, one of `event`, and why; only: as in `agent.act.Act`."""
    head = {"outcome": outcome, "detail": detail, **({"only": only} if only else {})}
    basis = {"policy": plan.policy, "deficit": plan.balance.deficit, "taken": plan.taken}
    return new_event(Kind.ORDER, now, **head, **basis, **_order(order, plan.taken))


def part_event(
    pilot: Pilot, wish: PartialReturn, outcome: str, detail: str, reason: str, waste: int, now: int, counted: int = 0
) -> dict[str, object]:
    """Return what became of asking a pilot to have returned some cores in all; waste: expected, in core-seconds.

    counted: of these the cores that are counted on, what it has returned included.
    """
    return new_event(
        Kind.PART,
        now,
        outcome=outcome,
        detail=detail,
        **_of(pilot, *_WHOSE, "started"),
        identity=as_values(pilot.identity),
        returned=pilot.returned,
        asked=wish.cores,
        by=wish.by,
        chunk=wish.chunk,
        counted=counted,
        expected_waste=waste,
        reason=reason,
    )


def found_order_event(chosen: Mapping[str, object], decision: Mapping[str, object], now: int) -> dict[str, object]:
    """Return the event of an order that stands and that its agent was killed before writing.

    chosen: as the decision of that agent has it. The order counts from that decision's time.
    """
    head = {name: decision.get(name) for name in ("policy", "deficit", "taken")}
    detail, time = "found in the batch system: the agent ended before it could write this down", decision["time"]
    return {
        **new_event(Kind.ORDER, now, outcome=Outcome.DONE, detail=detail, **head, found=now),
        **chosen,
        "time": time,
    }


def found_late_event(order: Event, now: int) -> dict[str, object]:
    """Return the event of an order that stands, though nobody had answered it or it was written as failed.

    order: its event. It counts from then.
    """
    detail = "found in the batch system: it stands, though nobody had answered it"
    return {**order, "outcome": Outcome.DONE, "detail": detail, "found": now}


def not_done_event(order: Event, why: str, now: int) -> dict[str, object]:
    """Return the event of an unanswered `order` that counts as not carried out from `now` (UNIX s) on."""
    return {**order, "outcome": Outcome.NOT_DONE, "detail": why, "found": now}


def withdrawal_event(withdrawal: Withdrawal, outcome: str, detail: str, now: int) -> dict[str, object]:
    """Return what became of withdrawing one order; saved: core-seconds that going on should save.

    draining: whether the pilot had begun to drain; null where it does not say so.
    """
    pilot = withdrawal.pilot
    postpones = None if pilot.report is None else pilot.report.can_postpone_last_job
    return new_event(
        Kind.WITHDRAWAL,
        now,
        outcome=outcome,
        detail=detail,
        **_of(pilot, *_WHOSE),
        ordered_deadline=pilot.deadline,
        saved=withdrawal.saved,
        reason=withdrawal.reason,
        instead=list(withdrawal.instead),
        draining=None if postpones is None else not postpones,
    )


def found_withdrawal_event(order: OpenOrder, now: int) -> dict[str, object]:
    """Return the event of an order that the batch system shows no more: withdrawn by anybody, and not written."""
    detail = "found in the batch system: the order does not stand any more"
    more = {"ordered_deadline": order.deadline, "saved": None, "reason": "not known", "found": now}
    return new_event(Kind.WITHDRAWAL, now, outcome=Outcome.DONE, detail=detail, **_of(order, *_WHOSE), **more)


def need_event(since: Mapping[str, int], now: int) -> dict[str, object]:
    """Return the event that replaces all earlier ones of its kind; since: when each account's need opened, UNIX s."""
    return new_event(Kind.NEED, now, since=[{"account": name, "since": time} for name, time in sorted(since.items())])


def followup_event(what: str, now: int) -> dict[str, object]:
    """Return the event of one follow-up; what: the thing finished now, in words."""
    return new_event(Kind.FOLLOWUP, now, detail=what)


def state_event(state: str, why: str, now: int) -> dict[str, object]:
    """Return the event of a change of the agent's state, and why."""
    return new_event(Kind.STATE, now, state=state, why=why)


def ended_event(order: OpenOrder, ending: Ending, now: int) -> dict[str, object]:
    """Return the event of the end of one pilot that got an order; wastes as `outcomes` defines them.

    believed: whether it promised anything. cores_freed: cores that came back by its end. by_others: an administrator
    or a fault of its node ended it before its deadline, and the order was not to end it at once: that says nothing of
    what it promised.
    """
    realised, possible = realised_waste(order, ending)
    return new_event(
        Kind.ENDED,
        now,
        **_of(order, *_WHOSE, "started", "ordered", "deadline", "kind"),
        ended=ending.ended,
        vacated=ending.vacated,
        by_others=ending.by_others and order.kind != KILL and ending.ended < order.deadline,
        cpu_seconds=ending.cpu_seconds,
        believed=order.claims is not None,
        predicted=order.predicted,
        realised=realised,
        possible=possible,
        cores_freed=order.cores,
        **({"billed": order.billed, "unit": order.unit} if order.unit != CORE_H else {}),
    )
