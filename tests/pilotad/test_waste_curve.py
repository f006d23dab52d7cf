"""The curve of a report: one form of text, which every channel carries, and nothing else passes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.htcondor.node.startd_cron import literal
from drainwise.pilotad import attributes
from drainwise.pilotad.pilot_ad import parse_pilot_ad, pilot_ad_text
from drainwise.pilotad.report import PilotReport, as_plain, from_plain
from drainwise.pilotad.values import READ, TEXT_LIMIT, curve_points, curve_text, sound_curve
from drainwise.slurm.jobs.admin_comment import LONGEST, Published, comment_text, published_in

NOW = 1795249000
CURVE = f"{NOW + 1800}:5400:60000,{NOW + 3600}:7200:41000"
MOST = 10**15 - 1


@st.composite
def points(draw: st.DrawFn) -> list[tuple[int, int, int]]:
    """Up to five sound points."""
    times = draw(st.lists(st.integers(NOW, NOW + 10**6), min_size=1, max_size=5, unique=True))
    amounts = st.lists(st.integers(0, MOST), min_size=len(times), max_size=len(times))
    return list(zip(sorted(times), sorted(draw(amounts)), draw(amounts)))


@given(points())
def test_what_is_written_is_read(these: list[tuple[int, int, int]]) -> None:
    text = curve_text(these)
    assert len(text) <= TEXT_LIMIT
    assert curve_points(text) == tuple(these)
    assert sound_curve(text) == text


@pytest.mark.parametrize(
    "odd",
    [
        "",
        ",",
        f"{NOW}:1",
        f"{NOW}:1:2:3",
        f"{NOW}:-1:2",
        f"{NOW}:1.5:2",
        f"{NOW}: 1:2",
        f"{NOW}:1:2,",
        f"{NOW}:1:2,{NOW}:1:2",
        f"{NOW}:5:2,{NOW + 1}:4:2",
        f"{NOW}:1:{10**15}",
        "1:1:1",
        ",".join(f"{NOW + n}:1:1" for n in range(6)),
        f'{NOW}:1:2"; x=1',
        f"{NOW}:1:\u0662",
        f"{NOW}:1:2\n",
    ],
)
def test_any_other_text_says_nothing(odd: str) -> None:
    assert curve_points(odd) is None
    assert sound_curve(odd) is None
    assert READ[attributes.CURVE](odd.encode()) is None


@given(st.one_of(st.none(), st.integers(), st.binary(), st.text(), st.lists(st.integers())))
def test_no_other_value_is_one(odd: object) -> None:
    found = sound_curve(odd)
    assert found is None or found == odd


@given(points())
def test_it_comes_through_every_channel_as_it_was(these: list[tuple[int, int, int]]) -> None:
    """`.pilot.ad`, plain values, a job's AdminComment at its longest, a slot's ad."""
    said = PilotReport(
        NOW, 7.123456, NOW - 5, NOW, NOW, NOW, 1e15 - 0.5, 1e15 - 0.5, -(2**31), False, curve_text(these)
    )
    read, rejected = parse_pilot_ad(pilot_ad_text(said, 8), 8, NOW)
    assert (read.exp_waste_curve, rejected) == (said.exp_waste_curve, ())
    assert from_plain(as_plain(said)) == said
    comment = comment_text(Published(2**32 - 1, NOW, "n" * 64, said, "incomplete"))
    found = published_in(comment)
    assert len(comment) <= LONGEST
    assert found is not None
    assert found.report.exp_waste_curve == said.exp_waste_curve
    assert literal(said.exp_waste_curve) == f'"{said.exp_waste_curve}"'


def test_a_child_cannot_hand_its_parent_another_text() -> None:
    with pytest.raises(ValueError, match="exp_waste_curve is no curve"):
        from_plain({**as_plain(PilotReport(NOW)), "exp_waste_curve": 'x"y'})


def test_a_file_with_an_odd_curve_names_it_and_keeps_the_rest() -> None:
    report, rejected = parse_pilot_ad(b"PRIORITY_FACTOR = 3\nEXP_WASTE_CURVE = 1:2\n", 8, NOW)
    assert (report.priority_factor, report.exp_waste_curve, rejected) == (3, None, ("EXP_WASTE_CURVE",))
