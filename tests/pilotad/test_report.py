"""What a report is worth, and the clamps on its values."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.pilotad.report import (
    CONTRADICTORY,
    FRESH,
    FUTURE_ALLOWANCE,
    INCOMPLETE,
    STALE,
    PilotReport,
    bounded,
    newest,
    standing,
    standing_and_rule,
)
from drainwise.siteconfig import SiteConfig

NOW = 1_795_249_000
SOUND: dict[str, Any] = {
    "heartbeat": NOW - 30,
    "used_cpu": 6.0,
    "last_job_start": NOW - 1039,
    "first_exp_job_end": NOW + 7000,
    "last_exp_job_end": NOW + 13000,
    "last_max_job_end": NOW + 41000,
    "add_uncom_time": 28800.0,
    "add_final_exp_waste": 60000.0,
    "priority_factor": 3,
    "can_postpone_last_job": True,
}


def report(**changed: Any) -> PilotReport:
    """A sound report with some fields changed."""
    return PilotReport(**{**SOUND, **changed})


def test_a_pilot_that_reports_once_an_hour_is_never_stale() -> None:
    """The paper's heartbeat, "at least once an hour", by way of a node and a collector."""
    limit, said = SiteConfig().pilot.stale_after, report()
    for way in (60 + 60, 60 + 300):  # the cron's period, and UPDATE_INTERVAL: ours, and HTCondor's own
        stale = [age for age in range(3600 + way + 1) if standing(said, said.heartbeat + age, limit) != FRESH]
        assert stale == [], f"stale for {len(stale)} s of each hour"
    assert standing(said, said.heartbeat + 3600 + 601, limit) == STALE


def test_a_sound_report_is_fresh() -> None:
    """And no rule is named."""
    assert standing_and_rule(report(), NOW, 3600) == (FRESH, "")


@pytest.mark.parametrize("age, expected", [(3600, FRESH), (3601, STALE)])
def test_a_heartbeat_older_than_the_limit_is_stale(age: int, expected: str) -> None:
    """One second decides."""
    assert standing(report(heartbeat=NOW - age), NOW, 3600) == expected


@pytest.mark.parametrize(
    "changed, rule",
    [
        ({"heartbeat": NOW + FUTURE_ALLOWANCE + 1}, "heartbeat lies in the future"),
        ({"last_job_start": NOW + FUTURE_ALLOWANCE + 1}, "last job start lies in the future"),
        ({"first_exp_job_end": NOW + 13001}, "first expected end is after the last"),
        ({"last_exp_job_end": NOW + 41001}, "last expected end is after the guaranteed one"),
        (
            {"last_exp_job_end": None, "first_exp_job_end": NOW + 41001},
            "first expected end is after the guaranteed one",
        ),
        (
            {"first_exp_job_end": NOW - 5000, "last_exp_job_end": NOW - 4000},
            "last job ends before it starts",
        ),
    ],
)
def test_contradictions_are_named(changed: dict[str, Any], rule: str) -> None:
    """37: a report that cannot be true loses its protection, and the rule says why."""
    assert standing_and_rule(report(**changed), NOW, 3600) == (CONTRADICTORY, rule)


@pytest.mark.parametrize(
    "changed, rule",
    [
        ({"used_cpu": 0.0}, "more uncommitted time than the cores in use can have made"),
        ({"add_uncom_time": 8 * 19_000.0}, "more uncommitted time than the cores in use can have made"),
        ({"last_job_start": NOW - 19_999}, "more uncommitted time than the cores in use can have made"),
        ({"add_final_exp_waste": 11_000.0}, "less final waste than the cores that are not in use make"),
        ({"used_cpu": 0.0, "add_uncom_time": 0.0, "add_final_exp_waste": 47_000.0}, "less final waste than"),
        ({"add_final_exp_waste": 8 * 34_003.0}, "more final waste than all cores can make"),
        ({"last_max_job_end": None}, "more final waste than all cores can make"),
    ],
)
def test_sums_that_no_payloads_can_make_are_contradictory(changed: dict[str, Any], rule: str) -> None:
    """38: none in use and all to lose, or little use and nothing idle: eight cores, started 20,000 s ago."""
    assert standing(report(**changed), NOW, 3600, NOW - 20_000) == FRESH, "without the cores nobody can tell"
    standing_there, found = standing_and_rule(report(**changed), NOW, 3600, NOW - 20_000, cores=8)
    assert (standing_there, found[: len(rule)]) == (CONTRADICTORY, rule)


def test_the_bounds_of_the_sums_are_for_what_is_known() -> None:
    """A fraction of the cores has steps, two clocks differ, and either last end may be the one that i belongs to."""
    busy = report(used_cpu=8.0, add_uncom_time=8.0 * 18_961)
    for sound in (report(), busy, report(last_exp_job_end=None), report(used_cpu=5.995), report(add_uncom_time=None)):
        assert standing_and_rule(sound, NOW, 3600, NOW - 20_000, cores=8)[1] not in {
            "more uncommitted time than the cores in use can have made",
            "less final waste than the cores that are not in use make",
            "more final waste than all cores can make",
        }


@pytest.mark.parametrize(
    "missing, rule",
    [
        (("used_cpu",), "cores in use are not known"),
        (("last_exp_job_end", "last_max_job_end"), "no remaining time: no last job end"),
        (("first_exp_job_end",), "no draining waste: first job end or final waste missing"),
        (("add_final_exp_waste",), "no draining waste: first job end or final waste missing"),
        (("last_job_start",), "no kill waste: last job start or uncommitted time missing"),
        (("add_uncom_time",), "no kill waste: last job start or uncommitted time missing"),
    ],
)
def test_a_report_that_lacks_what_a_metric_needs_is_incomplete(missing: tuple[str, ...], rule: str) -> None:
    """Unknown is not zero."""
    for lease in ((), (NOW - 10_000, 8)):
        assert standing_and_rule(report(**dict.fromkeys(missing)), NOW, 3600, *lease) == (INCOMPLETE, rule)


@pytest.mark.parametrize("field", ["last_exp_job_end", "last_max_job_end", "priority_factor", "can_postpone_last_job"])
def test_what_no_metric_needs_may_be_unknown(field: str) -> None:
    """One of the two last ends is enough."""
    assert standing(report(**{field: None}), NOW, 3600) == FRESH


def test_a_file_left_by_an_earlier_job_is_stale() -> None:
    """48: a heartbeat from before the job's start says nothing about this job."""
    assert standing(report(), NOW, 3600, job_start=NOW - 5000) == FRESH
    assert standing_and_rule(report(heartbeat=NOW - 900), NOW, 3600, job_start=NOW - 600) == (
        STALE,
        "heartbeat is older than the job",
    )


@pytest.mark.parametrize("step", [-86400, -61, 3700, 86400])
def test_a_step_of_the_clock_makes_a_report_worthless_and_never_precious(step: int) -> None:
    """53: heartbeats then lie in the future or are too old; nothing is protected by them."""
    assert standing(report(heartbeat=NOW), NOW + step, 3600) in {STALE, CONTRADICTORY}


numbers = st.none() | st.integers(-(10**19), 10**19) | st.floats(-1e25, 1e25)
times = st.none() | st.integers(946684800, 4102444800)


@given(
    used=numbers,
    sums=st.tuples(numbers, numbers),
    dates=st.tuples(times, times, times, times),
    cores=st.integers(1, 256),
    age=st.integers(0, 10**7),
    lease=st.none() | st.integers(-1000, 10**7),
)
def test_bounded_values_lie_within_the_lease(
    used: float | None,
    sums: tuple[float | None, float | None],
    dates: tuple[int | None, int | None, int | None, int | None],
    cores: int,
    age: int,
    lease: int | None,
) -> None:
    """Whatever a pilot claims, what comes out is possible; unknown stays unknown, clamping twice changes nothing."""
    job_start, lease_end = NOW - age, None if lease is None else NOW + lease
    said = PilotReport(
        NOW,
        used_cpu=used,
        add_uncom_time=sums[0],
        add_final_exp_waste=sums[1],
        last_job_start=dates[0],
        first_exp_job_end=dates[1],
        last_exp_job_end=dates[2],
        last_max_job_end=dates[3],
    )
    kept = bounded(said, cores, job_start, lease_end, NOW)
    assert kept.used_cpu is None or 0 <= kept.used_cpu <= cores
    assert kept.last_job_start is None or job_start <= kept.last_job_start <= NOW
    assert kept.add_uncom_time is None or 0 <= kept.add_uncom_time <= cores * age
    assert kept.add_final_exp_waste is None or kept.add_final_exp_waste >= 0
    if lease_end is not None:
        ends = (kept.first_exp_job_end, kept.last_exp_job_end, kept.last_max_job_end)
        assert all(end is None or end <= lease_end for end in ends)
    fields = set(PilotReport.__match_args__)
    assert {name for name in fields if getattr(said, name) is None} == {
        name for name in fields if getattr(kept, name) is None
    }
    assert bounded(kept, cores, job_start, lease_end, NOW) == kept


def test_a_sound_report_is_not_changed_by_the_bounds() -> None:
    """Only what is impossible is clamped."""
    assert bounded(report(), 8, NOW - 20000, NOW + 50000, NOW) == report()


def test_nan_does_not_pass_the_bounds() -> None:
    """36: a value that compares with nothing becomes the lower bound."""
    assert bounded(report(used_cpu=float("nan")), 8, NOW - 20000, None, NOW).used_cpu == 0


def test_the_newest_heartbeat_wins() -> None:
    """A tie goes to the first source; one alone wins."""
    old, new = report(heartbeat=5), report(heartbeat=6, source="$JOBSTATUS")
    assert newest(old, new) is new
    assert newest(new, old) is new
    assert newest(old, report(heartbeat=5, source="$JOBSTATUS")) is old
    assert newest(None, old) is old
    assert newest(old, None) is old
    assert newest(None, None) is None
