"""docs/use-cases.md on the local batch system: what real jobs ask, and what a site asks its pilots."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

from drainwise.features.host import memory_bytes, scratch_bytes
from drainwise.local.job import ENDED, RUNNING
from local_batch import ENVIRONMENT, Batch
from real_daemons.waiting import wait_for
from use_case_document import commands_of, lines_of

WALL, CORES, POOL = 600, 8, 16
ASKED_HERE = (1, 2, 5, 7, 8)  # there is no score here and no slot (3, 6); 4 needs a job that goes on
PILOT = """\
cat > .pilot.ad.new <<END
LAST_JOB_START = $(date +%s)
FIRST_EXP_JOB_END = {first}
LAST_EXP_JOB_END = {last}
LAST_MAX_JOB_END = {last}
USED_FRACTION1k = 768
ADD_UNCOM_TIME1k = 0
ADD_FINAL_EXP_WASTE1k = {final}
PRIORITY_FACTOR = {priority}
CAN_POSTPONE_LAST_JOB = True
END
mv .pilot.ad.new .pilot.ad
exec sleep 1000
"""


@pytest.fixture
def typed(batch: Batch, tmp_path: Path) -> list[str]:
    """The beginning of a shell script in which `drainwise` is the command, and its pool the local one."""
    site = tmp_path / "site.ini"
    # All have just begun: ended in minutes none would waste much.
    site.write_text("[reclaim]\nmin_age = 0s\nmin_grace = 1h\n")
    program = tmp_path / "drainwise"
    program.write_text(
        f'#!/bin/sh\nexec {sys.executable} -m drainwise "$@" --site {shlex.quote(str(site))} --pool local\n'
    )
    program.chmod(0o755)
    return [f"PATH={shlex.quote(str(tmp_path))}:$PATH", f"export DRAINWISE_LOCAL={batch.directory}"]


def said(typed: list[str], command: str) -> str:
    """What a documented command prints."""
    script = "\n".join([*typed, command])
    ran = subprocess.run(["sh", "-e", "-c", script], env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, ""), f"{command}\n{ran.stdout}{ran.stderr}"
    return ran.stdout


def test_a_job_has_its_answers(batch: Batch) -> None:
    """Use cases 1, 2, 5, 7 and 8: the lines as they stand, in a job of the local batch system."""
    batch.start(cores=POOL)
    script = "set -e\n" + "".join(f"{lines_of(case)}\n" for case in ASKED_HERE)
    [job_id] = batch.submit(f"{script}echo $OMP_NUM_THREADS\nulimit -v\n", cores=CORES, wall=WALL)
    batch.await_state(ENDED, job_id)
    job, [left, elapsed, scratch, threads, memory] = batch.job(job_id), output(batch, job_id)
    assert (job.code, job.ended is not None) == (0, True)
    taken = (job.ended or 0.0) - job.started + 1
    assert WALL - taken <= left <= WALL and 0 <= elapsed <= taken
    assert (threads, scratch) == (CORES, scratch_bytes(batch.directory))
    assert memory == (memory_bytes() or 0) * CORES // POOL // 1024, "its part of the machine's, by cores"


def output(batch: Batch, job_id: int) -> list[int]:
    """The numbers that a job printed."""
    return [int(word) for word in (batch.work(job_id) / "out").read_text().split()]


def test_a_running_job_knows_of_a_shutdown(batch: Batch, tmp_path: Path) -> None:
    """Use case 4: planned while it runs, and its lines find it."""
    batch.start()
    script = f"until [ -e $MACHINEFEATURES/shutdowntime ]; do sleep 0.05; done\n{lines_of(4)}"
    [job_id] = batch.submit(script, wall=86_400)
    batch.await_state(RUNNING, job_id)
    file, before = os.path.join(batch.directory, "shutdowntime"), int(time.time())
    command = [sys.executable, "-m", "drainwise", "shutdown", "--at", "+6h", "--file", file]
    subprocess.run(command, env=ENVIRONMENT, check=True, capture_output=True, timeout=60)
    batch.await_state(ENDED, job_id)
    [planned] = output(batch, job_id)
    assert before + 6 * 3600 <= planned <= time.time() + 6 * 3600


def test_a_site_has_its_answers(batch: Batch, typed: list[str]) -> None:
    """Use cases 9 to 12: the three metrics by the draft's formulas, and of equals the one its user misses least.

    A pilot that would idle much more stays, although its user gave it the lowest number of all.
    """
    batch.start(cores=3 * CORES)
    now = int(time.time())
    first, last = now + 200, now + 1400
    used, idle = (
        6.0,
        {"dear": 2400, "cheap": 2400, "wasteful": 9600},
    )  # cores, core-seconds after the first payload's end
    pilots = {
        name: batch.submit(
            PILOT.format(first=first, last=last, priority=priority, final=idle[name] * 1024 // CORES), wall=7200
        )[0]
        for name, priority in (("dear", 5), ("cheap", 2), ("wasteful", -9))
    }

    def reporting() -> list[str]:
        return [one.name for one in batch.pool.snapshot(int(time.time())).pilots if one.report]

    wait_for(lambda: len(reporting()) == len(pilots), what="three pilots that report")

    [status] = commands_of(9, "drainwise")
    before, table, after = time.time() - 1, said(typed, status), time.time()
    rows = [line.split() for line in table.splitlines()[1:]]
    shown = {int(name): [float(word) for word in figures] for name, _, *figures in rows}
    assert set(shown) == set(pilots.values())
    for name, job_id in pilots.items():
        left, guaranteed, drain, kill = shown[job_id]
        assert last - after <= left <= last - before
        assert left <= guaranteed
        unused = drain - idle[name]
        assert (CORES - used) * (first - after) <= unused <= (CORES - used) * (first - before)
        assert 0 <= kill <= used * (after - int(batch.job(job_id).started))

    plan, by_priority = commands_of(12, "drainwise")
    assert [line.split() for line in said(typed, by_priority).splitlines()[1:]] == [
        [str(pilots["wasteful"]), "-9"],
        [str(pilots["cheap"]), "2"],
        [str(pilots["dear"]), "5"],
    ]
    shown_plan = json.loads(said(typed, f"{plan} --json"))
    orders = [order["name"] for user in shown_plan["users"] for order in user["orders"]]
    assert orders == [str(pilots["cheap"])]
