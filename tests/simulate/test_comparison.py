"""Replications in several processes: the same outcomes however many there are, and none of them left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_mock import MockerFixture

from drainwise.facts.errors import DrainwiseError, UsageError
from drainwise_simulate import comparison
from drainwise_simulate.comparison import Case, run_cases
from drainwise_simulate.scenario import Scenario
from drainwise_simulate.trace import read_trace
from real_daemons.waiting import wait_for

# Whole simulations take their time.
pytestmark = [pytest.mark.daemons, pytest.mark.in_turn("simulator", "results")]

ROOT = Path(__file__).parents[2]
EXCERPT = str(ROOT / "traces" / "lcg-cnaf.swf.gz")
JOBS = read_trace(EXCERPT).jobs[:1500]
POLICIES = ("least-waste", "random", "clairvoyant")
CASE = Case(Scenario(cores=64, moments=2))


def test_the_same_however_many_processes() -> None:
    """By case, then replication, burst and policy; another seed is another site."""
    cases = [CASE, Case(Scenario(cores=64, moments=2, error=1.0), 1)]
    lists = [JOBS, JOBS[:1000]]
    told: list[float] = []
    alone = run_cases(lists, cases, POLICIES, 2, 1, told.append)
    assert run_cases(lists, cases, POLICIES, 2, 3) == alone
    assert [len(found) for found in alone] == [12, 12]
    assert [one.replication for one in alone[0]] == [0] * 6 + [1] * 6
    assert told == sorted(told) and told[-1] == 1.0 and len(told) > 12
    assert run_cases(lists, [Case(Scenario(cores=64, moments=2, seed=2))], POLICIES, 2, 1)[0] != alone[0]


def test_what_the_engine_raises_comes_through() -> None:
    """A wrong policy is named, from another process too."""
    for processes in (1, 2):
        with pytest.raises(UsageError, match="no policy is called 'x'"):
            run_cases([JOBS], [CASE], ("x",), 2, processes)


def test_a_process_that_dies_is_said(mocker: MockerFixture) -> None:
    """As where there is no memory for all of them."""
    dies = mocker.patch.object(comparison, "run_all", autospec=True)
    dies.side_effect = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    with pytest.raises(DrainwiseError, match="a process of the simulation died"):
        run_cases([JOBS], [CASE], POLICIES, 2, 2)


def processes_of(group: int) -> list[int]:
    """Processes of a group that have not ended."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            fields = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split() if entry.isdigit() else []
        except OSError:
            continue
        if fields and int(fields[2]) == group and fields[0] != "Z":
            found.append(int(entry))
    return found


@pytest.fixture
def long_run() -> Iterator[subprocess.Popen[str]]:
    """A simulation in two processes that would take minutes, in a process group of its own."""
    words = ["simulate", EXCERPT, "--cores", "128", "--replications", "200", "--processes", "2", "--moments", "500"]
    environment = {"PYTHONPATH": str(ROOT / "plugins"), "PYTHONDONTWRITEBYTECODE": "1"}
    argv = [sys.executable, "-m", "drainwise", *words]
    pipe = subprocess.PIPE
    running = subprocess.Popen(argv, stdout=pipe, stderr=pipe, text=True, env=environment, start_new_session=True)
    try:
        wait_for(lambda: len(processes_of(running.pid)) >= 3 or running.poll() is not None)
        assert running.poll() is None
        yield running
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        running.communicate()


@pytest.mark.parametrize("to_all", [True, False])
def test_interrupted_it_ends_cleanly(long_run: subprocess.Popen[str], to_all: bool) -> None:
    """Ctrl-C, to the whole group as a terminal sends it, or to the command alone: exit 130, no word, nobody left."""
    if to_all:
        os.killpg(long_run.pid, signal.SIGINT)
    else:
        long_run.send_signal(signal.SIGINT)
    out, err = long_run.communicate(timeout=30)
    assert (long_run.returncode, out, err) == (130, "", "")
    assert processes_of(long_run.pid) == []


def test_killed_it_leaves_nobody(long_run: subprocess.Popen[str]) -> None:
    """Even where it could not say so: its processes see that it is gone."""
    long_run.kill()
    long_run.wait()
    wait_for(lambda: not processes_of(long_run.pid))
