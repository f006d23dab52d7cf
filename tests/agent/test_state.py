"""The agent's state: one line for each change."""

from __future__ import annotations

import pytest

from drainwise.agent.cycle import Cycle
from drainwise.agent.loop import AgentState, StateLog, state_of
from drainwise.journal.event import State

from .memory_pool import NOW, Lines


def cycle(fault: str = "", acting: bool = True) -> Cycle:
    return Cycle(NOW, 0.1, None, None, fault, acting)


@pytest.mark.parametrize(
    ("fault", "kill_switch", "wanted", "name"),
    [
        ("", "", True, State.OK),
        ("", "", False, State.DRY_RUN),
        ("", "/etc/off", True, State.PAUSED),
        ("", "/etc/off", False, State.DRY_RUN),
        ("no answer", "", True, State.BACKING_OFF),
        ("no answer", "/etc/off", False, State.BACKING_OFF),
    ],
)
def test_the_state_after_a_cycle(fault: str, kill_switch: str, wanted: bool, name: str) -> None:
    state = state_of(cycle(fault), kill_switch, wanted)
    assert state.name == name
    assert name != State.PAUSED or kill_switch in state.why
    assert name != State.BACKING_OFF or state.why == fault


def test_each_change_is_said_once_and_written_down() -> None:
    said: list[str] = []
    journal = Lines()
    told = StateLog(said.append, journal)
    for state in (
        AgentState(State.OK, "fine"),
        AgentState(State.OK, "fine"),
        AgentState(State.BACKING_OFF, "its last round was 11 s ago"),
        AgentState(State.BACKING_OFF, "its last round was 71 s ago"),
        AgentState(State.BACKING_OFF, "no daemon serves it"),
        AgentState(State.OK, "fine"),
    ):
        told.tell(state, NOW)
    assert said == [
        "ok: fine",
        "backing off: its last round was 11 s ago",
        "backing off: no daemon serves it",
        "ok: fine",
    ]
    assert [(event["state"], event["time"]) for event in journal.events] == [
        (State.OK, NOW),
        (State.BACKING_OFF, NOW),
        (State.BACKING_OFF, NOW),
        (State.OK, NOW),
    ]


def test_a_journal_that_cannot_be_written_does_not_hide_the_line() -> None:
    said: list[str] = []
    StateLog(said.append, Lines(room=0)).tell(AgentState(State.BACKING_OFF, "the journal cannot be written"), NOW)
    assert said == ["backing off: the journal cannot be written"]
