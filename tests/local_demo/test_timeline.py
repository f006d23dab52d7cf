"""Cores that came back against time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from local_demo.timeline import Freed, all_back, bar, cumulative, freed_at, sparkline

FREED = [Freed(9.0, 16), Freed(2.0, 4), Freed(5.0, 4)]


def test_cores_add_up_in_the_order_of_time() -> None:
    assert cumulative(FREED) == [(2.0, 4), (5.0, 8), (9.0, 24)]
    assert [freed_at(FREED, moment) for moment in (0, 2, 4.9, 5, 100)] == [0, 4, 4, 8, 24]
    assert (all_back(FREED, 24), all_back(FREED, 8), all_back(FREED, 25)) == (9.0, 5.0, None)


def test_the_line_rises_to_the_full_block_and_ends_with_the_present() -> None:
    assert sparkline(FREED, 24, now=10, until=10, width=5) == "▂▂▃▃█"
    assert sparkline(FREED, 24, now=5, until=10, width=5) == "▂▂   "


@given(
    freed=st.lists(st.builds(Freed, st.floats(0, 100), st.integers(1, 64))),
    now=st.floats(0, 200),
    width=st.integers(1, 80),
)
def test_the_line_never_falls(freed: list[Freed], now: float, width: int) -> None:
    line = sparkline(freed, 64, now, 100, width)
    assert len(line) == width
    assert list(line.rstrip()) == sorted(line.rstrip())


def test_a_bar() -> None:
    assert [bar(part, 8, 4) for part in (0, 4, 8, 99)] == ["····", "██··", "████", "████"]
    assert bar(1, 0, 2) == "··"
