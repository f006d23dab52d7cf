"""The agent's state in a word or two and why: said once when it begins, and not again until it changes."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from drainwise.agent.cycle import Cycle
from drainwise.errors import DrainwiseError
from drainwise.journal.entries import state_event
from drainwise.journal.event import BACKING_OFF, DRY_RUN, OK, PAUSED
from drainwise.journal.file import Journal

_FIGURES = re.compile("[0-9]+")


@dataclass(frozen=True)
class State:
    """One of the words above, and why."""

    name: str
    why: str

    def __str__(self) -> str:
        return f"{self.name}: {self.why}"


def state_of(cycle: Cycle, kill_switch: str, wanted: bool) -> State:
    """The state after a cycle; kill_switch: its path when it is there, else "". wanted: whether it acts at all."""
    fault = cycle.fault or cycle.halted
    if fault:
        return State(BACKING_OFF, fault)
    if not wanted:
        return State(DRY_RUN, "nobody is asked until [agent] act = yes, or --act")
    if kill_switch:
        return State(PAUSED, f"nobody is asked while {kill_switch} is there")
    return State(OK, "asks pilots to leave where the plan says so")


def without_figures(text: str) -> str:
    """The text with `#` for each number: by it a sentence is known again when only its figures have changed."""
    return _FIGURES.sub("#", text)


class StateTold:
    """Says each change once, in a line and in the journal. A fault whose figures alone have changed is the same."""

    def __init__(self, say: Callable[[str], None], journal: Journal | None) -> None:
        self._say, self._journal = say, journal
        self._known = ("", "")

    def tell(self, state: State, now: int) -> None:
        """This is the state at `now` (UNIX s). A journal that cannot be written is said by the state itself."""
        known = state.name, without_figures(state.why)
        if known == self._known:
            return
        self._known = known
        self._say(str(state))
        if self._journal is not None:
            with suppress(DrainwiseError):
                self._journal.write(state_event(state.name, state.why, now))
