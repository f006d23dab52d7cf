"""The worked example of what a pilot reports: the file it writes, and what is read of it."""

from __future__ import annotations

from typing import Any

from drainwise.pilotad.report import PilotReport

PILOT_AD = b"""LAST_JOB_START = 1795247961
FIRST_EXP_JOB_END = 1795256000
LAST_EXP_JOB_END = 1795262000
LAST_MAX_JOB_END = 1795290000
USED_FRACTION1k = 768
ADD_UNCOM_TIME1k = 3686400
ADD_FINAL_EXP_WASTE1k = 7680000
PRIORITY_FACTOR = 3
CAN_POSTPONE_LAST_JOB = True
"""
_VALUES = {
    "used_cpu": 6.0,
    "last_job_start": 1795247961,
    "first_exp_job_end": 1795256000,
    "last_exp_job_end": 1795262000,
    "last_max_job_end": 1795290000,
    "add_uncom_time": 28800.0,
    "add_final_exp_waste": 60000.0,
    "priority_factor": 3,
    "can_postpone_last_job": True,
}


def worked_example(heartbeat: int = 0, **own: Any) -> PilotReport:
    """Return the report; own: values that differ."""
    return PilotReport(heartbeat, **{**_VALUES, **own})


def numbered(number: int, **own: Any) -> PilotReport:
    """Return a report in which every value is made of one number."""
    dates = {name: 1_795_000_000 + number for name in _VALUES if name.endswith(("start", "end"))}
    amounts = dict.fromkeys(("used_cpu", "add_uncom_time", "add_final_exp_waste", "priority_factor"), number)
    return PilotReport(0, **{**dates, **amounts, **own})
