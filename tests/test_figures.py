"""Limits, periods and shares of the order channels and of the readers of users' files, once more as figures.

Hostile input is bounded by them, and docs/ and the formats tell many: whoever changes one changes it here, too, and
looks whether what the documents say of it still holds.
"""

from __future__ import annotations

import ast
import importlib

import pytest

FIGURES = """
drainwise.features.read TIMEOUT_SECS=2.0
drainwise.htcondor.node.cron_state START_SECONDS=60 USUAL_VACATE=600 _LIMIT=4194304 _LONGEST=11 _MISSED=3 _LATE=60
    _READABLE=4 _RUN=5
drainwise.htcondor.node.job_directories _PROC_LIMIT=65536
drainwise.htcondor.node.order_list ENDLESS=315360000
drainwise.htcondor.node.parts _LOOKS=2
drainwise.htcondor.pool.knobs SETTLED_AFTER=120
drainwise.htcondor.pool.order_channel SHOWN_SECONDS=5.0 _TRIES=5 _SETTLE_SECONDS=(0.5,1.5) _FRESH_SECONDS=0.4
    _LOOK_SECONDS=0.2 _TOO_LATE=15
drainwise.htcondor.pool.pool SNAPSHOT_SECONDS=8.0 HISTORY_SECONDS=30.0 NODE_SECONDS=8.0 _AHEAD_SECONDS=3.0
    _OF_ACCESS_POINTS=0.3 ORDER_SECONDS=30.0
drainwise.local.control _START_SECONDS=60.0 _STOP_SECONDS=20.0 _PAUSE=0.02 _LARGEST=1048576
drainwise.local.leases _PATIENT_EVERY=5.0
drainwise.node.glidein SECONDS=0.5 _AD_LIMIT=262144 _CONFIG_LIMIT=262144 _LONGEST=31622400
drainwise.node.payloads.observer CPU_OF_A_MINUTE=0.04 LONGEST_PAUSE=3600 ANEW=600 _CORES=0.5 _SHARE=0.05 _SECONDS=60
    _DIGITS=10 _CLAIMED=0.25 _NOTHING=0.01 _MORE_CORES=0.5 _MORE_SHARE=0.1 _BUSY=0.5 _NONE=0.05
drainwise.node.payloads.payload_trees _LEAST_PATTERN=3 _LONGEST_PATTERN=60 _MOST_PATTERNS=16
    MOST_MARKS=64 _MOST_DEPTH=12
drainwise.node.payloads.process_table MOST_PROCESSES=20000 SECONDS=1.0 MOST_COMMAND_LINES=1000 MOST_GROUPS=512
    _MOST_ORPHANS=256 _STAT_LIMIT=1024 _LINE_LIMIT=2048 _GROUP_LIMIT=4096 _CHECKED=256
drainwise.pilotad.attributes SCALE=1024
drainwise.pilotad.jobstatus _PAUSE=0.001 KEY_LIMIT=64 LOCK_TIMEOUT=0.05 _MODE=420
drainwise.pilotad.observation LONGEST=400
drainwise.pilotad.report ROUNDED=2 FUTURE_ALLOWANCE=60 _LARGEST_PLAIN=1e+30
drainwise.pilotad.safe_open _TRIES=3 _PAUSE=0.001
drainwise.pilotad.values MAX_DIGITS=19 LARGEST=1000000000000000.0 MOST_POINTS=5 TEXT_LIMIT=256 _MOST_DIGITS=15 _PARTS=3
drainwise.requests.request _LARGEST=1048576
drainwise.slurm.jobs.admin_comment VERSION=1 LONGEST=1024 MOST_OTHERS=31 _LARGEST_JOB=4294967295 _LONGEST_NODE=64
    _LONGEST_VERSION=32
drainwise.slurm.jobs.job MOST_TEXT=1024
drainwise.slurm.node_agent.user_task PATIENCE=1.0 LEFT_OVER=3600 SECONDS=0.5 MOST_FILES=1000 MOST_STARTDS=16 _LINES=16
    _LIMIT=8388608
drainwise.slurm.node_agent.user_tasks USER_SECONDS=2.0
drainwise.slurm.node_agent.work_dirs SECONDS=2.0 MOST_OTHERS=64 _RECORD_LIMIT=65536
drainwise.slurm.pool.orders _RECORD_SECONDS=25.0 _RECORD_PAUSE=0.5 _IN_VAIN_SECONDS=300.0
drainwise.slurm.pool.pool SNAPSHOT_SECONDS=120.0
drainwise.slurm.pool.transport FILTERED_JSON=(23,2) MOST_JOBS=2147483648
"""


def modules() -> dict[str, list[str]]:
    """The figures of each module; a line that begins with blanks goes on."""
    rows = [line.split() for line in FIGURES.strip().replace("\n ", " ").splitlines()]
    return {name: figures for name, *figures in rows}


@pytest.mark.parametrize(("module", "figures"), modules().items(), ids=list(modules()))
def test_a_limit_is_changed_on_purpose(module: str, figures: list[str]) -> None:
    there = vars(importlib.import_module(module))
    wanted = {name: ast.literal_eval(value) for name, _, value in (figure.partition("=") for figure in figures)}
    assert {name: there[name] for name in wanted} == wanted
