"""What is kept between runs; a state that is none is said to be none."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from drainwise.facts.errors import PoolError, UsageError
from drainwise_launch.choice.work import MovingAverage
from drainwise_launch.run.state_directory import StateDirectory
from drainwise_launch.run.store import FILE, EndedJob, OpenStart, Store

ROW = EndedJob("a", b"digest", "done", 0, 1000.0, 2.5, 2.0, 2.5, "")


def test_what_was_committed_is_there_again(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
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
        state.open_store(again=False)
    state.open_store(again=True).close()
    state.open_store(again=False).close()
    state.close()


def damaged(directory: Path) -> None:
    """A state with a page of nonsense in its midst, and a header that is sound."""
    store = Store(str(directory))
    store.ended(ROW._replace(name=f"job-{n}", why="x" * 500) for n in range(500))
    store.keep_rules([(f"rule-{n}" * 20, MovingAverage(1.0, 1)) for n in range(500)])
    store.starting(OpenStart(f"tag-{n}" * 20, "a", "slurm", None, 5.0) for n in range(500))
    store.close()
    with (directory / FILE).open("r+b") as stream:
        size = stream.seek(0, os.SEEK_END)
        for page in range(2, size // 4096):
            stream.seek(page * 4096)
            stream.write(b"\xa5" * 2000)


@pytest.mark.parametrize("act", ["rules", "open_starts", "known"])
def test_damage_within_is_told_in_a_line_and_begun_anew_on_demand(tmp_path: Path, act: str) -> None:
    damaged(tmp_path)
    state = StateDirectory(str(tmp_path))
    store = state.open_store(again=False)
    with pytest.raises(UsageError, match=f"{FILE}.*malformed.*--again begins anew"):
        list(store.known(["job-3", "job-77", "job-400"]) if act == "known" else getattr(store, act)())
    store.close()
    store = state.open_store(again=True)
    assert not store.rules() and not store.open_starts() and not list(store.known(["job-3"]))
    store.close()
    state.close()


def test_a_state_that_is_only_busy_is_never_thrown_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody reads it with a lock, or the disk is full: --again must not lose what runs in a batch system."""
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda path, **more: connect(path, **{**more, "timeout": 0.1}))
    store = Store(str(tmp_path))
    store.starting([OpenStart("tag", "a", "slurm", "17", 5.0)])
    store.close()
    state = StateDirectory(str(tmp_path))
    other = connect(tmp_path / FILE, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(PoolError, match=f"{FILE}: cannot be read or written: database is locked"):
        state.open_store(again=True).fact("state", "x")
    other.execute("ROLLBACK")
    other.close()
    store = state.open_store(again=True)
    assert [start.native for start in store.open_starts()] == ["17"]
    store.close()
    state.close()


def test_a_full_disk_is_told_in_a_line_and_what_was_kept_stays(tmp_path: Path) -> None:
    """HOSTILE 27."""
    store = Store(str(tmp_path))
    store.ended([ROW])
    store.commit()
    [(pages,)] = store._rows("PRAGMA page_count")
    list(store._rows(f"PRAGMA max_page_count = {pages}"))
    with pytest.raises(PoolError, match="cannot be read or written: database or disk is full"):
        store.ended(ROW._replace(name=f"job-{n}", why="x" * 500) for n in range(500))
    store.close()
    store = Store(str(tmp_path))
    assert list(store.known(["a"])) == [ROW]
    store.close()


def test_what_is_started_in_a_batch_system_outlives_a_loss_of_power(tmp_path: Path) -> None:
    """SQLite waits for the disk from the first start on; before, and for local jobs, it need not."""
    store = Store(str(tmp_path))
    assert list(store._rows("PRAGMA synchronous")) == [(1,)]
    store.ended([ROW])
    store.starting([OpenStart("tag", "a", "slurm", None, 5.0)])
    assert list(store._rows("PRAGMA synchronous")) == [(2,)]
    store.close()


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
    (tmp_path / "t").mkdir()
    (tmp_path / "t").chmod(0o777)
    with pytest.raises(UsageError, match="everybody may write there"):
        StateDirectory(str(tmp_path / "t"))
