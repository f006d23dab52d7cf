"""A day of orders as the journal tells it: through the real plan, events and memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from drainwise.journal.entries import decision_event, order_event
from drainwise.journal.event import Event, Outcome
from drainwise.journal.file import journal_line
from drainwise.journal.memory import Memory
from drainwise.pilotad.report import PilotReport
from drainwise.pool.facts import Account, Pilot, Snapshot
from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.plan import Plan
from drainwise.reclaim.settings import ReclaimSettings

NOW = 1795249000  # 2026-11-21 08:16:40Z
STARTED = NOW - 20_000
RULES = ReclaimSettings(
    policy="least-waste",
    horizon=7200,
    grace=7200,
    max_grace=86400,
    heartbeat_limit=3600,
    max_cores=1000,
    max_cores_per_user=1000,
    max_cores_per_user_hour=1000,
    drain_only=False,
)


def report(used: float, heartbeat: int = NOW - 60, leaves: int = NOW + 2000) -> PilotReport:
    """A pilot of 8 cores whose payloads end 1000 s before it leaves, and when it does."""
    return PilotReport(
        heartbeat,
        used_cpu=used,
        last_job_start=NOW - 1000,
        first_exp_job_end=leaves - 1000,
        last_exp_job_end=leaves,
        add_uncom_time=0.0,
        add_final_exp_waste=(8 - used) * 1000,
        can_postpone_last_job=True,
    )


def pilot(number: int, said: PilotReport | None, user: str = "alice", cores: int = 8) -> Pilot:
    """A pilot that has run for 20,000 s."""
    run = f"ce#{number}.0#{STARTED - 9}@{STARTED}"
    return Pilot(run, f"slot1_{number}@node1", "node1", "group_a", user, cores, STARTED, report=said)


def snapshot(*pilots: Pilot, deficit: int = 16, taken: int = NOW) -> Snapshot:
    """Bob is owed `deficit` cores in jobs of 8; by so many alice is over."""
    held = sum(one.cores for one in pilots)
    accounts = (
        Account("group_a", held, max(0, held - deficit), 0.0, 900.0),
        Account("group_b", 0.0, deficit, deficit, 500.0, 8.0),
    )
    return Snapshot(taken, pilots, accounts, 0.0, {"alice": 900.0})


FIRST, SECOND, THIRD = pilot(1, report(8.0)), pilot(2, report(7.0)), pilot(3, report(6.0))
BEFORE = snapshot(FIRST, SECOND, THIRD)


class Lines:
    """A journal in memory."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def write(self, event: Mapping[str, object]) -> None:
        self.events.append(event)

    @property
    def text(self) -> str:
        return "".join(journal_line(event) for event in self.events)


def plan_of(facts: Snapshot = BEFORE, settings: ReclaimSettings = RULES, now: int = NOW) -> Plan:
    return make_plan(facts, now, settings)


def decision(facts: Snapshot = BEFORE, acting: bool = True, now: int = NOW) -> dict[str, object]:
    return decision_event(plan_of(facts, now=now), facts, acting, now)


def orders(facts: Snapshot = BEFORE, outcome: str = Outcome.DONE, now: int = NOW) -> list[dict[str, object]]:
    plan = plan_of(facts, now=now)
    return [order_event(order, outcome, f"said {outcome}", plan, now) for order in plan.orders]


def remembering(*events: Event) -> Memory:
    memory = Memory()
    for event in events:
        memory.note(event)
    return memory


def ordered(one: Pilot, deadline: int = NOW + 2900) -> Pilot:
    """The same pilot as the pool shows it after an order."""
    return dataclasses.replace(one, deadline=deadline)
