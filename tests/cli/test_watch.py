"""`drainwise status --watch` shows the pool again and again, through times when it does not answer."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from drainwise.cli.main import main
from drainwise.cli.screen.layout import Paper
from drainwise.cli.screen.watch import Watch, on_screen
from drainwise.facts.errors import PoolUnreachable

if TYPE_CHECKING:
    from .conftest import AlicesPool

PIPE, WINDOW = Paper(), Paper(width=40, height=5, terminal=True)


class Answers:
    """A pool that answers with the given lines, or not (None)."""

    def __init__(self, *answers: str | None) -> None:
        self._answers = list(answers)

    def __call__(self, paper: Paper) -> list[str]:
        answer = self._answers.pop(0)
        if answer is None:
            raise PoolUnreachable("the collector did not\x1b[31m\n answer")
        return [answer]


def test_a_pool_that_is_away_for_a_while_is_said_and_asked_again() -> None:
    """HOSTILE 54: its last answer stays on the screen, its age beside the fault."""
    shown = Watch(Answers(None, "first", None, "second"), 5)
    [line] = shown.round(WINDOW, 100.0)
    assert len(line) == 40 and line.endswith("  no answer: the collector did ~")
    assert shown.round(WINDOW, 105.0)[1:] == ["", "first"]
    again = shown.round(Paper(width=120, terminal=True), 112.0)
    assert again[0].endswith("answer; last answer 7 s ago; asked again in 5 s")
    assert again[1:] == ["", "first"]
    assert shown.round(WINDOW, 120.0)[1:] == ["", "second"]


def test_in_a_pipe_a_fault_is_one_line() -> None:
    shown = Watch(Answers("first", None), 5)
    shown.round(PIPE, 100.0)
    assert len(shown.round(PIPE, 105.0)) == 1


def test_what_does_not_fit_the_window_is_counted() -> None:
    lines = on_screen([str(number) for number in range(9)], WINDOW, first=True).split("\n")
    assert len(lines) == 4
    assert lines[-1].startswith("... 6 more lines")


def rounds(monkeypatch: pytest.MonkeyPatch, *between: Callable[[], None]) -> None:
    """Let --watch run through; `between` are called one after the other where it would wait, then Ctrl-C comes."""
    steps = iter(between)

    def wait(seconds: float) -> None:
        step = next(steps, None)
        if step is None:
            raise KeyboardInterrupt
        step()

    monkeypatch.setattr(time, "sleep", wait)


def test_blocks_one_after_the_other_until_ctrl_c(
    pool: AlicesPool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a terminal no escape sequence; Ctrl-C is the orderly end."""

    def away() -> None:
        pool.go_away()

    def back() -> None:
        pool.faults.clear()

    rounds(monkeypatch, away, back)
    assert main(["status", "--watch", "3"]) == 0
    out, err = capsys.readouterr()
    assert (out.count("Accounts"), out.count("no answer: the collector did not answer"), err) == (2, 1, "")
    assert "every 3 s" in out and "\x1b" not in out


def test_json_is_one_document_per_line(
    pool: AlicesPool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault goes to standard error, so that a program reads documents alone."""

    def away() -> None:
        pool.go_away()

    rounds(monkeypatch, lambda: None, away)
    assert main(["status", "--json", "--watch"]) == 0
    out, err = capsys.readouterr()
    assert [len(json.loads(line)["pilots"]) for line in out.splitlines()] == [4, 4]
    assert err == "drainwise: the collector did not answer within 8 s\n"


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "soon"])
def test_a_time_that_makes_no_sense_is_wrong_usage(seconds: str, pool: AlicesPool) -> None:
    with pytest.raises(SystemExit) as end:
        main(["status", "--watch", seconds])
    assert end.value.code == 2


def test_ctrl_c_ends_it_cleanly(tmp_path: Path) -> None:
    """The signal itself, to the command itself, while the pool does not answer: 0, and no traceback."""
    words = ["status", "--pool", "local", "--directory", str(tmp_path), "--watch", "0.2"]
    with subprocess.Popen(
        [sys.executable, "-B", "-m", "drainwise", *words],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "plugins"), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert "no answer" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (0, "")
