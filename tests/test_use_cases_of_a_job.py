"""docs/use-cases.md: what a job asks, answered in a job that the real hooks have set up; and the query of Slurm."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from drainwise.cli.main import main
from drainwise.facts.waste import kill_waste, remaining
from drainwise.features.facts import BY_NAME
from drainwise.pilotad.report import PilotReport
from drainwise.slurm.jobs.admin_comment import Published, comment_text
from made_up_node import PYTHON, Job, Node, Programs, run_as
from use_case_document import DOCUMENT, commands_of, job_command, lines_of

ONE_LAYOUT = pytest.mark.parametrize("node", ["since 25.4"], indirect=True)
USER, ELAPSED, LIMIT = 54321, 500, 7200
SLACK = 20  # seconds that may pass between the start of a job and its question


@pytest.fixture
def job(node: Node, programs: Programs) -> Job:
    """A job of 8 of 24 cores that started 500 s ago and may run for two hours, as the prepare hook left it."""
    made = node.start("slot1_1", USER, int(time.time()) - ELAPSED, AllowedExecuteDuration=LIMIT)
    assert programs.prepare(made).returncode == 0
    return made


@pytest.fixture
def planned_in_6_h(programs: Programs, job: Job) -> Iterator[int]:
    """A shutdown of the node as documented, told to its jobs; UNIX seconds."""
    assert "drainwise shutdown --at +6h" in DOCUMENT and "drainwise shutdown --cancel" in DOCUMENT
    file = f"{os.path.dirname(programs.settings)}/shutdowntime"
    before = int(time.time())
    assert main(["shutdown", "--at", "+6h", "--file", file]) == 0
    try:
        programs.update(job)
        yield before + 6 * 3600
    finally:
        assert main(["shutdown", "--cancel", "--file", file]) == 0
    programs.update(job)
    assert run_as(USER, ["sh", "-c", lines_of(4)], environment(job)).returncode != 0, "there is no file without a plan"


def environment(job: Job) -> dict[str, str]:
    """The job's own, as far as it matters."""
    named = {name: f"{job.scratch}/.{name.lower()}" for name in ("MACHINEFEATURES", "JOBFEATURES", "JOBSTATUS")}
    return {"PATH": "/usr/bin:/bin", **named}


def answer(job: Job, case: int, then: str = "") -> str:
    """What the documented lines print in the job, as its user; `then`: a line that shows what they set."""
    ran = run_as(job.uid, ["sh", "-e", "-c", f"{lines_of(case)}{then}"], environment(job), cwd=job.scratch)
    assert (ran.returncode, ran.stderr) == (0, b""), f"use case {case}"
    return ran.stdout.decode().strip()


@pytest.mark.daemons
@ONE_LAYOUT
def test_every_question_of_a_job_has_its_answer(job: Job) -> None:
    """Use cases 1 to 3 and 5 to 8, by the figures of the slot, the job and the site."""
    assert LIMIT - ELAPSED - SLACK < int(answer(job, 1)) <= LIMIT - ELAPSED
    assert ELAPSED <= int(answer(job, 2)) < ELAPSED + SLACK
    assert float(answer(job, 3)) == pytest.approx(36000 / (240.5 * 8 / 24), rel=1e-5)
    assert answer(job, 5, "echo $OMP_NUM_THREADS") == "8"
    assert answer(job, 6) == "8"
    assert answer(job, 7) == str(20_000_000 * 1024)
    assert answer(job, 8, "ulimit -v") == str(2048 * 8 * 1024)


def command_answer(job: Job, programs: Programs, case: int, then: str = "") -> str:
    """What the documented command of the same case prints in the job; `then` as above."""
    library = f"{os.path.dirname(programs.directory)}/library"
    ours = f'drainwise() {{ PYTHONPATH={library} {PYTHON} -m drainwise "$@"; }}\n'
    ran = run_as(job.uid, ["sh", "-e", "-c", f"{ours}{job_command(case)}\n{then}"], environment(job), cwd=job.scratch)
    assert (ran.returncode, ran.stderr) == (0, b""), f"use case {case}"
    return ran.stdout.decode().strip()


@pytest.mark.daemons
@ONE_LAYOUT
def test_the_commands_answer_the_same(job: Job, programs: Programs) -> None:
    """Use cases 1 to 3 and 5 to 8: the command as it is typed, beside the lines of a shell alone."""
    for case, slack in ((1, SLACK), (2, SLACK), (3, 1), (6, 0), (7, 0)):
        assert abs(int(command_answer(job, programs, case)) - float(answer(job, case))) <= slack, case
    assert command_answer(job, programs, 5, "echo $OMP_NUM_THREADS") == "8"
    assert command_answer(job, programs, 8, "ulimit -v 2>&-; echo") == str(2048 * 8 * 1024)


def lease_end(job: Job) -> int:
    """When the job's lease ends, UNIX seconds."""
    return job.started + LIMIT


@ONE_LAYOUT
def test_the_command_knows_of_a_shutdown(job: Job, programs: Programs, planned_in_6_h: int) -> None:
    """Use case 4: no time behind the lease's end is promised."""
    assert 0 <= int(command_answer(job, programs, 4)) - min(planned_in_6_h, lease_end(job)) <= SLACK


@ONE_LAYOUT
def test_a_planned_shutdown_is_known_to_the_jobs(job: Job, planned_in_6_h: int) -> None:
    """Use case 4. The lease ends earlier than in six hours: that is stated, and the first answer stays."""
    assert 0 <= int(answer(job, 4)) - min(planned_in_6_h, lease_end(job)) <= SLACK
    assert int(answer(job, 1)) <= LIMIT - ELAPSED


@ONE_LAYOUT
def test_the_time_left_is_cut_short_by_a_deadline(job: Job, node: Node, programs: Programs) -> None:
    """Use case 1, for a job that was asked to be gone in 900 s: by its own shutdown time, and the machine's."""
    now = int(time.time())
    orders = f"{job.job_id}@{job.started}={now + 900}"
    retiring = {"Activity": "Retiring", "RetirementTimeRemaining": 900, "MyCurrentTime": now}
    node.refresh(job, PilotReclaimOrders=orders, **retiring)
    programs.update(job)
    assert 900 - SLACK < int(answer(job, 1)) <= 900
    os.unlink(f"{job.scratch}/.jobfeatures/shutdowntime_job")
    assert 900 - SLACK < int(answer(job, 1)) <= 900


def test_every_key_that_the_document_names_is_one() -> None:
    """The keys of the shell lines and of the table, by the one table of keys."""
    named = [word for line in DOCUMENT.splitlines() for word in line.replace("`", " ").replace(")", " ").split()]
    paths = {word.rpartition("/")[2].rstrip(";,.") for word in named if word.startswith(("$JOBF", "$MACHINEF"))}
    keys = {path for path in paths if not path.startswith("$")}
    assert keys and keys <= set(BY_NAME), keys - set(BY_NAME)
    rows = [line for line in DOCUMENT.splitlines() if line.startswith("| ")][1:]
    assert [row.split(" | ")[0].strip("| ") for row in rows] == [str(case) for case in range(1, 13)]


@pytest.mark.skipif(shutil.which("jq") is None, reason="needs jq")
def test_the_query_of_slurm_gives_the_metrics(tmp_path: Path) -> None:
    """Use cases 9 and 11 from AdminComment: half a report and other people's comments are passed over."""
    now = int(time.time())
    report = PilotReport(
        now - 60,
        used_cpu=6.0,
        last_job_start=now - 300,
        first_exp_job_end=now + 1000,
        last_exp_job_end=now + 4000,
        add_uncom_time=28800.0,
    )
    comment = comment_text(Published(17, now - 5000, "n1", report))
    half = comment_text(Published(18, now - 5000, "n1", PilotReport(now, used_cpu=6.0, last_exp_job_end=now + 4000)))
    comments = [half, comment, "", "somebody else's", "7", '{"drainwise":1,"job":19}']
    jobs = [{"job_id": number, "admin_comment": text} for number, text in enumerate(comments)]
    (tmp_path / "jobs.json").write_text(json.dumps({"jobs": jobs}))
    squeue = tmp_path / "squeue"
    squeue.write_text(f'#!/bin/sh\n[ "$*" = --json ] && cat {shlex.quote(str(tmp_path / "jobs.json"))}\n')
    squeue.chmod(0o755)
    [query] = commands_of(11, "squeue")
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    ran = subprocess.run(["sh", "-c", query], env=path, capture_output=True, text=True, check=True)
    after = int(time.time()) + 1
    [[job, left, waste]] = [[int(word) for word in line.split("\t")] for line in ran.stdout.splitlines()]
    assert job == 17
    assert remaining(now + 4000, after) <= left <= remaining(now + 4000, now)
    assert kill_waste(28800, 6, now - 300, now) <= waste <= kill_waste(28800, 6, now - 300, after)
