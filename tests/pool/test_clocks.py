"""Two clocks that differ by more than half a minute are not both right."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.errors import PoolUnreachable
from drainwise.pool.clocks import CLOCKS_DIFFER, require_same_clock

NOW = 1795249000


@given(st.integers(-1000, 1000), st.integers(0, 60))
def test_what_was_said_within_half_a_minute_of_the_question_is_the_same_time(off: int, took: int) -> None:
    """However long the answer took."""
    said = NOW + off
    if -CLOCKS_DIFFER <= off <= took + CLOCKS_DIFFER:
        require_same_clock(said, NOW, NOW + took, "the other's")
        return
    with pytest.raises(PoolUnreachable, match="ahead of the other's" if off < 0 else "behind the other's"):
        require_same_clock(said, NOW, NOW + took, "the other's")
