"""One line for each change."""

from __future__ import annotations

import os

import pytest

from drainwise.slurm.agent_log import MOST_LINES, Faults, write_line


def test_what_lasts_is_said_once_and_its_end_too() -> None:
    said: list[str] = []
    faults = Faults(said.append)
    for text in ("", "x", "x", "y", "", "", "x"):
        faults.set("job 17", text)
    assert said == ["job 17: x", "job 17: y", "job 17: all right again", "job 17: x"]


def test_a_job_may_say_only_so_much() -> None:
    """HOSTILE 40, 41: another fault at every look; and the next job of that number starts anew."""
    said: list[str] = []
    faults = Faults(said.append)
    for number in range(1000):
        faults.set("job 17", f"fault {number}")
    assert len(said) == MOST_LINES
    faults.forget("job 17")
    faults.set("job 17", "x")
    assert said[-1] == "job 17: x"


def test_an_agent_that_runs_for_years_is_not_silenced_by_the_past() -> None:
    """Slurmctld is away now and then: that is said each time."""
    said: list[str] = []
    now = 0.0
    faults = Faults(said.append, lambda: now)
    for outage in range(3 * MOST_LINES):
        now = outage * 86400.0
        faults.set("slurmctld", "no answer")
        faults.set("slurmctld", "", "answers again")
    assert len(said) == 2 * 3 * MOST_LINES
    for number in range(1000):
        faults.set("slurmctld", f"fault {number}")
    assert len(said) == 2 * 3 * MOST_LINES + MOST_LINES - 2


def test_a_line_is_one_line_of_printable_characters(capfd: pytest.CaptureFixture[str]) -> None:
    """HOSTILE 41: line ends, escapes, length; and a standard error that is closed is no reason to fail."""
    write_line("a\nb\r\x1b[2Jc\u2028d" + "x" * 1000)
    line = capfd.readouterr().err
    assert line.startswith("drainwise: a b ?[2Jc d") and len(line) == 201 and line[:-1].isprintable()
    saved = os.dup(2)
    try:
        os.close(2)
        write_line("x")
    finally:
        os.dup2(saved, 2)
        os.close(saved)
