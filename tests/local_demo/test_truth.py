"""What truly ran, from the pilots' records, equals integration second by second."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_demo.truth import Ran, busy, kill_waste, read_records


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
