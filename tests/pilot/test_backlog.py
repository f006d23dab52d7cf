"""What waits for a pilot: kept from decision to decision, it starts what a plain list would."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.pilot.decide import payload as pilot_backlog
from drainwise.pilot.decide.payload import Backlog, Payload

from .work import payload


def by_sorting(
    waiting: dict[int, Payload], free: int, bound: float, now: float, running: frozenset[str]
) -> list[Payload]:
    """Walk through all of them, the highest priority first, and take what fits."""
    chosen: dict[str, Payload] = {}
    for _, one in sorted(waiting.items(), key=lambda entry: (-entry[1].priority, entry[0])):
        if one.cores <= free and now + one.maximum <= bound and one.name not in running and one.name not in chosen:
            chosen[one.name] = one
            free -= one.cores
    return list(chosen.values())


acts = st.lists(
    st.tuples(st.sampled_from("aaardd"), st.integers(1, 8), st.integers(1, 20), st.integers(-2, 2), st.floats(0, 25)),
    max_size=60,
)


@given(acts, st.sampled_from((1, 1000)))
def test_whatever_comes_goes_and_is_decided_it_is_as_with_a_sorted_list(
    acts: list[tuple[str, int, int, int, float]], spare: int
) -> None:
    """Also when there is more time again than there was; and names that stand twice run one after the other."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pilot_backlog, "_SPARE", spare)
        as_with_a_sorted_list(acts)


def as_with_a_sorted_list(acts: list[tuple[str, int, int, int, float]]) -> None:
    backlog, plain, now = Backlog(), dict[int, Payload](), 1000.0
    for number, (act, cores, maximum, priority, left) in enumerate(acts):
        if act == "a":
            plain[-number if priority else number] = one = payload(f"p{number % 7}", cores, maximum, priority=priority)
            backlog.add(one, -number if priority else number)
        elif act == "r" and plain:
            gone = sorted(plain)[maximum % len(plain)]
            del plain[gone]
            backlog.remove(gone)
        else:
            now += maximum
            running = frozenset({f"p{priority}"})
            expected = by_sorting(plain, cores, now + left, now, running)
            assert list(backlog.highest_first(cores, now + left, now, running)) == expected
            fit = [one for one in plain.values() if one.cores <= cores and now + one.maximum <= now + left]
            assert backlog.ending_by(now + left, cores, now, 5) == min(5, len(fit))
            assert backlog.larger_than(cores) == [plain[each] for each in sorted(plain) if plain[each].cores > cores]
    assert list(backlog) == [plain[each] for each in sorted(plain)] and len(backlog) == len(plain)


@given(st.lists(st.integers(1, 3), max_size=5))
def test_those_given_at_once_wait_in_their_order(cores: list[int]) -> None:
    given = [payload(f"p{number}", size) for number, size in enumerate(cores)]
    assert list(Backlog(given)) == given
    assert list(Backlog(given).highest_first(100, 2000, 0, ())) == given


@pytest.mark.parametrize("free", [0, 8])
def test_what_others_take_leaves_nothing_behind(free: int) -> None:
    """Other pilots take from the same queue for weeks, while this one is full or has too little time."""
    backlog = Backlog([payload("stays", maximum=5)])
    tracemalloc.start()
    try:
        for number in range(1, 5000):
            backlog.add(payload(f"p{number}", priority=1), number)
            assert backlog.highest_first(free, 10.0, 0.0, ()) == (() if not free else (next(iter(backlog)),))
            backlog.remove(number)
        assert tracemalloc.get_traced_memory()[0] < 1 << 18
    finally:
        tracemalloc.stop()
    assert [each.name for each in backlog.highest_first(1, 10.0, 0.0, ())] == ["stays"]
