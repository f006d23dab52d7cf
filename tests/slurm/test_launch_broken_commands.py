"""Commands of Slurm that hang, fail or print garbage: nothing is taken from them about any job."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from drainwise.errors import ActionRefused, PoolUnreachable
from drainwise.launch.backend import DONE, VANISHED, WAITING, Place, Start
from drainwise.launch.resources import Resources
from drainwise.slurm.launch_backend import SlurmBackend, open_backend
from drainwise.slurm.launch_settings import slurm_settings

GONE = "slurm_load_jobs error: Invalid job id specified"
NO_CONTROLLER = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"
POLICY = "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit)"
NO_ACCOUNTING = "echo 'Slurm accounting storage is disabled' >&2; exit 1"


def commands(place: Path, **lines: str) -> str:
    """A directory of commands that are lines of sh."""
    given = dict.fromkeys(("scontrol", "scancel", "sacct"), "true")
    given |= {"sbatch": "echo 7", "squeue": f"echo '{GONE}' >&2; exit 1", **lines}
    for name, line in given.items():
        (place / name).write_text(f"#!/bin/sh\n{line}\n")
        (place / name).chmod(0o755)
    return str(place)


def backend(place: Path, **lines: str) -> SlurmBackend:
    table = {"bin": commands(place, **lines), "command_seconds": 1, "accounting_seconds": 0}
    return SlurmBackend(slurm_settings(table, "", "f"), "key")


def start(resources: Resources = Resources()) -> Start:  # noqa: B008 - it is frozen
    return Start("n", "T1", ("true",), "/", resources, "/dev/null")


@pytest.mark.parametrize(
    "line",
    [
        "exec sleep 30",
        "echo Submitted batch job 7",
        "true",
        "echo '7;a;b'",
        "yes",
        "kill -9 $$",
        f"echo 'sbatch: error: Batch job submission failed: {NO_CONTROLLER}' >&2; exit 1",
        f"echo 'sbatch: error: QOSMaxSubmitJobPerUserLimit' >&2; echo '{POLICY}' >&2; exit 1",
        "echo 'sbatch: error: Batch job submission failed: Socket timed out on send/recv operation' >&2; exit 1",
    ],
)
def test_a_submit_command_that_gives_no_number_leaves_it_open_whether_the_job_began(tmp_path: Path, line: str) -> None:
    begin = time.monotonic()
    with pytest.raises(PoolUnreachable, match="sbatch"):
        backend(tmp_path, sbatch=line).start(start())
    assert time.monotonic() - begin < 3


@pytest.mark.parametrize("line", ["echo 7", "echo '7;cluster'"])
def test_a_number_is_one_with_its_cluster_too(tmp_path: Path, line: str) -> None:
    assert backend(tmp_path, sbatch=line).start(start()) == "7"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (
            "echo 'sbatch: error: Batch job submission failed: Invalid partition name specified' >&2",
            "Invalid partition",
        ),
        (f"echo 'sbatch: error: QOSMaxCpuPerJobLimit' >&2; echo '{POLICY}' >&2", "QOSMaxCpuPerJobLimit"),
    ],
)
def test_a_refusal_is_one_with_its_reason(tmp_path: Path, line: str, reason: str) -> None:
    with pytest.raises(ActionRefused, match=reason):
        backend(tmp_path, sbatch=f"{line}; exit 1").start(start())


@pytest.mark.parametrize("line", ["echo hello", "exec sleep 30", f"echo '{NO_CONTROLLER}' >&2; exit 1", "kill -9 $$"])
def test_no_answer_of_squeue_lets_a_job_vanish(tmp_path: Path, line: str) -> None:
    with pytest.raises(PoolUnreachable, match="squeue"):
        backend(tmp_path, squeue=line).poll(["7"])


@pytest.mark.parametrize("line", ["echo hello", "exec sleep 30", "echo 'Problem talking to the database' >&2; exit 1"])
def test_an_accounting_that_does_not_answer_lets_no_job_vanish(tmp_path: Path, line: str) -> None:
    assert backend(tmp_path, sacct=line).poll(["7"]) == {}


@pytest.mark.parametrize("line", ["true", NO_ACCOUNTING, "echo '7|PENDING|0:0|0|00:00:00'"])
def test_whole_answers_that_do_not_know_its_end_do(tmp_path: Path, line: str) -> None:
    assert backend(tmp_path, sacct=line).poll(["7"])["7"].state == VANISHED


def test_what_slurmctld_has_forgotten_the_accounting_tells(tmp_path: Path) -> None:
    state = backend(tmp_path, sacct="echo '7|FAILED|3:0|61|00:01.500'").poll(["7"])["7"]
    assert (state.state, state.code, state.wall, state.cpu) == (DONE, 3, 61.0, 1.5)


def test_slurmctld_s_word_goes_before_the_accounting_s(tmp_path: Path) -> None:
    one = backend(tmp_path, squeue="echo '7|PENDING|0:0|Priority|N/A|N/A|'", sacct="echo '7|FAILED|3:0|61|00:01.500'")
    assert one.poll(["7"])["7"].state == WAITING


def test_orders_without_an_answer_are_told(tmp_path: Path) -> None:
    with pytest.raises(PoolUnreachable, match="scancel"):
        backend(tmp_path, scancel=f"echo '{NO_CONTROLLER}' >&2; exit 1").kill(["7"])
    backend(tmp_path, scancel=f"echo '{GONE}' >&2; exit 1").kill(["7"])


def test_a_cluster_that_does_not_answer_cannot_be_opened(tmp_path: Path) -> None:
    place = Place("f", "key", str(tmp_path))
    with pytest.raises(PoolUnreachable):
        open_backend({"bin": commands(tmp_path, scontrol=f"echo '{NO_CONTROLLER}' >&2; exit 1")}, "", place)
    with pytest.raises(PoolUnreachable, match="/nowhere/scontrol"):
        open_backend({"bin": "/nowhere"}, "", place)


def test_the_nice_value_counts_from_the_site_s_origin(tmp_path: Path) -> None:
    line = "echo 'PriorityParameters = time_origin=2023-01-01 00:00 +00:00,nice_factor=2'"
    table = {"bin": commands(tmp_path, scontrol=line, sbatch=f'echo "$@" >{tmp_path}/told; echo 7'), "use_nice": True}
    one = SlurmBackend(slurm_settings(table, "", "f"), "key")
    one.start(Start("n", "T1", ("true",), "/", Resources(), "/dev/null", priority=1672531210.0))
    assert "--nice=20 " in (tmp_path / "told").read_text()
    commands(tmp_path, scontrol=f"cat >{tmp_path}/told")
    one.reprioritise({"7": 1672531205.0, "8": 1672531206.0})
    assert (tmp_path / "told").read_text() == "update JobId=7 Nice=10\nupdate JobId=8 Nice=12\n"
