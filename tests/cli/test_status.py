"""`drainwise status` shows everybody and everything, for people and for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from drainwise.cli.main import main

if TYPE_CHECKING:
    from .conftest import MemoryPool


def test_the_tables_are_complete_in_a_pipe(pool: MemoryPool, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is cut, however long a name is."""
    pool.user = "alice-" + "x" * 200 + "@pool"
    assert main(["status"]) == 0
    shown = capsys.readouterr().out
    [group] = [line.split() for line in shown.splitlines() if line.strip().startswith("group_a")]
    assert group == ["group_a", "16.0", "32.0", "0.0", "+16.0", "900.0"]
    [one] = [line.split() for line in shown.splitlines() if "slot1_2@node1" in line]
    assert one[:5] == ["slot1_2@node1", pool.user, "8", "2", "fresh,"]
    assert one[6:] == ["old", "16m40s", "1.67", "core-h", "0.333", "core-h", "3", "running"]
    [silent] = [line.split() for line in shown.splitlines() if "slot1_4@node1" in line]
    assert silent[2:] == ["8", "?", "silent", "?", "?", "16.0", "core-h", "?", "running"]


def test_json_has_the_figures_in_base_units(pool: MemoryPool, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [account["name"] for account in shown["accounts"]] == ["group_a", "group_b"]
    one = shown["pilots"][1]
    assert (one["name"], one["used_cpu"], one["remaining"], one["draining_waste"]) == ("slot1_2@node1", 2.0, 1000, 6000)
    assert shown["free_cores"] == 0


def test_names_cannot_speak_to_the_terminal(pool: MemoryPool, capsys: pytest.CaptureFixture[str]) -> None:
    """HOSTILE 41, 45: no escape sequence, no new line, no markup."""
    pool.user = "al\x1b]0;x\x07\r\nice[bold]\u202e@pool"
    assert main(["status"]) == 0
    shown = capsys.readouterr().out
    assert "al]0;xice[bold]@pool" in shown
    assert all(line.isprintable() for line in shown.splitlines())


def test_a_pool_that_does_not_answer_is_one_line(pool: MemoryPool, capsys: pytest.CaptureFixture[str]) -> None:
    """HOSTILE 54."""
    pool.unreachable = True
    assert main(["status"]) == 1
    assert capsys.readouterr() == ("", "drainwise: the collector did not answer within 8 s\n")


def test_a_narrow_window_folds_and_loses_nothing(
    pool: MemoryPool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["plan"]) == 0
    words = capsys.readouterr().out.split()
    for whole in ("slot1_1@node1", "slot1_4@node1", "decision", "because"):
        assert whole in words
