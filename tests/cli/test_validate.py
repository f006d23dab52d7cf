"""`drainwise validate` on the command line, as far as it goes without a daemon: one line and the exit code."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from drainwise.cli.main import main
from drainwise.common.typed_table import toml_reader
from drainwise.local.job import AccountQuota, LocalNode
from drainwise.local.store import LocalStore
from drainwise_tasks.validate import machine
from drainwise_tasks.validate.request import load_request
from drainwise_tasks.validate.state import text_of
from drainwise_tasks.validate.thresholds import MCM

ROOT = Path(__file__).parents[2]
PLUGINS = str(ROOT / "plugins")
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
    with LocalStore(str(tmp_path / "batch"), create=True) as store:
        store.set_nodes([LocalNode("node1", 4)])
        store.set_account(AccountQuota("alice", 4))
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
    with LocalStore(batch) as store:
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
    needs = "this command needs the Python package htcondor2: install htcondor for /usr/bin/python3, from the"
    assert (ran.returncode, ran.stderr) == (1, f"drainwise: {needs} distribution or by pip\n")


def test_a_state_file_that_is_none(request_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It is named, and what begins a new one."""
    Path(request_file + ".state").write_text("{}")
    said = refused(capsys, 2, request_file)
    assert "r.json.state" in said and "not the state of a validation" in said


NOWHERE: dict[str, dict[str, object]] = {"slurm": {"bin": "/nowhere"}, "sge": {"bin": "/nowhere", "root": "/nowhere"}}


@pytest.mark.parametrize("backend", NOWHERE)
def test_a_batch_system_that_is_not_there_is_no_reason_to_run_elsewhere(
    backend: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 1 with one line, whether it begins or goes on; nothing is begun. What is over is shown without it."""
    path = tmp_path / "r.json"
    path.write_text(json.dumps({**REQUEST, "backends": NOWHERE}))
    assert "/nowhere/" in refused(capsys, 1, str(path), "--backend", backend)
    state = Path(f"{path}.state")
    assert not state.exists()
    begun = machine.begin(load_request(str(path)), "r-1", backend)
    state.write_bytes(text_of(begun))
    assert "/nowhere/" in refused(capsys, 1, str(path))
    state.write_bytes(text_of(replace(begun, state=machine.PASSED)))
    assert main(["validate", str(path)]) == 0


@pytest.mark.parametrize(
    ("tables", "backend", "fault"),
    [
        ({"sge": {}}, "sge", "[backends.sge] bin = "),
        ({}, "sge", "[backends.sge] bin = "),
        ({"slurm": {"partition": "long"}}, "slurm", "[backends.slurm] partition = "),
        ({"slurm": {"resources": "long"}}, "slurm", "[backends.slurm] resources = "),
        ({"slurm": {"resources": {"cpu": 2}}}, "slurm", "[backends.slurm] resources: cpu = '2'"),
        ({"pbs": {}}, "local", "[backends] pbs = 'a table': expected one of slurm, sge"),
        ({"htcondor": {}}, "htcondor", "[backends] htcondor = "),
        ({"slurm": 3}, "local", "backends.slurm = "),
        ([], "local", "backends = '[]': expected tables"),
    ],
)
def test_wrong_tables_are_refused_by_file_and_key(
    tables: object, backend: str, fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "r.json"
    path.write_text(json.dumps({**REQUEST, "backends": tables}))
    said = refused(capsys, 2, str(path), "--backend", backend)
    assert f"{path}: {fault}" in said
    assert not Path(f"{path}.state").exists()


def test_an_account_is_for_batch_systems_that_know_them_here(
    request_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It would be passed over in silence."""
    said = refused(capsys, 2, request_file, "--backend", "slurm", "--account", "alice")
    assert "--account goes with local and htcondor; slurm is set by [backends.slurm] of the request" in said


def test_other_tables_make_no_other_request(request_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A directory that has moved is told, and the validation goes on."""
    begun = machine.begin(load_request(request_file), "r-1", "slurm")
    Path(request_file + ".state").write_bytes(text_of(begun))
    Path(request_file).write_text(json.dumps({**REQUEST, "backends": NOWHERE}))
    assert "/nowhere/" in refused(capsys, 1, request_file)


def test_the_tables_on_the_page_are_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Everything in them is taken; only the batch systems are not here."""
    if toml_reader() is None:
        pytest.skip("TOML needs Python 3.11 or tomli")
    fences = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "validation.md").read_text(), re.DOTALL)
    path = tmp_path / "request.toml"
    text = "".join(fences).replace("/usr/lib/gridengine", "/nowhere")
    path.write_text(text.replace("[backends.slurm]", '[backends.slurm]\nbin = "/nowhere"'))
    tables = load_request(str(path)).backends
    assert set(tables) == set(NOWHERE) and all("resources" in table for table in tables.values())
    for backend in tables:
        refused(capsys, 1, str(path), "--backend", backend)


def test_the_fragments_on_the_page_go_into_a_request(tmp_path: Path) -> None:
    """Other thresholds and a further sequence, beside the page's own request."""
    if toml_reader() is None:
        pytest.skip("TOML needs Python 3.11 or tomli")
    page = (ROOT / "docs" / "validation.md").read_text()
    whole = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)[0]
    fragments = re.findall(r"```toml fragment\n(.*?)```", page, re.DOTALL)
    path = tmp_path / "request.toml"
    path.write_text("".join([whole, *fragments]))
    request = load_request(str(path))
    assert request.thresholds == replace(MCM, tries=4)
    assert [one.command[0] for one in request.following] == [f"{tmp_path}/reconstruct"]
