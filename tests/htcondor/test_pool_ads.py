"""Values of ads by type and range: a node may be old, broken or hostile."""

from __future__ import annotations

import re

import classad2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.htcondor.collector import plain
from drainwise.htcondor.pool_ads import (
    DEADLINE,
    LEASE_END,
    SLOT_ATTRIBUTES,
    contradicts_itself,
    moment,
    number,
    report_of,
    text,
    whole,
)
from drainwise.htcondor.render import drop_in_path, render
from drainwise.pilotad.attributes import ATTRIBUTES
from drainwise.pilotad.report import PilotReport
from drainwise.siteconfig import SiteConfig
from drainwise.siteconfig.schema import FeaturesSection

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


def test_every_attribute_that_deadline_and_lease_are_made_of_is_asked_for() -> None:
    """The node publishes both as expressions: an attribute that is missing would make an order invisible."""
    site = SiteConfig(features=FeaturesSection(wall_limit=86400))
    [drop_in] = [file.text for file in render(site, "execute") if file.path == drop_in_path("execute")]
    knobs = dict(line.split(" = ", 1) for line in drop_in.splitlines() if " = " in line and not line.startswith("#"))
    made_of = {DEADLINE, LEASE_END}
    for name in (DEADLINE, LEASE_END):
        text = re.sub(r"\$\((\w+)\)", lambda macro: knobs.get(macro[1], ""), knobs[name])
        made_of |= set(re.findall(r"MY\.(\w+)", text))
    assert len(made_of) > 3, "nothing was found: has the drop-in another form?"
    assert made_of <= set(SLOT_ATTRIBUTES)


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
        text(ad, name), number(ad, name), whole(ad, name), moment(ad, name), contradicts_itself(ad)


def test_expressions_are_evaluated_and_what_they_do_not_give_is_left_out() -> None:
    """The startd publishes deadline and lease as expressions; undefined, errors and lists are not values."""
    ad = classad2.parseOne(
        "JobStart = 1795249000\nPilotLeaseEnd = min({ MY.PilotReclaimDeadline, MY.JobStart + 172800 })\n"
        'PilotReclaimDeadline = undefined\nCpus = 4 + 4\nMemory = 1/0\nName = strcat("slot", 1)\nState = { 1 }\n'
        "Offline = false\nRemoteOwner = nowhere\n"
    )
    assert plain(ad, SLOT_ATTRIBUTES) == {
        "JobStart": 1795249000,
        "PilotLeaseEnd": 1795421800,
        "Cpus": 8,
        "Name": "slot1",
        "Offline": False,
    }
