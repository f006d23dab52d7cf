"""A batch system in memory: it keeps what it is ordered, and fails as a test says."""

from __future__ import annotations

from collections.abc import Collection

from drainwise.facts.errors import DrainwiseError, PoolUnreachable
from drainwise.pool.facts import Ending, Pilot, Snapshot


class MemoryPool:
    """Shows the snapshots that it is given, one after the other; a subclass may show others.

    faults: raised at each call, by the name of the method or by run. acts: what was done to which run; orders: run and
    deadline of each.
    """

    def __init__(self, *snapshots: Snapshot) -> None:
        self._answers = iter(snapshots)
        self.faults: dict[str, DrainwiseError] = {}
        self.acts: list[tuple[str, str]] = []
        self.orders: list[tuple[str, int]] = []
        self.ended: dict[str, Ending] = {}
        self.left_to_do: list[str] = []

    def snapshot(self, now: int) -> Snapshot:
        self.called("snapshot")
        try:
            return next(self._answers)
        except StopIteration:
            raise PoolUnreachable("no answer") from None

    def give_order(self, pilot: Pilot, deadline: int, reason: str) -> None:
        self.called("give_order", pilot.run)
        self.acts.append(("ordered", pilot.run))
        self.orders.append((pilot.run, deadline))

    def withdraw_order(self, pilot: Pilot, reason: str) -> None:
        self.called("withdraw_order", pilot.run)
        self.acts.append(("withdrawn", pilot.run))

    def endings(self, runs: Collection[str], now: int) -> dict[str, Ending]:
        self.called("endings")
        return {run: one for run, one in self.ended.items() if run in runs and one.ended <= now}

    def follow_up(self, snapshot: Snapshot) -> list[str]:
        self.called("follow_up")
        left, self.left_to_do = self.left_to_do, []
        return left

    def called(self, method: str, run: str = "") -> None:
        """Raise what this call is to fail with."""
        for name in (method, run):
            if name in self.faults:
                raise self.faults[name]

    def fail(self, fault: DrainwiseError, *methods: str) -> None:
        """Let these methods fail from now on."""
        self.faults |= dict.fromkeys(methods, fault)

    def runs(self, what: str = "ordered") -> list[str]:
        """The runs to which that was done, in the order of the acts."""
        return [run for done, run in self.acts if done == what]
