"""What a batch system may be able to do for its administrators: show the agent beside its own daemons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True)
class AgentNotice:
    """An agent after a cycle; times in UNIX s.

    name: of the agent in its pool. machine, pid: where it runs. started: its first cycle's begin. cycle, next_cycle:
    when the last cycle began, and when the next one will. period: s from one to the next. acting: whether it gives
    orders. state and why: as `agent.state` has them. error: of the last cycle that failed, which began at `error_time`;
    "" and 0 when none has. lifetime: s after which the notice counts no more.
    """

    name: str
    machine: str
    pid: int
    version: str
    policy: str
    started: int
    cycle: int
    next_cycle: int
    period: int
    acting: bool
    state: str
    why: str
    error: str
    error_time: int
    lifetime: int


@runtime_checkable
class ShowsAgent(Protocol):
    """A pool that can show its agent; nothing depends on it."""

    def show_agent(self, notice: AgentNotice) -> None:
        """Have it shown in place of an earlier notice of the same name. Raises PoolError when it is not taken."""
