"""What is known of a payload that has run for a while: from the ended ones and from those that run still."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from drainwise.common import run_times
from drainwise.common.run_times import MOST_WORDS, QUANTILE, WINDOW, Kind, RunTimes, kind_of
from more_examples import more_examples

KIND = ("atlas", "user7", "86400")
times = st.floats(0, 1e6)
a_tenth = 0.1
"""By which ages are told apart."""


def learned(*seconds: float, running: Sequence[float] = (), kind: Kind = KIND) -> RunTimes:
    """Jobs of one kind that have ended after so long."""
    known = RunTimes()
    for each in seconds:
        known.learn(kind, each)
    known.watch((kind, each) for each in running)
    return known


def test_fewer_than_five_jobs_say_nothing() -> None:
    """Nobody can tell before some have ended, whatever is known of others."""
    assert learned(10, 20, 30, 40).expected(KIND) is None
    known = learned(10, 20, 30, 40, 50)
    assert known.expected(KIND) is not None and known.known(KIND) == 5
    assert known.expected(("cms", *KIND[1:])) is None and known.known(("atlas",)) == 5 and known.known(("cms",)) == 0


def test_the_words_of_a_name_are_kinds_within_each_other() -> None:
    """What two names begin with is a kind of both; a name without a stroke stands alone."""
    assert kind_of("sim") == ("sim",) and kind_of("alice/sim") == ("alice", "sim") and kind_of("") == ("",)
    assert kind_of("a/b/c/d") == ("a", "b", "c/d") and len(kind_of("/" * 200)) == MOST_WORDS


@given(ended=st.lists(st.floats(1, 1e6), min_size=5, max_size=60), elapsed=st.floats(0, 1e6))
def test_one_kind_alone_tells_the_quantile_of_those_that_ran_longer(ended: list[float], elapsed: float) -> None:
    """Within a tenth, between the two that lie about it: no other kind has a say, however few they are."""
    assume(all(abs(math.log(each / max(elapsed, 0.1))) > 2 * a_tenth for each in ended))
    longer = sorted(each for each in ended if each > elapsed)
    assume(longer)
    found = learned(*ended, kind=("t",)).expected(("t",), elapsed)
    count = len(longer)
    assert found is not None
    low, high = longer[math.ceil(QUANTILE * count) - 1], longer[min(count - 1, math.floor(QUANTILE * count))]
    assert low / (1 + a_tenth) <= found <= high * (1 + a_tenth)


def test_five_equal_jobs_tell_their_time() -> None:
    """A new task is estimated from its first five as well as from many."""
    for seconds in (3.0, 100.0, 86400.0):
        assert learned(*[seconds] * 5, kind=("t",)).expected(("t",)) == pytest.approx(seconds, rel=a_tenth)


@given(ended=st.lists(times, min_size=5, max_size=40), running=st.lists(times, max_size=20), elapsed=st.lists(times))
def test_who_runs_on_is_expected_later(ended: list[float], running: list[float], elapsed: list[float]) -> None:
    """The answer is never sooner than what has passed, and never falls while a job runs."""
    known, last = learned(*ended, running=running), 0.0
    for passed in sorted(elapsed):
        found = known.expected(KIND, passed)
        if found is not None:
            assert found >= max(passed, last * (1 - 1e-9))
            last = found


def by_definition(ended: Sequence[float], running: Sequence[float]) -> float:
    """The age by which so many are over: each that runs gives its weight, in equal parts, to all that come after it.

    By Efron (1967), by hand; infinite where nobody can tell.
    """
    points = sorted([(one, 0) for one in ended] + [(one, 1) for one in running])
    weights = [1 / len(points)] * len(points)
    for place, (_, runs) in enumerate(points[:-1]):
        if runs:
            share = weights[place] / (len(points) - place - 1)
            weights[place + 1 :] = [one + share for one in weights[place + 1 :]]
            weights[place] = 0.0
    over = 0.0
    for (time, runs), weight in zip(points, weights):
        over += 0.0 if runs else weight
        if over >= QUANTILE:
            return time
    return math.inf


@given(
    st.lists(st.sampled_from([10.0, 100.0, 1000.0, 10000.0]), min_size=5, max_size=30),
    st.lists(st.sampled_from([30.0, 300.0, 3000.0, 30000.0]), max_size=30),
)
def test_who_runs_stands_for_those_that_end_later(ended: list[float], running: list[float]) -> None:
    """The answer is that of all, where the weight of each that runs goes to those that ran longer than it has."""
    found = learned(*ended, running=running, kind=("t",)).expected(("t",))
    assert found is not None
    near = {by_definition(ended + [extra] * count, running) for extra in (1.0, 1e5) for count in (0, 1)}
    if max(near) <= max(ended):
        assert min(near) / (1 + a_tenth) <= found <= max(near) * (1 + a_tenth)


def test_those_that_run_still_count() -> None:
    """Ten short jobs have ended and a hundred have run on: a job is expected to be one of the hundred."""
    known = learned(*[60.0] * 10)
    assert known.expected(KIND) == pytest.approx(60, rel=a_tenth)
    known.watch([(KIND, 3600.0)] * 100)
    assert (known.expected(KIND) or 0.0) > 3600
    known.watch([(KIND, 30.0)] * 100)
    assert known.expected(KIND) == pytest.approx(60, rel=a_tenth)
    known.watch([])
    assert known.expected(KIND) == pytest.approx(60, rel=a_tenth)


def test_who_outlived_the_short_ones_is_not_about_to_end() -> None:
    """Two hundred jobs of a minute and fifty of an hour: at the start it is a minute, after two it is the hour."""
    known = learned(*[60.0] * 200, *[3600.0] * 50)
    assert known.expected(KIND) == pytest.approx(60, rel=a_tenth)
    assert known.expected(KIND, 120.0) == pytest.approx(3600, rel=a_tenth)
    assert (known.expected(KIND, 4000.0) or 0.0) > 4000


def test_kinds_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """HOSTILE 22: a kind for each job: further ones are not learned, and follow the wider kind."""
    monkeypatch.setattr(run_times, "MOST_KINDS", 10)
    known = RunTimes()
    for number in range(100):
        known.learn(("a", str(number)), 1000.0)
    assert len(known._ended) == 10 and known.known(("a",)) == 100
    assert known.expected(("a", "99")) == pytest.approx(1000, rel=a_tenth)


def test_an_unknown_kind_follows_the_wider_one() -> None:
    """A new task of a user is taken to be like the user's others, the first of its own move that, many decide."""
    known = learned(*[1000.0] * 50)
    new = (*KIND[:2], "7200")
    assert known.expected(new) == pytest.approx(1000, rel=a_tenth)
    for _ in range(30):
        known.learn(new, 10.0)
    assert known.expected(new) == pytest.approx(10, rel=a_tenth)
    assert known.expected(KIND) == pytest.approx(1000, rel=a_tenth)


def test_a_task_may_change() -> None:
    """Only the last jobs of a window count."""
    known = learned(*[5000.0] * 50, *[50.0] * WINDOW)
    assert known.expected(KIND, 60.0) != pytest.approx(5000, rel=a_tenth)
    assert known.expected(KIND) == pytest.approx(50, rel=a_tenth)


@more_examples(0.5)
@given(st.integers(0, 10**6))
def test_an_answer_is_as_new_as_a_twentieth_of_what_it_rests_on(seed: int) -> None:
    """Asked after each job or at the end alone, the answer differs by no more than these few jobs make."""
    dice = random.Random(seed)
    asked, fresh = RunTimes(), RunTimes()
    for _ in range(WINDOW):
        seconds = dice.lognormvariate(7, 0.3)
        for known in (asked, fresh):
            known.learn(KIND, seconds)
        asked.expected(KIND)
    assert asked.expected(KIND) == pytest.approx(fresh.expected(KIND), rel=a_tenth)


def test_answers_are_kept_as_often_as_they_say() -> None:
    """Of jobs whose run times spread over decades, three in four end by the answer, whenever they are asked."""
    dice = random.Random(7)
    spread = [dice.lognormvariate(7, 1.5) for _ in range(20 * WINDOW)]
    known = learned(*spread[:WINDOW])
    for elapsed in (0.0, 300.0, 3000.0):
        jobs = [each for each in spread if each > elapsed]
        end = known.expected(KIND, elapsed) or math.inf
        assert sum(each <= end for each in jobs) / len(jobs) == pytest.approx(QUANTILE, abs=0.06)


@given(
    st.lists(st.floats(0, 1e6), min_size=5, max_size=60),
    st.floats(0, 1e6),
    st.lists(st.floats(0, 1e7), min_size=2, max_size=5),
)
def test_who_runs_still_at_an_age_are_fewer_the_later_it_is(
    ended: list[float], elapsed: float, ages: list[float]
) -> None:
    """All at their own age and before, and three in four have ended by about the time that is expected."""
    times = RunTimes()
    for seconds in ended:
        times.learn(("a",), seconds)
    found = times.still_running(("a",), elapsed, [*sorted(ages), elapsed])
    assert found is not None
    assert found[-1] == 1.0
    assert all(0.0 <= later <= sooner <= 1.0 for sooner, later in zip(found, found[1:-1]))
    end = times.expected(("a",), elapsed)
    if end is not None and end > 2:
        sooner, later = times.still_running(("a",), elapsed, [end / 1.1 - 1, end * 1.1 + 1]) or [0.0, 0.0]
        assert sooner + 1e-9 >= 1 - QUANTILE >= later - 1e-9


def test_nobody_can_tell_who_runs_still_of_a_kind_without_jobs() -> None:
    assert RunTimes().still_running(("a",), 0.0, [1.0]) is None


@given(ended=st.lists(times, max_size=20), running=st.lists(times, max_size=5), later=st.lists(times, max_size=20))
def test_a_copy_learns_by_itself(ended: list[float], running: list[float], later: list[float]) -> None:
    """What either learns later changes nothing of the other."""
    first, other = learned(*ended, running=running), learned(*ended, running=running)
    before = first.expected(KIND, 7.0)
    own = first.copy()
    for seconds in later:
        own.learn(KIND, seconds)
        other.learn(KIND, seconds)
    own.watch([])
    other.watch([])
    assert own.expected(KIND, 7.0) == other.expected(KIND, 7.0)
    assert first.expected(KIND, 7.0) == before
