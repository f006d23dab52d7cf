"""What many decisions come to: sums within replications, pairs of the same states, times of what was asked for."""

from __future__ import annotations

import math

import pytest

from drainwise_simulate.outcome import HOUR, CoreSeconds, Outcome
from drainwise_simulate.summary import PolicyLine, lines_of, waits_of


def outcome(
    policy: str,
    replication: int = 0,
    burst: int = 0,
    killed: float = 0.0,
    drained: float = 0.0,
    given: int = 8,
    waits: tuple[tuple[float, int], ...] = ((0.0, 8),),
    asked: int = 8,
) -> Outcome:
    """One decision; wastes in core-hours."""
    return Outcome(
        policy,
        replication,
        burst,
        seed=1,
        moment=1000.0,
        held=32,
        asked=asked,
        given=given,
        pilots=2,
        ended_at_once=1,
        killed=killed * HOUR,
        drained=drained * HOUR,
        predicted=(killed + drained) / 2 * HOUR,
        restarted=3,
        waits=waits,
        core_seconds=CoreSeconds(1.0, 0.0, 0.0, 0.0, 1.0),
    )


def line(lines: tuple[PolicyLine, ...], policy: str) -> PolicyLine:
    return next(one for one in lines if one.policy == policy)


def test_figures_of_a_policy() -> None:
    """Core-hours for each core given, and the parts they are made of."""
    found = lines_of([outcome("a", 0, 0, killed=4, drained=4), outcome("a", 0, 1, killed=8)])
    [one] = found
    assert (one.core_hours_per_core.value, one.killed.value, one.drained.value, one.predicted.value) == (
        1.0,
        0.75,
        0.25,
        0.5,
    )
    assert (one.bursts, one.replications, one.cores_asked, one.cores_given) == (2, 1, 16, 16)
    assert one.killed_pilots_share == 0.5
    assert one.restarted_per_burst.value == 3 and one.to_clairvoyant is None and one.to_youngest_first is None
    assert one.core_hours_per_core.half is None, "one replication says nothing of how sure the figure is"


def test_least_waste_comes_first_and_is_held_against_the_same_states() -> None:
    """A policy that was not run in every replication is compared where both were."""
    outcomes = [outcome("clairvoyant", number, killed=2) for number in range(3)]
    outcomes += [outcome("youngest-first", number, killed=8) for number in range(3)]
    outcomes += [outcome("x", number, killed=4) for number in (0, 2)]
    found = lines_of(outcomes)
    assert [one.policy for one in found] == ["clairvoyant", "x", "youngest-first"]
    x = line(found, "x")
    assert x.to_clairvoyant is not None and x.to_clairvoyant.value == 2 and x.to_clairvoyant.half == pytest.approx(0)
    assert x.to_youngest_first is not None and x.to_youngest_first.value == 0.5
    itself = line(found, "clairvoyant").to_clairvoyant
    assert itself is not None and itself.value == 1


def test_an_optimum_that_wastes_nothing_is_no_measure() -> None:
    """No ratio to nothing, and no core given is no waste for each core."""
    found = lines_of([outcome("clairvoyant"), outcome("x", given=0, waits=())])
    assert line(found, "x").to_clairvoyant is None and line(found, "x").core_hours_per_core.value == 0


def test_times_count_cores() -> None:
    """The first cores that were asked for, over all bursts; what is on top is nobody's, what is missing never."""
    assert waits_of(outcome("a", waits=((5.0, 6), (9.0, 6)), asked=8)) == [(5.0, 6.0), (9.0, 2.0)]
    assert waits_of(outcome("a", waits=((5.0, 6),), asked=8)) == [(5.0, 6.0), (math.inf, 2.0)]
    assert waits_of(outcome("a", waits=((5.0, 6),), asked=8, given=6)) == [(5.0, 6.0)], "sizes do not make 8"
    [one] = lines_of([outcome("a", waits=((60.0, 8),)), outcome("a", burst=1, waits=((7200.0, 8),))])
    assert (one.time_p50, one.time_p95) == (60.0, 7200.0)
    [never] = lines_of([outcome("a", waits=())])
    assert never.time_p50 == math.inf
