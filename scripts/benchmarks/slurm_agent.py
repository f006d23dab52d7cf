"""A round of Slurm's node agent with 64 pilots on the node, against the bare start of the interpreter.

What counts is the whole time of the round inside the resident agent, the children included in which it becomes the
jobs' user. slurmctld's time is not in it, and neither is the start of Slurm's commands, which has a row of its own:
a round has one, and a second when something is published.
"""

from __future__ import annotations

import json
import os
import subprocess
import time

from benchmarks.figures import Figure
from drainwise.pilotad.jobstatus import write_jobstatus
from drainwise.pilotad.report import PilotReport
from made_up_node import PYTHON
from made_up_slurm_node import MadeUpJob, SlurmNode

JOBS = 64
TARGET = 2.0
_PROGRAM = f"{os.path.dirname(os.path.abspath(__file__))}/agent_rounds.py"


def fill(node: SlurmNode, uid: int, now: int) -> None:
    """A pilot of one user's in each of 64 jobs, with a report in all nine files of $JOBSTATUS."""
    report = PilotReport(
        now,
        used_cpu=6.0,
        last_job_start=now - 100,
        first_exp_job_end=now + 500,
        last_exp_job_end=now + 900,
        last_max_job_end=now + 1800,
        add_uncom_time=1e3,
        add_final_exp_waste=2e3,
        priority_factor=1,
        can_postpone_last_job=True,
    )
    for number in range(1, JOBS + 1):
        job = MadeUpJob(number, uid, "n1", "n1", "8", started=now - 600, ends=now + 6600, work_dir=f"/home/{number}")
        if node.prolog(job).returncode != 0:
            raise RuntimeError("the prolog failed")
        status = f"{node.tree(job)}/.jobstatus"
        write_jobstatus(status, report)
        for name in os.listdir(status):
            os.chown(f"{status}/{name}", uid, uid)


def figures(node: SlurmNode, uid: int, runs: int) -> list[Figure]:
    """Lay out and measure, as root."""
    fill(node, uid, int(time.time()))
    argv = [PYTHON, "-IS", _PROGRAM, node.site.slurm.library_dir, node.runtime_dir, str(runs)]
    median = json.loads(subprocess.run(argv, capture_output=True, check=True, text=True).stdout)
    floor = median["interpreter"]
    rows = (
        (f"Slurm agent, a round: {JOBS} jobs, every report new", "all", TARGET),
        (f"Slurm agent, a round: {JOBS} jobs, nothing new", "nothing", TARGET),
        ("Slurm agent: the start of a command (`true` in its place)", "command", None),
    )
    return [Figure(what, median[name], median[name] / floor, target) for what, name, target in rows]
