"""`drainwise reclaim --cores` and `drainwise drain`: a dry run keeps nothing; what is kept is carried out once."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from drainwise.agent.lock import LOOP, AgentLock
from drainwise.cli.main import main
from drainwise.facts.errors import RightsRefused
from drainwise.htcondor.system import HTCondor
from drainwise.journal.remembered import unmet_event
from drainwise.pool.abilities import Closing
from drainwise.pool.facts import Snapshot
from drainwise.reclaim.unmet_demand import UnmetDemand

from .conftest import AlicesPool

CORES = ["reclaim", "--cores", "16", "--user", "alice", "--by", "+1h", "--reason", "the power"]
DRAIN = ["drain", "node1", "--by", "+1h", "--reason", "new disks"]


class KeepingPool(AlicesPool):
    """Shows the orders that it has got, and closes nodes."""

    def __init__(self) -> None:
        super().__init__()
        self.closed: list[tuple[str, ...]] = []

    def snapshot(self, now: int) -> Snapshot:
        shown = super().snapshot(now)
        orders = {run: deadline for run, deadline in self.orders if run not in self.runs("withdrawn")}
        return replace(shown, pilots=tuple(replace(one, deadline=orders.get(one.run)) for one in shown.pilots))

    def close_nodes(self, closings: Sequence[Closing], snapshot: Snapshot, now: int) -> list[str]:
        self.called("close_nodes")
        names = tuple(one.name for one in closings)
        if names == (self.closed[-1] if self.closed else ()):
            return []
        self.closed.append(names)
        return [f"{', '.join(names) or 'nothing'} is closed"]


@pytest.fixture
def kept(pool: AlicesPool) -> KeepingPool:
    """The pool that the commands open, in the surroundings of `pool`."""
    memory = KeepingPool()
    cast("Any", HTCondor.open_pool).return_value = memory
    return memory


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[AgentLock]:
    """An agent that goes on has the lock."""
    lock = AgentLock(str(tmp_path / "agent.lock"), LOOP)
    lock.must_take()
    yield lock
    lock.release()


def answer(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> Any:
    """What a command prints as JSON."""
    capsys.readouterr()
    assert main([*words, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def files(place: Path) -> list[str]:
    """The requests that are kept."""
    directory = place / "agent.requests"
    return sorted(os.listdir(directory)) if directory.exists() else []


def events(place: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (place / "agent.journal").read_text().splitlines()]


def ordered(shown: Any) -> set[str]:
    return {order["run"] for user in shown["users"] for order in user["orders"]}


@pytest.mark.parametrize("words", [CORES, DRAIN])
def test_a_dry_run_orders_nothing_and_keeps_nothing(
    kept: KeepingPool, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "dry run: nothing was ordered; --act orders it" in out
    assert "2 pilots with 16 cores" in out or "4 pilots with 32 cores" in out
    assert (kept.orders, kept.closed, files(tmp_path)) == ([], [], [])


def test_with_act_the_least_wasteful_are_ordered_whatever_is_owed_and_it_is_kept(
    kept: KeepingPool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same pilots as in the dry run and in the plan."""
    planned = ordered(answer(capsys, "plan", *CORES[1:-2]))
    assert planned == ordered(answer(capsys, *CORES))
    shown = answer(capsys, *CORES, "--act")
    assert {run for run, _ in kept.orders} == ordered(shown) == planned
    assert len(planned) == 2
    name = shown["request"]["name"]
    assert files(tmp_path) == [f"{name}.json"]
    by = shown["request"]["by"]
    assert all(deadline <= by for _, deadline in kept.orders)
    happened = events(tmp_path)
    assert [event["event"] for event in happened] == ["pilots", "need", "decision", "order", "order"]
    _, _, decision, *orders = happened
    [request] = decision["requests"]
    assert (request["name"], request["reason"], request["cores"], request["user"]) == (name, "the power", 16, "alice")
    assert {one["request"] for one in orders} == {name}
    again = answer(capsys, "reclaim", "--once", "--act")
    assert again["users"] == [], "what it has got is not ordered again, and is less that she holds beyond her quota"


def test_explain_says_for_which_request(kept: KeepingPool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(capsys, *DRAIN, "--act")["acts"]
    journal = str(tmp_path / "agent.journal")
    assert main(["explain", "slot1_1@node1", "--journal", journal]) == 0
    out = capsys.readouterr().out
    assert "for request 20" in out
    assert " of root, made " in out
    assert "node1 empty by " in out
    assert "new disks" in out
    lines = [one for one in events(tmp_path) if one["event"] != "decision"]
    (tmp_path / "agent.journal").write_text("".join(f"{json.dumps(one)}\n" for one in lines))
    assert main(["explain", "slot1_1@node1", "--journal", journal]) == 0
    assert "a request, or nodes that the batch system closes" in capsys.readouterr().out, "its decision is lost"


def test_a_node_is_left_by_all_its_pilots_at_the_time_and_is_closed(
    kept: KeepingPool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = answer(capsys, *DRAIN, "--act")
    by, name = shown["request"]["by"], shown["request"]["name"]
    assert [deadline for _, deadline in kept.orders] == [by] * 4
    assert kept.closed == [(name,)]
    assert shown["followups"] == [f"{name} is closed"]
    assert "followup" in {one["event"] for one in events(tmp_path)}
    assert "the request stands" in shown["notes"][0] and "no agent acts on this pool" in shown["notes"][1]


def test_a_pool_that_cannot_close_nodes_says_so(pool: AlicesPool, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(DRAIN) == 0
    assert "this batch system is not made to close nodes" in capsys.readouterr().out
    assert main(CORES) == 0
    assert "not made to close nodes" not in capsys.readouterr().out


def test_rights_that_are_missing_for_closing_are_said_and_the_pilots_get_their_orders(
    kept: KeepingPool, capsys: pytest.CaptureFixture[str]
) -> None:
    kept.fail(RightsRefused("scontrol refused: orders need root"), "close_nodes")
    assert main([*DRAIN, "--act"]) == 1
    assert "scontrol refused: orders need root" in capsys.readouterr().out
    assert len(kept.orders) == 4


@pytest.mark.parametrize("words", [CORES, DRAIN])
def test_one_that_is_cancelled_gives_the_leases_back_though_somebody_waits(
    kept: KeepingPool, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    name = answer(capsys, *words, "--act")["request"]["name"]
    shown = answer(capsys, words[0], "--cancel", name)
    assert {one["outcome"] for one in shown["withdrawn"]} == {"done"}
    assert sorted(kept.runs("withdrawn")) == sorted(kept.runs())
    assert files(tmp_path) == []
    assert kept.closed[-1:] in ([], [()])
    assert main([words[0], "--cancel", name]) == 2
    assert f"no request is called '{name}'; there is none" in capsys.readouterr().err


def test_an_order_of_another_reason_is_not_withdrawn_with_it(
    kept: KeepingPool, capsys: pytest.CaptureFixture[str]
) -> None:
    answer(capsys, "reclaim", "--once", "--act")
    before = kept.runs()
    name = answer(capsys, *CORES, "--act")["request"]["name"]
    answer(capsys, "reclaim", "--cancel", name)
    assert sorted(kept.runs("withdrawn")) == sorted(set(kept.runs()) - set(before))


def test_an_agent_that_has_the_lock_carries_it_out(
    kept: KeepingPool, loop: AgentLock, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = answer(capsys, *CORES, "--act")
    assert f"the agent (pid {os.getpid()}) carries that out in its next cycles" in shown["notes"][0]
    assert kept.orders == []
    loop.release()
    answer(capsys, "reclaim", "--once", "--act")
    orders = [one for one in events(tmp_path) if one["event"] == "order"]
    assert len([one for one in orders if one["request"] == shown["request"]["name"]]) == 2
    assert len(kept.orders) == 2
    loop.must_take()
    assert main(["reclaim", "--cancel", shown["request"]["name"]]) == 0
    assert "cancelled; the agent (pid " in capsys.readouterr().out
    assert kept.runs("withdrawn") == []


def test_a_pause_is_lifted_in_the_journal_or_by_the_agent(
    kept: KeepingPool, loop: AgentLock, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By whoever may act; an account that has none is refused with those that have one."""
    paused = UnmetDemand("b", failed=2, vain=16.0, since=1, until=4_000_000_000, held=16.0, held_jobs=2.0)
    with (tmp_path / "agent.journal").open("a") as journal:
        journal.write(json.dumps(unmet_event(paused, 1), separators=(",", ":")) + "\n")
    assert main(["reclaim", "--resume-demand", "c"]) == 2
    assert "--resume-demand 'c': no round failed for it; rounds failed for b" in capsys.readouterr().err
    assert main(["reclaim", "--resume-demand", "b"]) == 0
    assert f"is to count again; the agent (pid {os.getpid()})" in capsys.readouterr().out
    loop.release()
    assert kept.orders == []
    answer(capsys, "reclaim", "--once", "--act")
    lines = [one for one in events(tmp_path) if one["event"] == "demand"]
    assert [one["failed"] for one in lines][:1] == [2]
    assert lines[-1]["failed"] == 0
    with (tmp_path / "agent.journal").open("a") as journal:
        journal.write(json.dumps(unmet_event(paused, 2), separators=(",", ":")) + "\n")
    assert answer(capsys, "reclaim", "--resume-demand", "b")["notes"] == ["all demand of b counts again"]
    assert [one for one in events(tmp_path) if one["event"] == "demand"][-1]["failed"] == 0


def test_a_command_waits_for_the_cycle_of_another_one(
    kept: KeepingPool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody else would carry it out."""
    lock = AgentLock(str(tmp_path / "agent.lock"))
    lock.must_take()
    timer = threading.Timer(0.3, lock.release)
    timer.start()
    assert len(answer(capsys, *CORES, "--act")["acts"]) == 2
    timer.join()


def test_while_the_kill_switch_is_there_nothing_is_kept_and_a_cancelled_one_is_cancelled(
    kept: KeepingPool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site, switch = tmp_path / "site.ini", tmp_path / "kill-switch"
    site.write_text(f"[agent]\nkill_switch = {switch}\n")
    own = ("--site", str(site))
    name = answer(capsys, *CORES, "--act", *own)["request"]["name"]
    switch.touch()
    assert main([*DRAIN, "--act", *own]) == 1
    assert f"paused by kill switch: nothing is ordered while {switch} is there" in capsys.readouterr().err
    assert files(tmp_path) == [f"{name}.json"]
    shown = answer(capsys, "reclaim", "--cancel", name, *own)
    assert f"its orders stand while {switch} is there" in shown["notes"][0]
    assert (kept.runs("withdrawn"), files(tmp_path)) == ([], [])
    switch.unlink()
    answer(capsys, "reclaim", "--once", "--act", *own)
    assert sorted(kept.runs("withdrawn")) == sorted(kept.runs()[:2])


def test_those_that_stand_are_listed_and_shown_in_the_plan(
    kept: KeepingPool, loop: AgentLock, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["drain", "--list"]) == 0
    assert capsys.readouterr().out == "no request stands\n"
    answer(capsys, *CORES, "--act")
    answer(capsys, *DRAIN, "--act")
    (tmp_path / "agent.requests" / "other.json").write_text("{}")
    shown = answer(capsys, "reclaim", "--list")
    [first, second], [note] = shown["requests"], shown["notes"]
    assert (first["cores"], second["nodes"]) == (16, ["node1"])
    assert "other.json is passed over" in note
    assert main(["drain", "--list"]) == 0
    assert "16 cores of user alice by " in capsys.readouterr().out
    requests = {user["request"] for user in answer(capsys, "plan")["users"]}
    assert second["name"] in requests, "what the next cycle does is what the plan shows"


def test_a_time_far_ahead_is_kept_and_the_orders_come_when_the_site_lets_them(
    kept: KeepingPool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    far = [*DRAIN[:3], "+90d"]
    shown = answer(capsys, *far)
    assert any("orders are given from " in one for one in shown["notices"])
    shown = answer(capsys, *far, "--act")
    assert (kept.orders, len(files(tmp_path)), shown["acts"]) == ([], 1, [])
    assert kept.closed == [(shown["request"]["name"],)], "it may be closed long before"


def test_a_pool_that_does_not_answer_is_one_line(kept: KeepingPool, capsys: pytest.CaptureFixture[str]) -> None:
    kept.go_away()
    for words in (CORES, DRAIN):
        assert main([*words, "--act"]) == 1
        assert capsys.readouterr() == ("", "drainwise: the collector did not answer within 8 s\n")


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["drain", "--by", "+1h"], "expected nodes"),
        (["drain", "node1"], "expected --by TIME"),
        (["drain", "node2", "--by", "+1h"], "is called 'node2'; there is node1"),
        (["drain", "node[1-", "--by", "+1h"], "expected a node, or a range"),
        (["drain", "node1", "--by", "soon"], "--by 'soon': expected UNIX seconds"),
        (["drain", "node1", "--by", "1"], "is over"),
        (["drain", "node1", "--list"], "go without nodes"),
        (["drain", "--cancel", "x", "--act"], "go without nodes"),
        (["drain", "--cancel", "x"], "no request is called 'x'"),
        (["reclaim", "--cores", "8", "--user", "nobody"], "no user with pilots is called 'nobody'"),
        (["reclaim", "--cores", "8", "--account", "none"], "no account with pilots is called 'none'"),
        (["reclaim", "--once", "--by", "+1h"], "go with --cores"),
        (["reclaim", "--once", "--act", "--user", "alice"], "every order is given"),
        (["reclaim", "--loop", "--limit", "3"], "every order is given"),
        (["reclaim", "--cores", "8", "--node", "node1"], "--node: it goes with --once"),
        (["reclaim", "--cores", "8", "--user", "alice", "--user", "bob"], "expected one of 'alice', 'bob'"),
        (["reclaim", "--list", "--reason", "x"], "go with --cores"),
        (["plan", "--by", "+1h"], "--by needs --cores"),
        (["plan", "--cores", "8", "--by", "+1h", "--horizon", "1h"], "expected one of them"),
        (["plan", "--cores", "8", "--by", "+1h", "--user", "nobody"], "no user with pilots is called 'nobody'"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_kept(
    kept: KeepingPool, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], fault: str
) -> None:
    act = ["--act"] if words[0] == "reclaim" and "--list" not in words else []
    assert main([*words, *act]) == 2
    assert fault in capsys.readouterr().err
    assert (kept.orders, files(tmp_path)) == ([], [])
