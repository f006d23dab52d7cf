"""What truly ran, from the pilots' records, equals integration second by second."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_demo.truth import Ran, Unforeseen, begun_after, busy, ended_between, kill_waste, lateness, read_records


def record(time: float, event: str, payload: str, pilot: str = "p1") -> str:
    return json.dumps({"time": time, "pilot": pilot, "event": event, "payload": payload, "cores": 4}) + "\n"


def test_starts_and_ends_are_paired_by_pilot_and_payload() -> None:
    text = record(1, "started", "a") + record(2, "started", "a", "p2") + record(3, "requeued", "a")
    text += record(4, "started", "a") + record(5, "refused", "b") + record(6, "done", "a", "p2")
    assert read_records(text) == [
        Ran("p1", "a", 4, 1.0, 3.0, "requeued"),
        Ran("p2", "a", 4, 2.0, 6.0, "done"),
        Ran("p1", "a", 4, 4.0, None),
    ]


def test_a_line_that_is_being_written_is_left_out() -> None:
    text = record(1, "started", "a") + record(3, "done", "a")[:-3]
    assert read_records(text) == [Ran("p1", "a", 4, 1.0, None)]


rans = st.lists(
    st.builds(
        lambda pilot, cores, start, length: Ran(
            pilot, "x", cores, float(start), None if length is None else float(start + length)
        ),
        st.sampled_from(("p1", "p2")),
        st.integers(1, 8),
        st.integers(0, 50),
        st.none() | st.integers(0, 50),
    ),
    max_size=8,
)


@given(ran=rans, begin=st.integers(0, 60), length=st.integers(0, 60))
def test_busy_and_kill_waste_equal_counting_second_by_second(ran: list[Ran], begin: int, length: int) -> None:
    now = begin + length
    mine = [one for one in ran if one.pilot == "p1"]

    def running(one: Ran, second: int) -> bool:
        return one.start <= second and (one.end is None or second < one.end)

    counted = sum(one.cores for one in mine for second in range(begin, now) if running(one, second))
    assert busy(ran, "p1", begin, now) == pytest.approx(counted)
    lost = sum(one.cores for one in mine if running(one, now) for second in range(now) if running(one, second))
    assert kill_waste(ran, "p1", now) == pytest.approx(lost)


def test_what_began_after_a_report_is_in_no_prediction_of_it() -> None:
    """One that was stopped, one that had no end, one that ended well; not the one before, nor another pilot's."""
    ran = [
        Ran("p1", "before", 4, 9.0, 30.0, "requeued"),
        Ran("p1", "stopped", 4, 11.0, 14.0, "requeued"),
        Ran("p1", "cut", 2, 12.0, None),
        Ran("p1", "well", 1, 13.0, 19.0, "done"),
        Ran("p2", "other", 8, 11.0, None),
    ]
    assert begun_after(ran, "p1", 10.0, 20.0) == Unforeseen(4 * 3 + 2 * 8, 20.0)
    assert begun_after(ran[:2] + ran[3:], "p1", 10.0, 20.0) == Unforeseen(12.0, 19.0)
    assert begun_after(ran, "p1", 13.0, 20.0) == begun_after(ran, "p3", 0.0, 20.0) == Unforeseen()


def test_what_ended_after_a_report_is_lost_by_no_kill_any_more() -> None:
    ran = [
        Ran("p1", "ended", 4, 5.0, 12.0, "done"),
        Ran("p1", "before", 4, 5.0, 10.0, "done"),
        Ran("p1", "later", 4, 5.0, 15.5, "done"),
        Ran("p1", "unknown", 4, 11.0, 12.0, "done"),
        Ran("p1", "runs", 4, 5.0, None),
        Ran("p2", "other", 4, 5.0, 12.0, "done"),
    ]
    assert ended_between(ran, "p1", 10.0, 15.0) == 4 * 7


def test_a_machine_is_late_by_the_payload_that_it_was_slowest_for() -> None:
    """One that was stopped says nothing; before any has ended nothing is known."""
    ran = [
        Ran("p1", "a", 1, 0.0, 5.25, "done"),
        Ran("p1", "b", 1, 0.0, 8.0, "done"),
        Ran("p1", "c", 1, 0.0, 99.0, "failed"),
    ]
    assert lateness(ran, {"a": 5.0, "b": 6.0, "c": 1.0}, 0.5) == 1.5
    assert lateness(ran[:1], {"a": 5.0}, 0.5) == -0.25
    assert lateness([], {}, 0.5) == 0.0
