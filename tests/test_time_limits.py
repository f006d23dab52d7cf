"""A test that hangs fails with its traceback, and the run goes on: shown on a suite of its own, by our settings."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from time_limits import _AGAIN, DAEMONS, LOST

ROOT = Path(__file__).parents[1]
LIMITS = ROOT / "tests" / "support" / "time_limits.py"
TESTS = """
import os, threading, time
import pytest
from hypothesis import given, strategies

@pytest.fixture
def slow_to_end():
    yield
    try:
        threading.Event().wait()  # hangs in the teardown
    finally:
        open("cleaned", "w").close()

def test_hangs(slow_to_end):
    while True:
        time.sleep(0.01)  # hangs in the test

@given(strategies.integers(0, 1))
def test_property(number):
    if number:
        os.read(os.pipe()[0], 1)  # hangs in an example

def test_next():
    pass

@pytest.mark.daemons
def test_slow():
    time.sleep(1.2)
"""

pytestmark = pytest.mark.daemons  # it takes its time


def test_what_hangs_fails_with_its_traceback_and_the_run_goes_on(tmp_path: Path) -> None:
    """In a test, in its teardown after that, in an example of a property; a test of daemons has more time."""
    text = (ROOT / "pyproject.toml").read_text()
    settings, changed = re.subn(r"(?m)^timeout = \d+\b", "timeout = 1", text)
    assert changed == 1
    (tmp_path / "pyproject.toml").write_text(settings)
    (tmp_path / "conftest.py").write_text(LIMITS.read_text())
    (tmp_path / "test_it.py").write_text(TESTS)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", "test_it.py"]
    ran = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert "2 failed, 2 passed, 1 error" in ran.stdout.splitlines()[-1], ran.stdout + ran.stderr
    for where in ("hangs in the teardown", "hangs in the test", "hangs in an example"):
        assert re.search(rf"(?m)^>.*{where}", ran.stdout), ran.stdout
    assert ran.stdout.count("E       test_it.HungError") + ran.stdout.count("HungError: Timeout (>1.0s)") >= 3
    assert (tmp_path / "cleaned").exists(), "the rest of a teardown is done"


def test_a_thread_says_where_it_stands_before_the_limit_of_the_run(pytestconfig: pytest.Config) -> None:
    """What no signal ends, as it does not come back to Python, is at least shown, after every other limit."""
    assert pytestconfig.getini("timeout_method") == "signal"
    assert LOST - _AGAIN > DAEMONS > float(pytestconfig.getini("timeout"))


def test_a_forked_child_is_ended_by_its_own_timer() -> None:
    """As a hook would be: the handler of the test's limit is not its own."""
    pid = os.fork()
    if pid == 0:
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            time.sleep(20)
        finally:
            os._exit(0)
    assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGALRM
