"""`drainwise snapshot` writes what `drainwise plan --snapshot` reads, and the same questions have the same answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from drainwise.cli.main import main

if TYPE_CHECKING:
    from .conftest import AlicesPool


@pytest.fixture
def saved(pool: AlicesPool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """A file that `drainwise snapshot` wrote; the pool itself does not answer any more."""
    assert main(["snapshot"]) == 0
    file = tmp_path / "snapshot.json"
    file.write_text(capsys.readouterr().out)
    pool.go_away()
    return str(file)


def planned(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main(["plan", "--json", *words]) == 0
    return json.loads(capsys.readouterr().out)


def asked(plan: Any) -> list[str]:
    return [order["name"] for user in plan["users"] for order in user["orders"]]


def test_a_plan_from_a_snapshot_is_the_plan_of_the_pool(
    pool: AlicesPool, saved: str, capsys: pytest.CaptureFixture[str]
) -> None:
    again = planned(capsys, "--snapshot", saved)
    pool.faults.clear()
    now = planned(capsys)
    assert asked(again) == asked(now) == ["slot1_1@node1", "slot1_2@node1"]
    assert pool.orders == []


def test_what_if_so_many_cores_were_needed(saved: str, capsys: pytest.CaptureFixture[str]) -> None:
    plan = planned(capsys, "--snapshot", saved, "--cores", "8")
    assert (asked(plan), plan["cores"]["deficit"]) == (["slot1_1@node1"], 8)
    for name in ("alice", "alice@pool"):
        everything = planned(capsys, "--snapshot", saved, "--cores", "32", "--user", name)
        assert len(asked(everything)) == 4


def test_every_policy_and_any_horizon_can_be_asked_about(saved: str, capsys: pytest.CaptureFixture[str]) -> None:
    quick = planned(capsys, "--snapshot", saved, "--cores", "8", "--horizon", "900")
    assert [way["kind"] for way in quick["users"][0]["orders"][0]["options"]] == ["cut"]
    long = planned(capsys, "--snapshot", saved, "--cores", "8", "--horizon", "2h")
    [order] = long["users"][0]["orders"]
    run = order["deadline"] - long["taken"] + 600
    assert order["kind"] == "leave"
    assert long["expected_waste"] == pytest.approx(1000 + 0.1 * 7 * run, abs=1), "one promise in ten is broken"
    for policy in ("least-kill", "youngest-first", "paper"):
        plan = planned(capsys, "--snapshot", saved, "--cores", "16", "--policy", policy)
        assert (plan["policy"], len(asked(plan))) == (policy, 2)


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["--snapshot", "/nonexistent"], "/nonexistent: No such file or directory"),
        (["--snapshot", "SAVED", "--by", "+1h"], "--by needs --cores"),
        (["--snapshot", "SAVED", "--user", "bob"], "no user with pilots is called 'bob'"),
        (["--snapshot", "SAVED", "--cores", "8", "--user", "bob"], "no user with pilots is called 'bob'"),
        (["--snapshot", "BROKEN"], "not JSON"),
        (["--snapshot", "OTHER"], "this is not a snapshot; `drainwise snapshot` writes one"),
    ],
)
def test_what_cannot_be_planned_is_one_line_and_ends_with_2(
    words: list[str], fault: str, saved: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken").write_text('{"format"')
    (tmp_path / "other").write_text("[1]")
    places = {"SAVED": saved, "BROKEN": str(tmp_path / "broken"), "OTHER": str(tmp_path / "other")}
    assert main(["plan", *(places.get(word, word) for word in words)]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert fault in err


@pytest.mark.parametrize("words", [["--cores", "0"], ["--cores", "1e3"], ["--cores", "9" * 99], ["--horizon", "soon"]])
def test_a_number_that_is_none_is_wrong_usage(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["plan", *words])
    assert end.value.code == 2


def test_a_pool_that_does_not_answer_is_one_line(pool: AlicesPool, capsys: pytest.CaptureFixture[str]) -> None:
    """HOSTILE 54."""
    pool.go_away()
    assert main(["snapshot"]) == 1
    assert capsys.readouterr() == ("", "drainwise: the collector did not answer within 8 s\n")


def test_names_cannot_speak_to_the_terminal(pool: AlicesPool, capsys: pytest.CaptureFixture[str]) -> None:
    """HOSTILE 41: what a user wrote is escaped."""
    pool.user = "al\x1b]0;x\x07\u202e@pool"
    assert main(["snapshot"]) == 0
    assert all(line.isprintable() for line in capsys.readouterr().out.splitlines())


@pytest.mark.parametrize(("key", "value"), [("deadline", 1 << 62), ("user", "al\ud800"), ("started", -(1 << 62))])
def test_an_odd_value_in_a_saved_snapshot_is_planned_with_or_refused(
    key: str, value: object, saved: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A deadline beyond all calendars, a name that no encoding has: never a fault of our own."""
    found = json.loads(Path(saved).read_text())
    for pilot in found["pilots"]:
        pilot[key] = value
    Path(saved).write_text(json.dumps(found))
    for more in ([], ["--cores", "8"], ["--json"]):
        assert main(["plan", "--snapshot", saved, *more]) in {0, 2}
        assert "fault of drainwise itself" not in capsys.readouterr().err
