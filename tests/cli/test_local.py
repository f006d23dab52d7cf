"""`drainwise local`: what it prints and refuses; the daemon has tests of its own."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest

from drainwise.cli.main import main
from drainwise.local.store import DaemonStore
from drainwise.local.system import default_directory


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The default directory is a fresh one."""
    place = tmp_path / "state"
    monkeypatch.setenv("DRAINWISE_LOCAL", str(place))
    return str(place)


def said(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert main(["local", *words]) == code
    shown = capsys.readouterr()
    return shown.out if code == 0 else shown.err


def test_where_the_state_lies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DRAINWISE_LOCAL")
    monkeypatch.setenv("HOME", "/home/alice")
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    assert default_directory() == "/home/alice/.local/state/drainwise"
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert default_directory() == "/state/drainwise"


def test_accounts_are_made_changed_shown_and_removed(capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, "account", "alice", "--quota", "32")
    said(capsys, "account", "bob", "--quota", "8")
    said(capsys, "account", "bob", "--quota", "16")
    accounts = [(one["name"], one["quota"]) for one in json.loads(said(capsys, "account", "--json"))]
    assert accounts == [("alice", 32), ("bob", 16)]
    said(capsys, "account", "alice", "--remove")
    assert said(capsys, "account").split() == ["bob", "16", "cores"]
    assert "none of that name" in said(capsys, "account", "alice", code=2)


def test_jobs_are_kept_while_no_daemon_runs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERE", "there")
    said(capsys, "account", "alice", "--quota", "32")
    words = ["--account", "alice", "--user", "al", "--cores", "8", "--wall", "2h", "--count", "2", "--env", "HERE"]
    assert said(capsys, "submit", *words, "--env", "A=b=c", "--", "run", "--fast").split() == ["1", "2"]
    [first, second] = json.loads(said(capsys, "queue", "--json"))
    assert (first["command"], first["wall_limit"], first["user"]) == (["run", "--fast"], 7200, "al")
    assert (second["state"], second["run"], second["lease_end"]) == ("waiting", None, None)
    table = said(capsys, "queue").splitlines()
    assert table[0].split()[:5] == ["job", "account", "user", "cores", "state"]
    assert re.fullmatch(r" +1 +alice +al +8 +waiting +run --fast", table[1])
    with DaemonStore(default_directory()) as store:
        job = store.job(1)
        assert job is not None and dict(job.request.environment) == {"HERE": "there", "A": "b=c"}


def test_what_was_removed_is_not_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, "account", "alice", "--quota", "32")
    said(capsys, "submit", "--account", "alice", "--", "true")
    assert "not ended in time: 1" in said(capsys, "wait", "--timeout", "0s", code=1)
    assert said(capsys, "remove", "1") == "job 1 is removed\n"
    assert "did not end with 0: 1" in said(capsys, "wait", "1", code=1)
    assert said(capsys, "wait") == ""
    assert said(capsys, "queue").count("\n") == 1
    assert "removed before it started" in said(capsys, "queue", "--all")
    assert "ended or is removed already" in said(capsys, "remove", "1")


def test_how_a_job_ended_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, "account", "alice", "--quota", "32")
    said(capsys, "submit", "--account", "alice", "--count", "3", "--", "true")
    now = int(time.time())
    with DaemonStore(default_directory()) as store:
        for job_id, code, signal, note in ((1, 0, None, ""), (2, 3, None, ""), (3, None, 9, "its wall limit is over")):
            job = store.begin_start(job_id, "node1", now - 90)
            assert job is not None
            store.ended(job, now, code, signal, note)
    ends = [re.split("  +", line.strip())[-1] for line in said(capsys, "queue", "--all").splitlines()[1:]]
    assert ends == ["ended with 0", "ended with 3", "ended by SIGKILL: its wall limit is over"]
    assert said(capsys, "wait", "1") == ""
    assert "2, 3" in said(capsys, "wait", "1", "2", "3", code=1)


def test_what_a_job_is_called_cannot_drive_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, "account", "alice", "--quota", "32")
    said(capsys, "submit", "--account", "alice", "--", "echo", "\x1b[2J\nevil\u202e")
    assert said(capsys, "queue").count("\n") == 2
    assert all(line.isprintable() for line in said(capsys, "queue").splitlines())


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("submit", "--account", "alice"), "no command"),
        (("submit", "--account", "nobody", "--", "true"), "no account is called nobody"),
        (("submit", "--account", "alice", "--cores", "0", "--", "true"), "cores"),
        (("submit", "--account", "alice", "--env", "NOT_SET_HERE", "--", "true"), "NOT_SET_HERE"),
        (("submit", "--account", "alice", "--count", "0", "--", "true"), "count"),
        (("remove", "99"), "job 99"),
        (("wait", "99"), "job 99"),
        (("account", "--quota", "3"), "which account"),
        (("account", "alice", "--quota", "-3"), "quota"),
        (("account", "a b", "--quota", "3"), "account"),
        (("start", "--nodes", "four"), "4x16"),
        (("serve", "--nodes", "4x"), "4x16"),
    ],
)
def test_wrong_usage_is_named_and_ends_with_2(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], why: str
) -> None:
    said(capsys, "account", "alice", "--quota", "32")
    assert why in said(capsys, *words, code=2)


@pytest.mark.parametrize("words", [("queue",), ("submit", "--account", "a", "--", "true"), ("stop",), ("wait",)])
def test_before_the_first_start_the_way_is_told(capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    assert "drainwise local start" in said(capsys, *words, code=2)


def test_a_time_without_a_unit_is_in_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, "account", "alice", "--quota", "32")
    said(capsys, "submit", "--account", "alice", "--wall", "3600", "--", "true")
    [job] = json.loads(said(capsys, "queue", "--json"))
    assert job["wall_limit"] == 3600
