"""Pilots in which nothing works for hours: named and counted, and nothing else."""

from __future__ import annotations

from dataclasses import replace

from drainwise.pilotad.observation import Observation
from drainwise.pool.facts import Account, Pilot, Snapshot
from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.plan import Plan
from drainwise.reclaim.quota import WhatIf
from drainwise.reclaim.seen_pilots import is_stuck, stuck_pilots

from .facts import NOW, SETTINGS, pilot, report

RULES = SETTINGS.stuck
HOURS = RULES.after


def with_idle(one: Pilot, idle: int = HOURS, at: int = NOW - 60, payloads: int = 0) -> Pilot:
    return replace(one, seen=Observation("plain", at, payloads, 0.0, 0, idle))


def decided(*pilots: Pilot) -> Plan:
    accounts = (Account("group_a", 8.0 * len(pilots), 0, 0, 1.0),)
    return make_plan(Snapshot(NOW, pilots, accounts), NOW, SETTINGS, what_if=WhatIf(8))


def test_it_is_stuck_after_hours_without_a_payload() -> None:
    assert is_stuck(with_idle(pilot(1)), NOW, RULES)
    assert is_stuck(with_idle(pilot(1), HOURS - 60), NOW, RULES), "it was idle a minute ago as well"
    for other in (
        *(pilot(1), with_idle(pilot(1), HOURS - 61), with_idle(pilot(1), payloads=1)),
        *(with_idle(pilot(1, started=NOW - HOURS + 1)), with_idle(pilot(1), at=NOW - RULES.heartbeat_limit - 1)),
        with_idle(pilot(1), at=NOW + 1),
    ):
        assert not is_stuck(other, NOW, RULES)


def test_a_stuck_pilot_is_named_and_nothing_else_happens() -> None:
    """Its own report of eight busy cores protects it as before."""
    idle, cheap = with_idle(pilot(1, report(8.0, uncommitted=90_000))), pilot(2, report(1.0))
    plan = decided(idle, cheap)
    assert [order.pilot.run for user in plan.users for order in user.orders] == [cheap.run]
    [notice] = [one for one in plan.notices if "stuck" in one]
    assert idle.name in notice and "8 cores" in notice
    assert stuck_pilots(Snapshot(NOW, (idle, cheap), ()), NOW, RULES) == (idle,)


def test_nobody_gives_back_more_for_being_stuck() -> None:
    """The rule orders the pilots of one user: who gives back, and how many cores, stays."""
    busy = [pilot(number, report(8.0)) for number in range(3)]
    before = decided(*busy)
    after = decided(*map(with_idle, busy))
    assert [user.cores_given for user in after.users] == [user.cores_given for user in before.users] == [8]
