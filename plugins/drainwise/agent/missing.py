"""What is still missing while the orders of a plan are given, one after the other. Pure."""

from __future__ import annotations

from drainwise.reclaim.decide.decision import Looked
from drainwise.reclaim.plan import Order


class Missing:
    """What is missing by one look: cores, or jobs without room by their kind; less what orders are given for.

    gone: the runs whose orders were withdrawn just now.
    """

    def __init__(self, waits: Looked, gone: frozenset[str]) -> None:
        self._gone = gone
        self._cores = waits.balance.deficit
        self._jobs: dict[str, float] | None = None if waits.kinds is None else dict(waits.kinds.jobs)
        self._begun: set[str] = set()

    def has_use_of(self, order: Order) -> bool:
        """Return whether an order still has a reason: its request, a job without room, or cores that are missing.

        One in place of others has it when the orders of all of these are withdrawn.
        """
        if order.request:
            return True
        if order.instead_of:
            return self._gone.issuperset(order.instead_of)
        if order.room is None or not order.room.jobs or self._jobs is None:
            return self._cores > 0
        return order.room.place in self._begun or any(self._jobs.get(kind.name, 0) > 0 for kind, _ in order.room.jobs)

    def without(self, order: Order) -> None:
        """Take off what an order that was given makes room for; all orders of one place make the same room."""
        if order.request or order.instead_of:
            return
        self._cores -= order.pilot.cores
        if order.room is not None and self._jobs is not None and order.room.place not in self._begun:
            self._begun.add(order.room.place)
            for kind, jobs in order.room.jobs:  # of one that needs several places each has a part
                self._jobs[kind.name] = self._jobs.get(kind.name, 0) - jobs / kind.places
