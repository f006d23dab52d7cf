"""A run's report is a user's word: every number is checked, and nothing is made of what is none."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise_tasks.validate.measurement import Measurement, parse_measurement

MEASURED = {"wall_seconds": 100.0, "cpu_seconds": 150.0, "peak_rss_bytes": 2_000_000_000}
REPORTED = {"written": 40, "output_bytes": 8_000_000}


def text(measured: object = MEASURED, reported: object = REPORTED, **more: object) -> bytes:
    return json.dumps({"measured": measured, "reported": reported, **more}).encode()


def test_the_figures_of_a_run() -> None:
    """Seconds per event that ran, kB per event that was written, CPU over cores × wall, MB of 10⁶ bytes."""
    run = parse_measurement(text(), cores=2, events=50)
    assert run == Measurement(2, 50, 40, 8_000_000, 100.0, 150.0, 2_000_000_000)
    assert (run.time_per_event, run.size_per_event, run.filter_efficiency) == (2.0, 200.0, 0.8)
    assert (run.cpu_efficiency, run.peak_rss) == (0.75, 2000.0)


def test_the_program_may_know_better() -> None:
    """The events that it ran and the seconds of its event loop count where it states them."""
    run = parse_measurement(text(reported={**REPORTED, "events": 80, "event_seconds": 80.0}), cores=1, events=50)
    assert (run.time_per_event, run.filter_efficiency) == (1.0, 0.5)


@pytest.mark.parametrize(
    ("measured", "reported", "expected"),
    [
        (MEASURED, {**REPORTED, "events": 0}, "events = 0: expected a whole number, 1 or more"),
        (MEASURED, {**REPORTED, "written": -1}, "written = -1"),
        (MEASURED, {**REPORTED, "written": 51}, "expected at most the 50 events"),
        (MEASURED, {**REPORTED, "written": True}, "written = True"),
        (MEASURED, {**REPORTED, "output_bytes": 1.5}, "output_bytes = 1.5"),
        (MEASURED, {**REPORTED, "output_bytes": 10**30}, "output_bytes"),
        (MEASURED, {**REPORTED, "event_seconds": 1e9}, "event_seconds"),
        (MEASURED, {**REPORTED, "event_seconds": 0}, "event_seconds = 0: expected more than 0"),
        (MEASURED, {**REPORTED, "event_seconds": float("nan")}, "event_seconds = nan"),
        ({**MEASURED, "wall_seconds": 0}, REPORTED, "wall_seconds = 0: expected more than 0"),
        ({**MEASURED, "wall_seconds": float("inf")}, REPORTED, "wall_seconds = inf"),
        ({**MEASURED, "cpu_seconds": -1}, REPORTED, "cpu_seconds = -1"),
        ({**MEASURED, "peak_rss_bytes": 0}, REPORTED, "peak_rss_bytes = 0"),
        (MEASURED, {"written": 4}, "output_bytes = missing"),
        (MEASURED, None, "has no 'reported'"),
        ([], REPORTED, "has no 'measured'"),
    ],
)
def test_what_is_no_figure_is_refused_by_name(measured: object, reported: object, expected: str) -> None:
    """Zero events, negative times, NaN, more events than ran: the key and the value are named."""
    with pytest.raises(ValueError, match=expected):
        parse_measurement(text(measured, reported), cores=1, events=50)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b"[" * 100_000, b'{"fault": "the program said so"}'])
def test_what_is_no_report_is_refused(content: bytes) -> None:
    """Half a report, none at all, and one that says itself what is wrong."""
    with pytest.raises(ValueError, match=r"report|the program said so"):
        parse_measurement(content, cores=1, events=50)


@given(st.binary(max_size=200))
def test_no_content_does_anything_else(content: bytes) -> None:
    """Whatever the bytes, the answer is a measurement or a ValueError."""
    with pytest.raises(ValueError):
        parse_measurement(content, cores=1, events=50)
