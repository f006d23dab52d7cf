"""The plot is sound XML, a point per job on its place, and a user's names stay text."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from drainwise.page.svg import WIDTH
from drainwise_tasks.estimate.plot import page, scatter

SVG = "{http://www.w3.org/2000/svg}"


def circles(text: str) -> list[tuple[float, float]]:
    return [(float(one.attrib["cx"]), float(one.attrib["cy"])) for one in ET.fromstring(text).iter(f"{SVG}circle")]


def test_equal_times_lie_on_the_line() -> None:
    """Expected to the right, real upwards; what ran longer than expected lies above the line."""
    even, long, short = circles(scatter([("t", 100, 100), ("t", 100, 10_000), ("t", 10_000, 100)]))
    assert long[0] == even[0] and long[1] < even[1] and short[0] > even[0] and short[1] == even[1]


@given(st.lists(st.tuples(st.text(), st.floats(0, 1e9), st.floats(0, 1e9)), max_size=10))
def test_whatever_is_plotted_it_is_xml_within_the_frame(points: list[tuple[str, float, float]]) -> None:
    """HOSTILE 15, 41: names with anything in them; no point at all; times of 0."""
    found = circles(scatter(points))
    assert len(found) == len(points)
    assert all(0 <= x <= WIDTH and 0 <= y <= 480 for x, y in found)


def test_names_are_no_markup() -> None:
    """HOSTILE 45: a task named like a script is text, in the page as well."""
    text = page([("<script>alert(1)</script>", 1, 1)])
    assert "<script" not in text and text.startswith("<!DOCTYPE html>")
