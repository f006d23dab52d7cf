"""What is kept between runs; a state that is none is said to be none."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from drainwise.errors import PoolError, UsageError
from drainwise.launch.expected_time import MovingAverage
from drainwise.launch.state_directory import StateDirectory
from drainwise.launch.store import FILE, Ended, OpenStart, Store

ROW = Ended("a", b"digest", "done", 0, 1000.0, 2.5, 2.0, 2.5, "")


def test_what_was_committed_is_there_again(tmp_path: Path) -> None:
    store = Store(str(tmp_path), durable=True)
    start = OpenStart("tag", "a", "slurm", None, 5.0)
    store.ended([ROW])
    store.keep_rules([("r", MovingAverage(3.5, 7))])
    store.starting([start, start._replace(native="17"), start._replace(tag="other", at=4.0)])
    store.settled(["other"])
    name = store.fact("state", "x1")
    store.close()
    store = Store(str(tmp_path))
    assert list(store.known(["a", "b"])) == [ROW] == list(store.known({f"x{n}" for n in range(5000)} | {"a"}))
    rules = store.rules()
    assert (rules["r"].seconds, rules["r"].weight) == (3.5, 7)
    assert store.open_starts() == [start._replace(native="17")] and store.fact("state", "x2") == name == "x1"
    store.forget_results()
    assert [row.state for row in store.known(["a"])] == ["forgotten"]
    store.close()


@pytest.mark.parametrize("content", [b"no database at all " * 100, None])
def test_what_is_no_state_is_named_and_begun_anew_on_demand(tmp_path: Path, content: bytes | None) -> None:
    """Garbage, or of another version."""
    if content is None:
        with sqlite3.connect(tmp_path / FILE) as base:
            base.execute("PRAGMA user_version = 99")
    else:
        (tmp_path / FILE).write_bytes(content)
    state = StateDirectory(str(tmp_path))
    with pytest.raises(UsageError, match=f"{FILE}.*--again begins anew"):
        state.open_store(durable=False, again=False)
    state.open_store(durable=False, again=True).close()
    state.open_store(durable=False, again=False).close()
    state.close()


def test_one_process_holds_a_state(tmp_path: Path) -> None:
    state = StateDirectory(str(tmp_path / "s"))
    with pytest.raises(PoolError, match="another process runs this launch"):
        StateDirectory(str(tmp_path / "s"))
    state.close()
    StateDirectory(str(tmp_path / "s")).close()
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="--state names one"):
        StateDirectory(str(tmp_path / "file"))


def test_a_state_that_belongs_to_somebody_else_is_not_used(tmp_path: Path) -> None:
    """Jobs that are added come from there: whoever may write there decides what is run (HOSTILE 47)."""
    if os.geteuid() != 0:
        pytest.skip("needs root: to make a directory that is another user's")
    (tmp_path / "s").mkdir()
    os.chown(tmp_path / "s", 1000, 1000)
    with pytest.raises(UsageError, match="belongs to uid 1000; --state names a directory of your own"):
        StateDirectory(str(tmp_path / "s"))
