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
class NodeFault:
    """A node that did not take the last `count` orders in a row; `time` of the last, UNIX s.

    denied: it refuses whoever gives them; else it did not answer.
    """

    time: int
    count: int
    denied: bool


@dataclass(frozen=True)
class Record:
    """asked: the orders of the last hour and the last one. trust: by user. spared: how many times, by run.

    failed: when the last order to a run was refused, UNIX s, by run. unanswered: the deadlines of orders that nobody
    answered and that may still be carried out, UNIX s, by run. nodes: those that took no order when they were last
    sent one, by name. unmet: by account that orders were given for.
    """

    asked: tuple[Asked, ...] = ()
    trust: Mapping[str, TrustFigures] = field(default_factory=dict)
    spared: Mapping[str, int] = field(default_factory=dict)
    failed: Mapping[str, int] = field(default_factory=dict)
    unanswered: Mapping[str, int] = field(default_factory=dict)
    nodes: Mapping[str, NodeFault] = field(default_factory=dict)
    unmet: Mapping[str, Unmet] = field(default_factory=dict)
