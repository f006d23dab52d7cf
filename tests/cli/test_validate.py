"""`drainwise validate` on the command line, as far as it goes without a daemon: one line and the exit code."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from drainwise.cli.main import main
from drainwise.estimate import validation_machine as machine
from drainwise.estimate.validation_file import load_request
from drainwise.estimate.validation_state import text_of
from drainwise.local.job import Account, Node
from drainwise.local.store import Store

PLUGINS = str(Path(__file__).parents[2] / "plugins")
REQUEST = {
    "name": "r",
    "command": ["true"],
    "events": 10,
    "time_per_event": 1,
    "size_per_event": 1,
    "memory": 2000,
    "can_thread": True,
}


@pytest.fixture
def request_file(tmp_path: Path) -> str:
    path = tmp_path / "r.json"
    path.write_text(json.dumps(REQUEST))
    return str(path)


@pytest.fixture
def batch(tmp_path: Path) -> str:
    """A local batch system of one node of 4 cores, without a daemon."""
    with Store(str(tmp_path / "batch"), create=True) as store:
        store.set_nodes([Node("node1", 4)])
        store.set_account(Account("alice", 4))
        return store.directory


def refused(capsys: pytest.CaptureFixture[str], code: int, *words: str) -> str:
    """What a command that ends with `code` says, in one line."""
    assert main(["validate", *words]) == code
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1
    return said.err


def test_a_wrong_request_names_file_and_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, and nothing is begun."""
    (tmp_path / "bad.json").write_text(json.dumps({**REQUEST, "memory": -1}))
    said = refused(capsys, 2, str(tmp_path / "bad.json"))
    assert "bad.json: memory = '-1': expected a whole number from 1" in said
    assert "No such file" in refused(capsys, 2, str(tmp_path / "none.json"))
    assert {path.name for path in tmp_path.iterdir()} == {"bad.json"}


def test_what_can_never_run_is_refused_before_anything_starts(
    request_file: str, batch: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Eight cores on a node of four, and an account that is not there."""
    said = refused(capsys, 2, request_file, "--directory", batch, "--account", "alice")
    assert "the run on 8 cores can never start: the largest node has 4 cores; `cores` in the request" in said
    assert "there is no account bob" in refused(capsys, 2, request_file, "--directory", batch, "--account", "bob")
    with Store(batch) as store:
        assert store.jobs(ended=True) == []


def test_without_a_batch_system_it_fails(request_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1: the request is right, the batch system is not there."""
    assert "drainwise local" in refused(capsys, 1, request_file, "--directory", str(tmp_path / "none"))


def test_nothing_to_show_or_cancel(request_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Before the first run there is nothing."""
    for option in ("--show", "--cancel"):
        assert "no validation of it has begun" in refused(capsys, 2, request_file, option)


def test_runs_stay_where_they_began(request_file: str, batch: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Another batch system would know nothing of them, and run them a second time."""
    begun = machine.begin(load_request(request_file), "r-1", "htcondor")
    Path(request_file + ".state").write_bytes(text_of(begun))
    said = refused(capsys, 2, request_file, "--backend", "local", "--directory", batch)
    assert "its runs are in htcondor, not in local; --again begins a new one" in said
    assert "--directory goes with --backend local" in refused(capsys, 2, request_file, "--directory", batch)
    assert "expected an accounting group" in refused(capsys, 2, request_file, "--account", "a b")


def test_without_htcondors_bindings_it_says_what_installs_them(request_file: str) -> None:
    """On a plain Python, in one line."""
    program = f"import sys; sys.path.append({PLUGINS!r}); from drainwise.cli.main import main; sys.exit(main())"
    words = ["/usr/bin/python3", "-I", "-S", "-B", "-c", program, "validate", request_file, "--backend", "htcondor"]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    needs = "this command needs the Python package htcondor2: pip install 'drainwise[htcondor]'"
    assert (ran.returncode, ran.stderr) == (1, f"drainwise: {needs}\n")


def test_a_state_file_that_is_none(request_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It is named, and what begins a new one."""
    Path(request_file + ".state").write_text("{}")
    said = refused(capsys, 2, request_file)
    assert "r.json.state" in said and "not the state of a validation" in said
