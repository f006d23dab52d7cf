"""What is known of a payload that has run for a while: from the ended ones and from those that run still."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drainwise.estimate import survival
from drainwise.estimate.survival import Survival

KIND = ("atlas", "user7", "86400")
times = st.floats(0, 1e6)


def learned(*seconds: float) -> Survival:
    """Jobs of one kind that have ended after so long."""
    known = Survival()
    for each in seconds:
        known.learn(KIND, each)
    return known


def test_fewer_than_five_jobs_say_nothing() -> None:
    """Nobody can tell before some have ended."""
    assert learned(10, 20, 30, 40).run_time(KIND, 0.0) is None
    assert learned(10, 20, 30, 40, 50).run_time(KIND, 0.0) is not None


def test_many_jobs_of_a_kind_tell_its_quantiles() -> None:
    """Within the step of a tenth by which ages are told apart."""
    known = learned(*range(1000, 1200))
    assert known.run_time(KIND, 0.0, 0.5) == pytest.approx(1100, rel=0.1)
    assert known.run_time(KIND, 1150.0, 0.5) == pytest.approx(1175, rel=0.1)


@given(
    ended=st.lists(times, min_size=5, max_size=40),
    running=st.lists(times, max_size=20),
    elapsed=times,
    quantile=st.floats(0.05, 0.95),
    limit=st.floats(1, 1e7),
)
def test_an_answer_lies_between_what_has_passed_and_the_limit(
    ended: list[float], running: list[float], elapsed: float, quantile: float, limit: float
) -> None:
    """Never earlier than now, never past the limit, and a higher quantile is never earlier."""
    known = learned(*ended)
    known.watch((KIND, each) for each in running)
    found = known.run_time(KIND, elapsed, quantile, max(limit, elapsed))
    later = known.run_time(KIND, elapsed, min(0.99, quantile + 0.04), max(limit, elapsed))
    assert found is not None
    assert later is not None
    assert elapsed <= found <= later <= max(limit, elapsed)


@settings(max_examples=40, deadline=None)
@given(ended=st.lists(times, min_size=5, max_size=40), running=st.lists(times, max_size=20))
def test_a_job_that_has_run_for_longer_is_expected_to_end_later(ended: list[float], running: list[float]) -> None:
    """The expected end never falls while a job runs."""
    known = learned(*ended)
    known.watch((KIND, each) for each in running)
    answers = [known.run_time(KIND, 1.2**step, 0.75, 1e7) or 0.0 for step in range(0, 70, 4)]
    assert all(before <= after * (1 + 1e-9) for before, after in zip(answers, answers[1:]))


def test_those_that_run_still_count() -> None:
    """Ten short jobs have ended and a hundred have run on: a job is expected to be one of the hundred."""
    known = learned(*[60.0] * 10)
    assert (known.run_time(KIND, 0.0, 0.5, 86400.0) or 0.0) < 120
    known.watch([(KIND, 3600.0)] * 100)
    assert (known.run_time(KIND, 0.0, 0.5, 86400.0) or 0.0) > 3600
    known.watch([])
    assert (known.run_time(KIND, 0.0, 0.5, 86400.0) or 0.0) < 120


def test_who_outlived_the_median_is_not_about_to_end() -> None:
    """A hundred jobs of a minute and fifty of an hour: at the start it is a minute, after two it is the hour."""
    known = learned(*[60.0] * 100, *[3600.0] * 50)
    assert known.run_time(KIND, 0.0) == pytest.approx(60, rel=0.1)
    assert known.run_time(KIND, 120.0) == pytest.approx(3600, rel=0.1)
    assert known.run_time(KIND, 120.0, limit=1800.0) == 1800


def test_kinds_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """HOSTILE 22: a kind for each job: further ones are not learned, and follow the wider kind."""
    monkeypatch.setattr(survival, "MOST_KINDS", 10)
    known = Survival()
    for number in range(100):
        known.learn((str(number),), 1000.0)
    assert len(known._ended) == 10
    assert known.run_time(("99",), 0.0) == pytest.approx(1000, rel=0.1)


def test_an_unknown_kind_follows_the_wider_one() -> None:
    """A new task of a user is taken to be like the user's others, the first of its own move that, many decide."""
    known = learned(*[1000.0] * 50)
    new = (*KIND[:2], "7200")
    assert known.run_time(new, 0.0, 0.5) == pytest.approx(1000, rel=0.11)
    for _ in range(30):
        known.learn(new, 10.0)
    assert known.run_time(new, 0.0, 0.5) == pytest.approx(10, rel=0.11)
    assert known.run_time(KIND, 0.0, 0.5) == pytest.approx(1000, rel=0.11)


def test_a_task_may_change() -> None:
    """Only the last jobs of a window count."""
    known = Survival(window=20)
    for seconds in [5000.0] * 50 + [50.0] * 20:
        known.learn(KIND, seconds)
    assert known.run_time(KIND, 0.0, 0.9) == pytest.approx(50, rel=0.11)


def test_answers_are_kept_as_often_as_they_say() -> None:
    """Of jobs whose run times spread over decades, three in four end by the 0.75 quantile, whenever they are asked."""
    dice = random.Random(7)
    known = Survival(window=4000)
    for _ in range(4000):
        known.learn(KIND, dice.lognormvariate(7, 1.5))
    for elapsed in (0.0, 300.0, 3000.0):
        jobs = [each for each in (dice.lognormvariate(7, 1.5) for _ in range(8000)) if each > elapsed]
        end = known.run_time(KIND, elapsed, 0.75) or math.inf
        kept = sum(each <= end for each in jobs)
        assert kept / len(jobs) == pytest.approx(0.75, abs=0.04)
