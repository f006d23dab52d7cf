"""Have the batch system show the agent after each cycle, where it can: so a dead agent is told from a quiet one."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable

from drainwise import __version__
from drainwise.agent.cycle import Cycle
from drainwise.common.backoff import Backoff
from drainwise.common.faults import Faults
from drainwise.common.printable import ascii_line
from drainwise.pool.abilities import AgentNotice, ShowsAgent

_LONGEST_WHY = 300
_SLACK = 600
"""Seconds for which a notice counts beyond twice the pause to the next cycle."""
_FIRST, _LONGEST = 60.0, 3600.0
"""Seconds until it is tried again after it was refused."""


class AgentNotices:
    """Shows one agent on a pool. policy: with which it begins; period: of its cycles, s; say: takes a line."""

    def __init__(
        self,
        pool: ShowsAgent,
        policy: str,
        period: float,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pool, self._policy, self._period, self._clock = pool, policy, period, clock
        self._machine, self._started = socket.getfqdn(), 0
        self._error, self._error_time = "", 0
        self._faults, self._backoff = Faults(say), Backoff(_FIRST, _LONGEST)

    def observe(self, cycle: Cycle) -> None:
        """Take in a cycle that has ended. A notice that is not taken is one line in the log, and harms nothing."""
        self._started = self._started or cycle.started
        if cycle.fault or cycle.halted:
            self._error, self._error_time = cycle.fault or cycle.halted, cycle.started
        if cycle.plan is not None:
            self._policy = cycle.plan.policy
        if not self._backoff.is_over(self._clock()):
            return
        fault = ""
        try:
            self._pool.show_agent(self._notice(cycle))
            self._backoff.succeeded()
        except Exception as error:  # whatever it is, the agent has done its work
            fault = str(error)
            self._backoff.failed(self._clock())
        self._faults.set("the agent in the batch system", fault and f"not shown: {fault}", "shown now")

    def _notice(self, cycle: Cycle) -> AgentNotice:
        kind = "drainwise" if cycle.acting or cycle.kill_switch else "drainwise-dry-run"
        return AgentNotice(
            name=f"{kind}@{self._machine}",
            machine=self._machine,
            pid=os.getpid(),
            version=__version__,
            policy=self._policy,
            started=self._started,
            cycle=cycle.started,
            next_cycle=round(cycle.started + cycle.seconds + cycle.next_in),
            period=round(self._period),
            acting=cycle.acting,
            state=cycle.state,
            why=ascii_line(cycle.why, _LONGEST_WHY),
            error=ascii_line(self._error, _LONGEST_WHY),
            error_time=self._error_time,
            lifetime=round(2 * cycle.next_in) + _SLACK,
        )
