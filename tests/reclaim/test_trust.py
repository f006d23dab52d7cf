"""Promises against what was lost, per user."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.reclaim import history
from drainwise.reclaim.history import PilotOutcome, TrustFigures, doubt, doubt_in_words, trust_by_user

NOW = 1795249000


@pytest.fixture(scope="module", autouse=True)
def _two_outcomes_of_an_hour() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(history, "OUTCOMES", 2)
        patch.setattr(history, "WINDOW", 3600)
        yield


def outcome(number: int, predicted: int, realised: int, possible: int = 10_000, user: str = "alice") -> PilotOutcome:
    return PilotOutcome(f"run{number}", user, NOW - 10, predicted, realised, possible)


def figures(*outcomes: PilotOutcome) -> dict[str, TrustFigures]:
    return trust_by_user(outcomes, NOW)


def test_a_user_who_keeps_its_promises_is_believed() -> None:
    kept = figures(outcome(1, 1000, 1000), outcome(2, 1000, 1500))["alice"]
    assert (kept.predicted, kept.realised, kept.error) == (2000, 2500, 500)
    assert doubt(kept) == 0, "25 % is within the tolerance"
    more = figures(outcome(1, 1000, 1000), outcome(2, 1000, 1501))["alice"]
    assert doubt(more) == 501 / 18_000


def test_a_few_pilots_say_nothing_about_a_user() -> None:
    assert doubt(figures(outcome(1, 0, 10_000))["alice"]) == 0
    assert doubt(None) == 0


def test_nobody_pays_for_another_users_promises() -> None:
    found = figures(outcome(1, 0, 9000), outcome(2, 0, 9000), outcome(3, 50, 50, user="bea"))
    assert (doubt(found["alice"]), doubt(found["bea"])) == (0.9, 0)


def test_what_is_long_ago_or_not_yet_is_forgotten_and_a_run_counts_once() -> None:
    old, future = (dataclasses.replace(outcome(n, 0, 1), ended=NOW + when) for n, when in ((1, -3601), (2, 1)))
    assert figures(old, future) == {}
    assert figures(outcome(3, 0, 1), outcome(3, 0, 2))["alice"].realised == 2


def test_an_outcome_counts_from_its_second_to_the_end_of_the_window() -> None:
    """Whether a promise to leave was kept counts ten times as long."""
    first, last = (dataclasses.replace(outcome(n, 0, 9), ended=NOW + when) for n, when in ((1, -3600), (2, 0)))
    assert figures(first, last)["alice"].realised == 18
    kept = dataclasses.replace(first, ended=NOW - 36_000, kept=False)
    found = figures(kept)["alice"]
    assert (found.pilots, found.leaving, found.broken) == (0, 1, 1)
    assert figures(dataclasses.replace(kept, ended=NOW - 36_001)) == {}


def test_twenty_promises_count_and_the_newest_of_them() -> None:
    broken = [dataclasses.replace(outcome(n, 0, 0), ended=NOW - 9000 + n, kept=n >= 5) for n in range(25)]
    found = figures(*broken)["alice"]
    assert (found.leaving, found.broken) == (20, 0)
    found = figures(*broken[:24])["alice"]
    assert (found.leaving, found.broken) == (20, 1)


def test_promises_that_are_too_high_are_wrong_too() -> None:
    """Who claims much to be spared and loses nothing is not believed either."""
    assert doubt(figures(outcome(1, 8000, 0), outcome(2, 8000, 0))["alice"]) == 0.8


@pytest.mark.parametrize("broken, share", [(0, 0), (4, 0), (5, 0.5), (6, 1), (8, 1)])
def test_whose_pilots_do_not_leave_as_they_say_is_not_believed(broken: int, share: float) -> None:
    """Whatever was wasted by it: more than half of eight promises to leave were broken."""
    kept = [dataclasses.replace(outcome(n, 100, 100), kept=n >= broken) for n in range(8)]
    found = figures(*kept, *(outcome(n, 1000, 1000) for n in range(8, 40)))["alice"]
    assert (found.leaving, found.broken, doubt(found)) == (8, broken, share)
    few = dataclasses.replace(found, leaving=1, broken=1)
    assert doubt(few) == 0, "too few of them"
    said = doubt_in_words(found, share)
    assert said.endswith(f"; {broken} of 8 did not leave as they said") is (broken > 0)


def test_broken_promises_are_remembered_for_longer_than_wastes() -> None:
    """Who is not believed gets no time to leave: after the window it would be believed again at once."""
    old = [dataclasses.replace(outcome(n, 0, 9000), ended=NOW - 9 * 3600, kept=False) for n in range(8)]
    found = figures(*old)["alice"]
    assert (found.pilots, found.error, found.broken, doubt(found)) == (0, 0, 8, 1)
    assert figures(*(dataclasses.replace(one, ended=NOW - 11 * 3600) for one in old)) == {}
    kept = [dataclasses.replace(outcome(20 + n, 100, 100), kept=True) for n in range(16)]
    assert doubt(figures(*old, *kept)["alice"]) == 0, "of the last twenty sixteen were kept"


amounts = st.integers(0, 10**9)


@given(st.lists(st.tuples(amounts, amounts, amounts), min_size=2, max_size=9))
def test_doubt_is_a_share(rows: list[tuple[int, int, int]]) -> None:
    """Whatever is recorded, also what cannot be."""
    found = figures(*(outcome(n, *row) for n, row in enumerate(rows)))["alice"]
    assert 0 <= doubt(found) <= 1


@given(st.lists(st.tuples(amounts, amounts, amounts), min_size=2, max_size=9))
def test_promises_that_are_too_low_become_right_in_sum(rows: list[tuple[int, int, int]]) -> None:
    """Moved by the doubt, the same promises add up to what was really lost."""
    ordered = [(min(row), sorted(row)[1], max(row)) for row in rows]
    found = figures(*(outcome(n, *row) for n, row in enumerate(ordered)))["alice"]
    share = doubt(found)
    if share:
        moved = sum(promised + share * (possible - promised) for promised, _, possible in ordered)
        assert moved == pytest.approx(found.realised)


def test_the_numbers_are_shown() -> None:
    found = figures(outcome(1, 0, 3600), outcome(2, 3600, 7200))["alice"]
    assert doubt_in_words(found, doubt(found)) == (
        "claims moved by 44% towards cores x run time:"
        " its user's last 2 pilots promised 1.00 core-h and lost 3.00 core-h"
    )
