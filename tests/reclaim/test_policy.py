"""The policies by name, price lists: the least waste exactly, the paper's rule, and those to compare with."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.errors import UsageError
from drainwise.pilotad.report import PilotReport
from drainwise.pool.facts import Pilot
from drainwise.reclaim.candidates import CUT, KILL, LEAVE, Candidates, candidates_of
from drainwise.reclaim.choose.plan import IDLE
from drainwise.reclaim.decide.user_plans import user_plans
from drainwise.reclaim.history import History
from drainwise.reclaim.plan import Order
from drainwise.reclaim.prices import BY_WASTE, POLICIES, PRIORITY_WEIGHT, for_comparison, policy_called, prices_of
from drainwise.reclaim.quota import Balance, Over
from drainwise.reclaim.settings import ReclaimSettings
from reached_asserts import judged

from .facts import NOW, SETTINGS, believed, pilot, report, reports, snapshot

HOUR = 3600


def pilots_of(*said: PilotReport | None, cores: int = 8) -> list[Pilot]:
    return [pilot(number, one, cores=cores) for number, one in enumerate(said)]


def chosen_by(
    name: str,
    pilots: Sequence[Pilot],
    cores: int,
    most: int = 10**6,
    site: ReclaimSettings = SETTINGS,
    history: History | None = None,
) -> tuple[Order, ...]:
    """The orders to alice, who has to give so many cores, and may lose `most`."""
    over = Over("group_a", most, ("alice",) if pilots else (), most)
    balance = Balance(cores, 0, 0, most, cores, (over,), 0)
    site = dataclasses.replace(site, policy=name)
    parts, _ = user_plans(snapshot(*pilots), balance, NOW, site, history or History())
    return parts[0].orders if parts else ()


def choose(name: str, pilots: Sequence[Pilot], cores: int) -> list[str]:
    return [one.pilot.run.partition(".")[0] for one in chosen_by(name, pilots, cores)]


QUICK_CHEAP = report(7.0, first_end=NOW + 600, last_end=NOW + 600)  # draining waste 600, kill 7000
QUICK_DEAR = report(1.0, first_end=NOW + HOUR, last_end=NOW + HOUR, start=NOW - 1)  # draining 25200, kill 1
SLOW_CHEAP = report(1.0, first_end=NOW + 9 * HOUR, last_end=NOW + 9 * HOUR, start=NOW - 5)  # kill 5
SLOW_DEAR = report(8.0, first_end=NOW + 9 * HOUR, last_end=NOW + 9 * HOUR, start=NOW - 9000)


def test_paper_drains_the_least_draining_waste_of_those_that_are_gone_within_two_hours() -> None:
    """Although another one would be cheaper to kill."""
    among = pilots_of(SLOW_CHEAP, QUICK_DEAR, QUICK_CHEAP)
    assert choose("paper", among, 8) == ["ce#2"]
    assert choose("paper", among, 16) == ["ce#2", "ce#1"]


def test_paper_kills_the_least_expensive_when_none_can_be_gone_within_two_hours() -> None:
    [one] = chosen_by("paper", pilots_of(SLOW_DEAR, SLOW_CHEAP), 8, 8)
    assert (one.pilot.run[:4], one.kind, one.deadline) == ("ce#1", KILL, NOW)
    assert one.reason == (
        "killed: 0.001 core-h of running payloads lost; by draining waste those that can go in time, then by kill waste"
    )


def test_the_two_hours_of_the_paper_are_the_sites_horizon() -> None:
    short = dataclasses.replace(SETTINGS, horizon=601)
    [first, second] = chosen_by("paper", pilots_of(QUICK_DEAR, QUICK_CHEAP), 16, 16, short)
    assert (first.pilot.run[:4], first.kind) == ("ce#1", LEAVE)
    assert second.kind == KILL


def test_the_two_hours_of_the_paper_have_no_margin_inside() -> None:
    """One that goes a second before they are over drains, although killing it would be cheaper; a second later it is
    killed."""
    within = min(SETTINGS.horizon, SETTINGS.grace)
    for left, kind in ((within, LEAVE), (within + 1, KILL)):
        late = report(7.0, first_end=NOW + left, last_end=NOW + left, start=NOW - 1)
        [one] = chosen_by("paper", pilots_of(late), 8)
        assert one.kind == kind
        assert one.deadline <= NOW + SETTINGS.grace


def test_a_silent_pilot_is_never_one_that_can_go_away() -> None:
    assert choose("paper", pilots_of(None, QUICK_DEAR), 8) == ["ce#1"]
    assert choose("paper", pilots_of(None, SLOW_DEAR), 8) == ["ce#1"]


def test_least_waste_takes_the_cheapest_set_and_not_one_after_the_other() -> None:
    """20 cores of 12 and 8: the two small ones are the cheapest each, and with them a third is needed."""
    small = [pilot(n, report(7.0, first_end=NOW + 100 + n, last_end=NOW + 100 + n)) for n in (1, 2)]
    large = pilot(3, report(10.0, first_end=NOW + 90, last_end=NOW + 90), cores=12)
    assert sorted(choose("least-waste", [*small, large], 20)) == ["ce#1", "ce#3"]


def test_least_waste_ends_each_pilot_in_its_cheapest_way() -> None:
    chosen = chosen_by("least-waste", pilots_of(SLOW_CHEAP, QUICK_CHEAP), 16)
    assert [(one.pilot.run[:4], one.kind, one.waste) for one in chosen] == [
        ("ce#0", KILL, 5),
        ("ce#1", LEAVE, 600 + 1750),
    ]


def test_where_nobody_is_killed_no_policy_kills() -> None:
    gentle = dataclasses.replace(SETTINGS, drain_only=True)
    for name in POLICIES:
        chosen = chosen_by(name, pilots_of(SLOW_CHEAP, QUICK_CHEAP, None), 24, site=gentle)
        assert sorted(one.kind for one in chosen) == [CUT, CUT, LEAVE], name


STARTS = {"young": NOW - 100, "middle": NOW - 5000, "old": NOW - 90_000}


def by_age(name: str) -> list[str]:
    """Three pilots whose payloads began in another order than they themselves."""
    payloads = {"young": NOW - 90, "middle": NOW - 10, "old": NOW - 50}
    used = {"young": 8.0, "middle": 8.0, "old": 1.0}
    rows = {
        which: pilot(n, report(used[which], start=payloads[which]), started=STARTS[which])
        for n, which in enumerate(("old", "young", "middle"))
    }
    names = {one.run: which for which, one in rows.items()}
    chosen = chosen_by(name, list(rows.values()), 24)
    assert {one.kind for one in chosen} == {KILL}
    return [names[one.pilot.run] for one in chosen]


def test_the_policies_by_age_and_by_kill_waste() -> None:
    """youngest-first knows nothing but run times."""
    assert by_age("youngest-first") == ["young", "middle", "old"]
    assert by_age("least-kill") == ["old", "middle", "young"]


def valued(said: PilotReport, factor: int | None) -> PilotReport:
    """The same report with a PRIORITY_FACTOR."""
    values: dict[str, int | float | str | None] = {
        name: getattr(said, name) for name in PilotReport.__match_args__[1:-1]
    }
    return PilotReport.from_values(said.heartbeat, "x", {**values, "priority_factor": factor})


def unvalued(pilots: list[Pilot]) -> list[Pilot]:
    """The same pilots, whose user values none more than another."""
    return [one if one.report is None else dataclasses.replace(one, report=valued(one.report, None)) for one in pilots]


def test_of_equals_the_one_its_owner_values_least_is_ordered() -> None:
    """PRIORITY_FACTOR, higher is better, also at its extremes (HOSTILE 39)."""
    for said in (QUICK_CHEAP, SLOW_DEAR):
        for low, high in ((-5, 5), (-(2**31), 2**31 - 1)):
            among = pilots_of(*(valued(said, factor) for factor in (high, low, 0)))
            for policy in POLICIES:
                assert choose(policy, among, 8) == ["ce#1"], policy


def test_a_user_trades_some_waste_for_what_it_values() -> None:
    """Ten minutes of each core: where the other wastes more on each nothing changes, else the valued one is spared.

    A difference of two million in the factor was worth less than one core-second.
    """
    for more, goes in ((4000, "ce#0"), (800, "ce#1")):
        ends = (NOW + 600, NOW + 600 + more)
        cheap, dear = (report(4.0, start=NOW - 20_000, first_end=end, last_end=end) for end in ends)
        less, most = (one.best.waste for one in candidates_of(pilots_of(cheap, dear), NOW, SETTINGS))
        assert (goes == "ce#0") is ((most - less) // 8 > PRIORITY_WEIGHT), "else it tells nothing"
        for low, high in ((0, 1), (-1_000_000, 1_000_000)):
            among = pilots_of(valued(cheap, high), valued(dear, low))
            [one] = chosen_by("least-waste", among, 8)
            assert one.pilot.run[:4] == goes, (low, more)


def test_a_pilot_that_drains_already_goes_first() -> None:
    """The paper counts those first that are draining already; here the batch system holds them to their word."""
    draining = report(1.0, first_end=NOW + HOUR, last_end=NOW + HOUR, can_postpone=False)
    for policy in ("least-waste", "paper"):
        assert choose(policy, pilots_of(QUICK_CHEAP, draining), 8) == ["ce#1"], policy


def started(*ages: int, cores: Sequence[int] = ()) -> list[Pilot]:
    """Pilots that have run for so many seconds; what they say is the same."""
    sizes = cores or [8] * len(ages)
    return [pilot(n, QUICK_CHEAP, cores=size, started=NOW - age) for n, (age, size) in enumerate(zip(ages, sizes))]


def test_youngest_first_kills_the_shortest_run_time_first() -> None:
    """Whatever they would waste; whole pilots until the cores are covered."""
    among = started(9000, 300, 5000, 4000)
    assert choose("youngest-first", among, 8) == ["ce#1"]
    assert choose("youngest-first", among, 17) == ["ce#1", "ce#3", "ce#2"]
    [one] = chosen_by("youngest-first", among, 8, 8)
    assert (one.kind, one.deadline) == (KILL, NOW)
    assert one.reason.endswith("of running payloads lost; the shortest run time first")


def test_youngest_first_passes_over_what_is_above_the_bound() -> None:
    among = started(100, 200, 300, cores=(24, 8, 4))
    chosen = chosen_by("youngest-first", among, 12, 15)
    assert [one.pilot.run[:4] for one in chosen] == ["ce#1", "ce#2"]


@given(ages=st.lists(st.integers(60, 90_000), max_size=8), cores=st.integers(0, 80))
def test_youngest_first_leaves_nobody_younger_alone(ages: list[int], cores: int) -> None:
    among = started(*ages)
    taken = {one.pilot.run for one in chosen_by("youngest-first", among, cores)}
    asked = [one.started for one in among if one.run in taken]
    spared = [one.started for one in among if one.run not in taken]
    assert not asked or not spared or min(asked) >= max(spared)
    assert len(asked) == min(len(ages), -(-cores // 8))


def test_what_is_compared_kills_also_where_the_site_only_drains() -> None:
    """Else youngest-first would be shown with a grace that no batch system gives; least-waste is held to the site."""
    gentle = dataclasses.replace(SETTINGS, drain_only=True)
    for name in POLICIES:
        site = for_comparison(dataclasses.replace(gentle, policy=name))
        kinds = {one.kind for one in chosen_by(name, pilots_of(SLOW_CHEAP, SLOW_DEAR), 16, site=site)}
        assert kinds == ({CUT} if name in BY_WASTE else {KILL}), name


every_policy = pytest.mark.parametrize("name", list(POLICIES))
pools = st.lists(
    st.tuples(st.sampled_from((1, 2, 4, 8, 24)), st.integers(60, 90_000)).flatmap(
        lambda it: st.tuples(reports(it[0], NOW - it[1]), st.just(it[0]), st.just(it[1]))
    ),
    max_size=8,
).map(lambda rows: [pilot(n, said, cores=cores, started=NOW - age) for n, (said, cores, age) in enumerate(rows)])


def cores_of(chosen: Sequence[Order]) -> int:
    return sum(one.pilot.cores for one in chosen)


def totals_of(pilots: Sequence[Pilot]) -> set[int]:
    """All that whole pilots make."""
    found = {0}
    for one in pilots:
        found |= {total + one.cores for total in found}
    return found


@every_policy
@given(among=pools, cores=st.integers(0, 80), most=st.integers(0, 80))
def test_by_facts_every_policy_takes_the_least_total_that_covers_or_the_nearest_below(
    name: str, among: list[Pilot], cores: int, most: int
) -> None:
    """Where no extra cores are allowed exactly that; else no fewer, and never more than may go; within the horizon."""
    judged("a believed report", believed(*among) > 0, at_least=0.3)
    possible = [total for total in totals_of(among) if total <= most]
    wanted = min(cores, most)
    least = min((total for total in possible if total >= wanted), default=max(possible)) if wanted else 0
    exact = dataclasses.replace(SETTINGS, extra_cores=0)
    chosen, freely = (chosen_by(name, among, cores, most, site) for site in (exact, SETTINGS))
    assert cores_of(chosen) == least
    assert min(cores, least) <= cores_of(freely) <= most
    extra = max([one.cores for one in among] + [least // 4]) if name in BY_WASTE and least else 0
    assert cores_of(freely) <= least + extra
    assert sum(one.extra for one in freely) == max(0, cores_of(freely) - least)
    assert all(one.cores_back <= NOW + SETTINGS.horizon for one in freely)
    assert len({one.pilot.run for one in freely}) == len(freely)


@given(among=pools, cores=st.integers(1, 80), extra=st.sampled_from((0, 3, None)))
def test_least_waste_equals_trying_every_subset_and_every_way(
    among: list[Pilot], cores: int, extra: int | None
) -> None:
    """Within the extra cores, where each core more counts as if it idled for ten minutes."""
    judged("a believed report", believed(*among) > 0, at_least=0.3)
    among = unvalued(among)
    rows = list(those := candidates_of(among, NOW, SETTINGS))
    assert list(those.figures.least) == [min(way.waste for way in row.options) for row in rows]
    subsets = [one for size in range(len(rows) + 1) for one in itertools.combinations(rows, size)]
    wanted = min(cores, sum(one.cores for one in among))
    least = min(total for total in totals_of(among) if total >= wanted)
    most = least + (max([one.cores for one in among] + [least // 4], default=0) if extra is None else extra)
    able = [one for one in subsets if wanted <= sum(row.pilot.cores for row in one) <= most]
    best = min(sum(row.best.waste + IDLE * row.pilot.cores for row in one) for one in able)
    chosen = chosen_by("least-waste", among, cores, site=dataclasses.replace(SETTINGS, extra_cores=extra))
    found = sum(one.waste for one in chosen) + IDLE * cores_of(chosen)
    assert found == pytest.approx(best, abs=1.0)


@given(among=pools, cores=st.integers(1, 80), drain_only=st.booleans(), notice=st.integers(0, 300))
def test_no_policy_wastes_less_than_least_waste(among: list[Pilot], cores: int, drain_only: bool, notice: int) -> None:
    """On the same snapshot and of as many cores, by what their orders should waste.

    The rule of the paper expects by its formula alone.
    """
    judged("a believed report", believed(*among) > 0, at_least=0.3)
    site = dataclasses.replace(SETTINGS, drain_only=drain_only, notice=notice, extra_cores=0)
    names, among = [name for name in POLICIES if name != "paper"], unvalued(among)
    wastes = {name: sum(one.waste for one in chosen_by(name, among, cores, site=site)) for name in names}
    assert wastes["least-waste"] == min(wastes.values()), wastes


@given(among=pools, cores=st.integers(1, 80))
def test_what_a_user_values_changes_no_number_of_cores(among: list[Pilot], cores: int) -> None:
    """Beyond its extra cores; and costs no more waste than the weight of its cores."""
    judged("a believed report", believed(*among) > 0, at_least=0.3)
    exact = dataclasses.replace(SETTINGS, extra_cores=0)
    plain, chosen = (chosen_by("least-waste", some, cores, site=exact) for some in (unvalued(among), among))
    assert cores_of(plain) == cores_of(chosen)
    more = sum(one.waste for one in chosen) - sum(one.waste for one in plain)
    assert -1 <= more <= PRIORITY_WEIGHT * cores_of(chosen) + len(among)


@pytest.mark.daemons
@given(of=st.lists(pools, min_size=2, max_size=3))
def test_prices_of_many_users_are_those_of_each_alone(of: list[list[Pilot]]) -> None:
    """Also with what they value: nobody's report changes the price of another's pilot."""
    for name in POLICIES:
        site = dataclasses.replace(SETTINGS, policy=name)
        alone = [prices_of(candidates_of(some, NOW, site).figures, site) for some in of]
        every = [one for some in of for one in candidates_of(some, NOW, site).pilots]
        whose = np.repeat(np.arange(len(of)), [len(some) for some in of])
        both = prices_of(Candidates(tuple(every), NOW, site, History()).figures, site, whose)
        assert both.tolist() == np.concatenate(alone).tolist()


def test_a_policy_that_does_not_exist_is_named_with_those_that_do() -> None:
    with pytest.raises(
        UsageError, match="no policy is called 'fastest'; there are least-waste, open-need, paper, least-kill"
    ):
        policy_called("fastest")


@pytest.mark.parametrize("name", ["random", "oldest-first", "nebraska"])
def test_a_policy_that_only_the_simulator_has_is_refused_with_that_word(name: str) -> None:
    with pytest.raises(UsageError, match="random, oldest-first and nebraska are the simulator's alone"):
        policy_called(name)
