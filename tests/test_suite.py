"""`scripts/test`: what it prints last, on suites of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "test"
REASONS = Path(__file__).parent / "support" / "failure_reasons.py"
SETUP = "#!/bin/sh\necho venv\n"
PYTHON = f'#!/bin/sh\nexec {sys.executable} "$@"\n'
CONFIGURATION = "[tool.pytest.ini_options]\nmarkers = ['daemons: slow']\naddopts = '-ra'\n"
# Without `test_most`, less is run than is asked for.
CONFIGURATION += (
    "pythonpath = ['plugins']\n[tool.coverage.run]\nsource = ['plugins']\n[tool.coverage.report]\nfail_under = 90\n"
)
MODULE = "def doubled(number):\n    if number == 0:\n        return 0\n    return 2 * number\n"
# Fails as often as is said when it is run for the first time, and is right from then on.
TESTS = """
import pathlib, pytest
from module import doubled

def fails(name, times):
    mark = pathlib.Path(f"{name}.runs")
    runs = len(mark.read_text()) if mark.exists() else 0
    mark.write_text("x" * (runs + 1))
    assert runs >= times, f"run {runs + 1}"

@pytest.mark.parametrize("times", [0, %d])
def test_fast(times):
    fails(f"fast{times}", times)

def test_most():
    assert (doubled(0), doubled(1)) == (0, 2)

@pytest.mark.daemons
def test_slow():
    fails("slow", %d)
"""

pytestmark = pytest.mark.daemons  # it takes its time


def suite(place: Path, fast: int, slow: int) -> subprocess.CompletedProcess[str]:
    """The script on a suite whose tests fail so often at first."""
    (place / "tests").mkdir()
    (place / "plugins").mkdir()
    (place / "plugins" / "module.py").write_text(MODULE)
    (place / "pyproject.toml").write_text(CONFIGURATION)
    (place / "tests" / "test_it.py").write_text(TESTS % (fast, slow))
    (place / "tests" / "conftest.py").write_text(REASONS.read_text())
    programs = {"scripts/setup": SETUP, "venv/bin/python": PYTHON}
    programs |= dict.fromkeys(("venv/bin/ruff", "venv/bin/mypy"), "#!/bin/sh\n")
    programs["venv/bin/coverage"] = f'#!/bin/sh\nexec {sys.executable} -m coverage "$@"\n'
    for name, text in programs.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
        (place / name).chmod(0o755)
    # One worker says as much as six about the last lines.
    (place / "scripts" / "test").write_text(re.sub(r" -n \d ", " -n 1 ", SCRIPT.read_text()))
    (place / "scripts" / "test").chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        [str(place / "scripts" / "test")], env=kept, capture_output=True, text=True, check=False, timeout=120
    )


def test_nothing_is_tried_once_more_where_nothing_fails(tmp_path: Path) -> None:
    ran = suite(tmp_path, 0, 0)
    *_, closing, parts, last = ran.stdout.splitlines()
    assert (ran.returncode, last) == (0, "tried once more: nothing"), ran.stdout + ran.stderr
    assert "1 passed" in closing and re.fullmatch(r"fast part \d+ s; daemons part \d+ s; whole \d+ s", parts)


def test_what_passes_only_the_second_time_is_named_last(tmp_path: Path) -> None:
    """Of both parts of the suite, below pytest's closing line; a failure of long ago is not."""
    old = tmp_path / ".pytest_cache" / "v" / "cache"
    old.mkdir(parents=True)
    (old / "lastfailed").write_text('{"tests/test_gone.py::test_gone": true}')
    ran = suite(tmp_path, 1, 1)
    *_, closing, parts, last = ran.stdout.splitlines()
    why = "(AssertionError: run 1)"
    assert last == f"tried once more: tests/test_it.py::test_fast[1] {why} tests/test_it.py::test_slow {why}"
    assert ran.returncode == 0 and "1 passed" in closing and parts


def test_what_fails_twice_is_named_and_the_suite_fails(tmp_path: Path) -> None:
    ran = suite(tmp_path, 2, 0)
    first, again = (f"tests/test_it.py::test_fast[2] (AssertionError: run {run})" for run in (1, 2))
    assert ran.stdout.splitlines()[-1] == f"tried once more: {first}; failed again: {again}"
    assert ran.returncode == 1
