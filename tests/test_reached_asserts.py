"""Asserts that never run fail the fast part, and properties that seldom reach theirs: on suites of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

COUNTING = Path(__file__).parent / "support" / "reached_asserts.py"
CONFIGURATION = """[pytest]
testpaths = tests
pythonpath = tests
markers = daemons: slow
enable_assertion_pass_hook = true
"""
CONFTEST = """
from hypothesis import settings
pytest_plugins = ["reached_asserts"]
settings.register_profile("same", derandomize=True, max_examples=20)
settings.load_profile("same")
"""
TESTS = """
import os, pytest

def fast(values):
    assert values is not None
    for one in values:
        assert one  # never

def slow():
    assert False

class Made:
    def run(self):
        if not self:
            assert False  # never

@pytest.fixture
def made():
    yield Made()
    for _ in []:
        assert True  # never

def test_fast(made):
    made.run()
    assert (
        made
        == made
    )

def test_calls_it():
    fast([])

def test_in_a_process_of_its_own():
    if (child := os.fork()) == 0:
        assert os.getpid()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0

def test_not_on_this_machine():
    pytest.skip("it lacks something")
    assert True

@pytest.mark.daemons
def test_slow():
    slow()
    assert True
"""
OTHER = """
from _pytest.assertion import rewrite
def pytest_collection(session):
    rewrite._check_if_assertion_pass_impl = bool
"""
PROPERTIES = """
import pytest
from hypothesis import given, strategies as st
from reached_asserts import judged

numbers = st.integers(0, 10**6)

@given(numbers)
def test_seldom(number):
    if number == 12345:
        assert number

@pytest.mark.reached(0, "it may")
@given(numbers)
def test_says_so(number):
    if number == 12345:
        assert number

@given(numbers)
def test_often(number):
    assert number >= 0

@given(numbers)
def test_judges(number):
    judged("a rare number", number == 12345, at_least=0.5)
    judged("a number", number >= 0, at_least=1)
    assert number >= 0
"""

pytestmark = pytest.mark.daemons  # it takes its time


def run(place: Path, tests: str, *options: str, conftest: str = CONFTEST) -> subprocess.CompletedProcess[str]:
    """Pytest on a suite of one module."""
    (place / "tests").mkdir()
    (place / "pytest.ini").write_text(CONFIGURATION)
    (place / "tests" / "conftest.py").write_text(conftest)
    (place / "tests" / "reached_asserts.py").write_text(COUNTING.read_text())
    (place / "tests" / "test_it.py").write_text(tests)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")} | {"COLUMNS": "200"}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options]
    return subprocess.run(command, cwd=place, env=kept, capture_output=True, text=True, check=False, timeout=120)


def named(ran: subprocess.CompletedProcess[str]) -> list[int]:
    """The lines that are said never to have run."""
    return [int(line) for line in re.findall(r"^tests/test_it.py:(\d+)$", ran.stdout, re.MULTILINE)]


NEVER = [number for number, line in enumerate(TESTS.splitlines(), 1) if line.endswith("# never")]


@pytest.mark.parametrize("workers", [0, 2])
def test_an_assert_that_never_ran_fails_the_fast_part(tmp_path: Path, workers: int) -> None:
    """Not one that only slow tests reach or that is not reached on this machine; also in helpers and fixtures."""
    ran = run(tmp_path, TESTS, "-m", "not daemons", "-n", str(workers))
    assert (ran.returncode, named(ran)) == (6, NEVER), ran.stdout + ran.stderr


def test_a_part_of_it_names_them_when_asked_and_does_not_fail(tmp_path: Path) -> None:
    ran = run(tmp_path, TESTS, "-m", "not daemons", "-k", "test_fast", "--never-ran")
    assert (ran.returncode, named(ran)) == (0, NEVER[1:])


def test_a_property_that_seldom_reaches_its_assert_fails(tmp_path: Path) -> None:
    ran = run(tmp_path, PROPERTIES)
    assert re.findall(r"FAILED .*::(\w+) - Failed: (.*)", ran.stdout) == [
        ("test_seldom", "0 of 330 examples reach the assert in line 11"),
        ("test_judges", "0 of 330 examples show a rare number, not 0.5"),
    ], ran.stdout
    assert "2 failed, 2 passed" in ran.stdout


@pytest.mark.parametrize("name", ["_check_if_assertion_pass_impl", "PYC_TAIL"])
def test_a_pytest_without_what_is_replaced_is_refused(tmp_path: Path, name: str) -> None:
    ran = run(tmp_path, TESTS, conftest=f"{CONFTEST}\nfrom reached_asserts import rewrite\ndel rewrite.{name}\n")
    assert ran.returncode == pytest.ExitCode.USAGE_ERROR
    assert "this pytest does not let asserts be counted" in ran.stderr


def test_a_pytest_that_calls_something_else_fails_the_fast_part(tmp_path: Path) -> None:
    """As if no assert ran."""
    ran = run(tmp_path, TESTS, "-m", "not daemons", conftest=CONFTEST + OTHER)
    assert ran.returncode == 6 and len(named(ran)) > len(NEVER)
