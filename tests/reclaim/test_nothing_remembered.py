"""What is remembered of nobody, and what an earlier cycle did not note, counts nothing."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from drainwise.reclaim.counted_demand import UntakenRoom
from drainwise.reclaim.history import History, PastOrder, TrustFigures
from drainwise.reclaim.seen_pilots import EndsSeen
from drainwise.reclaim.unmet_demand import Round, UnmetDemand

from .facts import NOW


@pytest.mark.parametrize(
    "known",
    [
        History(),
        PastOrder(NOW, "alice", 8),
        TrustFigures(5, 0, 0, 0, 0),
        EndsSeen(),
        UntakenRoom("a", "kind"),
        UnmetDemand("a"),
        UnmetDemand("a").round,
    ],
    ids=lambda known: type(known).__name__,
)
def test_what_was_not_noted_is_nothing(known: Any) -> None:
    """A core of which nothing is said is billed as one."""
    required = {"time", "user", "cores", "pilots", "account", "kind"} if not isinstance(known, EndsSeen) else set()
    noted = {one.name: getattr(known, one.name) for one in fields(known) if one.name not in required}
    assert noted.pop("billed", 1.0) == 1.0
    assert [name for name, value in noted.items() if value and value != Round()] == []
