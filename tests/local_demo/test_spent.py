"""What a scene cost the machine: counted tick by tick."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.pilot.queues.records import DONE, REQUEUED
from local_demo.spent import Spent, side_by_side, spent
from local_demo.truth import Ran

BEGIN, END = 100, 120
runs = st.tuples(st.integers(1, 3), st.integers(80, 125), st.integers(1, 30), st.sampled_from((DONE, REQUEUED, "")))


@given(st.lists(runs, max_size=5), st.lists(st.tuples(st.integers(1, 8), st.integers(100, 120)), max_size=3))
def test_each_core_of_each_second_is_counted_once(
    payloads: list[tuple[int, int, int, str]], bobs: list[tuple[int, float]]
) -> None:
    """Idle is what neither a payload nor bob uses; lost is the whole run of a payload that was stopped meanwhile."""
    ran = [
        Ran("p", str(place), cores, start, start + length if how else None, how)
        for place, (cores, start, length, how) in enumerate(payloads)
    ]
    found = spent(64, ran, bobs, BEGIN, END)
    idle = 0
    for second in range(BEGIN, END):
        idle += 64 - sum(one.cores for one in ran if one.start <= second and (one.end is None or second < one.end))
        idle -= sum(cores for cores, start in bobs if start <= second)
    assert found.seconds == END - BEGIN
    assert found.idle == pytest.approx(idle)
    stopped = [one for one in payloads if one[3] == REQUEUED and BEGIN <= one[1] + one[2] <= END]
    assert found.lost == sum(cores * length for cores, _, length, _ in stopped)


def test_both_scenes_stand_side_by_side() -> None:
    assert side_by_side(Spent(10.2, 34.0, 25.0), Spent(5.1, 24.4, 0.0))[2:] == [
        "  whole pilots drain       59 wasted: 34 idle, 25 in payloads stopped; 10 s",
        "  pilots return parts      24 wasted: 24 idle, 0 in payloads stopped; 5 s",
    ]
