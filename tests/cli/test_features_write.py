"""`drainwise features write`: the same keys by options, the environment and JSON; one overrules the other."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from drainwise.cli.main import main
from drainwise.features.read import open_features

WRITE = ("features", "write")


def keys(directory: Path) -> dict[str, str]:
    return {file.name: file.read_text().strip() for file in directory.iterdir()}


def test_the_same_keys_by_options_environment_and_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A static machine directory and a job's; the JSON text is what `show` prints."""
    stated = {"total_cpu": "24", "hs06": "240.5", "jobslots": "12"}
    assert (
        main([*WRITE, "--machine", str(tmp_path / "a"), *(f"--{k.replace('_', '-')}={v}" for k, v in stated.items())])
        == 0
    )
    assert keys(tmp_path / "a") == stated
    assert main(["features", "show", "--json", "--machine", str(tmp_path / "a")]) == 0
    (tmp_path / "said.json").write_text(capsys.readouterr().out)
    assert main([*WRITE, "--machine", str(tmp_path / "b"), "--json", str(tmp_path / "said.json")]) == 0
    assert keys(tmp_path / "b") == stated
    for name, value in stated.items():
        monkeypatch.setenv(f"DRAINWISE_FEATURE_{name.upper()}", value)
    assert main([*WRITE, "--machine", str(tmp_path / "c")]) == 0
    assert keys(tmp_path / "c") == stated


def test_options_overrule_the_environment_and_that_overrules_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "j").write_text(json.dumps({"total_cpu": 1, "jobslots": 1, "phys_cores": 1}))
    monkeypatch.setenv("DRAINWISE_FEATURE_JOBSLOTS", "2")
    monkeypatch.setenv("DRAINWISE_FEATURE_PHYS_CORES", "2")
    assert main([*WRITE, "--machine", str(tmp_path / "m"), "--json", str(tmp_path / "j"), "--phys-cores", "3"]) == 0
    assert keys(tmp_path / "m") == {"total_cpu": "1", "jobslots": "2", "phys_cores": "3"}


def test_the_documented_command(tmp_path: Path) -> None:
    """docs/features.md, with the cores of this host counted."""
    page = (Path(__file__).parents[2] / "docs/features.md").read_text()
    [line] = [one for one in page.splitlines() if one.startswith("drainwise features write ")]
    assert main(line.replace("/etc/machinefeatures", str(tmp_path / "m")).split()[1:]) == 0
    found = keys(tmp_path / "m")
    assert (found["hs06"], found["jobslots"]) == ("240.5", "24")
    assert int(found["phys_cores"]) >= 1 and int(found["total_cpu"]) >= int(found["phys_cores"])


def test_a_job_has_its_twins_and_its_share(tmp_path: Path) -> None:
    words = ["--job", str(tmp_path / "j"), "--allocated-cpu", "8", "--wall-limit-secs", "7200", "--hs06", "240"]
    assert main([*WRITE, *words, "--total-cpu", "24", "--max-rss-bytes", "2500000000"]) == 0
    found = keys(tmp_path / "j")
    assert (found["allocated_CPU"], found["mem_limit_MB"], found["hs06_job"]) == ("8", "2500", "80")
    assert found["cpu_limit_secs"] == "57600"


def test_a_key_that_nobody_states_goes(tmp_path: Path) -> None:
    words = [*WRITE, "--machine", str(tmp_path / "m"), "--total-cpu", "24"]
    assert main([*words, "--shutdowntime", "9999999999"]) == 0
    assert keys(tmp_path / "m") == {"total_cpu": "24", "shutdowntime": "9999999999"}
    assert main(words) == 0
    assert keys(tmp_path / "m") == {"total_cpu": "24"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--machine", "m", "--total-cpu", "0"], "--total_cpu: '0' is no total_cpu"),
        (["--machine", "m", "--total-cpu", "-1"], "--total_cpu: '-1' is no total_cpu"),
        (["--machine", "m", "--hs06", "1e3"], "'1e3' is no hs06"),
        (["--machine", "m", "--shutdown-command", "poweroff"], "is no shutdown_command"),
        (["--job", "j", "--job-id", "a b"], "is no job_id"),
        (["--machine", "m", "--json", "absent"], "absent"),
        ([], "expected --tree"),
        (["--tree", "t", "--job", "j"], "expected --tree"),
    ],
)
def test_what_is_no_value_is_said_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*WRITE, *words]) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", ["null", "true", "[1]"])
def test_a_value_of_json_that_is_none_is_said_as_json_has_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], value: str
) -> None:
    (tmp_path / "j").write_text(f'{{"total_cpu": {value}}}')
    assert main([*WRITE, "--machine", str(tmp_path / "m"), "--json", str(tmp_path / "j")]) == 2
    assert f"'{value}' is no total_cpu: expected integer" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "[]", '{"job": 7}', '{"hs07": 1}', '{"total_cpu": "24"}', '{"total_cpu": true}'])
def test_json_that_is_none_of_features_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    (tmp_path / "j").write_text(text)
    assert main([*WRITE, "--machine", str(tmp_path / "m"), "--json", str(tmp_path / "j")]) == 2
    assert f"{tmp_path}/j" in capsys.readouterr().err


def test_an_unknown_variable_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DRAINWISE_FEATURE_HS07", "1")
    assert main([*WRITE, "--machine", str(tmp_path / "m")]) == 2
    assert "$DRAINWISE_FEATURE_HS07" in capsys.readouterr().err


def test_a_tree_is_made_and_removed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the variables for a shell; the cores of this host are counted."""
    tree = tmp_path / "run/17"
    assert main([*WRITE, "--tree", str(tree), "--job-id", "17", "--allocated-cpu", "1"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert f"export JOBFEATURES={tree}/.jobfeatures" in said and len(said) == 9
    assert open_features(f"{tree}/.jobfeatures").text("job_id") == "17"
    assert open_features(f"{tree}/.machinefeatures").integer("total_cpu")
    assert (tree / ".jobstatus").is_dir()
    assert main(["features", "remove", "--tree", str(tree)]) == 0
    assert not tree.exists()
    assert main(["features", "remove", "--tree", str(tree)]) == 0


def test_a_job_whose_client_must_not_see_a_shutdown_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By rows as in `[clients]`, of users; of a job that is nobody's nothing is known, and nothing is shown."""
    if os.geteuid() != 0:
        pytest.skip("needs root: only root makes the tree of another user's job")
    (tmp_path / "j").write_text(json.dumps({"hs06": 10, "clients": {"alice": "user=daemon or user=n*"}}))

    def shown(name: str, *owner: str) -> set[str]:
        tree = tmp_path / name
        options = ("--json", str(tmp_path / "j"), "--shutdowntime", str(int(time.time()) + 7200), "--jobslots=4")
        assert main([*WRITE, "--tree", str(tree), *options, *owner]) == 0
        assert keys(tree / ".machinefeatures")["hs06"] == "10"
        return {file.name for file in tree.rglob("shutdowntime*")}

    both = {"shutdowntime", "shutdowntime_job"}
    assert shown("a", "--owner=bin") == both
    assert shown("b", "--owner=daemon") == shown("c", "--owner=1") == shown("d", "--owner=nobody") == set()
    assert shown("e") == set()
    (tmp_path / "j").write_text(json.dumps({"hs06": 10}))
    assert shown("f") == shown("g", "--owner=daemon") == both


@pytest.mark.parametrize("rows", [["alice"], {"alice": 7}, {"alicia": "user=x"}, {"alice": "usr=x"}, {"default": "x"}])
def test_rows_that_are_none_are_refused(tmp_path: Path, rows: object, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "j").write_text(json.dumps({"clients": rows}))
    assert main([*WRITE, "--machine", str(tmp_path / "m"), "--json", str(tmp_path / "j")]) != 0
    assert "clients" in capsys.readouterr().err and not (tmp_path / "m").exists()
