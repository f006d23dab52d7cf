"""One line for each change, however long a fault lasts."""

from __future__ import annotations

from drainwise.common.service import Faults


def test_a_fault_is_said_once_and_once_when_it_is_over() -> None:
    """Not at every event; again when it is another; and a place without a fault says nothing."""
    said: list[str] = []
    faults = Faults(said.append)
    for text in ("", "full", "full", "gone", "", "", "full"):
        faults.set("disk", text)
    faults.set("disk", "", "empty")
    assert said == ["disk: full", "disk: gone", "disk: all right again", "disk: full", "disk: empty"]


def test_a_place_that_was_forgotten_begins_anew() -> None:
    said: list[str] = []
    faults = Faults(said.append)
    for _ in range(2):
        faults.set("job 17", "x")
        faults.forget("job 17")
    faults.set("job 17", "")
    assert said == ["job 17: x", "job 17: x"]


def test_a_place_may_say_only_so_much_in_an_hour() -> None:
    """HOSTILE 40, 41: another fault at every look; and the next job of that number starts anew."""
    said: list[str] = []
    faults = Faults(said.append, an_hour=20)
    for number in range(1000):
        faults.set("job 17", f"fault {number}")
    assert len(said) == 20
    faults.forget("job 17")
    faults.set("job 17", "x")
    assert said[-1] == "job 17: x"


def test_a_process_that_runs_for_years_is_not_silenced_by_the_past() -> None:
    """A controller is away now and then: that is said each time."""
    said: list[str] = []
    now = 0.0
    faults = Faults(said.append, 20, lambda: now)
    for outage in range(60):
        now = outage * 86400.0
        faults.set("slurmctld", "no answer")
        faults.set("slurmctld", "", "answers again")
    assert len(said) == 120
    for number in range(1000):
        faults.set("slurmctld", f"fault {number}")
    assert len(said) == 138
