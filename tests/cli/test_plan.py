"""`drainwise plan` shows what a cycle would do, with reasons, and touches nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from drainwise.cli.main import main

if TYPE_CHECKING:
    from .conftest import AlicesPool


def test_chosen_and_spared_each_with_its_reason(pool: AlicesPool, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan"]) == 0
    shown = capsys.readouterr().out
    assert "policy open-need: 2 pilots give back 16 of 16 cores at an expected waste of 2.04 core-h" in shown
    lines = {line.split()[0]: line for line in shown.splitlines() if line.startswith("slot1_")}
    assert lines["slot1_1@node1"].split()[1:8] == ["8", "leave", "42m45s", "16m40s", "2h", "0.893", "core-h"]
    assert (
        "leaves by itself in 16m40s: 0.278 core-h idle until then, 0.616 core-h for the chance that it does not leave;"
        " in the least wasteful set" in lines["slot1_1@node1"]
    )
    assert lines["slot1_2@node1"].split()[1:8] == ["8", "cut", "16m5s", "16m5s", "2h", "1.14", "core-h"]
    assert "cut in 16m5s: 1.14 core-h idle until then or lost there; in the least" in lines["slot1_2@node1"]
    assert lines["slot1_3@node1"].split()[1:8] == ["8", "spare", "-", "-", "-", "1.27", "core-h"]
    assert (
        "not needed; with an order: leaves by itself in 16m40s: 0.833 core-h idle until then,"
        " 0.439 core-h for the chance that it does not leave" in lines["slot1_3@node1"]
    )
    assert lines["slot1_4@node1"].split()[1:8] == ["8", "spare", "-", "-", "-", "16.8", "core-h"]
    assert "not needed; with an order: it reports nothing; 8 cores x 2h16m run time" in lines["slot1_4@node1"]
    assert "no pilot is killed at once ([reclaim] drain_only), whatever its kill waste" in shown
    assert pool.orders == []


def test_a_pilot_is_killed_only_where_the_site_says_so(
    pool: AlicesPool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Although ending it at once would waste less."""
    site = tmp_path / "site.ini"
    site.write_text("[reclaim]\npolicy = least-waste\ndrain_only = no\n")
    assert main(["plan", "--site", str(site)]) == 0
    shown = capsys.readouterr().out
    assert "2 pilots give back 16 of 16 cores at an expected waste of 1.17 core-h" in shown
    [line] = [line for line in shown.splitlines() if line.startswith("slot1_2@node1")]
    assert line.split()[2:5] == ["kill", "0s", "0s"]
    assert "no pilot is killed at once" not in shown
    assert "killed: 0.333 core-h of running payloads lost; in the least wasteful set" in line


def test_a_policy_to_compare_with_kills_in_a_plan_and_nowhere_else(
    pool: AlicesPool, capsys: pytest.CaptureFixture[str]
) -> None:
    def kinds(*words: str) -> set[str]:
        assert main([*words, "--json", "--policy", "youngest-first"]) == 0
        return {order["kind"] for user in json.loads(capsys.readouterr().out)["users"] for order in user["orders"]}

    assert kinds("plan") == {"kill"}
    assert "kill" not in kinds("reclaim", "--once")
    assert "kill" not in kinds("reclaim", "--once", "--act")
    assert len(pool.orders) == 2


def test_the_policy_can_be_named(pool: AlicesPool, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--policy", "paper"]) == 0
    assert "by draining waste those that can go in time, then by kill waste" in capsys.readouterr().out


def test_json(pool: AlicesPool, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [order["name"] for order in shown["users"][0]["orders"]] == ["slot1_1@node1", "slot1_2@node1"]
    assert pool.orders == []


def test_a_pool_that_does_not_answer_is_one_line(pool: AlicesPool, capsys: pytest.CaptureFixture[str]) -> None:
    pool.go_away()
    assert main(["plan", "--json"]) == 1
    assert capsys.readouterr() == ("", "drainwise: the collector did not answer within 8 s\n")


def test_an_impossible_site_file_ends_with_2(pool: AlicesPool, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--site", "/nonexistent.ini"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("drainwise: /nonexistent.ini: ")
    assert err.count("\n") == 1


def test_of_many_spared_pilots_some_are_shown_and_the_others_counted(
    pool: AlicesPool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A user of thousands of pilots fills no screen; --all and JSON have them all."""
    plan = ["plan", "--policy", "least-waste"]
    assert main(["snapshot"]) == 0
    snapshot = json.loads(capsys.readouterr().out)
    one = snapshot["pilots"][0]
    further = [{**one, "run": f"ce#{number}.0#1@1", "name": f"slot1_{number}@node1"} for number in range(100, 200)]
    saved = tmp_path / "snapshot.json"
    saved.write_text(json.dumps({**snapshot, "pilots": [*snapshot["pilots"], *further]}))
    assert main([*plan, "--snapshot", str(saved)]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert sum("  spare" in line for line in shown) == 50
    assert [line for line in shown if "more that are spared" in line] == [
        "and 52 more that are spared; plan --all shows them"
    ]
    assert main([*plan, "--all", "--snapshot", str(saved)]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert sum("  spare" in line for line in shown) == 102 and "more that are spared" not in "\n".join(shown)
    assert main([*plan, "--json", "--snapshot", str(saved)]) == 0
    [user] = json.loads(capsys.readouterr().out)["users"]
    assert len(user["spared"]) == 102
    assert pool.orders == []
