"""Commands of Grid Engine that hang, fail or print garbage: nothing is taken from them about any job."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from drainwise.errors import ActionRefused, ConfigurationError, PoolUnreachable
from drainwise.launch.backend import DONE, VANISHED, Place, Start
from drainwise.launch.resources import Resources
from drainwise.sge.launch_backend import SgeBackend, open_backend
from drainwise.sge.settings import sge_settings

EMPTY = "<?xml version='1.0'?><job_info><queue_info></queue_info><job_info></job_info></job_info>"
NONE = "echo 'error: job id 7 not found' >&2; exit 1"
GONE = "error: commlib error: got select error (Connection refused)"
NO_QMASTER = f"echo '{GONE}' >&2; echo 'unable to send message to qmaster using port 6444' >&2; exit 1"


def commands(place: Path, **lines: str) -> str:
    """A directory of commands that are lines of sh."""
    given = {"qstat": f'echo "{EMPTY}"', "qacct": NONE, "qsub": "echo 7", "qdel": "true", "qalter": "true", **lines}
    for name, line in given.items():
        (place / name).write_text(f"#!/bin/sh\n{line}\n")
        (place / name).chmod(0o755)
    return str(place)


def backend(place: Path, **lines: str) -> SgeBackend:
    table = {"bin": commands(place, **lines), "root": "/sge", "command_seconds": 1, "accounting_seconds": 0}
    return SgeBackend(sge_settings(table, "", "f"), "key")


def start(resources: Resources = Resources()) -> Start:  # noqa: B008 - it is frozen
    return Start("n", "T1", ("true",), "/", resources, "/dev/null")


@pytest.mark.parametrize(
    "line",
    [
        "exec sleep 30",
        "echo hello",
        "true",
        "echo 7; echo 8",
        "echo '7 jobs'",
        "printf '\\0\\377'",
        "yes",
        NO_QMASTER,
        "echo 'Error reading answer list from qmaster' >&2; exit 1",
        "echo 'job rejected: only 1 jobs are allowed per user (current job count: 1)' >&2; exit 25",
        "kill -9 $$",
    ],
)
def test_a_submit_command_that_gives_no_number_leaves_it_open_whether_the_job_began(tmp_path: Path, line: str) -> None:
    begin = time.monotonic()
    with pytest.raises(PoolUnreachable, match="qsub"):
        backend(tmp_path, qsub=line).start(start())
    assert time.monotonic() - begin < 3


def test_a_refusal_is_one_with_its_reason(tmp_path: Path) -> None:
    line = "echo 'Unable to run job: unknown resource \"foo\"' >&2; echo Exiting. >&2; exit 1"
    with pytest.raises(ActionRefused, match='unknown resource "foo"'):
        backend(tmp_path, qsub=line).start(start())


def test_a_job_grid_engine_cannot_have_is_never_submitted(tmp_path: Path) -> None:
    line = f"touch {tmp_path}/submitted; echo 7"
    with pytest.raises(ActionRefused, match="no blanks"):
        backend(tmp_path, qsub=line).start(start(Resources(others=(("x", "1 slots=9"),))))
    assert not (tmp_path / "submitted").exists()


@pytest.mark.parametrize(
    "line",
    [
        "true",
        "echo hello",
        f"echo '{EMPTY[:60]}'",
        "exec sleep 30",
        NO_QMASTER,
        "echo '<job_info><job_list><JB_job_number>x</JB_job_number></job_list></job_info>'",
        "echo '<job_info><job_list><JB_job_number>7</JB_job_number></job_list></job_info>'",
        "echo '<unknown_jobs><ST_name>7</ST_name></unknown_jobs>'",
        "echo '<!DOCTYPE a [<!ENTITY b \"c\">]><job_info>&b;</job_info>'",
    ],
)
def test_no_answer_of_qstat_lets_a_job_vanish(tmp_path: Path, line: str) -> None:
    with pytest.raises(PoolUnreachable, match="qstat"):
        backend(tmp_path, qstat=line).poll(["7"])


@pytest.mark.parametrize("line", ["exec sleep 30", "echo jobnumber 7", NO_QMASTER, "echo 'no such cell' >&2; exit 1"])
def test_no_answer_of_qacct_lets_a_job_vanish(tmp_path: Path, line: str) -> None:
    with pytest.raises(PoolUnreachable, match="qacct"):
        backend(tmp_path, qacct=line).poll(["7"])


def test_a_whole_answer_that_does_not_know_it_does(tmp_path: Path) -> None:
    assert backend(tmp_path).poll(["7"])["7"].state == VANISHED


def test_another_job_with_its_number_is_not_it(tmp_path: Path) -> None:
    """Numbers come again after some millions of jobs: a record of years ago is no end of today's job."""
    record = "echo 'jobname other'; echo 'jobnumber 7'; echo 'failed 0'; echo 'exit_status 0'"
    settings = sge_settings({"bin": commands(tmp_path, qacct=record), "root": "/s", "accounting_seconds": 0}, "", "f")
    assert SgeBackend(settings, "key", "state").poll(["7"])["7"].state == VANISHED
    commands(tmp_path, qacct=record.replace("other", "key;n.state-1"))
    assert SgeBackend(settings, "key", "state").poll(["7"])["7"].state == DONE


def test_orders_without_an_answer_are_told(tmp_path: Path) -> None:
    away = backend(tmp_path, qsub="echo $$", qdel=NO_QMASTER, qalter=NO_QMASTER)
    first, second = away.start(start()), away.start(start())
    with pytest.raises(PoolUnreachable, match="qdel"):
        away.kill([first])
    with pytest.raises(PoolUnreachable, match="qalter"):
        away.reprioritise({first: 5.0, second: 4.0})


def test_one_that_is_gone_is_no_fault(tmp_path: Path) -> None:
    backend(tmp_path, qdel="echo 'denied: job \"7\" does not exist'; exit 1").kill(["7"])


def test_a_cell_that_does_not_answer_cannot_be_opened(tmp_path: Path) -> None:
    place = Place("f", "key", str(tmp_path))
    with pytest.raises(PoolUnreachable):
        open_backend({"bin": commands(tmp_path, qstat=NO_QMASTER), "root": "/s"}, "", place)
    with pytest.raises(PoolUnreachable, match="/nowhere/qstat"):
        open_backend({"bin": "/nowhere", "root": "/s"}, "", place)
    with pytest.raises(ConfigurationError, match="bin"):
        open_backend({}, "", place)


def test_the_commands_are_told_where_grid_engine_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """HOSTILE 46: of the launcher's environment only what Grid Engine needs."""
    monkeypatch.setenv("LD_PRELOAD", "/nowhere.so")
    monkeypatch.setenv("SGE_QMASTER_PORT", "6444")
    table = {
        "bin": commands(tmp_path, qsub=f"env >{tmp_path}/env; echo 7"),
        "root": "/sge",
        "cell": "c",
        "cluster": "p",
    }
    SgeBackend(sge_settings(table, "", "f"), "key").start(start())
    told = dict(line.split("=", 1) for line in (tmp_path / "env").read_text().splitlines())
    told = {name: value for name, value in told.items() if name not in {"PWD", "OLDPWD", "SHLVL", "_", "HOME"}}
    assert told == {
        **{"SGE_ROOT": "/sge", "SGE_CELL": "c", "SGE_CLUSTER": "p", "SGE_CLUSTER_NAME": "p"},
        **{"SGE_QMASTER_PORT": "6444", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"},
    }
    assert "LD_PRELOAD" in os.environ
