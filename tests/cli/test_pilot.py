"""`drainwise pilot run`: wrong usage ends with 2 before anything runs, and a plain Python is enough."""

from __future__ import annotations

import argparse
import ctypes
import subprocess
from pathlib import Path

import pytest

import drainwise
from drainwise.cli import pilot
from drainwise.cli.command_line.options import build
from drainwise.cli.main import main
from drainwise.pilot.decide.settings import PilotSettings

PROGRAM = f"import sys; sys.path.append({str(Path(drainwise.__file__).parents[1])!r}); sys.dont_write_bytecode = True; "
PROGRAM += "from drainwise.cli.main import main; sys.exit(main())"
PR_GET_CHILD_SUBREAPER = 37


def ran(*words: str, python: str) -> subprocess.CompletedProcess[str]:
    argv = [python, "-I", "-S", "-c", PROGRAM, "pilot", *words]
    return subprocess.run(argv, env={}, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "run"),
        (("run",), "--queue"),
        (("run", "--queue", "/", "--payload-command", "true"), "not allowed with"),
        (("run", "--queue", "/tmp", "--seconds", "9"), "how many cores?"),
        (("run", "--queue", "/tmp", "--cores", "1"), "for how long?"),
        (("run", "--queue", "/no/such", "--cores", "1", "--seconds", "9"), "queue /no/such: expected a directory"),
        (
            ("run", "--queue", "/tmp", "--cores", "1", "--seconds", "9", "--directory", "/no/such"),
            "--directory /no/such",
        ),
        (
            ("run", "--queue", "/tmp", "--cores", "1", "--seconds", "9", "--kill-wait", "-1"),
            "argument --kill-wait: '-1': expected seconds, or",
        ),
        (("run", "--queue", "/tmp", "--cores", "1", "--seconds", "9", "--estimate", "/"), "expected a regular file"),
    ],
)
def test_wrong_usage(words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One line that says what was expected, and exit code 2; and no process that adopts orphans."""
    try:
        code: object = main(["pilot", *words])
    except SystemExit as ended:
        code = ended.code
    shown = capsys.readouterr()
    assert (code, shown.out) == (2, "")
    assert said in shown.err.splitlines()[-1]
    adopts = ctypes.c_int()
    ctypes.CDLL(None).prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(adopts), 0, 0, 0)
    assert not adopts.value


def test_a_plain_python_is_enough() -> None:
    """The system's Python, isolated and without site packages, knows the command."""
    shown = ran("run", "--help", python="/usr/bin/python3")
    assert shown.returncode == 0 and "--while-draining" in shown.stdout


def test_the_defaults_are_the_settings() -> None:
    """Nothing is said twice: without options a pilot behaves as `Settings()`."""
    parser = argparse.ArgumentParser()
    build(parser.add_subparsers(), "pilot", pilot.COMMAND)
    args = vars(parser.parse_args(["pilot", "run", "--queue", "x"]))
    assert {name: args[name] for name in vars(PilotSettings())} == vars(PilotSettings())


def test_no_two_pilots_have_one_name() -> None:
    """Also on one machine with one process number, as in containers; and it can be the name of a directory."""
    names = {pilot.pilot_id() for _ in range(100)}
    assert len(names) == 100
    assert all(name.isascii() and "/" not in name and not name.startswith(".") for name in names)
