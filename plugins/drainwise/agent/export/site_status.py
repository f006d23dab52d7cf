"""Sum up for people what the agent sees, decides and does, as one static page and as JSON.

The status is plain values, bounded in size, with printable text alone.

Times are UNIX s, durations s, wastes core-seconds; null is not known. Every list says how many there are beside those
that it shows.
"""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from drainwise import __version__
from drainwise.agent.cycle import Cycle
from drainwise.agent.cycle_facts import CycleBasis, CycleOutcome, PoolView
from drainwise.common.printable import one_line
from drainwise.journal.event import Outcome
from drainwise.page.html_page import template_beside
from drainwise.pilotad.report import STANDINGS
from drainwise.pool.facts import Account, Pilot
from drainwise.pool.notices import UNKNOWN
from drainwise.reclaim.candidates import Candidate, Candidates, candidates_of
from drainwise.reclaim.plan import Order, Plan
from drainwise.reclaim.plan_json import balance_as_json
from drainwise.reclaim.seen_pilots import with_expected_ends, with_stuck

FORMAT = 1
"""The version of this document; it rises when a value changes its meaning or goes."""
MOST_ACTS = 50
"""Acts of earlier cycles that are kept."""
_MOST = 200
_MOST_NODES = 50
_LONGEST_NAME, _LONGEST_SENTENCE = 100, 500

Values = dict[str, object]


def page(status: Mapping[str, object]) -> str:
    """Return the whole page as HTML; status: as `SiteStatus` gives it. All its text is escaped."""
    return template_beside(__file__, "status.html.j2").render(status=status, now=status["time"])


def document(status: Mapping[str, object]) -> str:
    """Return the same as JSON, in ASCII."""
    return json.dumps(status, allow_nan=False) + "\n"


class SiteStatus:
    """The status of one agent. pool: its pool in words; pilots: most pilots that are shown."""

    def __init__(self, pool: str, policy: str, pilots: int) -> None:
        self._pool, self._policy, self._most = pool, policy, pilots
        self._acts: deque[Values] = deque(maxlen=MOST_ACTS)
        self._seen: Values = {"seen": None, "accounts": None, "pilots": None, "coverage": None}
        self._decided: Values = {"decided": None, "decision": None}

    def after(self, cycle: Cycle) -> Values:
        """Take in a cycle that has ended, and return the status; what it did not see is as it was last."""
        if cycle.outcome is not None:
            self._acts.extendleft(reversed(list(_acts(cycle.outcome, cycle.started))))
        if cycle.basis is not None and cycle.view is not None:
            self._seen = self._look(cycle.basis, cycle.view, cycle.outcome)
        if cycle.plan is not None:
            self._policy = cycle.plan.policy
            self._decided = {"decided": cycle.started, "decision": _decision(cycle.plan, cycle.outcome)}
        return {
            "format": FORMAT,
            "version": __version__,
            "pool": _name(self._pool),
            "policy": self._policy,
            "time": cycle.started,
            "next_cycle": round(cycle.started + cycle.seconds + cycle.next_in),
            "state": cycle.state,
            "why": _sentence(cycle.why),
            "fault": _sentence(cycle.fault) or None,
            "acting": cycle.acting,
            "kill_switch": cycle.kill_switch or None,
            **self._seen,
            **self._decided,
            "acts": list(self._acts),
        }

    def _look(self, basis: CycleBasis, view: PoolView, outcome: CycleOutcome | None) -> Values:
        seen, now, settings, history = basis.snapshot, basis.now, basis.settings, basis.history
        seen = with_stuck(with_expected_ends(seen, history.run_times, now), now, settings.stuck)
        acts = () if outcome is None else outcome.acts
        ordered = {act.order.pilot.run: act.order.deadline for act in acts if act.outcome == Outcome.DONE}
        pilots = [replace(one, deadline=ordered[one.run]) if one.run in ordered else one for one in seen.pilots]
        found = candidates_of(pilots, now, settings, history)
        shown = [_pilot(found[row], now) for row in _first(found, self._most)]
        accounts = sorted(seen.accounts, key=lambda one: (-one.cores_in_use, -one.cores_wanted, one.name))
        return {
            "seen": now,
            "accounts": _bounded([_account(one) for one in accounts[:_MOST]], len(accounts)),
            "pilots": {**_bounded(shown, len(pilots)), "cores": sum(one.cores for one in pilots)},
            "coverage": _coverage(view),
        }


def _first(found: Candidates, most: int) -> list[int]:
    """Return the rows to show: those on their way out, then those that waste the least for each core."""
    stays = np.array([one.deadline is None and not one.leaving for one in found.pilots], dtype=bool)
    per_core = found.figures.least / np.maximum(found.sizes, 1)
    rows: list[int] = np.lexsort((per_core, stays))[:most].tolist()
    return rows


def _pilot(one: Candidate, now: int) -> Values:
    pilot, report, ways = one.pilot, one.pilot.report, one.options
    state = "leaving" if pilot.leaving else "draining" if one.draining else "running"
    return {
        **_whose(pilot),
        "node": _name(pilot.node),
        "client": pilot.client,
        "state": state if pilot.deadline is None else "ordered",
        "deadline": pilot.deadline,
        "standing": one.standing,
        "report_age": None if report is None else now - report.heartbeat,
        "rule": _sentence(one.rule),
        **{name: getattr(one, name) for name in ("remaining", "draining_waste", "kill_waste")},
        "least_waste": ways[0].waste if ways else None,
        "cannot": _sentence(pilot.cannot) or None,
    }


def _account(one: Account) -> Values:
    figures = {
        "in_use": one.cores_in_use,
        "owed": one.cores_owed,
        "wanted": one.cores_wanted,
        "over": one.cores_in_use - one.cores_owed,
        "priority": one.priority,
    }
    known = {name: figure if math.isfinite(figure) else None for name, figure in figures.items()}
    return {"account": _name(one.name), **known}


def _coverage(view: PoolView) -> Values:
    versions = sorted(view.versions, key=lambda one: -one[1])
    return {
        "standings": [
            {"standing": name, "pilots": view.pilots.get(name, 0), "cores": view.cores.get(name, 0)}
            for name in STANDINGS
        ],
        "silent_nodes": _bounded([_name(one) for one in view.silent[:_MOST_NODES]], len(view.silent)),
        "versions": _bounded(
            [{"version": _name(version or UNKNOWN), "nodes": nodes} for version, nodes in versions[:_MOST_NODES]],
            len(versions),
        ),
        "open_orders": view.open_orders,
        "overdue_orders": view.overdue,
        "returned_cores": view.returned,
    }


def _decision(plan: Plan, outcome: CycleOutcome | None) -> Values:
    orders = plan.orders
    became = {} if outcome is None else {act.order.pilot.run: act.outcome for act in outcome.acts}
    return {
        "summary": _sentence(plan.summary),
        "notices": _bounded([_sentence(one) for one in plan.notices[:_MOST_NODES]], len(plan.notices)),
        "cores": balance_as_json(plan.balance),
        "expected_waste": plan.waste,
        "orders": _bounded([_order(one, became) for one in orders[:_MOST]], len(orders)),
        "withdrawals": len(plan.withdrawals),
    }


def _order(order: Order, became: Mapping[str, str]) -> Values:
    return {
        **_whose(order.pilot),
        "way": order.kind,
        "deadline": order.deadline,
        "expected_waste": order.waste,
        "reason": _sentence(order.reason),
        "outcome": became.get(order.pilot.run),
    }


def _acts(outcome: CycleOutcome, now: int) -> Iterator[Values]:
    """Yield what was done, or failed; an order that was skipped as its reason had gone is none."""
    for kind, acts in (("order", outcome.acts), ("withdrawal", outcome.withdrawn), ("part", outcome.parts)):
        for act in acts:
            if act.outcome != Outcome.SKIPPED:
                became = {"outcome": act.outcome, "detail": _sentence(act.detail)}
                reason = "" if kind == "part" else _sentence(act.order.reason)
                yield {"time": now, "act": kind, **_whose(act.order.pilot), **became, "reason": reason}


def _whose(pilot: Pilot) -> Values:
    names = {"pilot": pilot.name, "user": pilot.user, "account": pilot.account}
    return {**{key: _name(name) for key, name in names.items()}, "cores": pilot.cores}


def _bounded(shown: Sequence[object], count: int) -> Values:
    return {"count": count, "shown": shown}


def _name(text: str) -> str:
    return one_line(text, _LONGEST_NAME)


def _sentence(text: str) -> str:
    return one_line(text, _LONGEST_SENTENCE)
