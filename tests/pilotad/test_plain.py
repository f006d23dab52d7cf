"""A report between programs: foreign values by kind and range, our own without loss."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.pilotad.attributes import ATTRIBUTES, CORES, COUNT, FLAG, PRIORITY, TIME
from drainwise.pilotad.report import PLAIN_KINDS, PilotReport, as_plain, from_plain
from drainwise.pilotad.values import BELIEVED

NOW = 1795249000
REPORT = PilotReport(NOW, used_cpu=7.5, last_job_start=NOW, can_postpone_last_job=False, add_uncom_time=1e9 / 3)


def test_a_plain_report_has_the_fields_of_a_report() -> None:
    """In their order, so that a snapshot's hash does not depend on the table's."""
    assert tuple(PLAIN_KINDS) == PilotReport.__match_args__ == tuple(as_plain(REPORT))
    assert {row.field for row in ATTRIBUTES} < set(PLAIN_KINDS)


numbers = st.none() | st.floats(-1e20, 1e20) | st.integers(-(10**20), 10**20)
whole = st.none() | st.integers(-(10**20), 10**20)


@given(numbers, numbers, whole, whole, st.none() | st.booleans())
def test_a_report_comes_back_from_json_as_it_was(
    used: float | None, final: float | None, end: int | None, factor: int | None, can: bool | None
) -> None:
    """Whatever a pilot's file made of it: bounding is up to whoever reads it."""
    report = PilotReport(
        NOW,
        used_cpu=used,
        add_final_exp_waste=final,
        last_exp_job_end=end,
        priority_factor=factor,
        can_postpone_last_job=can,
        source="$JOBSTATUS",
    )
    assert from_plain(json.loads(json.dumps(as_plain(report)))) == report


@pytest.mark.parametrize(
    "odd",
    [
        {"heartbeat": None},
        {"heartbeat": 1.5},
        {"source": None},
        {"source": 5},
        {"used_cpu": "6"},
        {"used_cpu": True},
        {"used_cpu": float("nan")},
        {"used_cpu": float("inf")},
        {"add_uncom_time": 10**40},
        {"last_job_start": 1.0},
        {"can_postpone_last_job": 1},
    ],
    ids=str,
)
def test_what_cannot_have_been_written_is_refused(odd: dict[str, object]) -> None:
    """The message names the field, never the value."""
    with pytest.raises(ValueError, match=f"no report: {next(iter(odd))} is no "):
        from_plain({**as_plain(REPORT), **odd})


@pytest.mark.parametrize(
    ("kind", "value", "believed"),
    [
        (CORES, 6, 6),
        (CORES, 1e15, 1e15),
        (CORES, 1.1e15, None),
        (CORES, -0.5, None),
        (CORES, True, None),
        (CORES, float("nan"), None),
        (CORES, "6", None),
        (TIME, NOW, NOW),
        (TIME, float(NOW), None),
        (TIME, 946684799, None),
        (TIME, 4102444801, None),
        (PRIORITY, -(10**30), -(2**31)),
        (PRIORITY, 2**31, 2**31 - 1),
        (PRIORITY, 1.0, None),
        (FLAG, False, False),
        (FLAG, 0, None),
        (COUNT, 0, 0),
        (COUNT, 2**40, 2**31 - 1),
        (COUNT, -1, None),
        (COUNT, True, None),
        (COUNT, 1.0, None),
    ],
)
def test_a_foreign_value_is_believed_by_kind_and_range(kind: str, value: object, believed: object) -> None:
    """HOSTILE 36, 37, 39: unknown is not zero."""
    assert BELIEVED[kind](value) == believed
    assert type(BELIEVED[kind](value)) is type(believed)
