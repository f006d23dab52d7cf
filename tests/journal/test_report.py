"""The sums add up, and the page holds them whatever names users choose."""

from __future__ import annotations

import dataclasses
import html.parser
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.journal.entries import withdrawal_event
from drainwise.journal.event import Outcome
from drainwise.journal.memory import ended_events
from drainwise.journal.report import (
    DAY,
    ENDS,
    IN_TIME,
    LATE,
    NOT_ORDERED,
    OPEN,
    VACATED,
    WITHDRAWN,
    ReportedJournal,
    ReportedOrder,
    as_json,
    report_on,
)
from drainwise.journal.report_html import page, plots_of
from drainwise.page.svg import Axis, Bar, Dot, Plot
from drainwise.pool.facts import Ending
from drainwise.reclaim.plan import Withdrawal

from .facts import NOW, Lines, ordered, orders, pilot, remembering, report, snapshot

MIDNIGHT = NOW - NOW % DAY
RUNS = [pilot(number, report(8.0)) for number in range(1, 7)]
ONE = ReportedOrder("run", "slot", "group_a", "alice", 8, NOW, NOW + 900, OPEN, True, 3600)


def ended(end: str, after: int, realised: int, **more: object) -> ReportedOrder:
    return dataclasses.replace(ONE, end=end, ended=NOW + after, realised=realised, **more)  # type: ignore[arg-type]


@pytest.fixture
def journal(tmp_path: Path) -> str:
    """Six orders, each with another end; the sixth was refused, and an older one two hours before."""
    everyone, lines = snapshot(*RUNS, deficit=48), Lines()
    given = orders(everyone)
    memory = remembering(*given[:5])
    runs = [str(event["run"]) for event in given]
    for event in [*orders(snapshot(RUNS[0], deficit=8), now=NOW - 9000), *given[:5]]:
        lines.write(event)
    lines.write(orders(everyone, outcome=Outcome.FAILED)[5])
    endings = {
        run: Ending(run, NOW + after, vacated)
        for run, after, vacated in ((runs[0], 2000, False), (runs[1], 3000, False), (runs[2], 2900, True))
    }
    after = snapshot(*map(ordered, RUNS), deficit=48)
    for one in ended_events(memory, endings, after, NOW + 3100):
        lines.write(one)
    fourth = next(one for one in RUNS if one.run == runs[3])
    lines.write(withdrawal_event(Withdrawal(ordered(fourth), 5, "nobody waits"), Outcome.DONE, "", NOW + 900))
    (tmp_path / "journal").write_text(lines.text)
    return str(tmp_path / "journal")


@pytest.mark.parametrize("first", [Outcome.UNANSWERED, Outcome.FAILED])
def test_an_order_that_nobody_answered_is_one_order_whatever_is_found(tmp_path: Path, first: str) -> None:
    [event] = orders(snapshot(RUNS[0], deficit=8), outcome=first)
    lines, path = Lines(), tmp_path / "journal"
    for more, end in (
        ({}, NOT_ORDERED),
        ({"outcome": Outcome.NOT_DONE}, NOT_ORDERED),
        ({"outcome": Outcome.DONE}, OPEN),
    ):
        lines.write({**event, **more, **({"found": NOW + 60} if more else {})})
        path.write_text(lines.text)
        assert [(one.run, one.ordered, one.end) for one in ReportedJournal.read([str(path)], 0, NOW).orders] == [
            (RUNS[0].run, NOW, end)
        ]
    lines.write(orders(snapshot(RUNS[0], deficit=8), now=NOW + 700)[0])
    path.write_text(lines.text)
    assert len(ReportedJournal.read([str(path)], 0, NOW).orders) == 2, "another order"


def test_each_order_is_counted_once_by_how_it_ended(journal: str) -> None:
    found = report_on(ReportedJournal.read([journal], NOW - 3600, NOW).orders, NOW - 3600, NOW + 4000)
    sums = found.total
    assert sums.ends == {IN_TIME: 1, LATE: 1, VACATED: 1, WITHDRAWN: 1, OPEN: 1}
    assert (sums.ordered, sums.not_ordered, sums.cores_ordered, sums.cores_freed) == (5, 1, 40, 24)
    assert sorted(sums.times_to_free) == [2000, 2900, 3000]
    assert (sums.time_to_free_median, sums.time_to_free_longest) == (2900, 3000)
    late, broken = 8 * 1000, 8 * (2900 + 1000)
    assert sums.realised_waste == late + broken, "who was to leave after 2000 s idled for 1000, or lost its payloads"


def test_what_follows_an_older_order_is_not_put_on_a_newer_one(journal: str) -> None:
    older, *newer = ReportedJournal.read([journal], 0, NOW).orders
    assert (older.ordered, older.end, len(newer)) == (NOW - 9000, OPEN, 6)
    assert len(report_on([older, *newer], 0, NOW - 3600).pilots) == 1


def test_days_without_orders_are_there_too() -> None:
    found = report_on([ONE], MIDNIGHT - 2 * DAY, NOW)
    assert [(day, sums.ordered) for day, sums in found.days] == [
        ("2026-11-19", 0),
        ("2026-11-20", 0),
        ("2026-11-21", 1),
    ]


def test_what_is_billed_is_summed_in_its_unit_and_else_in_core_hours() -> None:
    gpus, cores = ended(VACATED, 60, 100, billed=9.0, unit="billing-h"), ended(VACATED, 60, 100)
    found = report_on([gpus, dataclasses.replace(gpus, user="bea")], NOW, NOW).total
    assert (found.realised_billed, found.predicted_billed, found.unit) == (1800, 64_800, "billing-h")
    assert found.realised_waste == 200
    mixed = report_on([gpus, cores], NOW, NOW).total
    assert (mixed.realised_billed, mixed.unit) == (200, "core-h")


def test_one_user_alone() -> None:
    bea = dataclasses.replace(ONE, user="bea@pool")
    for name in ("bea", "bea@pool"):
        assert report_on([ONE, bea], NOW - DAY, NOW, name).pilots == (bea,)


ASKINGS = st.builds(
    lambda user, age, end, cores, after, waste: dataclasses.replace(
        ONE,
        user=user,
        ordered=NOW - age,
        cores=cores,
        end=end,
        ended=NOW - age + after if end in {IN_TIME, LATE, VACATED} else None,
        realised=waste if end in {IN_TIME, LATE, VACATED} else None,
        predicted=waste // 2,
    ),
    st.sampled_from(["alice", "bea", "<b>&\"'"]),
    st.integers(0, 9 * DAY),
    st.sampled_from([*ENDS, NOT_ORDERED]),
    st.integers(1, 128),
    st.integers(0, 10**6),
    st.integers(0, 10**9),
)


@given(st.lists(ASKINGS, max_size=12))
def test_the_parts_add_up_to_the_whole(some: list[ReportedOrder]) -> None:
    """Per user and day, per user, per day: nothing is lost and nothing counted twice."""
    found = report_on(some, NOW - 9 * DAY, NOW)
    parts = ([one[-1] for one in found.rows], [one[-1] for one in found.users], [one[-1] for one in found.days])
    for sums in parts:
        for name in ("ordered", "not_ordered", "cores_ordered", "cores_freed", "predicted_waste", "realised_waste"):
            assert sum(getattr(one, name) for one in sums) == getattr(found.total, name)
    assert found.total.ordered + found.total.not_ordered == len(some)
    assert sum(found.total.ends.values()) == found.total.ordered
    users = as_json(found)["users"]
    assert isinstance(users, list)
    assert len(users) == len({one.user for one in some})


@given(st.lists(ASKINGS, max_size=12))
def test_nothing_is_drawn_outside_its_plot(some: list[ReportedOrder]) -> None:
    found = report_on(some, NOW - 9 * DAY, NOW)
    for plot in plots_of(found):
        for axis, values in drawn_at(plot):
            assert all(0 <= axis.share(value) <= 1 + 1e-9 for value in values)
            assert len({text for _, text in axis.ticks}) == len(axis.ticks)


def drawn_at(plot: Plot) -> list[tuple[Axis, list[float]]]:
    """Both axes with the ends of all that stands on them."""
    dots = [mark for mark in plot.marks if isinstance(mark, Dot)]
    bars = [mark for mark in plot.marks if isinstance(mark, Bar)]
    across = [one.x for one in dots] + [end for one in bars for end in one.x]
    return [(plot.x, across), (plot.y, [one.y for one in dots] + [end for one in bars for end in one.y])]


class Page(html.parser.HTMLParser):
    """All that a browser would find."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_the_page_stands_for_itself_and_shows_the_sums() -> None:
    """No script, nothing to fetch."""
    found = Page(page(report_on([ended(IN_TIME, 600, 7200), ended(VACATED, 900, 3600)], MIDNIGHT, NOW), NOW))
    assert not {tag for tag, _ in found.tags} & {"script", "link", "img", "iframe", "object", "embed", "a", "form"}
    assert not [names for _, names in found.tags if {"src", "href", "style", "onload"} & set(names)]
    assert len([tag for tag, _ in found.tags if tag == "svg"]) == 4
    assert {"alice", "3.00 core-h", "2.00 core-h", "3.00", "2.00", "12m30s"} <= {text.strip() for text in found.texts}


def test_a_report_on_nothing_is_a_page_too() -> None:
    assert "Cores withdrawn" in page(report_on([], MIDNIGHT, NOW), NOW)


NASTY = "<script>x</script>\"'&{{ 7 * 7 }}\x1b[2J\n\u202e=cmd()"


def test_no_name_becomes_markup() -> None:
    """HOSTILE 41, 45: neither a tag, an attribute, a template nor a control character."""
    one = ended(IN_TIME, 600, 7200, user=NASTY, account=NASTY, name=NASTY)
    text = page(report_on([one], MIDNIGHT, NOW), NOW)
    found = Page(text)
    assert "script" not in {tag for tag, _ in found.tags}
    assert "<script>x</script>\"'&{{ 7 * 7 }}[2J=cmd()"[:31] in {text[:31] for text in found.texts}
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", text)
