"""Facts become the texts of SPEC's tables; deadlines become both shutdown files or neither."""

from __future__ import annotations

import doctest
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import drainwise.features.facts
from drainwise.features.facts import (
    JOB,
    MACHINE,
    HostFacts,
    JobFacts,
    deadline_values,
    earlier_deadline,
    job_values,
    keys_of,
    machine_values,
    plain,
    scaled_down,
)

HOST = HostFacts(
    total_cpu=24,
    jobslots=3,
    phys_cores=12,
    log_cores=24,
    hs06=300.5,
    shutdown_command="/usr/sbin/destroy-vm",
    grace_secs=3600,
)
TIMES = st.one_of(st.none(), st.integers(min_value=1, max_value=4 * 10**9))


def test_a_whole_machine_directory() -> None:
    assert machine_values(HOST) == {
        "total_cpu": "24",
        "hs06": "300.5",
        "hs23": None,
        "grace_secs": "3600",
        "jobslots": "3",
        "phys_cores": "12",
        "log_cores": "24",
        "shutdown_command": "/usr/sbin/destroy-vm",
    }


def test_a_whole_job_directory_in_both_generations() -> None:
    job = JobFacts(
        allocated_cpu=8,
        jobstart_secs=1795240000,
        job_id="1234.0",
        wall_limit_secs=259200,
        cpu_limit_secs=2073600,
        cpufactor_lrms=1.15,
        max_rss_bytes=16_999_999_999,
        max_swap_bytes=0,
        scratch_limit_bytes=160_999_999_999,
        grace_secs_job=600,
    )
    assert job_values(job, HOST) == {
        "allocated_cpu": "8",
        "allocated_CPU": "8",
        "hs06_job": "100.166667",
        "grace_secs_job": "600",
        "jobstart_secs": "1795240000",
        "job_id": "1234.0",
        "wall_limit_secs": "259200",
        "wall_limit_secs_lrms": "298080",
        "cpu_limit_secs": "2073600",
        "cpu_limit_secs_lrms": "2384640",
        "cpufactor_lrms": "1.15",
        "max_rss_bytes": "16999999999",
        "mem_limit_MB": "16999",
        "max_swap_bytes": "0",
        "scratch_limit_bytes": "160999999999",
        "disk_limit_GB": "160",
    }


def test_what_is_not_known_is_left_out_with_its_twin() -> None:
    texts = {**machine_values(HostFacts()), **job_values(JobFacts(), HostFacts())}
    assert set(texts.values()) == {None}
    named = {key.name for directory in (MACHINE, JOB) for key in keys_of(directory)}
    assert set(texts) == named - {"shutdowntime", "shutdowntime_job"}


def test_a_normalised_limit_needs_the_factor() -> None:
    texts = job_values(JobFacts(wall_limit_secs=3600), HostFacts())
    assert texts["wall_limit_secs"] == "3600"
    assert texts["wall_limit_secs_lrms"] is None


def test_hyper_threading_off_is_written_as_zero_logical_cores() -> None:
    assert machine_values(HostFacts(phys_cores=12, log_cores=0))["log_cores"] == "0"


@pytest.mark.parametrize(
    ("hs06", "hs23", "expected"),
    [
        (None, None, (None, None)),
        (300, None, ("300", None)),
        (None, 310.25, ("310.25", "310.25")),
        (300, 310, ("300", "310")),
    ],
)
def test_a_measured_hepscore_is_written_to_hs06_too(
    hs06: float | None, hs23: float | None, expected: tuple[str | None, str | None]
) -> None:
    texts = machine_values(HostFacts(hs06=hs06, hs23=hs23))
    assert (texts["hs06"], texts["hs23"]) == expected


def test_the_job_share_is_the_sites_word_before_the_share_by_cores() -> None:
    assert job_values(JobFacts(allocated_cpu=8, hs06_job=99), HOST)["hs06_job"] == "99"
    assert job_values(JobFacts(allocated_cpu=12), HostFacts(total_cpu=24, hs23=100))["hs06_job"] == "50"


def test_a_job_with_more_cores_than_the_host_has_no_share_by_cores() -> None:
    assert job_values(JobFacts(allocated_cpu=25), HOST)["hs06_job"] is None


@given(st.integers(min_value=0, max_value=2**63 - 1))
def test_megabytes_and_gigabytes_never_promise_more_than_the_bytes(limit: int) -> None:
    texts = job_values(JobFacts(max_rss_bytes=limit, scratch_limit_bytes=limit), HostFacts())
    for key, unit in (("mem_limit_MB", 10**6), ("disk_limit_GB", 10**9)):
        text = texts[key]
        assert 0 <= limit - int(text or "0") * unit < unit
        assert (text is None) == (0 < limit < unit), "a limit below one unit is left out, never told as 0"


@given(st.integers(min_value=0, max_value=2**63 - 1), st.floats(min_value=1e-6, max_value=1e9))
def test_a_normalised_limit_is_the_exact_product_with_the_factor_that_is_written(limit: int, factor: float) -> None:
    texts = job_values(JobFacts(wall_limit_secs=limit, cpufactor_lrms=factor), HostFacts())
    exact = limit * Fraction(texts["cpufactor_lrms"] or "")
    assert int(texts["wall_limit_secs_lrms"] or "") == exact.numerator // exact.denominator


@given(st.floats(min_value=1e-6, max_value=1e9), st.integers(1, 512), st.integers(1, 512))
def test_the_share_as_written_never_exceeds_the_host_as_written(score: float, allocated: int, total: int) -> None:
    host = HostFacts(total_cpu=total, hs06=score)
    share = job_values(JobFacts(allocated_cpu=allocated), host)["hs06_job"]
    if share is not None:
        assert Fraction(share) <= Fraction(machine_values(host)["hs06"] or "")


@given(st.one_of(st.floats(min_value=1e-6, max_value=1e9), st.integers(0, 2**63)))
def test_numbers_are_plain_and_right_to_six_decimals(number: float) -> None:
    text = plain(number)
    assert set(text) <= set("0123456789.")
    assert not text.endswith(".")
    assert abs(Fraction(text) - Fraction(number)) <= Fraction(1, 2 * 10**6)


def test_no_float_error_eats_a_second() -> None:
    """100 * 1.15 is 114.99999999999999 in binary floating point."""
    assert scaled_down(100, "1.15") == 115


@pytest.mark.parametrize(
    ("machine", "job", "expected"),
    [
        (None, None, None),
        (2000, None, "2000"),
        (None, 2000, "2000"),
        (3000, 2000, "2000"),
        (2000, 3000, "2000"),
        (1000, None, None),
        (999, 2000, "2000"),
        (2000, 1000, "2000"),
        (1001, 1001, "1001"),
    ],
)
def test_both_shutdown_files_hold_the_earlier_time_ahead(
    machine: int | None, job: int | None, expected: str | None
) -> None:
    """At now = 1000: a time that has arrived is no plan any more, and its file goes."""
    assert deadline_values(machine, job, 1000) == ({"shutdowntime": expected}, {"shutdowntime_job": expected})


@given(TIMES, TIMES, st.integers(min_value=1, max_value=4 * 10**9))
def test_a_published_deadline_is_always_ahead_and_one_of_the_planned(
    machine: int | None, job: int | None, now: int
) -> None:
    deadline = earlier_deadline(machine, job, now)
    assert deadline is None or (deadline > now and deadline in (machine, job))
    if deadline is None:
        assert all(time is None or time <= now for time in (machine, job))


def test_the_examples_in_the_docstrings_are_true() -> None:
    assert doctest.testmod(drainwise.features.facts) == (0, 2)
