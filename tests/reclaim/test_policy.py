"""The policies by name: the paper's rule as written, and the least total waste exactly."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drainwise.errors import UsageError
from drainwise.pilotad.report import PilotReport
from drainwise.reclaim.candidates import KILL, LEAVE, Candidate, assess
from drainwise.reclaim.policy import POLICIES, Choice, Need, policy_called

from .facts import NOW, SETTINGS, pilot, report, reports

HOUR = 3600


def candidates(*said: PilotReport | None, cores: int = 8) -> list[Candidate]:
    return [assess(pilot(number, one, cores=cores), NOW, SETTINGS) for number, one in enumerate(said)]


def choose(name: str, among: Sequence[Candidate], cores: int, most: int = 10**6) -> list[str]:
    chosen = policy_called(name).choose(among, Need(cores, most), NOW, SETTINGS)
    return [one.candidate.pilot.run.partition(".")[0] for one in chosen]


QUICK_CHEAP = report(7.0, first_end=NOW + 600, last_end=NOW + 600)  # draining waste 600
QUICK_DEAR = report(1.0, first_end=NOW + HOUR, last_end=NOW + HOUR, start=NOW - 1)  # draining 25200, kill 1
SLOW_CHEAP = report(1.0, first_end=NOW + 9 * HOUR, last_end=NOW + 9 * HOUR, start=NOW - 5)  # kill 5
SLOW_DEAR = report(8.0, first_end=NOW + 9 * HOUR, last_end=NOW + 9 * HOUR, start=NOW - 9000)


def test_paper_drains_the_least_draining_waste_of_those_that_are_gone_within_two_hours() -> None:
    """Although another one would be cheaper to kill."""
    among = candidates(SLOW_CHEAP, QUICK_DEAR, QUICK_CHEAP)
    assert choose("paper", among, 8) == ["ce#2"]
    assert choose("paper", among, 16) == ["ce#2", "ce#1"]


def test_paper_kills_the_least_expensive_when_none_can_be_gone_within_two_hours() -> None:
    among = candidates(SLOW_DEAR, SLOW_CHEAP)
    [one] = policy_called("paper").choose(among, Need(8, 8), NOW, SETTINGS)
    assert (one.candidate.pilot.run[:4], one.option.kind, one.option.deadline) == ("ce#1", KILL, NOW)
    assert one.reason == (
        "killed: 0.001 core-h of running payloads lost; no other can go away within 2h: least expensive to kill"
    )


def test_the_two_hours_of_the_paper_are_the_sites_horizon() -> None:
    among = candidates(QUICK_DEAR, QUICK_CHEAP)
    short = dataclasses.replace(SETTINGS, horizon=601)
    [first, second] = policy_called("paper").choose(among, Need(16, 16), NOW, short)
    assert (first.candidate.pilot.run[:4], first.option.kind) == ("ce#1", LEAVE)
    assert second.option.kind == KILL


def test_a_silent_pilot_is_never_one_that_can_go_away() -> None:
    assert choose("paper", candidates(None, QUICK_DEAR), 8) == ["ce#1"]
    assert choose("paper", candidates(None, SLOW_DEAR), 8) == ["ce#1"]


def test_least_waste_takes_the_cheapest_set_and_not_one_after_the_other() -> None:
    """20 cores of 12 and 8: the two small ones are the cheapest each, and with them a third is needed."""
    small = [
        assess(pilot(n, report(7.0, first_end=NOW + 100 + n, last_end=NOW + 100 + n)), NOW, SETTINGS) for n in (1, 2)
    ]
    large = assess(pilot(3, report(10.0, first_end=NOW + 90, last_end=NOW + 90), cores=12), NOW, SETTINGS)
    assert sorted(choose("least-waste", [*small, large], 20)) == ["ce#1", "ce#3"]


def test_least_waste_gives_everybody_notice() -> None:
    chosen = policy_called("least-waste").choose(candidates(SLOW_CHEAP, None), Need(16, 16), NOW, SETTINGS)
    assert {one.option.deadline for one in chosen} == {NOW + SETTINGS.grace}


def test_of_equals_the_one_its_owner_values_least_is_asked() -> None:
    """PRIORITY_FACTOR, higher is better; by both policies, drained or killed."""
    for said in (QUICK_CHEAP, SLOW_DEAR):
        valued = [
            PilotReport.from_values(
                said.heartbeat,
                "x",
                {**{f: getattr(said, f) for f in PilotReport.__slots__[1:-1]}, "priority_factor": factor},
            )
            for factor in (5, -5, 0)
        ]
        for policy in POLICIES:
            assert choose(policy, candidates(*valued), 8) == ["ce#1"], policy


def test_a_pilot_that_drains_already_goes_first() -> None:
    """The paper counts those first that are draining already; here the batch system holds them to their word."""
    draining = report(1.0, first_end=NOW + HOUR, last_end=NOW + HOUR, can_postpone=False)
    for policy in ("least-waste", "paper"):
        assert choose(policy, candidates(QUICK_CHEAP, draining), 8) == ["ce#1"], policy


def started(*ages: int, cores: Sequence[int] = ()) -> list[Candidate]:
    """Candidates that have run for so many seconds; what they say is the same."""
    sizes = cores or [8] * len(ages)
    rows = enumerate(zip(ages, sizes))
    return [assess(pilot(n, QUICK_CHEAP, cores=size, started=NOW - age), NOW, SETTINGS) for n, (age, size) in rows]


def test_youngest_first_kills_the_shortest_run_time_first() -> None:
    """Whatever they would waste; whole pilots until the cores are covered."""
    among = started(9000, 300, 5000, 4000)
    assert choose("youngest-first", among, 8) == ["ce#1"]
    assert choose("youngest-first", among, 17) == ["ce#1", "ce#3", "ce#2"]
    [one] = policy_called("youngest-first").choose(among, Need(8, 8), NOW, SETTINGS)
    assert (one.option.kind, one.option.deadline) == (KILL, NOW)
    assert one.reason.endswith("of running payloads lost; of those left the shortest run time, 5m")


def test_youngest_first_passes_over_what_is_above_the_bound() -> None:
    among = started(100, 200, 300, cores=(24, 8, 4))
    assert choose("youngest-first", among, 12, most=15) == ["ce#1", "ce#2"]


@settings(max_examples=30, deadline=None)
@given(ages=st.lists(st.integers(60, 90_000), max_size=8), cores=st.integers(0, 80))
def test_youngest_first_leaves_nobody_younger_alone(ages: list[int], cores: int) -> None:
    among = started(*ages)
    taken = {one.candidate.pilot.run for one in chosen_by("youngest-first", among, cores, 10**6)}
    asked = [one.pilot.started for one in among if one.pilot.run in taken]
    spared = [one.pilot.started for one in among if one.pilot.run not in taken]
    assert not asked or not spared or min(asked) >= max(spared)
    assert len(asked) == min(len(ages), -(-cores // 8))


every_policy = pytest.mark.parametrize("name", list(POLICIES))
pools = st.lists(st.tuples(reports(), st.sampled_from((1, 2, 4, 8, 24))), max_size=8)


def pool_of(rows: list[tuple[PilotReport | None, int]]) -> list[Candidate]:
    return [assess(pilot(n, said, cores=cores), NOW, SETTINGS) for n, (said, cores) in enumerate(rows)]


def chosen_by(name: str, among: Sequence[Candidate], cores: int, most: int) -> tuple[Choice, ...]:
    return policy_called(name).choose(among, Need(cores, most), NOW, SETTINGS)


@every_policy
@settings(max_examples=30, deadline=None)
@given(rows=pools, cores=st.integers(0, 80))
def test_every_policy_frees_the_cores_when_that_is_possible(
    name: str, rows: list[tuple[PilotReport | None, int]], cores: int
) -> None:
    among = pool_of(rows)
    chosen = chosen_by(name, among, cores, 10**6)
    assert sum(one.candidate.pilot.cores for one in chosen) >= min(cores, sum(one.pilot.cores for one in among))
    assert len({one.candidate.pilot.run for one in chosen}) == len(chosen)


@every_policy
@settings(max_examples=30, deadline=None)
@given(rows=pools, cores=st.integers(0, 80), most=st.integers(0, 80))
def test_no_policy_takes_more_than_the_bound(
    name: str, rows: list[tuple[PilotReport | None, int]], cores: int, most: int
) -> None:
    assert sum(one.candidate.pilot.cores for one in chosen_by(name, pool_of(rows), cores, most)) <= most


@settings(max_examples=30, deadline=None)
@given(rows=pools, cores=st.integers(1, 80))
def test_least_waste_equals_trying_every_subset(rows: list[tuple[PilotReport | None, int]], cores: int) -> None:
    among = pool_of(rows)
    chosen = chosen_by("least-waste", among, cores, 10**6)
    subsets = itertools.chain.from_iterable(itertools.combinations(among, size) for size in range(len(among) + 1))
    covering = [
        sum(one.asked.waste for one in subset)
        for subset in subsets
        if sum(one.pilot.cores for one in subset) >= min(cores, sum(one.pilot.cores for one in among))
    ]
    assert sum(one.option.waste for one in chosen) == min(covering)


@settings(max_examples=30, deadline=None)
@given(rows=pools, cores=st.integers(1, 80))
def test_no_policy_that_asks_wastes_less_than_least_waste(
    rows: list[tuple[PilotReport | None, int]], cores: int
) -> None:
    """Counted by the same figure: what asking these pilots is expected to waste."""
    among = pool_of(rows)
    least, paper = (
        sum(one.candidate.asked.waste for one in chosen_by(name, among, cores, 10**6))
        for name in ("least-waste", "paper")
    )
    assert least <= paper


def test_a_policy_that_does_not_exist_is_named_with_those_that_do() -> None:
    with pytest.raises(UsageError, match="no policy is called 'fastest'; there are least-waste, paper, youngest-first"):
        policy_called("fastest")
