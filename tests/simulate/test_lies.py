"""No lie pays, once it is known: with a journal a liar holds its cores no longer than an honest user."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.pilot.decide.lease import Lease
from drainwise.pilot.decide.workload import Workload, report_of
from drainwise.pilotad.report import CONTRADICTORY, FRESH, standing
from drainwise_simulate.scenario import Scenario
from drainwise_simulate.trace import TraceJob
from lies.lie import LIES, Lie
from lies.lying_site import USERS
from lies.rounds import Gained, play

NOW = 1_000_000_000
STAYING = [one for one in LIES if one.stays and one.name != "idle"]
SCENARIO = Scenario(cores=128, lease=86400.0, moments=24, seed=3)


def jobs() -> tuple[TraceJob, ...]:
    """Payloads of one core and of all lengths up to ten hours, more than the site can run at once, for twelve days."""
    return tuple(
        TraceJob(number=n, submit=150 * n, cores=1, run=600 + n * 7919 % 36_000, requested=43_200, user="u", group="g")
        for n in range(7000)
    )


@cache
def played(lie: Lie | None) -> list[dict[str, Gained]]:
    return play(jobs(), SCENARIO, lie)


def hours(rounds: list[dict[str, Gained]]) -> float:
    """From the demand until a core of the first user is free."""
    gained = Gained()
    for one in rounds:
        gained = gained.plus(one[USERS[0]])
    assert gained.cores > 0
    return gained.seconds / 3600


@pytest.mark.in_turn("simulator", "lies")
@pytest.mark.daemons  # whole simulations take their time
@pytest.mark.parametrize("lie", LIES, ids=[one.name for one in LIES])
def test_no_lie_pays_once_it_is_known(lie: Lie) -> None:
    told, honest = played(lie), played(None)
    later = len(told) // 2
    assert hours(told[later:]) <= hours(honest[later:]) + 0.01


@pytest.mark.in_turn("simulator", "lies")
@pytest.mark.daemons  # whole simulations take their time
def test_no_lie_changes_how_many_cores_its_user_gives_back_at_first() -> None:
    """Later the sites differ."""
    assert {played(lie)[0][USERS[0]].cores for lie in (None, *LIES)} == {played(None)[0][USERS[0]].cores}


@given(st.sampled_from(LIES), st.integers(1, 128), st.integers(200, 400_000), st.integers(60, 86_400))
def test_only_one_of_them_contradicts_itself(lie: Lie, cores: int, age: int, leaves: int) -> None:
    """The others no single report shows."""
    lease = Lease(cores, NOW - age, NOW + 100_000)
    honest = report_of(Workload(NOW - age), lease, True, 0, NOW)
    told = lie.tell(honest, lease, NOW + leaves)
    expected = CONTRADICTORY if lie.name == "idle" else FRESH
    assert standing(told, NOW, 3600, NOW - age, cores) == expected


@pytest.mark.in_turn("simulator", "lies")
@pytest.mark.daemons  # whole simulations take their time
def test_a_liar_that_stays_is_ended_at_its_deadline() -> None:
    """In the first round nothing is known: each of its pilots is there until the horizon is nearly over."""
    scenario = replace(SCENARIO, moments=1)
    [first] = play(jobs(), scenario, STAYING[0])
    assert first[USERS[0]].seconds == pytest.approx(scenario.site.horizon, abs=scenario.site.margin + 1)


@pytest.mark.in_turn("simulator", "lies")
@pytest.mark.daemons  # whole simulations take their time
def test_the_table_has_a_row_for_each_lie() -> None:
    """On both logs, where pilots may be killed and where none is."""
    script = Path(__file__).parents[2] / "scripts/liars"
    command = [sys.executable, str(script), "--moments", "1", "--replications", "1"]
    rows = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[2:]
    assert [row.split(" | ")[2] for row in rows] == [one.name for one in LIES] * 4
    assert all(0 <= float(cell) < 2.1 for row in rows for cell in row.strip("| ").split(" | ")[3:])
