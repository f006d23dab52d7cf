"""Values of ads by type and range: a node may be old, broken or hostile."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.htcondor.ads.values import moment, number, text, whole
from drainwise.htcondor.pool.collector import SLOT_ATTRIBUTES
from drainwise.htcondor.pool.slots import report_of
from drainwise.pilotad.attributes import ATTRIBUTES
from drainwise.pilotad.report import PilotReport

NOW = 1795249000
REPORT = {
    "PilotHeartbeat": NOW - 60,
    "PilotUsedCpu": 6.0,
    "PilotLastJobStart": NOW - 500,
    "PilotFirstExpJobEnd": NOW + 500,
    "PilotLastExpJobEnd": NOW + 900,
    "PilotLastMaxJobEnd": NOW + 9000,
    "PilotAddUncomTime": 100.5,
    "PilotAddFinalExpWaste": 0,
    "PilotPriorityFactor": -3,
    "PilotCanPostponeLastJob": False,
}


def test_a_report_is_put_together_again() -> None:
    assert report_of(REPORT) == PilotReport(
        NOW - 60,
        used_cpu=6.0,
        last_job_start=NOW - 500,
        first_exp_job_end=NOW + 500,
        last_exp_job_end=NOW + 900,
        last_max_job_end=NOW + 9000,
        add_uncom_time=100.5,
        add_final_exp_waste=0,
        priority_factor=-3,
        can_postpone_last_job=False,
    )


def test_every_attribute_that_a_pilot_may_state_is_asked_for() -> None:
    assert {attribute.published for attribute in ATTRIBUTES} <= set(SLOT_ATTRIBUTES)


@pytest.mark.parametrize("heartbeat", [None, True, "now", 0, -1, 2**63, 1.5, float("nan")])
def test_without_a_sound_heartbeat_a_pilot_is_silent(heartbeat: object) -> None:
    assert report_of({**REPORT, "PilotHeartbeat": heartbeat}) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PilotUsedCpu", "6"),
        ("PilotUsedCpu", True),
        ("PilotUsedCpu", float("inf")),
        ("PilotUsedCpu", float("nan")),
        ("PilotUsedCpu", -1),
        ("PilotAddUncomTime", 1e300),
        ("PilotLastJobStart", 1.0),
        ("PilotLastJobStart", 0),
        ("PilotFirstExpJobEnd", 2**62),
        ("PilotPriorityFactor", 1.5),
        ("PilotPriorityFactor", True),
        ("PilotCanPostponeLastJob", 1),
        ("PilotCanPostponeLastJob", "False"),
    ],
)
def test_a_value_of_the_wrong_type_or_range_is_unknown(name: str, value: object) -> None:
    """HOSTILE 36, 37: unknown is not zero, and the rest of the report stands."""
    report, sound = report_of({**REPORT, name: value}), report_of(REPORT)
    [field] = [attribute.field for attribute in ATTRIBUTES if attribute.published == name]
    assert report is not None
    assert getattr(report, field) is None
    assert all(
        getattr(report, other.field) == getattr(sound, other.field) for other in ATTRIBUTES if other.field != field
    )


def test_an_extreme_priority_is_clamped() -> None:
    """HOSTILE 39."""
    report = report_of({**REPORT, "PilotPriorityFactor": 10**30})
    assert report is not None
    assert report.priority_factor == 2**31 - 1


anything = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers())


@given(st.dictionaries(st.sampled_from(list(REPORT)), anything))
def test_no_ad_can_break_the_reading(ad: dict[str, object]) -> None:
    report_of(ad)
    for name in ad:
        text(ad, name), number(ad, name), whole(ad, name), moment(ad, name)
