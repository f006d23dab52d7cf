"""Settings that would make a pilot hang, hurry or guess are refused."""

from __future__ import annotations

import math

import pytest

from drainwise.facts.errors import UsageError
from drainwise.pilot.decide.settings import WHILE_DRAINING, PilotSettings


@pytest.mark.parametrize("word", WHILE_DRAINING)
def test_known_ways_to_drain(word: str) -> None:
    """The three documented words are accepted."""
    assert PilotSettings(while_draining=word).while_draining == word


@pytest.mark.parametrize("name", ["margin", "kill_wait", "term_grace", "heartbeat", "poll", "idle_limit", "rest"])
@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf])
def test_seconds_that_cannot_be(name: str, value: float) -> None:
    """The key is named."""
    with pytest.raises(UsageError, match=name):
        PilotSettings(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["heartbeat", "poll"])
def test_a_pilot_sleeps_between_looks(name: str) -> None:
    """A wait of 0 would be a busy loop."""
    with pytest.raises(UsageError, match=name):
        PilotSettings(**{name: 0.0})  # type: ignore[arg-type]


def test_unknown_word() -> None:
    """The words that would be right are told."""
    with pytest.raises(UsageError, match="holes, deadline, nothing"):
        PilotSettings(while_draining="sometimes")
