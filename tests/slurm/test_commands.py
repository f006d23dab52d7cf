"""Running a command: what it gets, how long it may take, and what its end means. Real programs throughout."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from drainwise.facts.errors import ActionRefused, PoolUnreachable
from drainwise.slurm.jobs.admin_comment import without_directories_text
from drainwise.slurm.jobs.commands import SlurmCommands
from drainwise.slurm.pool.transport import SlurmTransport
from real_daemons.waiting import wait_for

from .recorded_cluster import recorded


@pytest.fixture
def bin_dir(tmp_path: Path) -> Path:
    return tmp_path


def program(bin_dir: Path, name: str, text: str) -> None:
    file = bin_dir / name
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)


def test_a_command_has_our_environment_and_not_the_callers(bin_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """HOSTILE 46: nothing of the caller's but the place of slurm.conf."""
    for name in ("LD_PRELOAD_X", "SQUEUE_FORMAT", "SLURM_CLUSTERS", "PYTHONPATH", "BASH_ENV"):
        monkeypatch.setenv(name, "evil")
    monkeypatch.setenv("SLURM_CONF", "/etc/other/slurm.conf")
    program(bin_dir, "squeue", "env; pwd")
    said = SlurmCommands(str(bin_dir)).ask("squeue").splitlines()
    assert "evil" not in "".join(said)
    assert {"SLURM_CONF=/etc/other/slurm.conf", "SLURM_TIME_FORMAT=%s", "LC_ALL=C", "/"} <= set(said)


def test_arguments_are_never_read_by_a_shell(bin_dir: Path) -> None:
    """HOSTILE 44."""
    program(bin_dir, "scontrol", 'printf "%s|" "$@"')
    assert SlurmCommands(str(bin_dir)).ask("scontrol", "a b", "$(id)", "'", "*") == "a b|$(id)|'|*|"


def test_a_command_that_hangs_is_ended_with_its_children(bin_dir: Path) -> None:
    program(bin_dir, "squeue", f"sleep inf & echo $! > {bin_dir}/child; trap '' TERM; wait")
    with pytest.raises(PoolUnreachable, match=r"did not answer within 0\.5 s"):
        SlurmCommands(str(bin_dir), 0.5).ask("squeue")
    child = int((bin_dir / "child").read_text())
    stat = Path(f"/proc/{child}/stat")
    wait_for(lambda: not stat.exists() or " Z " in stat.read_text(), 5, "the child's end")


def test_a_command_that_prints_more_than_a_pipe_holds_is_read_to_its_end(bin_dir: Path) -> None:
    program(bin_dir, "sinfo", "head -c 3000000 /dev/zero | tr '\\0' x")
    assert len(SlurmCommands(str(bin_dir)).ask("sinfo")) == 3_000_000


def test_a_command_that_prints_without_end_is_no_answer(bin_dir: Path) -> None:
    """HOSTILE 40: the node's agent is root's; its memory is not for whoever takes a command's place to fill."""
    program(bin_dir, "squeue", "exec yes")
    with pytest.raises(PoolUnreachable, match="squeue printed more than 128 MiB"):
        SlurmCommands(str(bin_dir), 30).ask("squeue")
    with pytest.raises(PoolUnreachable, match="squeue printed more than 1 MiB"):
        SlurmCommands(str(bin_dir), 30).start("squeue", most=1 << 20).output()


def test_a_missing_command_names_the_key_of_the_site_file(bin_dir: Path) -> None:
    with pytest.raises(PoolUnreachable, match=r"squeue cannot be run.*\[slurm\] bin_dir"):
        SlurmCommands(str(bin_dir)).ask("squeue")


def test_what_a_command_complains_of_is_one_printable_line(bin_dir: Path) -> None:
    """HOSTILE 41."""
    program(bin_dir, "scontrol", "printf 'no\\033[2J\\nway\\r%01000d' 7 >&2; exit 3")
    with pytest.raises(PoolUnreachable) as fault:
        SlurmCommands(str(bin_dir)).ask("scontrol")
    assert str(fault.value).startswith("scontrol failed: no[2J way 000")
    assert str(fault.value).isprintable()
    assert len(str(fault.value)) < 250


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("Access/permission denied for job 9", ActionRefused),
        ("Invalid time specified for job 9", ActionRefused),
        ("Unexpected message received for job 2", PoolUnreachable),
        ("slurm_load_jobs error: Unable to contact slurm controller (connect failure)", PoolUnreachable),
    ],
)
def test_a_refusal_is_told_from_no_answer(bin_dir: Path, said: str, kind: type[Exception]) -> None:
    """The words are those of real Slurms."""
    program(bin_dir, "scontrol", f"echo '{said}' >&2; exit 1")
    with pytest.raises(kind):
        SlurmCommands(str(bin_dir)).order("scontrol", "update")


def config(bin_dir: Path, ahead: int) -> str:
    """What real ones of both versions print, of a slurmctld whose clock is so many seconds ahead."""
    return f"date -d '{ahead} seconds' '+Configuration data as of %s'; tail -n +2 {bin_dir}/config.txt"


NO_GRES = b"1|N/A|N/A|N/A|N/A"
RUNS = b"1||N/A|N/A|1795274000|1795277600|9|0|alice|atlas|RUNNING|None|4|1|node1|1:00:00|OK|mem=8G|%b||||0|a|(null)|\n"
WAITS = b"12||N/A|N/A|N/A|N/A|100|0|bob|cms|PENDING|Resources|8|1||1:00:00|NO|cpu=8,mem=16G|%b||||0|main|(null)|\n"


def cluster(bin_dir: Path, version: str, before: str = ":") -> SlurmTransport:
    """Recorded answers; that to plain squeue has one job that runs and one that waits. before: what three do first."""
    (bin_dir / "lines").write_bytes(RUNS % NO_GRES + WAITS % NO_GRES)
    (bin_dir / "release").write_text(f"slurm-wlm {version}.5\n")
    (bin_dir / "jobs").write_bytes(b"JobId=1 JobName=x AdminComment=note  WorkDir=/\nJobId=12 JobName=x\n")
    for file in ("squeue.json", "sinfo.txt", "sshare.txt", "config.txt"):
        (bin_dir / file).write_bytes(recorded(version, file))
    answers = {
        "squeue": "{1}; case $* in *--json*) cat {0}/squeue.json;; *) cat {0}/lines;; esac",
        "sinfo": "{1}; cat {0}/sinfo.txt",
        "sshare": "{1}; cat {0}/sshare.txt",
        "scontrol": "case $* in --version) cat {0}/release;; *job) cat {0}/jobs;; *) cat >{0}/all; {0}/config;; esac",
    }
    for name, script in answers.items():
        program(bin_dir, name, script.format(bin_dir, before))
    program(bin_dir, "config", config(bin_dir, 0))
    return SlurmTransport(SlurmCommands(str(bin_dir), 1.0), 5.0)


def test_all_is_asked_at_the_same_time(bin_dir: Path) -> None:
    """No command ends before all have begun. Of the JSON's 15 jobs those count that the lines have, too."""
    met = " -a ".join(f"-e {bin_dir}/{name}.began" for name in ("squeue", "sinfo", "sshare"))
    answers = cluster(bin_dir, "24.11", f"touch $0.began; until test {met}; do sleep 0.01; done").answers()
    assert ([job.number for job in answers.jobs], len(answers.nodes)) == ([1, 12], 4)
    assert answers.jobs[0].admin_comment.startswith('{"drainwise":1,"job":1,')


def test_who_has_left_between_two_questions_is_passed_over(bin_dir: Path) -> None:
    asked = cluster(bin_dir, "24.11")
    (bin_dir / "lines").write_bytes(RUNS.replace(b"1|", b"99|", 1) % NO_GRES + WAITS % NO_GRES)
    assert [job.number for job in asked.answers().jobs] == [12]


def test_before_23_02_the_comments_come_from_scontrol(bin_dir: Path) -> None:
    """And all other facts from the lines."""
    answers = cluster(bin_dir, "22.05").answers()
    assert [(job.number, job.cores, job.whole_nodes) for job in answers.jobs] == [(1, 4, False), (12, 8, True)]
    assert [job.admin_comment for job in answers.jobs] == ["note", ""]


def test_nobody_spells_in_a_name_that_a_job_cannot_be_asked(bin_dir: Path) -> None:
    """Before 23.02 only the JSON, where that job has no comment, is sure of it."""
    asked = cluster(bin_dir, "22.05")
    spelled = without_directories_text(1, 1795274000, "node1")
    (bin_dir / "jobs").write_text(f"JobId=1 JobName=x AdminComment={spelled}  WorkDir=/\nJobId=12 JobName=x\n")
    comments = [job.admin_comment for job in asked.answers().jobs]
    assert len(comments) == 2 and comments[0] and spelled not in comments


@pytest.mark.parametrize(
    ("ahead", "words"),
    [(-60, "6[01] s ahead of slurmctld's: deadlines would be wrong"), (60, "(59|60) s behind slurmctld's")],
)
def test_with_another_time_than_slurmctlds_nothing_is_decided(bin_dir: Path, ahead: int, words: str) -> None:
    asked = cluster(bin_dir, "24.11")
    program(bin_dir, "config", config(bin_dir, ahead))
    with pytest.raises(PoolUnreachable, match=f"this machine's clock is {words}"):
        asked.answers()
    program(bin_dir, "config", config(bin_dir, ahead // 3))
    asked.answers()
    program(bin_dir, "config", "echo what time is it")
    with pytest.raises(PoolUnreachable, match="incomplete answer: scontrol show config does not tell slurmctld's time"):
        asked.answers()


@pytest.mark.parametrize("name", ["squeue", "sinfo", "sshare", "scontrol"])
def test_one_answer_that_is_missing_is_none_at_all(bin_dir: Path, name: str) -> None:
    """HOSTILE 54; and no process is left behind."""
    asked = cluster(bin_dir, "22.05")
    program(bin_dir, name, "exit 1")
    with pytest.raises(PoolUnreachable, match=f"{name} failed"):
        asked.answers()
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_nodes_that_sinfo_leaves_out_make_the_answer_none(bin_dir: Path) -> None:
    """One that was cut at a line's end looks whole; scontrol names the nodes of all partitions."""
    asked = cluster(bin_dir, "24.11")
    node = "NodeName=%s Arch=x86_64 CoresPerSocket=8 State=IDLE Partitions=%s BootTime=1\\n"
    shown = "".join(node % pair for pair in (("node1", "main"), ("node9", "main"), ("node8", "")))
    program(bin_dir, "config", f"{config(bin_dir, 0)}; printf 'PartitionName=main State=UP\\n{shown}'")
    with pytest.raises(PoolUnreachable, match="incomplete answer: sinfo lacks 1 nodes, such as node9"):
        asked.answers()
