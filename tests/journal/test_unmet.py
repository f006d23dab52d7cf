"""What is remembered of accounts that orders were for: written down and read back without loss."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.journal.file import journal_line
from drainwise.journal.memory import Memory
from drainwise.journal.remembered import unmet_event, unmet_of
from drainwise.pool.facts import Account, Snapshot
from drainwise.reclaim.settings import ReclaimSettings
from drainwise.reclaim.unmet_demand import AccountPart, Round, UnmetDemand

NOW = 1795249000
cores = st.floats(0, 1e6).map(lambda value: round(value, 6))
times = st.integers(0, 1 << 40)
PAUSED = UnmetDemand("b", failed=2, vain=16.0, since=NOW - 60, until=NOW + 840, held=8.0, held_jobs=1.0)
unmet = st.builds(
    UnmetDemand,
    st.text(max_size=20),
    st.dictionaries(
        st.text(max_size=20), st.builds(AccountPart, st.text(max_size=9), st.integers(1, 999), cores), max_size=4
    ),
    times,
    cores,
    times,
    st.builds(
        Round,
        cores,
        cores,
        st.lists(st.text(max_size=9), max_size=4).map(tuple),
        times,
        cores,
        cores,
        cores,
        times,
        times,
        cores,
        cores,
        cores,
    ),
    st.integers(0, 99),
    cores,
    times,
    times,
    cores,
    cores,
    st.booleans(),
)


@given(unmet)
def test_what_is_written_is_read_back(one: UnmetDemand) -> None:
    assert unmet_of(json.loads(journal_line(unmet_event(one, NOW)))) == one


def changed(**values: object) -> dict[str, Any]:
    return {**unmet_event(PAUSED, NOW), **values}


ODD = [
    changed(account=7),
    changed(runs={}),
    changed(runs=[{"run": "x", "node": "n", "cores": 1.0}]),
    changed(until=-5),
    changed(failed=1.5),
    changed(held=float("nan")),
    changed(nodes="n1"),
    changed(closed=0),
    {name: value for name, value in unmet_event(PAUSED, NOW).items() if name != "vain"},
]


@pytest.mark.parametrize("event", ODD)
def test_what_is_not_sound_is_refused(event: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="expected"):
        unmet_of(event)


def written(path: Path, *events: dict[str, Any]) -> list[str]:
    path.write_text("".join(json.dumps(event, separators=(",", ":")) + "\n" for event in events))
    return [str(path)]


def test_the_last_sound_event_of_an_account_counts(tmp_path: Path) -> None:
    """One of which nothing is to be remembered is forgotten."""
    other = unmet_event(dataclasses.replace(PAUSED, account="c"), NOW)
    paths = written(tmp_path / "journal", other, changed(failed=1), changed(), *ODD, unmet_event(UnmetDemand("c"), NOW))
    assert Memory.load(paths, NOW)._unmet == {"b": PAUSED}


def test_a_journal_of_before_is_read(tmp_path: Path) -> None:
    paths = written(tmp_path / "journal", {"event": "state", "version": 2, "time": NOW, "state": "ok", "why": ""})
    assert Memory.load(paths, NOW)._unmet == {}


def test_of_an_account_that_pauses_only_changes_are_written(tmp_path: Path) -> None:
    memory = Memory.load(written(tmp_path / "journal", changed()), NOW)
    seen = Snapshot(NOW, (), (), 0.0)
    settings = ReclaimSettings("least-waste", 7200, 7200, 86400, 3600, 1000, 1000, 1000)
    [gone] = memory.watched(seen, NOW, settings)  # the account is not there any more: it waits for nothing
    assert (gone["held"], gone["until"]) == (0.0, PAUSED.until)
    assert memory.watched(seen, NOW + 60, settings) == []


def test_jobs_that_came_and_went_may_have_used_more_than_came_back(tmp_path: Path) -> None:
    """Several, one after the other, on a piece that is too small for those that wait now: no core of it idled."""
    came = Round(back=4.0, whole=4.0, nodes=("n1",), first=NOW - 999, last=NOW - 999)
    memory = Memory.load(written(tmp_path / "journal", unmet_event(UnmetDemand("b", round=came), NOW - 999)), NOW)
    seen = Snapshot(NOW, (), (Account("b", 0.0, 8.0, 8.0, 1.0, 8.0),))
    settings = ReclaimSettings("least-waste", 7200, 7200, 86400, 3600, 1000, 1000, 1000)
    [event] = memory.watched(seen, NOW, settings, lambda _: 9.0)
    assert unmet_of(event).round == Round(settled=4.0, served=9.0)


@pytest.mark.parametrize(("draining", "left"), [(False, []), (True, ["r1"]), (None, ["r1"])])
def test_an_order_that_was_withdrawn_before_its_pilot_drained_is_no_part_of_a_round(
    tmp_path: Path, draining: bool | None, left: list[str]
) -> None:
    """Its user has removed the job; a pilot that had begun to drain gives its cores back for nothing."""
    part = AccountPart("n1", 8, 8.0)
    known = UnmetDemand("b", {"r1": part}, ordered=NOW)
    gone = {"event": "withdrawal", "version": 2, "time": NOW + 9, "run": "r1", "outcome": "done", "draining": draining}
    paths = written(tmp_path / "journal", unmet_event(known, NOW), gone)
    memory = Memory.load(paths, NOW + 9)
    assert [*memory._unmet["b"].runs] == left
    assert not memory.passed_over.lines
