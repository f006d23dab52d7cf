"""The agent's state and why, said once when it begins and not again until it changes."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from drainwise.agent.cycle import Cycle
from drainwise.facts.errors import DrainwiseError
from drainwise.journal.entries import state_event
from drainwise.journal.event import BACKING_OFF, DRY_RUN, OK, PAUSED
from drainwise.journal.file import Journal

_FIGURES = re.compile("[0-9]+")


@dataclass(frozen=True)
class AgentState:
    """One of the states of `journal.event`, and why."""

    name: str
    why: str

    def __str__(self) -> str:
        return f"{self.name}: {self.why}"


def state_of(cycle: Cycle, kill_switch: str, wanted: bool) -> AgentState:
    """Return the state after a cycle; kill_switch: its path when it is there, else "". wanted: whether it is to act."""
    fault = cycle.fault or cycle.halted
    if fault:
        return AgentState(BACKING_OFF, fault)
    if not wanted:
        return AgentState(DRY_RUN, "no order is given until [agent] act = yes, or --act")
    if kill_switch:
        return AgentState(PAUSED, f"no order is given while {kill_switch} is there")
    return AgentState(OK, "gives the orders of each plan")


def without_figures(text: str) -> str:
    """Return the text with `#` for each number, to compare sentences without their figures."""
    return _FIGURES.sub("#", text)


class StateLog:
    """Says each change once, in a line and in the journal. A fault whose figures alone have changed is the same."""

    def __init__(self, say: Callable[[str], None], journal: Journal | None) -> None:
        self._say, self._journal = say, journal
        self._known = ("", "")

    def tell(self, state: AgentState, now: int) -> None:
        """Log the state at `now` (UNIX s) if it has changed. A journal that cannot be written is a state itself."""
        known = state.name, without_figures(state.why)
        if known == self._known:
            return
        self._known = known
        self._say(str(state))
        if self._journal is not None:
            with suppress(DrainwiseError):
                self._journal.write(state_event(state.name, state.why, now))
