"""`drainwise reclaim --once`: a dry run unless told otherwise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from drainwise.cli.main import main

if TYPE_CHECKING:
    from .conftest import MemoryPool


def test_a_dry_run_is_the_default_and_says_so(pool: MemoryPool, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reclaim", "--once"]) == 0
    out, err = capsys.readouterr()
    assert out.rstrip().endswith("dry run: nobody was asked; --act gives these orders")
    assert err == ""
    assert pool.asked == {}


def test_a_dry_run_says_so_in_json(pool: MemoryPool, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reclaim", "--once", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["dry_run"], shown["acts"], len(shown["users"][0]["orders"])) == (True, [], 2)


def test_with_act_the_orders_are_given_and_written_down(pool: MemoryPool, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["reclaim", "--once", "--act", "--json"]) == 0
    out, err = capfd.readouterr()
    shown = json.loads(out)
    orders = {order["name"]: order["deadline"] for order in shown["users"][0]["orders"]}
    assert pool.asked == orders
    assert set(orders) == {"slot1_1@node1", "slot1_3@node1"}
    assert (shown["dry_run"], [act["outcome"] for act in shown["acts"]]) == (False, ["done", "done"])
    assert {json.loads(line)["name"] for line in err.splitlines()} == set(orders)


def test_the_journal_can_be_a_file(pool: MemoryPool, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    journal = tmp_path / "journal"
    assert main(["reclaim", "--once", "--act", "--journal", str(journal)]) == 0
    assert [json.loads(line)["outcome"] for line in journal.read_text().splitlines()] == ["done", "done"]
    out, err = capfd.readouterr()
    assert "asked to be gone by" in out
    assert err == ""


def test_a_journal_that_cannot_be_written_is_refused_before_anything_is_asked(
    pool: MemoryPool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reclaim", "--once", "--act", "--journal", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("drainwise: the journal ")
    assert pool.asked == {}


def test_an_order_that_is_refused_ends_with_1(pool: MemoryPool, capfd: pytest.CaptureFixture[str]) -> None:
    pool.refusing = True
    assert main(["reclaim", "--once", "--act"]) == 1
    out, err = capfd.readouterr()
    assert "node1 refused the order" in out
    assert [json.loads(line)["outcome"] for line in err.splitlines()] == ["failed", "failed"]


def test_a_pool_that_does_not_answer_is_one_line_and_no_act(
    pool: MemoryPool, capsys: pytest.CaptureFixture[str]
) -> None:
    """HOSTILE 54."""
    pool.unreachable = True
    assert main(["reclaim", "--once", "--act"]) == 1
    assert capsys.readouterr() == ("", "drainwise: the collector did not answer within 8 s\n")
    assert pool.asked == {}


def test_nothing_is_asked_when_nobody_waits(pool: MemoryPool, capsys: pytest.CaptureFixture[str]) -> None:
    pool.wanted = 0.0
    assert main(["reclaim", "--once", "--act"]) == 0
    assert "nobody under quota waits: nothing to give back" in capsys.readouterr().out
    assert pool.asked == {}


def test_what_earlier_orders_left_to_do_is_finished_and_written_down(
    pool: MemoryPool, capfd: pytest.CaptureFixture[str]
) -> None:
    """Also when nobody is asked; not by a dry run."""
    pool.wanted = 0.0
    pool.left_to_do = ["job 7 was overdue and is ended"]
    assert main(["reclaim", "--once"]) == 0
    assert "overdue" not in capfd.readouterr().out
    assert main(["reclaim", "--once", "--act"]) == 0
    out, err = capfd.readouterr()
    assert "job 7 was overdue and is ended" in out
    assert [json.loads(line)["outcome"] for line in err.splitlines()] == ["tended"]


def test_what_cannot_be_finished_is_said_and_stops_no_order(
    pool: MemoryPool, capfd: pytest.CaptureFixture[str]
) -> None:
    pool.cannot_tend = True
    assert main(["reclaim", "--once", "--act", "--json"]) == 1
    shown = json.loads(capfd.readouterr().out)
    assert shown["fault"] == "slurmctld did not tell its jobs"
    assert [act["outcome"] for act in shown["acts"]] == ["done", "done"]
    assert len(pool.asked) == 2
