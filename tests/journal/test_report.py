"""The sums add up, and the page holds them whatever names users choose."""

from __future__ import annotations

import dataclasses
import html.parser
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from drainwise.journal import plots
from drainwise.journal.entries import cancel_event
from drainwise.journal.event import DONE, FAILED, NOT_DONE, UNANSWERED
from drainwise.journal.history import ENDS, IN_TIME, LATE, NOT_ASKED, OPEN, TAKEN_BACK, VACATED, Asking, askings
from drainwise.journal.memory import ended_events
from drainwise.journal.report import DAY, as_json, report_on
from drainwise.journal.report_html import page
from drainwise.pool import Ending
from drainwise.reclaim.cancel import Cancel

from .facts import NOW, Lines, asked, orders, pilot, remembering, report, snapshot

MIDNIGHT = NOW - NOW % DAY
RUNS = [pilot(number, report(8.0)) for number in range(1, 7)]
ONE = Asking("run", "slot", "group_a", "alice", 8, NOW, NOW + 900, OPEN, True, 3600)


def ended(end: str, after: int, realised: int, **more: object) -> Asking:
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
    lines.write(orders(everyone, outcome=FAILED)[5])
    endings = {
        run: Ending(run, NOW + after, vacated)
        for run, after, vacated in ((runs[0], 2000, False), (runs[1], 3000, False), (runs[2], 2900, True))
    }
    after = snapshot(*map(asked, RUNS), deficit=48)
    for one in ended_events(memory, endings, after, NOW + 3100):
        lines.write(one)
    fourth = next(one for one in RUNS if one.run == runs[3])
    lines.write(cancel_event(Cancel(asked(fourth), 5, "nobody waits"), DONE, "", NOW + 900))
    (tmp_path / "journal").write_text(lines.text)
    return str(tmp_path / "journal")


@pytest.mark.parametrize("first", [UNANSWERED, FAILED])
def test_an_order_that_nobody_answered_is_one_order_whatever_is_found(tmp_path: Path, first: str) -> None:
    [event] = orders(snapshot(RUNS[0], deficit=8), outcome=first)
    lines, path = Lines(), tmp_path / "journal"
    for more, end in (({}, NOT_ASKED), ({"outcome": NOT_DONE}, NOT_ASKED), ({"outcome": DONE}, OPEN)):
        lines.write({**event, **more, **({"found": NOW + 60} if more else {})})
        path.write_text(lines.text)
        assert [(one.run, one.asked, one.end) for one in askings([str(path)], 0)] == [(RUNS[0].run, NOW, end)]
    lines.write(orders(snapshot(RUNS[0], deficit=8), now=NOW + 700)[0])
    path.write_text(lines.text)
    assert len(askings([str(path)], 0)) == 2, "another order"


def test_each_order_is_counted_once_by_how_it_ended(journal: str) -> None:
    found = report_on(askings([journal], NOW - 3600), NOW - 3600, NOW + 4000)
    sums = found.total
    assert {end: sums.ended_as(end) for end in ENDS} == {IN_TIME: 1, LATE: 1, VACATED: 1, TAKEN_BACK: 1, OPEN: 1}
    assert (sums.asked, sums.not_asked, sums.cores_asked, sums.cores_freed) == (5, 1, 40, 24)
    assert sorted(sums.times_to_free) == [2000, 2900, 3000]
    assert (sums.time_to_free, sums.longest) == (2900, 3000)
    assert sums.realised == 8 * 1000 + 8 * 900, "who was to leave after 2000 s idled for 1000 and 900"


def test_what_follows_an_older_order_is_not_put_on_a_newer_one(journal: str) -> None:
    older, *newer = askings([journal], 0)
    assert (older.asked, older.end, len(newer)) == (NOW - 9000, OPEN, 6)
    assert len(report_on([older, *newer], 0, NOW - 3600).pilots) == 1


def test_days_without_orders_are_there_too() -> None:
    found = report_on([ONE], MIDNIGHT - 2 * DAY, NOW)
    assert [(day, sums.asked) for day, sums in found.days] == [("2026-11-19", 0), ("2026-11-20", 0), ("2026-11-21", 1)]


def test_one_user_alone() -> None:
    bea = dataclasses.replace(ONE, user="bea@pool")
    for name in ("bea", "bea@pool"):
        assert report_on([ONE, bea], 0, NOW, name).pilots == (bea,)


ASKINGS = st.builds(
    lambda user, age, end, cores, after, waste: dataclasses.replace(
        ONE,
        user=user,
        asked=NOW - age,
        cores=cores,
        end=end,
        ended=NOW - age + after if end in {IN_TIME, LATE, VACATED} else None,
        realised=waste if end in {IN_TIME, LATE, VACATED} else None,
        predicted=waste // 2,
    ),
    st.sampled_from(["alice", "bea", "<b>&\"'"]),
    st.integers(0, 9 * DAY),
    st.sampled_from([*ENDS, NOT_ASKED]),
    st.integers(1, 128),
    st.integers(0, 10**6),
    st.integers(0, 10**9),
)


@examples(max_examples=40)
@given(st.lists(ASKINGS, max_size=12))
def test_the_parts_add_up_to_the_whole(some: list[Asking]) -> None:
    """Per user and day, per user, per day: nothing is lost and nothing counted twice."""
    found = report_on(some, NOW - 9 * DAY, NOW)
    parts = ([one[-1] for one in found.rows], [one[-1] for one in found.users], [one[-1] for one in found.days])
    for sums in parts:
        for name in ("asked", "not_asked", "cores_asked", "cores_freed", "predicted", "realised"):
            assert sum(getattr(one, name) for one in sums) == getattr(found.total, name)
    assert found.total.asked + found.total.not_asked == len(some)
    assert sum(found.total.ends) == found.total.asked
    users = as_json(found)["users"]
    assert isinstance(users, list)
    assert len(users) == len({one.user for one in some})


@examples(max_examples=40)
@given(st.lists(ASKINGS, max_size=12))
def test_nothing_is_drawn_outside_its_plot(some: list[Asking]) -> None:
    found = report_on(some, NOW - 9 * DAY, NOW)
    for plot in (
        plots.ends_by_day(found.days),
        plots.waste_by_day(found.days),
        plots.times_to_free(found.total.times_to_free),
        plots.promise_and_truth(found.pilots),
    ):
        for mark in plot.marks:
            assert plots.LEFT <= mark.x <= mark.x + mark.width <= plots.WIDTH - plots.RIGHT + 0.01
            assert plots.TOP - 0.01 <= mark.y <= mark.y + mark.height <= plots.HEIGHT - plots.BOTTOM + 0.01
        assert len({tick.text for tick in plot.y_ticks}) == len(plot.y_ticks)


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
    found = Page(page(report_on([ended(IN_TIME, 600, 7200), ended(VACATED, 900, 3600)], MIDNIGHT, NOW)))
    assert not {tag for tag, _ in found.tags} & {"script", "link", "img", "iframe", "object", "embed", "a", "form"}
    assert not [names for _, names in found.tags if {"src", "href", "style", "onload"} & set(names)]
    assert len([tag for tag, _ in found.tags if tag == "svg"]) == 4
    assert {"alice", "3.00 core-h", "2.00 core-h", "12m30s"} <= {text.strip() for text in found.texts}


def test_a_report_on_nothing_is_a_page_too() -> None:
    assert "Cores taken back" in page(report_on([], MIDNIGHT, NOW))


NASTY = "<script>x</script>\"'&{{ 7 * 7 }}\x1b[2J\n\u202e=cmd()"


def test_no_name_becomes_markup() -> None:
    """HOSTILE 41, 45: neither a tag, an attribute, a template nor a control character."""
    one = ended(IN_TIME, 600, 7200, user=NASTY, principal=NASTY, name=NASTY)
    text = page(report_on([one], MIDNIGHT, NOW))
    found = Page(text)
    assert "script" not in {tag for tag, _ in found.tags}
    assert "<script>x</script>\"'&{{ 7 * 7 }}[2J=cmd()" in found.texts
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", text)
