"""A plan for programs: plain values, nothing lost."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.plan_json import as_json

from .facts import NOW, SETTINGS, pilot, report, snapshot


def shown(policy: str, *pilots: Any, deficit: int) -> Any:
    plan = make_plan(snapshot(*pilots, deficit=deficit), NOW, dataclasses.replace(SETTINGS, policy=policy))
    return json.loads(json.dumps(as_json(plan), allow_nan=False))


def test_every_pilot_is_there_with_its_figures_and_its_reason() -> None:
    plan = shown("least-waste", pilot(1, report(7.0)), pilot(2), pilot(3, deadline=NOW + 5), deficit=16)
    [user] = plan["users"]
    [order] = user["orders"]
    assert (plan["policy"], plan["cores"]["deficit"], plan["cores"]["leaving"]) == ("least-waste", 8, 8)
    assert (order["run"], order["act"], order["deadline"]) == (pilot(1).run, "drain", NOW + 2900)
    assert (order["remaining"], order["draining_waste"], order["expected_waste"]) == (2000, 2000, 2000 + 2730)
    assert plan["expected_waste"] == 2000 + 2730
    silent, asked = user["spared"]
    assert (silent["run"], silent["standing"], silent["remaining"]) == (pilot(2).run, "silent", None)
    assert (asked["run"], asked["ordered_deadline"]) == (pilot(3).run, NOW + 5)
    assert all(one["reason"] for one in (order, silent, asked))


def test_a_kill_is_called_a_vacate() -> None:
    plan = shown("paper", pilot(1), deficit=8)
    assert [order["act"] for order in plan["users"][0]["orders"]] == ["vacate"]
