"""What is known of earlier cycles, as facts that are passed in: a decision depends on nothing it was not given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from drainwise.reclaim.trust import TrustFigures
from drainwise.reclaim.unmet_demand import Unmet


@dataclass(frozen=True)
class Asked:
    """Cores of one user that were asked for at `time` (UNIX s)."""

    time: int
    user: str
    cores: int


@dataclass(frozen=True)
class Record:
    """asked: the orders of the last hour and the last one. trust: by user. spared: how many times, by run.

    failed: when the last order to a run failed, UNIX s, by run. unmet: by account that orders were given for.
    """

    asked: tuple[Asked, ...] = ()
    trust: Mapping[str, TrustFigures] = field(default_factory=dict)
    spared: Mapping[str, int] = field(default_factory=dict)
    failed: Mapping[str, int] = field(default_factory=dict)
    unmet: Mapping[str, Unmet] = field(default_factory=dict)
