"""A journal with anything in it: whoever reads it goes on, and says how many lines could not be used."""

from __future__ import annotations

import functools
import io
import json
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.cli.main import main
from drainwise.journal.entries import ended_event, withdrawal_event
from drainwise.journal.event import Event, Outcome
from drainwise.journal.memory import Memory, ended_events
from drainwise.journal.read import PassedOver, first_time
from drainwise.journal.report import ReportedJournal, as_json, report_on
from drainwise.journal.report_html import page
from drainwise.pool.facts import Ending
from drainwise.reclaim.plan import Withdrawal

from .facts import BEFORE, FIRST, NOW, decision, ordered, orders, remembering

NAMES = ("time", "deadline", "started", "ended", "ordered", "taken", "cores", "run", "outcome", "event", "version")
ODD: st.SearchStrategy[object] = st.sampled_from(
    [
        *(True, None, "", "\ud800", "\x1b[2J", 0, -1, 1 << 61, 1 << 62, (1 << 63) - 1, -(1 << 63) - 1, 10**25, 10**400),
        *(0.5, -0.0, 1e25, 1e308, [], {}, [[]], [{}], {"run": 7}, "done", "unanswered", NOW, NOW + 1, NOW + 10**6),
    ]
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | ODD,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@functools.cache
def sound() -> tuple[Event, ...]:
    """A little of everything that a journal holds."""
    given_orders = orders(outcome=Outcome.DONE)
    [order] = [one for one in remembering(*given_orders).open_orders().values() if one.run == FIRST.run]
    return (
        decision(),
        *orders(outcome=Outcome.FAILED),
        *orders(outcome=Outcome.UNANSWERED),
        *given_orders,
        withdrawal_event(Withdrawal(ordered(FIRST), 7, "nobody waits"), Outcome.DONE, "", NOW),
        ended_event(order, Ending(FIRST.run, NOW + 100, True, 3.0), NOW + 100),
        decision(now=NOW + 120),
    )


@contextmanager
def journal(lines: Sequence[bytes]) -> Iterator[str]:
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"".join(line + b"\n" for line in lines))
        file.flush()
        yield file.name


def line_of(event: object) -> bytes:
    return json.dumps(event, separators=(",", ":")).encode()


def remember(path: str) -> int:
    memory = Memory.load([path], NOW)
    memory.history(NOW)
    for at in (NOW, NOW + 1000):
        for event in ended_events(memory, {FIRST.run: Ending(FIRST.run, NOW, True)}, BEFORE, at):
            json.dumps(event, allow_nan=False)
            memory.note(event)
        memory.history(at)
    return memory.passed_over.lines


def report(path: str) -> int:
    passed_over = PassedOver()
    made = report_on(ReportedJournal.read([path], 0, NOW, passed_over).orders, NOW - 86_400, NOW + 86_400)
    json.dumps(as_json(made), allow_nan=False)
    page(made, NOW).encode("utf-8")
    return passed_over.lines


def explain(path: str) -> int:
    said = io.StringIO()
    with redirect_stderr(said), redirect_stdout(io.TextIOWrapper(io.BytesIO(), "utf-8")):
        assert main(["explain", FIRST.run, "--journal", path]) in {0, 1}
        assert main(["explain", FIRST.run, "--journal", path, "--json"]) in {0, 1}
    first_time([path])
    counted = re.match(r"drainwise: (\d+) lines? of the journal cannot be used; passed over\n", said.getvalue())
    return 0 if counted is None else int(counted[1])


READERS: tuple[Callable[[str], int], ...] = (remember, report, explain)


@pytest.mark.parametrize("read", READERS)
@given(data=st.data())
def test_whatever_stands_in_whatever_place_nobody_who_reads_it_fails(
    read: Callable[[str], int], data: st.DataObject
) -> None:
    events = list(sound())
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(events) - 1))
        names = sorted({*NAMES, *events[place]})
        name = data.draw(st.sampled_from(names))
        if data.draw(st.booleans()):
            events[place] = {**events[place], name: data.draw(ANYTHING)}
        else:
            events[place] = {key: value for key, value in events[place].items() if key != name}
    with journal([line_of(event) for event in events]) as path:
        read(path)


@pytest.mark.parametrize("read", READERS)
@given(lines=st.lists(st.binary(max_size=60) | ANYTHING.map(line_of), max_size=6))
def test_whatever_is_written_into_it_nobody_who_reads_it_fails(read: Callable[[str], int], lines: list[bytes]) -> None:
    with journal([*(line.replace(b"\n", b"") for line in lines), *map(line_of, sound())]) as path:
        read(path)


TIMES = (True, False, None, "soon", 1 << 62, (1 << 62) - 1, -(1 << 63) - 1, 10**25, 1e25, 1.5, -1)


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("time", TIMES)
def test_lines_whose_time_is_none_are_counted(read: Callable[[str], int], time: object) -> None:
    """`remember` reads one decision, `report` none: three orders' lines and the two of the end count in each."""
    events = sound()
    spoilt = [{**event, "time": time} for event in events if event.get("run") == FIRST.run]
    with journal([line_of(event) for event in (*spoilt, *events)]) as path:
        assert read(path) == len(spoilt)


def test_a_journal_that_another_program_wrote_anew_says_the_same() -> None:
    """Blanks behind colons, and the keys in another order."""
    events = [event for event in sound() if event["event"] == "order"]
    with journal([json.dumps(event, sort_keys=True).encode() for event in events]) as path:
        assert len(Memory.load([path], NOW).open_orders()) == len(orders())
        assert len(ReportedJournal.read([path], 0, NOW).orders) == len(events)
