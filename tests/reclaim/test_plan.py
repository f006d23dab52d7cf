"""A plan for programs: plain values, nothing lost."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
import re
from pathlib import Path
from typing import Any

import pytest

from drainwise.facts.scope_rules import OUT_OF_SCOPE
from drainwise.reclaim import reasons
from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.history import PAUSE, History, NodeFault, why_closed
from drainwise.reclaim.plan_json import as_json
from drainwise.reclaim.reasons import REASONS

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


def test_each_need_has_its_next_best_and_each_pilot_its_price() -> None:
    plan = shown("least-waste", pilot(1, report(7.0)), pilot(2), pilot(3, report(6.0)), deficit=8)
    [user], [need] = plan["users"], plan["needs"]
    [order] = user["orders"]
    assert (need["name"], need["cores"], need["runs"]) == ("group_b", 8, [order["run"]])
    assert order["price"] == order["expected_waste"] == plan["expected_waste"]
    cheapest = min(user["spared"], key=lambda one: one["price"])
    assert need["next_best"] == cheapest and cheapest["price"] > order["price"] and cheapest["run"] == pilot(3).run


def test_a_need_that_no_other_pilot_can_serve_has_no_next_best() -> None:
    [need] = shown("least-waste", pilot(1), deficit=8)["needs"]
    assert need["next_best"] is None


FIRST = pilot(1)


@pytest.mark.parametrize(
    ("code", "changed", "history", "site"),
    [
        (reasons.RESERVED, {"reserved": True}, History(), {}),
        (reasons.ORDERED, {"deadline": NOW + 5}, History(), {}),
        (reasons.ENDING, {"leaving": True}, History(), {}),
        (reasons.SCOPE, {"cannot": f"{OUT_OF_SCOPE}: user bob"}, History(), {}),
        (reasons.CANNOT, {"cannot": "its node takes no orders yet"}, History(), {}),
        (reasons.LIMIT, {"cannot": "[reclaim] max_gpus_per_user_per_hour lets no more go"}, History(), {}),
        (reasons.EARLY, {"vacate": 9000}, History(), {}),
        (reasons.YOUNG, {"started": NOW}, History(), {"min_age": 60}),
        (reasons.WITHDRAWN, {}, History(withdrawn={FIRST.run: NOW + 1 - PAUSE}), {"policy": "open-need"}),
        (reasons.UNANSWERED, {"unanswered": NOW + 60}, History(), {}),
        (reasons.REFUSED, {}, History(failed={FIRST.run: NOW}), {}),
        (reasons.NODE, {}, History(nodes={FIRST.node: NodeFault(NOW, 1, denied=True)}), {}),
        (reasons.NODE, {}, History(nodes={FIRST.node: NodeFault(NOW, 1, denied=False)}), {}),
        (reasons.NODE, {}, History(nodes={FIRST.node: NodeFault(NOW, 2, denied=False)}), {}),
        ("", {}, History(), {}),
        (reasons.REFUSED, {}, History(failed={FIRST.run: NOW - 599}), {}),
        ("", {}, History(failed={FIRST.run: NOW - 600}), {}),
        (reasons.NODE, {}, History(nodes={FIRST.node: NodeFault(NOW - 599, 1, denied=True)}), {}),
        ("", {}, History(nodes={FIRST.node: NodeFault(NOW - 600, 1, denied=True)}), {}),
        (reasons.NODE, {}, History(nodes={FIRST.node: NodeFault(NOW - 1199, 2, denied=True)}), {}),
        ("", {}, History(nodes={FIRST.node: NodeFault(NOW - 1200, 2, denied=True)}), {}),
        (reasons.NODE, {}, History(nodes={FIRST.node: NodeFault(NOW - 19_199, 9, denied=True)}), {}),
        ("", {}, History(nodes={FIRST.node: NodeFault(NOW - 19_200, 9, denied=True)}), {}),
        ("", {}, History(nodes={FIRST.node: NodeFault(NOW - 600, 2, denied=False)}), {}),
        (reasons.NODE, {"heard": NOW - 9}, History(nodes={FIRST.node: NodeFault(NOW - 9, 1, denied=False)}), {}),
        ("", {"heard": NOW - 8}, History(nodes={FIRST.node: NodeFault(NOW - 9, 1, denied=False)}), {}),
        (reasons.NODE, {"heard": NOW - 8}, History(nodes={FIRST.node: NodeFault(NOW - 9, 2, denied=False)}), {}),
        (reasons.YOUNG, {"started": NOW - 59}, History(), {"min_age": 60}),
        ("", {"started": NOW - 60}, History(), {"min_age": 60}),
        ("", {"started": NOW - 5, "min_age": 5}, History(), {"min_age": 60}),
        ("", {}, History(withdrawn={FIRST.run: NOW - PAUSE}), {"policy": "open-need"}),
        ("", {}, History(withdrawn={FIRST.run: NOW}), {"policy": "least-waste"}),
    ],
)
def test_why_a_pilot_may_get_no_order_has_a_code(
    code: str, changed: dict[str, Any], history: History, site: dict[str, Any]
) -> None:
    one = why_closed(dataclasses.replace(FIRST, **changed), NOW, dataclasses.replace(SETTINGS, **site), history)
    assert (one.code, bool(one)) == (code, bool(code))


def test_what_was_not_chosen_has_a_code() -> None:
    """Not needed, or kept by a limit of a cycle: the sentence names it."""
    plan = shown("least-waste", pilot(1), pilot(2), deficit=8)
    assert [one["code"] for one in plan["users"][0]["spared"]] == [reasons.NOT_NEEDED]
    limited = dataclasses.replace(SETTINGS, max_cores=8)
    [user] = make_plan(snapshot(pilot(1), pilot(2), deficit=16), NOW, limited).users
    assert [one.reason.code for one in user.spared] == [reasons.LIMIT] and "max_cores_per_cycle" in user.spared[
        0
    ].reason


def test_a_reason_keeps_its_code_in_a_copy() -> None:
    """A plan may be copied, or sent to another process."""
    one = reasons.Reason("left alone", reasons.YOUNG)
    for again in (copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        assert (again, again.code) == (one, reasons.YOUNG)


def test_the_page_has_every_reason_by_its_code() -> None:
    page = (Path(__file__).parents[2] / "docs" / "troubleshoot.md").read_text()
    table = page.partition("### Why a pilot is spared\n")[2].partition("\n## ")[0]
    assert dict(re.findall(r"(?m)^\| `([a-z-]+)` \| (.+) \|$", table)) == REASONS


def test_a_kill_is_called_a_vacate() -> None:
    plan = shown("paper", pilot(1), deficit=8)
    assert [order["act"] for order in plan["users"][0]["orders"]] == ["vacate"]
