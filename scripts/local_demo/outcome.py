"""The outcome of the demonstration, and where it is shown while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from drainwise.agent.cycle_facts import CycleOutcome
from drainwise.pool.facts import Snapshot
from drainwise.reclaim.plan import Plan
from local_demo.frame import Frame
from local_demo.spent import Spent
from local_demo.sums import Sums
from local_demo.truth import Ran


class Display(Protocol):
    """The place where the demonstration is shown."""

    def say(self, elapsed: float, text: str) -> None:
        """One thing that happened, `elapsed` seconds after the start."""

    def show(self, frame: Frame) -> None:
        """How it looks now."""


class MemoryJournal:
    """A journal in memory."""

    def __init__(self) -> None:
        self.lines: list[Mapping[str, object]] = []

    def write(self, act: Mapping[str, object]) -> None:
        """See `drainwise.journal.file.Journal`."""
        self.lines.append(act)


@dataclass(frozen=True)
class Released:
    """Pilots that had an order for bob's last job and were released again. Times in UNIX s."""

    pilots: tuple[str, ...]
    ordered: float
    withdrawn: float


@dataclass(frozen=True)
class DemoOutcome:
    """How it went, with all that a test needs to hold it against what was planned.

    pilots: name of each run of alice's. bobs: when each of bob's jobs started, UNIX s. decided: UNIX s.
    released: None where no pilot got a second order, or it had left before. spent: by the whole machine.
    ran: all of alice's payloads by their records.
    """

    snapshot: Snapshot
    plan: Plan
    outcome: CycleOutcome
    acts: tuple[Mapping[str, object], ...]
    decided: float
    pilots: Mapping[str, str]
    jobs: Mapping[str, int]
    bobs: Mapping[str, float]
    survivors: tuple[str, ...]
    sums: Sums
    spent: Spent
    ran: tuple[Ran, ...]
    released: Released | None
