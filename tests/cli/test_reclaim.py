"""`drainwise reclaim`: a dry run unless told otherwise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from drainwise.agent.lock import AgentLock
from drainwise.cli.main import main
from drainwise.facts.errors import ActionRefused, PoolUnreachable, UsageError

if TYPE_CHECKING:
    from .conftest import AlicesPool


def orders_in(lines: str) -> list[dict[str, object]]:
    """The orders in a journal, which follow what was seen, their decision and what is remembered of their demand."""
    events = [json.loads(line) for line in lines.splitlines()]
    kinds = [event["event"] for event in events]
    orders = kinds.count("order")
    assert kinds == ["pilots", "need", "decision", "demand", *["order"] * orders]
    return events[len(events) - orders :]


def own_journal(place: Path) -> str:
    """What lies beside the lock."""
    return (place / "agent.journal").read_text()


def test_a_dry_run_is_the_default_and_says_so(pool: AlicesPool, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reclaim", "--once"]) == 0
    out, err = capsys.readouterr()
    assert out.rstrip().endswith("dry run: no order was given; --act gives these orders")
    assert err == ""
    assert pool.orders == []


def test_a_dry_run_says_so_in_json(pool: AlicesPool, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reclaim", "--once", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["dry_run"], shown["acts"], len(shown["users"][0]["orders"])) == (True, [], 2)


def test_with_act_the_orders_are_given_and_written_down(
    pool: AlicesPool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beside the lock, where nobody said where."""
    assert main(["reclaim", "--once", "--act", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    orders = {order["name"]: order["deadline"] for order in shown["users"][0]["orders"]}
    assert pool.orders == [(order["run"], order["deadline"]) for order in shown["users"][0]["orders"]]
    assert set(orders) == {"slot1_1@node1", "slot1_2@node1"}
    assert (shown["dry_run"], [act["outcome"] for act in shown["acts"]]) == (False, ["done", "done"])
    assert {order["name"] for order in orders_in(own_journal(tmp_path))} == set(orders)


def test_single_cycles_keep_the_limit_of_an_hour(
    pool: AlicesPool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As cron starts them, with no word on a journal."""
    site = tmp_path / "site.ini"
    site.write_text("[reclaim]\nmax_cores_per_user_per_hour = 8\n")
    for _ in range(3):
        assert main(["reclaim", "--once", "--act", "--site", str(site)]) == 0
    assert len(pool.orders) == 1
    capsys.readouterr()
    assert main(["reclaim", "--once", "--site", str(site), "--json"]) == 0
    assert "0 cores now" in json.loads(capsys.readouterr().out)["users"][0]["limit"]


def test_the_journal_can_be_a_file(pool: AlicesPool, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    journal = tmp_path / "journal"
    assert main(["reclaim", "--once", "--act", "--journal", str(journal)]) == 0
    assert [order["outcome"] for order in orders_in(journal.read_text())] == ["done", "done"]
    out, err = capfd.readouterr()
    assert "ordered to end by" in out
    assert err == ""


def test_a_journal_that_cannot_be_written_is_refused_before_anything_is_asked(
    pool: AlicesPool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reclaim", "--once", "--act", "--journal", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("drainwise: the journal ")
    assert pool.orders == []


def test_an_order_that_is_refused_ends_with_1(
    pool: AlicesPool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool.fail(ActionRefused("node1 refused the order"), "give_order")
    assert main(["reclaim", "--once", "--act"]) == 1
    assert "node1 refused the order" in capsys.readouterr().out
    assert [order["outcome"] for order in orders_in(own_journal(tmp_path))] == ["refused", "refused"]


def test_a_pool_that_does_not_answer_is_one_line_and_no_act(
    pool: AlicesPool, capsys: pytest.CaptureFixture[str]
) -> None:
    """HOSTILE 54."""
    pool.go_away()
    assert main(["reclaim", "--once", "--act"]) == 1
    assert capsys.readouterr() == ("", "drainwise: the collector did not answer within 8 s\n")
    assert pool.orders == []


def test_nothing_is_ordered_when_nobody_waits(pool: AlicesPool, capsys: pytest.CaptureFixture[str]) -> None:
    pool.wanted = 0.0
    assert main(["reclaim", "--once", "--act"]) == 0
    assert "nobody under quota waits: nothing to give back" in capsys.readouterr().out
    assert pool.orders == []


def test_what_earlier_orders_left_to_do_is_finished_and_written_down(
    pool: AlicesPool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also when nobody is asked; not by a dry run."""
    pool.wanted = 0.0
    pool.left_to_do = ["job 7 was overdue and is ended"]
    assert main(["reclaim", "--once"]) == 0
    assert "overdue" not in capsys.readouterr().out
    assert main(["reclaim", "--once", "--act"]) == 0
    assert "job 7 was overdue and is ended" in capsys.readouterr().out
    seen, event = map(json.loads, own_journal(tmp_path).splitlines())
    assert (seen["event"], event["event"], event["detail"]) == ("pilots", "followup", "job 7 was overdue and is ended")


def test_what_cannot_be_finished_is_said_and_stops_no_order(
    pool: AlicesPool, capfd: pytest.CaptureFixture[str]
) -> None:
    pool.fail(PoolUnreachable("slurmctld did not tell its jobs"), "follow_up")
    assert main(["reclaim", "--once", "--act", "--json"]) == 1
    shown = json.loads(capfd.readouterr().out)
    assert shown["fault"] == "slurmctld did not tell its jobs"
    assert [act["outcome"] for act in shown["acts"]] == ["done", "done"]
    assert len(pool.orders) == 2


def test_what_the_journal_remembers_counts_in_the_next_cycle(
    pool: AlicesPool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An hour's limit is used up by what was asked before; a dry run knows that, too."""
    site, journal = tmp_path / "site.ini", tmp_path / "journal"
    site.write_text(f"[reclaim]\nmax_cores_per_user_per_hour = 8\n[journal]\nfile = {journal}\n")
    limit = "[reclaim] max_cores_per_user_per_hour allows 0 cores now"
    once = ["reclaim", "--once", "--json", "--site", str(site)]
    assert main([*once, "--act"]) == 0
    assert len(pool.orders) == 1
    for words in (once, [*once, "--act"]):
        capsys.readouterr()
        assert main(words) == 0
        shown = json.loads(capsys.readouterr().out)
        assert (shown["acts"], shown["users"][0]["limit"]) == ([], limit)
    assert main(["plan", "--site", str(site)]) == 0
    assert limit in capsys.readouterr().out, "a plan is what the next cycle would do"
    assert len(pool.orders) == 1


def test_a_dry_run_writes_no_journal_and_needs_none(
    pool: AlicesPool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who may only look may not be able to read it either; an act without its memory is refused."""
    site = tmp_path / "site.ini"
    site.write_text(f"[journal]\nfile = {tmp_path / 'made' / 'journal'}\n")
    assert main(["reclaim", "--once", "--site", str(site)]) == 0
    assert capsys.readouterr().err == "" and not (tmp_path / "made").exists()
    site.write_text(f"[journal]\nfile = {tmp_path}\n")
    assert main(["reclaim", "--once", "--site", str(site)]) == 0
    assert "limits and trust of earlier cycles are not known" in capsys.readouterr().err
    assert main(["reclaim", "--once", "--act", "--site", str(site)]) == 2
    assert pool.orders == []


def test_while_the_kill_switch_is_there_nobody_is_ordered(
    pool: AlicesPool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site, switch = tmp_path / "site.ini", tmp_path / "kill-switch"
    site.write_text(f"[agent]\nkill_switch = {switch}\n")
    switch.touch()
    once = ["reclaim", "--once", "--act", "--site", str(site)]
    assert main(once) == 0
    assert f"paused by kill switch: no order was given while {switch} is there" in capsys.readouterr().out
    assert main([*once, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["dry_run"], shown["paused"], pool.orders) == (True, True, [])
    switch.unlink()
    assert main(once) == 0
    assert len(pool.orders) == 2


def test_an_act_is_refused_while_an_agent_acts_and_a_look_is_not(
    pool: AlicesPool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lock = AgentLock(str(tmp_path / "agent.lock"))
    lock.must_take()
    assert main(["reclaim", "--once", "--act"]) == 1
    assert capsys.readouterr().err.startswith("drainwise: another agent acts on this pool (pid ")
    assert main(["reclaim", "--once"]) == 0
    lock.release()
    assert pool.orders == []
    assert main(["reclaim", "--once", "--act"]) == 0
    assert len(pool.orders) == 2


@pytest.mark.parametrize(
    "words",
    [
        ["--once", "--standby"],
        ["--once", "--period", "5"],
        ["--loop", "--json"],
        ["--loop", "--period", "0"],
        ["--loop", "--once"],
        ["--loop", "--period", "5x"],
        [],
    ],
)
def test_words_that_do_not_go_together_are_wrong_usage(pool: AlicesPool, words: list[str]) -> None:
    try:
        code = main(["reclaim", *words])
    except SystemExit as ended:
        assert isinstance(ended.code, int)
        code = ended.code
    assert code == UsageError.exit_code and pool.orders == []
