"""THE table of the attributes a pilot may state, the paper's nine and eight more, and the names around them.

One row per attribute; every other module takes names, types and scaling from here.
`.pilot.ad` states work in 1024ths of the whole lease, `$JOBSTATUS` in absolute cores and core-seconds.
"""

from __future__ import annotations

from drainwise.facts import fact

PILOT_AD = ".pilot.ad"
SITE_AD = ".site.ad"
GLIDEIN_AD = ".glidein.ad"
"""In `$JOBSTATUS`: what the node derives from a glidein's files, as its user; written as `.pilot.ad` is."""
PROCESSES = "processes"
"""Source of a report that the node made of what it saw of the job's processes."""
JOBSTATUS = "$JOBSTATUS"

SITE_AD_RUN = "SITE_AD_RUN"
"""In a `.site.ad` that lies where other jobs could find it: the run of a job that it is for, `"17@1795248000"`."""

HEARTBEAT = "PilotHeartbeat"
"""Published name of the heartbeat: when the pilot last wrote, UNIX s."""
REPORTED_BY = "PilotReportedBy"
"""Published name of the run that the report is of, `"<GlobalJobId>@<JobStart>"`."""
STANDING = "PilotReportStanding"
"""Published name of how far its node believes the report: see `report.standing`."""
OBSERVATION = "PilotObserved"
"""Published name of what its node saw of its payloads: text of `observation`."""

TIME = "time"
"""UNIX s, the same in both files."""
CORES = "cores"
"""Cores in use; `.pilot.ad`: fraction of the lease × 1024, 0…1024."""
CORE_SECONDS = "core-seconds"
"""Core-seconds; `.pilot.ad`: seconds of the whole lease × 1024."""
PRIORITY = "priority"
"""A whole number, higher is better, comparable within one user only."""
FLAG = "flag"
"""True or False."""
COUNT = "count"
"""A whole number of cores, MiB, seconds or core-seconds, never scaled, the same in both files."""
CURVE = "curve"
"""Text of `waste_curve`, the same in both files."""

SCALE = 1024
"""The meaning of `1k` in the `.pilot.ad` names."""


@fact
class Attribute:
    """One row: the attribute's `.pilot.ad` name, `$JOBSTATUS` file, `PilotReport` field, published name and kind."""

    ad_name: str
    status_name: str
    field: str
    published: str
    kind: str


ATTRIBUTES = (
    Attribute("LAST_JOB_START", "last_job_start", "last_job_start", "PilotLastJobStart", TIME),
    Attribute("FIRST_EXP_JOB_END", "first_exp_job_end", "first_exp_job_end", "PilotFirstExpJobEnd", TIME),
    Attribute("LAST_EXP_JOB_END", "last_exp_job_end", "last_exp_job_end", "PilotLastExpJobEnd", TIME),
    Attribute("LAST_MAX_JOB_END", "last_max_job_end", "last_max_job_end", "PilotLastMaxJobEnd", TIME),
    Attribute("USED_FRACTION1k", "used_CPU", "used_cpu", "PilotUsedCpu", CORES),
    Attribute("ADD_UNCOM_TIME1k", "add_uncom_time", "add_uncom_time", "PilotAddUncomTime", CORE_SECONDS),
    Attribute(
        "ADD_FINAL_EXP_WASTE1k", "add_final_exp_waste", "add_final_exp_waste", "PilotAddFinalExpWaste", CORE_SECONDS
    ),
    Attribute("PRIORITY_FACTOR", "priority_factor", "priority_factor", "PilotPriorityFactor", PRIORITY),
    Attribute(
        "CAN_POSTPONE_LAST_JOB", "can_postpone_last_job", "can_postpone_last_job", "PilotCanPostponeLastJob", FLAG
    ),
    Attribute("EXP_WASTE_CURVE", "exp_waste_curve", "exp_waste_curve", "PilotExpWasteCurve", CURVE),
    Attribute("RETURNED_CORES", "returned_cores", "returned_cores", "PilotReturnedCpus", COUNT),
    Attribute("RETURNED_MEMORY", "returned_memory", "returned_memory", "PilotReturnedMemory", COUNT),
    Attribute("RETURNED_SINCE", "returned_since", "returned_since", "PilotReturnedSince", TIME),
    Attribute("LAST_CHECKPOINT", "last_checkpoint", "last_checkpoint", "PilotLastCheckpoint", TIME),
    Attribute("NEXT_CHECKPOINT", "next_checkpoint", "next_checkpoint", "PilotNextCheckpoint", TIME),
    Attribute("CHECKPOINT_SECONDS", "checkpoint_seconds", "checkpoint_seconds", "PilotCheckpointSeconds", COUNT),
    Attribute("RESTART_COST", "restart_cost", "restart_cost", "PilotRestartCost", COUNT),
)
"""The nine rows in the order of the paper's table 1, then the optional ones that the paper does not have."""


def absolute(scaled: float, cores: int) -> float:
    """Return the cores or core-seconds of a `…1k` value: `scaled` / 1024 × `cores` (the lease's cores)."""
    return scaled * cores / SCALE


def scaled(value: float, cores: int) -> int:
    """Return the `…1k` value nearest to `value` (cores or core-seconds) for a lease of `cores` ≥ 1."""
    return round(value * SCALE / cores)
