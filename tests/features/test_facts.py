"""Facts are immutable, and one unsound value costs one key."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.features.facts import HostFacts, JobFacts, job_values, machine_values

ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=0, max_value=10**6),
    st.floats(),
    st.text(),
    st.binary(),
    st.just(10**5000),
)
HOST_FIELDS = ["total_cpu", "jobslots", "phys_cores", "log_cores", "hs06", "hs23", "shutdown_command", "grace_secs"]
JOB_FIELDS = [
    "allocated_cpu",
    "jobstart_secs",
    "job_id",
    "wall_limit_secs",
    "cpu_limit_secs",
    "cpufactor_lrms",
    "max_rss_bytes",
    "max_swap_bytes",
    "scratch_limit_bytes",
    "grace_secs_job",
    "hs06_job",
]


def test_facts_cannot_be_changed() -> None:
    host = HostFacts(total_cpu=8)
    with pytest.raises(AttributeError, match="total_cpu"):
        setattr(host, "total_cpu", 9)  # noqa: B010 - which mypy refuses, too
    with pytest.raises(AttributeError, match="total_cpu"):
        del host.total_cpu
    assert host.total_cpu == 8
    assert repr(host) == "HostFacts(total_cpu=8)"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("total_cpu", 0),
        ("total_cpu", -1),
        ("total_cpu", True),
        ("total_cpu", 8.0),
        ("total_cpu", "8"),
        ("grace_secs", 2**63),
        pytest.param("jobslots", 10**5000, id="jobslots-5001-digits"),
        ("hs06", float("nan")),
        ("hs06", float("inf")),
        ("hs06", 0),
        ("hs23", -3.5),
        ("shutdown_command", "halt"),
        ("shutdown_command", "/sbin/halt now"),
        ("shutdown_command", "/sbin/h\u00e4lt"),
    ],
)
def test_an_unsound_value_is_left_out_and_named_while_the_others_stay(field: str, value: object) -> None:
    """HOSTILE 36: negative, over 2**63, 5,000 digits, NaN, infinity."""
    host = HostFacts(**{"phys_cores": 4, field: value})  # type: ignore[arg-type]
    assert getattr(host, field) is None
    assert host.phys_cores == 4
    assert len(host.refused) == 1
    assert host.refused[0].startswith(f"{field}=")
    assert len(host.refused[0]) <= 60
    assert host.refused[0].isprintable()


@pytest.mark.parametrize("job_id", ["", "12 0", "12\n0", "12\x1b[0m", "caf\u00e9", "1" * 256, 12, "\u0661\u0662"])
def test_a_job_id_that_is_not_printable_ascii_without_blanks_is_left_out(job_id: object) -> None:
    """HOSTILE 41, 44: line ends and escapes never reach a file or a log."""
    assert JobFacts(job_id=job_id).job_id is None  # type: ignore[arg-type]


def test_the_ids_of_real_batch_systems_pass() -> None:
    for job_id in ("1234.0", "ap1.site.example#1234.0#1795240000", "1234_[5]", "1234.pbs-server"):
        assert JobFacts(job_id=job_id).job_id == job_id


@given(
    st.dictionaries(st.sampled_from(HOST_FIELDS), ANYTHING),
    st.dictionaries(st.sampled_from(JOB_FIELDS), ANYTHING),
)
def test_whatever_is_given_nothing_raises_and_every_text_obeys_the_writer_rules(
    host_given: dict[str, object], job_given: dict[str, object]
) -> None:
    host = HostFacts(**host_given)  # type: ignore[arg-type]
    job = JobFacts(**job_given)  # type: ignore[arg-type]
    for texts in (machine_values(host), job_values(job, host)):
        for key, text in texts.items():
            if text is not None:
                assert text.isascii(), key
                assert text.isprintable(), key
                assert " " not in text, key
                assert 0 < len(text) <= 255, key
    assert machine_values(host)["total_cpu"] != "0"
    for line in host.refused + job.refused:
        assert line.isprintable()
        assert len(line) <= 60
