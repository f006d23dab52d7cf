"""What was learned of run times moves the ends that a pilot tells; no payload is ever expected past its maximum."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from apart import apart
from drainwise.pilot.channels import Channels, SiteNoticeReader
from drainwise.pilot.decide.estimates import expected_run_time, move_overdue, next_estimate, renew
from drainwise.pilot.decide.lease import Lease
from drainwise.pilot.decide.payload import Payload
from drainwise.pilot.decide.settings import PilotSettings
from drainwise.pilot.decide.workload import RunningPayload, running_since
from drainwise.pilot.processes import Processes
from drainwise.pilot.runner import PilotClock, PilotRunner

from .test_runner import Listed
from .work import T0, workload_of


class Table:
    """Estimates that are a table: the run time is the first that is longer than what has passed."""

    def __init__(self, *seconds: float) -> None:
        self._seconds, self.looks = sorted(seconds), 0

    def look(self, now: float) -> None:
        self.looks += 1

    def still_running(self, task: str, elapsed: float, ages: Sequence[float]) -> Sequence[float] | None:
        return [sum(one > age for one in self._seconds) / len(self._seconds) for age in ages] if self._seconds else None

    def run_time(self, task: str, cores: int, events: float, elapsed: float) -> float | None:
        return next((one for one in self._seconds if one > elapsed), None)


def payload(expected: float = 1000, maximum: float = 5000, task: str = "t") -> Payload:
    return Payload("p", 1, ("true",), expected, maximum, task=task)


def test_who_has_no_task_is_taken_at_its_word() -> None:
    """Nor is anybody estimated without estimates, or where nobody can tell."""
    assert expected_run_time(Table(7), payload(task=""), 0) is None
    assert expected_run_time(None, payload(), 0) is None
    assert expected_run_time(Table(7), payload(), 8) is None
    assert expected_run_time(Table(7), payload(), 0) == 7
    assert expected_run_time(Table(9000), payload(), 0) == 5000


def test_an_overdue_payload_is_expected_when_its_like_end() -> None:
    """Not a tenth later, as without them; when nobody ran for so long, again a tenth."""
    running = running_since(payload(), T0)
    assert next_estimate(running, T0 + 1000, Table(900, 4000)) == T0 + 4000
    assert next_estimate(running, T0 + 1000, Table(900)) == T0 + 1100


def test_before_a_report_all_are_asked_anew() -> None:
    """An end moves, sooner or later, when it moves by a tenth of the payload's time, not for less."""
    workload = workload_of(running_since(payload(), T0))
    renew(workload, T0, Table(950))
    assert workload.last_end == T0 + 1000
    renew(workload, T0, Table(300))
    assert workload.last_end == T0 + 300
    renew(workload, T0 + 10, Table(3000))
    assert workload.last_end == T0 + 3000


@given(st.floats(1, 1e5), st.floats(0, 1), st.floats(0, 2e5), st.lists(st.floats(0, 2e5, allow_nan=False), max_size=4))
def test_never_in_the_past_and_never_past_the_maximum(
    maximum: float, share: float, elapsed: float, seconds: list[float]
) -> None:
    """Whatever was learned: after now, and at most the maximum or a second away."""
    expected = max(1e-3, share * maximum)
    workload = workload_of(RunningPayload(payload(expected, maximum), T0, T0 + expected, T0 + maximum))
    now, table = T0 + elapsed, Table(*seconds)
    renew(workload, now, table)
    move_overdue(workload, now, table)
    [running] = workload.running.values()
    assert now < running.expected_end <= max(T0 + maximum, now + 1.0) + 1e-3


@apart
def test_the_pilot_tells_what_was_learned(tmp_path: Path) -> None:
    """A payload that says a minute and whose like take 600 s: the pilot's ad says 600 s, its maximum stays its own."""
    said: list[str] = []
    time = {"wall": float(T0), "steady": 100.0}
    clock = PilotClock(lambda: time["wall"], lambda: time["steady"])
    table = Table(600)
    queue = Listed(Payload("p", 1, ("sleep", "60"), 60, 900, task="t"))
    runner = PilotRunner(
        "one",
        Lease(8, clock.now(), clock.now() + 2000),
        PilotSettings(),
        queue,
        Processes(str(tmp_path), os.environ, "one", 0.5),
        Channels(str(tmp_path), None, 8, said.append),
        SiteNoticeReader(str(tmp_path), {}, said.append),
        said.append,
        clock,
        estimates=table,
    )
    until = runner.step()
    assert table.looks == 1
    assert until is not None and until <= clock.now()
    ad = (tmp_path / ".pilot.ad").read_text()
    assert f"LAST_EXP_JOB_END = {T0 + 600}\n" in ad and f"LAST_MAX_JOB_END = {T0 + 905}\n" in ad
    runner.end("the test is over")
    assert said == ["payload p stopped after 0 s and requeued: the pilot ended"]
