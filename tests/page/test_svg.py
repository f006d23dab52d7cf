"""A plot is sound XML, all of it within its frame, readable in both modes; names stay text."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.page import svg
from drainwise.page.svg import WIDTH, Axis, Bar, Dot, Line, Mark, Note, Plot, decades, drawn, linear, places, stacked

SVG = "{http://www.w3.org/2000/svg}"
sizes = st.floats(0, 1e12)


@given(sizes)
def test_a_linear_axis_has_a_few_round_ticks_and_room_for_all(largest: float) -> None:
    """From 0, no two alike, and the last one at the end."""
    axis = linear("x", largest)
    assert axis.low == 0 and axis.high >= largest * (1 - 1e-9) and 2 <= len(axis.ticks) <= 6
    assert axis.ticks[-1][0] == axis.high and len({words for _, words in axis.ticks}) == len(axis.ticks)
    assert axis.share(axis.high) == 1


@given(st.floats(0, 1e12), st.floats(0, 1e12))
def test_an_axis_by_powers_holds_what_is_less_too(largest: float, value: float) -> None:
    """What lies below its beginning is drawn there; two decades at least."""
    axis = decades("x", 0.01, largest)
    assert axis.high >= max(1.0, largest * (1 - 1e-6)) and axis.ticks[0][1] == "≤ 0.01"
    assert 0 <= axis.share(min(value, axis.high)) <= 1 and axis.share(0) == 0


def test_at_most_ten_names_stand_beside_each_other() -> None:
    """Downwards there is room for all, the first at the top."""
    names = [str(number) for number in range(95)]
    assert len(places("day", names).ticks) == 10 and len(places("", names, downwards=True).ticks) == 95
    down = places("", ["a", "b"], downwards=True)
    assert down.share(0) > down.share(1)


@given(
    st.lists(st.lists(st.tuples(sizes, st.just("c1"), st.text()), max_size=3), max_size=8),
    st.text(),
    st.lists(st.tuples(st.just("c2"), st.sampled_from(["bar", "line", "round", *svg._SHAPES]), st.text()), max_size=9),
)
def test_whatever_is_plotted_it_is_xml_within_the_frame(
    bars: list[list[tuple[float, str, str]]], name: str, legend: list[tuple[str, str, str]]
) -> None:
    """HOSTILE 15, 41, 45: any text, nothing at all, and sizes of any order."""
    plot = stacked(name, [name] * len(bars), bars, name, name, legend)
    for alone in (False, True):
        text = drawn(plot, alone)
        found = [one for one in ET.fromstring(text).iter(f"{SVG}rect") if one.get("class") == "c1"]
        assert len(found) == sum(1 for bar in bars for size, _, _ in bar if size)
        for one in found:
            x, y, width, height = (float(one.attrib[key]) for key in ("x", "y", "width", "height"))
            assert 0 <= x <= x + width <= WIDTH + 0.1 and 0 <= y <= y + height <= plot.height


def test_every_mark_is_drawn_on_its_place() -> None:
    """A bar between its corners, points of each shape, a line through its points, a note beside its place."""
    x, y = Axis("x", 0, 10, []), Axis("y", 0, 10, [(10.0, "ten")])
    shapes = ["round", *svg._SHAPES]
    marks: list[Mark] = [Bar((0, 5), (10, 0), "c0"), Line([(0, 0), (10, 10)], "c1"), Note(5, 5, "never")]
    text = drawn(Plot("t", x, y, [*marks, *(Dot(5, 5, "c2", "tip", shape) for shape in shapes)]))
    root = ET.fromstring(text)
    [bar] = root.iter(f"{SVG}rect")
    [dot] = root.iter(f"{SVG}circle")
    assert float(bar.attrib["x"]) + float(bar.attrib["width"]) == pytest.approx(float(dot.attrib["cx"]), abs=0.11)
    assert float(bar.attrib["y"]) + float(bar.attrib["height"]) / 2 == pytest.approx(float(dot.attrib["cy"]), abs=0.11)
    assert text.count("<title>tip</title>") == len(shapes) and ">never<" in text and ">ten<" in text


def luminance(colour: str) -> float:
    """Of WCAG 2."""
    whole = colour.lstrip("#") if len(colour) > 4 else "".join(2 * digit for digit in colour[1:])
    parts = [int(whole[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("colours", svg.STYLE.split("\n")[:2], ids=["light", "dark"])
def test_every_colour_is_seen_on_its_card(colours: str) -> None:
    """WCAG: 3:1 for what is drawn, 4.5:1 for text."""
    named = dict(svg._VARIABLE.findall(colours))
    card = luminance(named["card"])

    def contrast(name: str) -> float:
        low, high = sorted((card, luminance(named[name])))
        return (high + 0.05) / (low + 0.05)

    assert min(contrast(name) for name in named if re.fullmatch(r"c\d", name)) >= 3
    assert min(contrast("ink"), contrast("dim")) >= 4.5


def test_a_drawing_that_stands_alone_has_its_style_and_title() -> None:
    """Without variables, which not every viewer knows."""
    text = drawn(stacked("How <many>", ["a"], [[(1, "c0", "")]], "x", "y"), alone=True)
    assert ">How &lt;many&gt;<" in text and "#1f5fa8" in text and "var(" not in text
