"""Whether a user's pilots did what they promised, and how far their claims are believed for it.

Claims order the pilots of one user and nothing else, so a wrong one harms nobody but its own user; it still wastes.
When a pilot has gone, what was promised is held against what was lost. The batch system alone knows one thing for
certain: not more can be lost than cores × run time. How far the truth turned out to lie between a promise and that,
over all pilots of the user, is the *doubt*; by so much of the way every claim of the user is moved. Promises that were
too low are then right on average, and a user whose word is worth nothing is ranked by what the batch system knows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from drainwise.reclaim.settings import Trust
from drainwise.reclaim.words import core_hours


@dataclass(frozen=True)
class PilotOutcome:
    """What became of one pilot that had been asked. Wastes in core-seconds; ended in UNIX s.

    predicted: the claim, before any doubt. realised: what the batch system's records say was lost. possible: cores ×
    run time at its end, the most that can have been.
    """

    run: str
    user: str
    ended: int
    predicted: int
    realised: int
    possible: int


@dataclass(frozen=True)
class TrustFigures:
    """The sums over one user's outcomes in core-seconds: what was promised, lost, wrong, and could have been wrong."""

    pilots: int
    predicted: int
    realised: int
    error: int
    room: int


def trust_by_user(outcomes: Iterable[PilotOutcome], now: int, rules: Trust) -> dict[str, TrustFigures]:
    """The figures of every user with outcomes within the window before `now` (UNIX s). A run counts once."""
    kept: dict[str, dict[str, PilotOutcome]] = defaultdict(dict)
    for one in outcomes:
        if now - rules.window <= one.ended <= now:
            kept[one.user][one.run] = one
    return {user: _sums(list(runs.values())) for user, runs in kept.items()}


def _sums(outcomes: list[PilotOutcome]) -> TrustFigures:
    predicted = realised = error = room = 0
    for one in outcomes:
        promised, lost = max(0, one.predicted), max(0, one.realised)
        wrong = abs(promised - lost)
        predicted, realised, error = predicted + promised, realised + lost, error + wrong
        room += max(wrong, one.possible - min(promised, lost))
    return TrustFigures(len(outcomes), predicted, realised, error, room)


def doubt(figures: TrustFigures | None, rules: Trust) -> float:
    """From 0, the user's claims count as they are, to 1, only what the batch system knows counts."""
    if figures is None or figures.pilots < rules.pilots or figures.error * 100 <= figures.predicted * rules.tolerance:
        return 0.0
    return min(1.0, figures.error / figures.room)


def doubt_in_words(figures: TrustFigures, share: float) -> str:
    """Why claims are moved, with the figures."""
    return (
        f"claims moved by {share:.0%} towards cores x run time: its user's last {figures.pilots} pilots promised"
        f" {core_hours(figures.predicted)} and lost {core_hours(figures.realised)}"
    )
