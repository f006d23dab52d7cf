"""`drainwise features` shows what a pilot reads, judges it, serves it."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import drainwise
from drainwise.cli import features
from drainwise.cli.command_line.options import build
from drainwise.facts.errors import FeatureError, UsageError
from drainwise.features.facts import HostFacts, JobFacts, job_values, machine_values
from drainwise.features.read import open_features
from drainwise.features.serve import FeatureServer
from drainwise.features.write import write_directory

Run = Callable[..., int]
HOST = HostFacts(total_cpu=24, hs06=300.5)


@pytest.fixture
def run() -> Run:
    parser = argparse.ArgumentParser()
    build(parser.add_subparsers(), "features", features.COMMAND)

    def call(*words: str) -> int:
        args = parser.parse_args(["features", *words])
        code: int = args.run(args)
        return code

    return call


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    job = JobFacts(
        allocated_cpu=8,
        jobstart_secs=int(time.time()) - 10,
        job_id="12.0",
        wall_limit_secs=3600,
        cpu_limit_secs=28800,
        max_rss_bytes=10**10,
        max_swap_bytes=10**9,
        scratch_limit_bytes=10**11,
    )
    write_directory(str(tmp_path / "mf"), machine_values(HOST))
    write_directory(str(tmp_path / "jf"), job_values(job, HOST))
    monkeypatch.setenv("MACHINEFEATURES", str(tmp_path / "mf"))
    monkeypatch.setenv("JOBFEATURES", str(tmp_path / "jf"))
    return tmp_path


def test_show_prints_what_the_environment_names(run: Run, site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("show") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"machine {site}/mf"
    assert "  total_cpu            24 cores" in lines
    assert "  hs06                 300.5 HS06" in lines
    assert "  job_id               12.0" in lines
    assert any(line.startswith("  jobstart_secs ") and "(20" in line for line in lines)


def test_show_json_has_numbers(run: Run, site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("show", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["machine"] == {"total_cpu": 24, "hs06": 300.5}
    assert shown["job"]["max_rss_bytes"] == 10**10
    assert shown["errors"] == []


def test_one_directory_on_the_command_line_is_looked_at_alone(
    run: Run, site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("show", "--machine", str(site / "mf"), "--json") == 0
    assert "job" not in json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("variable", ["MACHINEFEATURES", "JOBFEATURES"])
@pytest.mark.parametrize("action", ["show", "check"])
def test_a_variable_that_is_not_set_is_named(
    run: Run, site: Path, monkeypatch: pytest.MonkeyPatch, variable: str, action: str
) -> None:
    for value in (None, ""):
        monkeypatch.delenv(variable) if value is None else monkeypatch.setenv(variable, value)
        with pytest.raises(UsageError, match=rf"\${variable} is not set"):
            run(action)


def test_a_garbage_key_is_shown_as_an_error_and_the_others_as_values(
    run: Run, site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (site / "mf/total_cpu").write_text("many\x1b[31m\n")
    assert run("show") == 1
    shown = capsys.readouterr()
    assert "hs06" in shown.out
    assert "mf/total_cpu: " in shown.err
    assert "\x1b" not in shown.out + shown.err


def test_a_directory_that_is_not_there_is_an_error(run: Run, tmp_path: Path) -> None:
    with pytest.raises(FeatureError, match="absent: No such file"):
        run("show", "--job", str(tmp_path / "absent"))
    with pytest.raises(UsageError, match="features location"):
        run("show", "--job", "ftp://host/path")


def test_a_directory_may_be_named_from_where_one_is(
    run: Run, site: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `write` takes it; a variable of the environment has a full path."""
    monkeypatch.chdir(site)
    assert run("show", "--machine", "mf") == 0
    assert f"machine {site}/mf\n" in capsys.readouterr().out
    assert run("threads", "--job", "jf") == 0


def test_check_ends_with_0_without_errors_and_with_1_otherwise(
    run: Run, site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("check") == 0
    assert capsys.readouterr().out.splitlines()[-1] == "0 errors, 0 warnings"
    (site / "mf/hs06").unlink()
    assert run("check") == 0
    assert capsys.readouterr().out.splitlines()[-1] == "0 errors, 1 warnings"
    (site / "mf/total_cpu").write_text("0\n")
    assert run("check") == 1
    out = capsys.readouterr().out
    assert (
        "error    machine  total_cpu            0  [range] expected 1 cores or more; the PanDA pilot crashes on 0"
        in out
    )


def test_check_json_has_every_verdict(run: Run, site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (site / "jf/job_id").unlink()
    assert run("check", "--json") == 1
    told = json.loads(capsys.readouterr().out)
    assert told["worst"] == "error"
    assert {"directory", "key", "level", "rule", "detail", "value"} == set(told["verdicts"][0])
    assert [verdict["rule"] for verdict in told["verdicts"] if verdict["key"] == "job_id"] == ["sam-required"]


def test_check_works_over_http(run: Run, site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with FeatureServer(str(site)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        assert run("check", "--machine", f"{server.url}/mf", "--job", f"{server.url}/jf") == 0
        server.shutdown()
    assert "[panda-local]" in capsys.readouterr().out


def test_serve_says_where_and_stops_on_interrupt(site: Path) -> None:
    code = (
        "import argparse\nfrom drainwise.cli import features\nfrom drainwise.cli.command_line.options import build\n"
        "parser = argparse.ArgumentParser()\nbuild(parser.add_subparsers(), 'features', features.COMMAND)\n"
        f"args = parser.parse_args(['features', 'serve', {str(site)!r}])\nraise SystemExit(args.run(args))"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(drainwise.__file__).parent.parent)}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith(f"serving {site} at http://127.0.0.1:")
        url = line.split(" at ")[1].split()[0]
        assert open_features(f"{url}/mf").integer("total_cpu") == 24
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=10) == 0


def test_a_time_beyond_all_calendars_is_shown_as_it_stands(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever wrote it: seconds that no calendar has."""
    (tmp_path / "jobstart_secs").write_text("4611686018427387904\n")
    (tmp_path / "machine").mkdir()
    assert run("show", "--machine", str(tmp_path / "machine"), "--job", str(tmp_path)) == 0
    [line] = [line for line in capsys.readouterr().out.splitlines() if "jobstart_secs" in line]
    assert line.split()[1:] == ["4611686018427387904"]
