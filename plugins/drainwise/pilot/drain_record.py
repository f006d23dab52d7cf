"""Since when the pilot has been asked to go, and the log lines when that changes."""

from __future__ import annotations

from collections.abc import Callable

from drainwise.pilot.account import Account, Drain
from drainwise.pilot.orders import Orders


class DrainRecord:
    """The order to drain that stands now, if any. account: told when one begins."""

    def __init__(self, account: Account, log: Callable[[str], None]) -> None:
        self._account, self._log = account, log
        self._requested: float | None = None
        self._source = ""

    def note(self, before: Orders, orders: Orders, now: float) -> bool:
        """Take in what holds at `now` (UNIX s); whether it differs from what held before."""
        overdue = orders.deadline == now and before.deadline is not None and before.deadline <= now
        if (orders.leave, orders.draining, orders.source) == (before.leave, before.draining, before.source) and (
            overdue or orders.deadline == before.deadline
        ):
            return False
        by = "" if orders.deadline is None else f", everything ends within {max(0.0, orders.deadline - now):.0f} s"
        if orders.draining:
            if self._requested is None:
                self._requested, self._source = now, orders.source
                self._account.mark(now)
            self._log(f"draining ({orders.source}){by}")
        elif before.draining:
            self._requested = None
            self._log(f"no longer asked to drain{by}")
        else:
            self._log(f"the lease has another end ({orders.source}){by}")
        return True

    def shift(self, seconds: float) -> None:
        """The clock was set by so much."""
        if self._requested is not None:
            self._requested += seconds

    def until(self, end: float) -> Drain | None:
        """The drain that ended at `end`, UNIX s; None when nobody asks for one."""
        if self._requested is None:
            return None
        idle, lost = self._account.since_mark(end)
        requested, seconds = round(self._requested, 3), round(max(0.0, end - self._requested), 3)
        return Drain(requested, seconds, self._source, idle, lost)
