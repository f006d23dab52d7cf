"""HTCondor as a pool: when the collector is asked, and that nothing of a question is left behind."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pytest_mock import MockerFixture

from drainwise.facts.errors import PoolUnreachable, RunEnded, UsageError
from drainwise.htcondor.ads.query import htcondor2
from drainwise.htcondor.ads.values import Others
from drainwise.htcondor.pool import collector, order_channel
from drainwise.htcondor.pool import pool as module
from drainwise.htcondor.pool.pool import HTCondorPool
from drainwise.pool.facts import Snapshot

NOW = 1795249000


@pytest.fixture
def questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A collector that knows nothing: each question to it is a byte of this file."""
    file = tmp_path / "questions"

    def ask() -> Iterator[Others]:
        with file.open("ab") as stream:
            stream.write(b"?")
        yield Others()

    monkeypatch.setattr(collector, "pool_ads", ask)
    return file


def look(pool: HTCondorPool) -> None:
    with pytest.raises(PoolUnreachable, match="the collector knows no slots"):
        pool.snapshot(NOW)


def test_what_was_asked_ahead_is_one_snapshot(questions: Path) -> None:
    pool = HTCondorPool()
    pool.ask_ahead()
    look(pool)
    assert questions.read_bytes() == b"?"
    look(pool)
    assert questions.read_bytes() == b"??", "the next one is asked for anew"
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_what_was_asked_long_ago_is_no_answer(questions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """HOSTILE 54: a decision stands on what is, not on what was."""
    monkeypatch.setattr(module, "_AHEAD_SECONDS", 0.0)
    pool = HTCondorPool()
    pool.ask_ahead()
    os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
    assert questions.read_bytes() == b"?"
    look(pool)
    assert questions.read_bytes() == b"??"
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_a_pool_that_changes_while_an_order_is_looked_up_is_still_seen(mocker: MockerFixture) -> None:
    """Whatever the look-up fails with: what is shown counts."""

    def gone(_: object) -> dict[str, str]:
        raise RunEnded("the collector knows no slot slot1_1@n1 on n1 any more")

    shown = Snapshot(NOW, (), ())
    mocker.patch.object(collector, "pool_ads", autospec=True, return_value=iter((Others(),)))
    mocker.patch.object(module, "snapshot_of", autospec=True, return_value=shown)
    mocker.patch.object(module, "to_be_asked", autospec=True, return_value={"n1": "slot1_1@n1"})
    mocker.patch.object(order_channel, "knobs_of", autospec=True, side_effect=gone)
    assert HTCondorPool().snapshot(NOW) is shown


@pytest.mark.parametrize("collects", [True, False])
def test_the_garbage_collector_is_afterwards_as_it_was(questions: Path, collects: bool) -> None:
    before = gc.isenabled()
    (gc.enable if collects else gc.disable)()
    try:
        look(HTCondorPool())
        assert gc.isenabled() is collects
    finally:
        (gc.enable if before else gc.disable)()


def test_the_bindings_are_imported_where_something_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """So the configuration that is read is that of the moment; those that are too old, or missing, are one line."""
    program = "import sys, drainwise.htcondor.pool.pool; print(sorted({'htcondor2', 'classad2'} & {*sys.modules}))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
    monkeypatch.delattr("htcondor2.HTCondorException")
    with pytest.raises(UsageError, match="bindings here are too old"):
        htcondor2.Collector()
    monkeypatch.setitem(sys.modules, "htcondor2", None)
    with pytest.raises(UsageError, match=r"not installed for .*htcondor2.*pip install 'drainwise\[htcondor\]'"):
        htcondor2.Collector()


def test_a_collector_that_never_answers_holds_nobody(
    in_a_silent_pool: Callable[[str], subprocess.CompletedProcess[str]],
) -> None:
    """HOSTILE 54: the real bindings against a real socket that takes connections and says nothing."""
    ran = in_a_silent_pool(
        "from drainwise.htcondor.pool.pool import HTCondorPool; HTCondorPool(snapshot_seconds=0.3).snapshot(0)"
    )
    assert ran.stderr.splitlines()[-1].endswith("PoolUnreachable: the collector did not answer within 0.3 s")
