"""How likely a user's pilots do not leave as they say, by what became of earlier ones."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from drainwise.journal.memory import ended_events
from drainwise.journal.outcomes import LEAST, MOST, broken_probability
from drainwise.pool.facts import Ending
from drainwise.reclaim.settings import BROKEN_PROMISES

from .facts import FIRST, NOW, SECOND, orders, remembering, snapshot


def test_before_anything_is_known_it_is_one_in_ten() -> None:
    assert broken_probability(0, 0) == BROKEN_PROMISES == 0.1


@given(st.integers(0, 10**6), st.floats(0, 1))
def test_it_is_bounded_and_moves_towards_what_was_seen(leaving: int, share: float) -> None:
    broken = int(leaving * share)
    found = broken_probability(leaving, broken)
    assert LEAST <= found <= MOST
    assert broken_probability(leaving + 1, broken + 1) >= found >= broken_probability(leaving + 1, broken)


def test_the_journal_remembers_who_did_not_leave() -> None:
    """Both pilots of alice's should have left by themselves; one was there at its deadline."""
    memory = remembering(*orders())
    assert memory.history(NOW).broken == {}
    endings = {
        FIRST.run: Ending(FIRST.run, NOW + 2900, vacated=True),
        SECOND.run: Ending(SECOND.run, NOW + 2000, vacated=False),
    }
    for ended in ended_events(memory, endings, snapshot(), NOW + 3000):
        memory.note(ended)
    assert memory.history(NOW + 3000).broken == {"alice": 2 / 12}
