"""How many cores are counted on to come back by themselves, by what was seen of pilots that ended without an order."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from drainwise.pool.facts import Pilot
from drainwise.reclaim.choose.problem import Real, Whole
from drainwise.reclaim.decide import open_until as threshold
from drainwise.reclaim.decide.open_until import likely, rate_of_ends
from drainwise.reclaim.history import DAY, HOUR
from drainwise.reclaim.seen_pilots import LONGEST, PERIOD, EndsSeen, OrderedPilot, PilotsLook, next_look

from .facts import NOW, pilot


def columns(pilots: Sequence[Pilot]) -> tuple[Whole, Real]:
    """Their cores, and when they started."""
    return np.array([one.cores for one in pilots], dtype=np.int64), np.array([float(one.started) for one in pilots])


def cores_that_end(cores: Whole, started: Real, now: int, left: int, seen: EndsSeen) -> float:
    return threshold.cores_that_end(cores, started, now, left, seen)[0]


OLD = columns([pilot(number, started=NOW - 10 * DAY) for number in range(100)])
NOTHING = EndsSeen()


def test_who_never_saw_an_end_counts_on_none() -> None:
    assert cores_that_end(*OLD, NOW, 2 * HOUR, NOTHING) == 0
    assert cores_that_end(*columns([]), NOW, 2 * HOUR, EndsSeen(800, 8000)) == 0


def test_before_anything_was_seen_as_many_end_as_have_begun() -> None:
    """A third of the pilots began in the three days of the window: as many should end in such days, fewer in hours."""
    young = columns([pilot(number, started=NOW - (DAY if number < 40 else 10 * DAY)) for number in range(120)])
    assert math.isclose(rate_of_ends(*young, NOW, NOTHING), 1 / 3 / (3 * DAY))
    assert 960 / 3 / 13 < cores_that_end(*young, NOW, 6 * HOUR, NOTHING) < 960 / 3 / 12


def test_what_was_seen_soon_counts_for_more_than_the_prior() -> None:
    """Pilots live for eight hours on average; nothing of that is known from those that are there."""
    rates = [rate_of_ends(*OLD, NOW, EndsSeen(800 * hours / 8, 800 * hours * HOUR)) for hours in (1, 6, 24, 72)]
    assert rates == sorted(rates)
    assert rates[1] >= 0.5 / (8 * HOUR) and 0.9 / (8 * HOUR) < rates[3] < 1 / (8 * HOUR)


def test_who_has_ended_does_not_end_again() -> None:
    """Pilots live for eight hours on average: in two hours 22 % of them end, in three days all."""
    seen = EndsSeen(1e6, 1e6 * 8 * HOUR)
    assert round(cores_that_end(*OLD, NOW, 2 * HOUR, seen)) == round(800 * (1 - math.exp(-0.25)))
    assert 799 < cores_that_end(*OLD, NOW, 3 * DAY, seen) <= 800


def test_of_few_large_pilots_the_number_is_less_certain() -> None:
    seen, left = EndsSeen(1e6, 1e6 * 8 * HOUR), 2 * HOUR
    many, few = (columns([pilot(n, cores=size) for n in range(800 // size)]) for size in (1, 80))
    (mean, spread), (same, wider) = (threshold.cores_that_end(*one, NOW, left, seen) for one in (many, few))
    assert mean == same and math.isclose(spread, math.sqrt(mean))
    assert math.isclose(wider**2, 80 * spread**2)


@given(st.floats(0, 1e5), st.floats(0, 1e3))
def test_likely_numbers_have_the_mean_and_the_spread(mean: float, spread: float) -> None:
    found = likely(mean, spread)
    assert math.isclose(sum(share for _, share in found), 1)
    assert all(number >= 0 for number, _ in found)
    if mean > 2 * spread:
        assert math.isclose(sum(share * number for number, share in found), mean)
        assert math.isclose(sum(share * (number - mean) ** 2 for number, share in found), spread**2, abs_tol=1e-6)


some_pilots = st.lists(
    st.tuples(st.integers(1, 256), st.integers(0, 10 * DAY)).map(
        lambda one: pilot(0, cores=one[0], started=NOW - one[1])
    ),
    max_size=20,
)
some_seen = st.builds(EndsSeen, st.floats(-1e6, 1e9), st.floats(0, 1e15))


@given(some_pilots, some_seen, st.integers(-HOUR, 10 * DAY))
def test_never_more_than_there_are_and_more_the_longer(pilots: list[Pilot], seen: EndsSeen, left: int) -> None:
    """Whatever a journal says."""
    it = columns(pilots)
    found, longer = (cores_that_end(*it, NOW, time, seen) for time in (left, left + HOUR))
    assert 0 <= found <= it[0].sum()
    assert left > 0 or found == 0
    assert longer >= found


@given(some_pilots, some_seen, st.floats(1, 1e6))
def test_more_ends_in_the_same_time_are_a_higher_rate(pilots: list[Pilot], seen: EndsSeen, more: float) -> None:
    it = columns(pilots)
    assert rate_of_ends(*it, NOW, seen + EndsSeen(more)) >= rate_of_ends(*it, NOW, seen)


def looks(lives: Sequence[tuple[int, int]], until: int, ordered: Sequence[int] = ()) -> EndsSeen:
    """What looks every half hour see of pilots of 8 cores that run from one time to another, in s.

    ordered: places of those that get an order 100 s before they end.
    """
    before, sums, orders = None, EndsSeen(), dict[str, OrderedPilot]()
    for now in range(NOW, NOW + until, PERIOD):
        there = []
        for place, (begin, end) in enumerate(lives):
            if NOW + begin <= now < NOW + end:
                is_ordered = place in ordered and now >= NOW + end - 100
                there.append(pilot(place, started=NOW + begin, deadline=NOW + end if is_ordered else None))
            if place in ordered and now >= NOW + end - 100:
                one = pilot(place, started=NOW + begin)
                orders[one.run] = OrderedPilot(NOW + end - 100, one.user, one.cores, one.started)
        look = next_look(before, there, orders, now)
        assert look is not None
        if "alice" in look.users:
            sums = sums + look.users["alice"].seen
        before = look
    return sums


def test_looks_learn_the_rate_at_which_pilots_end() -> None:
    """Sixty places, each with one pilot after the other, of 8 hours on average."""
    dice, lives = random.Random(3), list[tuple[int, int]]()
    for _ in range(60):
        begin = -dice.randrange(DAY)
        while begin < 3 * DAY:
            lives.append((begin, begin + max(60, int(dice.expovariate(1 / (8 * HOUR))))))
            begin = lives[-1][1]
    seen = looks(lives, 3 * DAY)
    assert 0.85 < seen.cores / seen.core_seconds * 8 * HOUR < 1.15


def test_who_got_an_order_did_not_end_by_itself() -> None:
    lives = [(-HOUR, HOUR * number) for number in range(1, 9)]
    assert looks(lives, 10 * HOUR).cores == 64
    assert looks(lives, 10 * HOUR, ordered=range(8)).cores == 0
    assert looks(lives, 10 * HOUR, ordered=[2, 5]).cores == 48


def test_a_lease_that_ends_is_no_end_by_itself() -> None:
    ending = [pilot(number, started=NOW - HOUR, lease_end=NOW + PERIOD // 2) for number in range(4)]
    staying = [pilot(number, started=NOW - HOUR, lease_end=NOW + DAY) for number in range(4, 8)]
    first = next_look(None, [*ending, *staying], {}, NOW)
    assert first is not None and first.users["alice"].cores == 32
    second = next_look(first, staying[1:], {}, NOW + PERIOD)
    assert second is not None and second.users["alice"].seen == EndsSeen(8, 28 * PERIOD)


def test_a_node_that_was_out_of_sight_is_no_end_over_time() -> None:
    pilots = [pilot(number, started=NOW - HOUR) for number in range(8)]
    first = next_look(None, pilots, {}, NOW)
    second = next_look(first, pilots[4:], {}, NOW + PERIOD)
    third = next_look(second, pilots, {}, NOW + 2 * PERIOD)
    assert second is not None and third is not None
    assert (second.users["alice"].seen.cores, third.users["alice"].seen.cores) == (32, -32)


def test_looks_too_close_or_too_far_from_each_other_say_nothing() -> None:
    first = next_look(None, [pilot(1)], {}, NOW)
    assert first is not None
    assert next_look(first, [], {}, NOW + PERIOD - 1) is None
    for late in (NOW + LONGEST + 1, NOW - 1):
        assert next_look(first, [pilot(2)], {}, late) == PilotsLook(late, {"alice": first.users["alice"]})
