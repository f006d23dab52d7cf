"""Commands of Slurm that hang, fail or print garbage: nothing is taken from them about any job."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from drainwise.facts.errors import ActionRefused, PoolFull, PoolUnreachable
from drainwise_launch.backend import DONE, RUNNING, VANISHED, WAITING, LaunchPlace, Start
from drainwise_launch.choice.resources import Resources
from drainwise_launch.slurm.backend import SlurmBackend, open_backend
from drainwise_launch.slurm.submission import slurm_settings

pytestmark = pytest.mark.daemons  # it waits for what never answers

ENDED = "scancel: error: Kill job error on job id 7: Job/step already completing or completed"
NO_CONTROLLER = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"
POLICY = (
    "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size "
    "and/or time limits)"
)
FULL = "sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying"
NO_ACCOUNTING = "echo 'Slurm accounting storage is disabled' >&2; exit 1"


def commands(place: Path, **lines: str) -> str:
    """A directory of commands that are lines of sh."""
    given = dict.fromkeys(("scontrol", "scancel", "sacct", "squeue"), "true")
    for name, line in {**given, "sbatch": "echo 7", **lines}.items():
        (place / name).write_text(f"#!/bin/sh\n{line}\n")
        (place / name).chmod(0o755)
    return str(place)


def backend(place: Path, **lines: str) -> SlurmBackend:
    table = {"bin": commands(place, **lines), "command_seconds": 1, "accounting_seconds": 0}
    return SlurmBackend(slurm_settings(table, "", "f"), "key")


def said(*lines: str) -> str:
    """A line of sh that complains so and fails."""
    return "".join(f'echo "{line}" >&2; ' for line in lines) + "exit 1"


def start(**environment: str) -> Start:
    return Start("n", "T1", ("true",), "/", Resources(), "/dev/null", environment)


@pytest.mark.parametrize(
    "line",
    [
        "exec sleep inf",
        "echo Submitted batch job 7",
        "true",
        "echo '7;a;b'",
        "yes",
        "kill -9 $$",
        said("sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)"),
        said("sbatch: error: Batch job submission failed: Socket timed out on send/recv operation"),
        said("sbatch: error: Batch job submission failed: Slurm backup controller in standby mode"),
        said("sbatch: error: Batch job submission failed: Unable to create job record, try again"),
        # munged is being restarted.
        said(
            "sbatch: error: Munge encode failed",
            "sbatch: error: Batch job submission failed: Protocol authentication error",
        ),
        said("x" * 300, "sbatch: error: Batch job submission failed: Zero Bytes were transmitted or received"),
    ],
)
def test_a_submit_command_that_gives_no_number_leaves_it_open_whether_the_job_began(tmp_path: Path, line: str) -> None:
    with pytest.raises(PoolUnreachable, match="sbatch"):
        backend(tmp_path, sbatch=line).start(start())


def test_a_slurm_that_takes_longer_than_init_timeout_cannot_be_used(tmp_path: Path) -> None:
    """Whatever the questions at the beginning are, the time is that of all of them: the second finds none left."""
    place = commands(tmp_path, scontrol=f"echo $* >>{tmp_path}/asked; sleep 1.2; echo 'PriorityParameters = x'")
    table = {"bin": place, "init_timeout": 2, "use_nice": True}
    with pytest.raises(PoolUnreachable, match="scontrol"):
        SlurmBackend(slurm_settings(table, "", "f"), "key")
    assert len((tmp_path / "asked").read_text().splitlines()) == 2
    SlurmBackend(slurm_settings({**table, "init_timeout": 60}, "", "f"), "key")


def test_a_licence_of_the_settings_is_asked_for_as_one(tmp_path: Path) -> None:
    """Slurm's own configuration need not declare it."""
    place = commands(tmp_path, scontrol="echo LicenseName=matlab Total=1", sbatch=f'echo "$@" >{tmp_path}/said; echo 7')
    one = SlurmBackend(slurm_settings({"bin": place, "licenses": "tool"}, "", "f"), "key")
    one.start(replace(start(), resources=Resources(others=(("matlab", 1), ("ssd", 3), ("tool", 2)))))
    said_to_it = (tmp_path / "said").read_text()
    assert "--licenses=matlab:1,tool:2" in said_to_it and "--gres=ssd:3" in said_to_it


@pytest.mark.parametrize("line", ["echo 7", "echo '7;cluster'"])
def test_a_number_is_one_with_its_cluster_too(tmp_path: Path, line: str) -> None:
    assert backend(tmp_path, sbatch=line).start(start()) == "7.T1"


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (["sbatch: error: Batch job submission failed: Invalid partition name specified"], "Invalid partition"),
        (["sbatch: error: QOSMaxCpuPerJobLimit", POLICY], "QOSMaxCpuPerJobLimit"),
        # What a user wrote is no sign of anything.
        (
            [
                "sbatch: error: invalid partition specified: communication.submitjob",
                "sbatch: error: Batch job submission failed: Invalid partition name specified",
            ],
            "communication",
        ),
    ],
)
def test_a_refusal_is_one_with_its_reason(tmp_path: Path, lines: list[str], reason: str) -> None:
    with pytest.raises(ActionRefused, match=reason):
        backend(tmp_path, sbatch=said(*lines)).start(start())


@pytest.mark.parametrize(
    "line",
    [
        f"echo '{FULL}' >&2; exec sleep inf",  # MaxJobCount
        *(
            said(f"sbatch: error: {reason}", POLICY)
            for reason in (
                *("AssocMaxSubmitJobLimit", "AssocGrpSubmitJobsLimit", "QOSGrpSubmitJobsLimit"),
                *("QOSMaxSubmitJobPerUserLimit", "MaxSubmitJobsPerAccount"),
            )
        ),
    ],
)
def test_a_limit_on_jobs_that_is_reached_is_told_at_once(tmp_path: Path, line: str) -> None:
    one = backend(tmp_path, sbatch=line)
    with pytest.raises(PoolFull, match="sbatch"):
        one.start(start())


def test_a_limit_that_is_told_late_leaves_it_open(tmp_path: Path) -> None:
    """sbatch may be at its second try by then."""
    commands(tmp_path, sbatch=f"sleep 1; echo '{FULL}' >&2; exec sleep inf")
    one = SlurmBackend(slurm_settings({"bin": str(tmp_path), "command_seconds": 5}, "", "f"), "key")
    with pytest.raises(PoolUnreachable, match="unable to accept"):
        one.start(start())


def test_a_launcher_that_is_in_a_job_of_slurm_s_hands_nothing_of_that_on(tmp_path: Path) -> None:
    """SLURM_JOB_ID and others would have srun, in the job, go to the launcher's own."""
    one = backend(tmp_path, sbatch=f"cat >{tmp_path}/script; echo 7")
    one.start(start(SLURM_JOB_ID="1", SLURMD_NODENAME="n", SLURMY="kept", A="kept"))
    script = (tmp_path / "script").read_text()
    assert script.count("kept") == 2 and "SLURM_" not in script and "SLURMD_" not in script


@pytest.mark.parametrize("line", ["echo hello", "exec sleep inf", f"echo '{NO_CONTROLLER}' >&2; exit 1", "kill -9 $$"])
def test_no_answer_of_squeue_lets_a_job_vanish(tmp_path: Path, line: str) -> None:
    with pytest.raises(PoolUnreachable, match="squeue"):
        backend(tmp_path, squeue=line).poll(["7.T1"])


@pytest.mark.parametrize("line", ["echo hello", "exec sleep inf", "echo 'Problem talking to the database' >&2; exit 1"])
def test_an_accounting_that_does_not_answer_lets_no_job_vanish(tmp_path: Path, line: str) -> None:
    """One that hangs is left alone for a while: its command is begun once."""
    counted = f"echo >>{tmp_path}/asked; {line}"
    one = backend(tmp_path, sacct=counted, squeue="echo '8|RUNNING|0:0|0:01|None|n.T2|'")
    for _ in range(5):
        assert set(one.poll(["7.T1", "8.T2"])) == {"8.T2"}
    with pytest.raises(PoolUnreachable, match="sacct"):  # there is nothing else to wait for
        one.poll(["7.T1"])
    asked = len((tmp_path / "asked").read_text().splitlines())
    assert asked == 1 if "sleep" in line else asked >= 1


@pytest.mark.parametrize(
    "line",
    ["true", NO_ACCOUNTING, "echo '7|PENDING|0:0|0|00:00:00|n.T1|'", "echo '7|COMPLETED|0:0|0|00:00:00|other|'"],
)
def test_whole_answers_that_do_not_know_its_end_do(tmp_path: Path, line: str) -> None:
    assert backend(tmp_path, sacct=line).poll(["7.T1"])["7.T1"].state == VANISHED


def test_what_slurmctld_has_forgotten_the_accounting_tells(tmp_path: Path) -> None:
    state = backend(tmp_path, sacct="echo '7|FAILED|3:0|61|00:01.500|n.T1|'").poll(["7.T1"])["7.T1"]
    assert (state.state, state.code, state.wall, state.cpu) == (DONE, 3, 61.0, 1.5)


def test_slurmctld_s_word_goes_before_the_accounting_s(tmp_path: Path) -> None:
    accounting = "echo '7|FAILED|3:0|61|00:01.500|n.T1|'"
    one = backend(tmp_path, squeue="echo '7|PENDING|0:0|0:00|Priority|n.T1|'", sacct=accounting)
    assert one.poll(["7.T1"])["7.T1"].state == WAITING


def test_orders_without_an_answer_are_told(tmp_path: Path) -> None:
    line = "echo '7|RUNNING|0:0|0:01|None|n.T1|'"
    with pytest.raises(PoolUnreachable, match="scancel"):
        backend(tmp_path, squeue=line, scancel=said(NO_CONTROLLER)).kill(["7.T1"])
    backend(tmp_path, squeue=line, scancel=said(ENDED)).kill(["7.T1"])


def test_a_job_that_has_got_the_number_of_one_of_ours_is_left_alone(tmp_path: Path) -> None:
    """HOSTILE 48: neither its state nor its end is ours, and it is not killed."""
    line = "printf '7|RUNNING|0:0|0:01|None|mine.T9|\n8|RUNNING|0:0|0:01|None|n.T2|\n'"
    one = backend(tmp_path, squeue=line, scancel=f'echo "$@" >{tmp_path}/told')
    states = one.poll(["7.T1", "8.T2"])
    assert (states["7.T1"].state, states["8.T2"].state) == (VANISHED, RUNNING)
    one.kill(["7.T1", "8.T2"])
    assert (tmp_path / "told").read_text() == "8\n"
    assert one.find(["T1", "T2", "T9"]) == {"T2": "8.T2", "T9": "7.T9"}


def test_what_slurmctld_does_not_have_is_looked_for_in_the_accounting(tmp_path: Path) -> None:
    lines = "printf '3|COMPLETED|0:0|1|00:00:00|n.T3|\n4|COMPLETED|0:0|1|00:00:00|n.T4|\n'"
    one = backend(tmp_path, squeue="echo '7|RUNNING|0:0|0:01|None|n.T1|'", sacct=lines)
    assert one.find(["T1", "T3", "T5"]) == {"T1": "7.T1", "T3": "3.T3"}
    with pytest.raises(PoolUnreachable, match="sacct"):
        backend(tmp_path, sacct=said("Problem talking to the database")).find(["T1"])
    assert backend(tmp_path, sacct=NO_ACCOUNTING).find(["T1"]) == {}


def test_a_cluster_that_does_not_answer_cannot_be_opened(tmp_path: Path) -> None:
    place = LaunchPlace("f", "key", str(tmp_path))
    with pytest.raises(PoolUnreachable):
        open_backend({"bin": commands(tmp_path, scontrol=f"echo '{NO_CONTROLLER}' >&2; exit 1")}, "", place)
    with pytest.raises(PoolUnreachable, match="/nowhere/scontrol"):
        open_backend({"bin": "/nowhere"}, "", place)


def test_the_nice_value_counts_from_the_site_s_origin(tmp_path: Path) -> None:
    line = "echo 'PriorityParameters = time_origin=2023-01-01 00:00 +00:00,nice_factor=2'"
    table = {"bin": commands(tmp_path, scontrol=line, sbatch=f'echo "$@" >{tmp_path}/told; echo 7'), "use_nice": True}
    one = SlurmBackend(slurm_settings(table, "", "f"), "key")
    one.start(replace(start(), priority=1672531210.0))
    assert "--nice=20 " in (tmp_path / "told").read_text()
    commands(tmp_path, scontrol=f"cat >{tmp_path}/told")
    one.reprioritise({"7.T1": 1672531205.0, "8.T2": 1672531206.0})
    assert (tmp_path / "told").read_text() == "update JobId=7 Nice=10\nupdate JobId=8 Nice=12\n"
