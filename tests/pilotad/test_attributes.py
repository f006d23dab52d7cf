"""The table of the attributes: the paper's nine, and those that it does not have."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from drainwise.pilotad.attributes import (
    ATTRIBUTES,
    CORE_SECONDS,
    CORES,
    COUNT,
    CURVE,
    FLAG,
    PRIORITY,
    TIME,
    absolute,
    scaled,
)
from drainwise.pilotad.report import PilotReport


def test_the_nine_names_of_the_paper_and_of_the_draft() -> None:
    """The paper's table 1 and the draft's section 3, name by name."""
    assert [(row.ad_name, row.status_name) for row in ATTRIBUTES[:9]] == [
        ("LAST_JOB_START", "last_job_start"),
        ("FIRST_EXP_JOB_END", "first_exp_job_end"),
        ("LAST_EXP_JOB_END", "last_exp_job_end"),
        ("LAST_MAX_JOB_END", "last_max_job_end"),
        ("USED_FRACTION1k", "used_CPU"),
        ("ADD_UNCOM_TIME1k", "add_uncom_time"),
        ("ADD_FINAL_EXP_WASTE1k", "add_final_exp_waste"),
        ("PRIORITY_FACTOR", "priority_factor"),
        ("CAN_POSTPONE_LAST_JOB", "can_postpone_last_job"),
    ]


def test_published_names() -> None:
    """What a pool view asks for."""
    assert {row.published for row in ATTRIBUTES} == {
        "PilotUsedCpu",
        "PilotLastJobStart",
        "PilotFirstExpJobEnd",
        "PilotLastExpJobEnd",
        "PilotLastMaxJobEnd",
        "PilotAddUncomTime",
        "PilotAddFinalExpWaste",
        "PilotPriorityFactor",
        "PilotCanPostponeLastJob",
        "PilotExpWasteCurve",
        "PilotReturnedCpus",
        "PilotReturnedMemory",
        "PilotReturnedSince",
        "PilotLastCheckpoint",
        "PilotNextCheckpoint",
        "PilotCheckpointSeconds",
        "PilotRestartCost",
    }


def test_every_row_is_a_field_of_the_report_and_the_other_way_round() -> None:
    """The report holds these values, the heartbeat and the source, nothing else."""
    assert {row.field for row in ATTRIBUTES} == set(PilotReport.__match_args__) - {"heartbeat", "source"}
    assert {row.kind for row in ATTRIBUTES} == {TIME, CORES, CORE_SECONDS, PRIORITY, FLAG, CURVE, COUNT}


def test_scaling_of_the_worked_example() -> None:
    """768/1024 of 8 cores are 6; 3686400/1024 s of the whole lease are 28800 core-seconds."""
    assert absolute(768, 8) == 6
    assert absolute(3686400, 8) == 28800
    assert absolute(7680000, 8) == 60000


@given(st.integers(0, 2**40), st.integers(1, 1024))
def test_scaling_there_and_back_loses_nothing(value: int, cores: int) -> None:
    """A `…1k` value that became absolute becomes itself again."""
    assert scaled(absolute(value, cores), cores) == value
