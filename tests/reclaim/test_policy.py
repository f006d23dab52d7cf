"""The policies by name: the paper's rule as written, the least total waste exactly, and those to compare with."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.errors import UsageError
from drainwise.pilotad.report import PilotReport
from drainwise.pool.facts import Pilot
from drainwise.reclaim.candidates import CUT, KILL, LEAVE, candidates_of
from drainwise.reclaim.history import History
from drainwise.reclaim.policies import BY_WASTE, POLICIES, policy_called
from drainwise.reclaim.policy import Chosen, Need, for_comparison
from drainwise.reclaim.settings import ReclaimSettings, Trust
from reached_asserts import judged

from .facts import NOW, SETTINGS, believed, pilot, report, reports

HOUR = 3600


def pilots_of(*said: PilotReport | None, cores: int = 8) -> list[Pilot]:
    return [pilot(number, one, cores=cores) for number, one in enumerate(said)]


def chosen_by(
    name: str, pilots: Sequence[Pilot], cores: int, most: int = 10**6, site: ReclaimSettings = SETTINGS
) -> tuple[Chosen, ...]:
    return policy_called(name).choose(candidates_of(pilots, NOW, site), Need(cores, most))


def choose(name: str, pilots: Sequence[Pilot], cores: int) -> list[str]:
    return [one.candidate.pilot.run.partition(".")[0] for one in chosen_by(name, pilots, cores)]


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
    assert (one.candidate.pilot.run[:4], one.option.kind, one.option.deadline) == ("ce#1", KILL, NOW)
    assert one.reason == (
        "killed: 0.001 core-h of running payloads lost; no other can go away within 2h: least expensive to kill"
    )


def test_the_two_hours_of_the_paper_are_the_sites_horizon() -> None:
    short = dataclasses.replace(SETTINGS, horizon=601)
    [first, second] = chosen_by("paper", pilots_of(QUICK_DEAR, QUICK_CHEAP), 16, 16, short)
    assert (first.candidate.pilot.run[:4], first.option.kind) == ("ce#1", LEAVE)
    assert second.option.kind == KILL


def test_the_two_hours_of_the_paper_have_no_margin_inside() -> None:
    """One that goes a second before they are over drains, although killing it would be cheaper; a second later it is
    killed, and the reason says what is true."""
    within = min(SETTINGS.horizon, SETTINGS.grace)
    for left, kind, words in (
        (within, LEAVE, "least draining waste of those that can go away within 2h"),
        (within + 1, KILL, "no other can go away within 2h: least expensive to kill"),
    ):
        late = report(7.0, first_end=NOW + left, last_end=NOW + left, start=NOW - 1)
        [one] = chosen_by("paper", pilots_of(late), 8)
        assert (one.option.kind, one.reason.partition("; ")[2]) == (kind, words)
        assert one.option.deadline <= NOW + SETTINGS.grace


def test_paper_says_when_one_that_could_go_away_does_not_fit() -> None:
    """8 cores and no more: the one of 12 that could go away is no candidate for them."""
    large = pilot(1, report(7.0, first_end=NOW + 600, last_end=NOW + 600), cores=12)
    [one] = chosen_by("paper", [large, pilot(2, SLOW_CHEAP)], 8, 8)
    assert one.reason.endswith("no other of a size that fits can go away within 2h: least expensive to kill")


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
    assert [(one.candidate.pilot.run[:4], one.option.kind, one.option.waste) for one in chosen] == [
        ("ce#0", KILL, 5),
        ("ce#1", LEAVE, 600 + 1750),
    ]


def test_where_nobody_is_killed_no_policy_kills() -> None:
    gentle = dataclasses.replace(SETTINGS, drain_only=True)
    for name in POLICIES:
        chosen = chosen_by(name, pilots_of(SLOW_CHEAP, QUICK_CHEAP, None), 24, site=gentle)
        assert sorted(one.option.kind for one in chosen) == [CUT, CUT, LEAVE], name


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
    assert {one.option.kind for one in chosen} == {KILL}
    return [names[one.candidate.pilot.run] for one in chosen]


def test_the_policies_by_age_and_by_kill_waste() -> None:
    """youngest-first knows nothing but run times, nebraska nothing but the youngest payload."""
    assert by_age("youngest-first") == ["young", "middle", "old"]
    assert by_age("oldest-first") == ["old", "middle", "young"]
    assert by_age("nebraska") == ["middle", "old", "young"]
    assert by_age("least-kill") == ["old", "middle", "young"]


def test_the_youngest_payload_of_who_is_not_believed_is_as_old_as_its_pilot() -> None:
    """Whoever reports nothing, or an old report, cannot make itself the last one to go, nor the first."""
    ages = {"told": NOW - 5000, "silent": NOW - 9000, "stale": NOW - 3000, "old": NOW - 20_000}
    stale = report(start=NOW - 19_000, heartbeat=NOW - 4000)
    said = {"told": report(start=NOW - 4000), "silent": None, "stale": stale, "old": report(start=NOW - 12_000)}
    rows = {name: pilot(n, said[name], started=ages[name]) for n, name in enumerate(ages)}
    names = {one.run: name for name, one in rows.items()}
    chosen = chosen_by("nebraska", list(rows.values()), 32)
    assert [names[one.candidate.pilot.run] for one in chosen] == ["stale", "told", "silent", "old"]


def test_the_lot_falls_the_same_way_whenever_the_same_snapshot_is_looked_at() -> None:
    among = pilots_of(*[report()] * 12)
    drawn = {choose("random", among, 48)[0] for _ in range(3)}
    assert len(drawn) == 1
    later = [candidates_of(among, NOW + second, SETTINGS) for second in range(20)]
    assert len({policy_called("random").choose(one, Need(48, 48))[0].candidate.pilot.run for one in later}) > 1


def valued(said: PilotReport, factor: int) -> PilotReport:
    """The same report with a PRIORITY_FACTOR."""
    values: dict[str, int | float | str | None] = {
        name: getattr(said, name) for name in PilotReport.__match_args__[1:-1] if name != "exp_waste_curve"
    }
    return PilotReport.from_values(said.heartbeat, "x", {**values, "priority_factor": factor})


def test_of_equals_the_one_its_owner_values_least_is_ordered() -> None:
    """PRIORITY_FACTOR, higher is better, also at its extremes (HOSTILE 39); by every policy but the lot."""
    for said in (QUICK_CHEAP, SLOW_DEAR):
        for low, high in ((-5, 5), (-(2**31), 2**31 - 1)):
            among = pilots_of(*(valued(said, factor) for factor in (high, low, 0)))
            for policy in set(POLICIES) - {"random"}:
                assert choose(policy, among, 8) == ["ce#1"], policy


def test_a_user_trades_some_waste_for_what_it_values() -> None:
    """A weight of less time than the other wastes more on each core changes nothing, one of more spares the valued one.

    A difference of two million in the factor was worth less than one core-second.
    """
    cheap, dear = (report(7.0, first_end=NOW + 600 + more, last_end=NOW + 600 + more) for more in (0, 800))
    less, more = (one.best.waste for one in candidates_of(pilots_of(cheap, dear), NOW, SETTINGS))
    each = (more - less) // 8
    assert each > 50
    for low, high in ((0, 1), (-1_000_000, 1_000_000)):
        among = pilots_of(valued(cheap, high), valued(dear, low))
        for weight, goes in ((0, "ce#0"), (each - 1, "ce#0"), (each + 2, "ce#1")):
            site = dataclasses.replace(SETTINGS, priority_weight=weight)
            [one] = chosen_by("least-waste", among, 8, site=site)
            assert one.candidate.pilot.run[:4] == goes, (low, weight)
            assert ("worth counted" in one.reason) == (weight > 0)


@pytest.mark.parametrize("policy", sorted(set(POLICIES) - {"paper"}))
def test_by_order_the_lower_factor_goes_first_whatever_it_wastes(policy: str) -> None:
    """With one size, the pilots that go are those of the lowest factors; of equal ones the least wasteful."""
    site = dataclasses.replace(SETTINGS, priority_first=True)
    said = [valued(QUICK_CHEAP, 3), valued(SLOW_DEAR, 1), valued(QUICK_DEAR, 2), valued(QUICK_CHEAP, 2)]
    equals = {1, 2} if policy == "least-waste" else None
    for cores, goes in ((8, {1}), (16, equals), (24, {1, 2, 3})):
        runs = {int(one.candidate.pilot.run[3]) for one in chosen_by(policy, pilots_of(*said), cores, site=site)}
        assert goes is None or runs == goes, (policy, cores)


def test_a_pilot_that_drains_already_goes_first() -> None:
    """The paper counts those first that are draining already; here the batch system holds them to their word."""
    draining = report(1.0, first_end=NOW + HOUR, last_end=NOW + HOUR, can_postpone=False)
    for policy in ("least-waste", "paper"):
        assert choose(policy, pilots_of(QUICK_CHEAP, draining), 8) == ["ce#1"], policy


def test_a_pilot_whose_protection_has_run_out_goes_first_and_its_waste_is_not_hidden() -> None:
    among = pilots_of(QUICK_CHEAP, SLOW_DEAR)
    site = dataclasses.replace(SETTINGS, trust=Trust(spared=3))
    rows = candidates_of(among, NOW, site, History(spared={among[1].run: 3}))
    for policy in map(policy_called, POLICIES):
        [one] = policy.choose(rows, Need(8, 8))
        assert (one.candidate.pilot, one.option.waste) == (among[1], 72_000)
        assert one.reason.startswith("spared 3 times: its protection has run out; killed")


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
    assert (one.option.kind, one.option.deadline) == (KILL, NOW)
    assert one.reason.endswith("of running payloads lost; the shortest run time first")


def test_youngest_first_passes_over_what_is_above_the_bound() -> None:
    among = started(100, 200, 300, cores=(24, 8, 4))
    chosen = chosen_by("youngest-first", among, 12, 15)
    assert [one.candidate.pilot.run[:4] for one in chosen] == ["ce#1", "ce#2"]


@given(ages=st.lists(st.integers(60, 90_000), max_size=8), cores=st.integers(0, 80))
def test_youngest_first_leaves_nobody_younger_alone(ages: list[int], cores: int) -> None:
    among = started(*ages)
    taken = {one.candidate.pilot.run for one in chosen_by("youngest-first", among, cores)}
    asked = [one.started for one in among if one.run in taken]
    spared = [one.started for one in among if one.run not in taken]
    assert not asked or not spared or min(asked) >= max(spared)
    assert len(asked) == min(len(ages), -(-cores // 8))


def test_what_is_compared_kills_also_where_the_site_only_drains() -> None:
    """Else youngest-first would be shown with a grace that no batch system gives; least-waste is held to the site."""
    gentle = dataclasses.replace(SETTINGS, drain_only=True)
    for name in POLICIES:
        site = for_comparison(dataclasses.replace(gentle, policy=name))
        kinds = {one.option.kind for one in chosen_by(name, pilots_of(SLOW_CHEAP, SLOW_DEAR), 16, site=site)}
        assert kinds == ({CUT} if name in BY_WASTE else {KILL}), name


every_policy = pytest.mark.parametrize("name", list(POLICIES))
pools = st.lists(
    st.tuples(st.sampled_from((1, 2, 4, 8, 24)), st.integers(60, 90_000)).flatmap(
        lambda it: st.tuples(reports(it[0], NOW - it[1]), st.just(it[0]), st.just(it[1]))
    ),
    max_size=8,
).map(lambda rows: [pilot(n, said, cores=cores, started=NOW - age) for n, (said, cores, age) in enumerate(rows)])


def cores_of(chosen: Sequence[Chosen]) -> int:
    return sum(one.candidate.pilot.cores for one in chosen)


@every_policy
@given(among=pools, cores=st.integers(0, 80))
def test_every_policy_frees_the_cores_when_that_is_possible(name: str, among: list[Pilot], cores: int) -> None:
    """And no more than the sizes make necessary; within the horizon."""
    judged("a believed report", believed(*among) > 0, at_least=0.3)
    chosen = chosen_by(name, among, cores)
    assert cores_of(chosen) >= min(cores, sum(one.cores for one in among))
    assert all(cores_of(chosen) - one.candidate.pilot.cores < cores for one in chosen)
    assert all(one.option.cores_back <= NOW + SETTINGS.horizon for one in chosen)
    assert len({one.candidate.pilot.run for one in chosen}) == len(chosen)


@given(among=pools, cores=st.integers(0, 80), most=st.integers(0, 80))
def test_all_policies_take_the_same_number_of_cores_and_none_more_than_the_bound(
    among: list[Pilot], cores: int, most: int
) -> None:
    judged("a believed report", believed(*among) > 0, at_least=0.3)
    freed = {cores_of(chosen_by(name, among, cores, most)) for name in POLICIES}
    assert len(freed) == 1
    assert freed.pop() <= most


@given(among=pools, cores=st.integers(1, 80))
def test_least_waste_equals_trying_every_subset_and_every_way(among: list[Pilot], cores: int) -> None:
    judged("a believed report", believed(*among) > 0, at_least=0.3)
    those = candidates_of(among, NOW, SETTINGS)
    rows = list(those)
    assert list(those.figures.least) == [min(way.waste for way in row.options) for row in rows]
    subsets = [one for size in range(len(rows) + 1) for one in itertools.combinations(rows, size)]
    freed = cores_of(chosen_by("least-waste", among, cores))
    making = [one for one in subsets if sum(row.pilot.cores for row in one) == freed]
    best = min(sum(min(way.waste for way in row.options) for row in one) for one in making)
    assert sum(one.option.waste for one in chosen_by("least-waste", among, cores)) == best


@given(among=pools, cores=st.integers(1, 80), drain_only=st.booleans(), notice=st.integers(0, 300))
def test_no_policy_wastes_less_than_least_waste(among: list[Pilot], cores: int, drain_only: bool, notice: int) -> None:
    """On the same snapshot, by what their orders should waste; the rule of the paper expects by its formula alone."""
    judged("a believed report", believed(*among) > 0, at_least=0.3)
    site = dataclasses.replace(SETTINGS, drain_only=drain_only, notice=notice)
    names = [name for name in POLICIES if name != "paper"]
    wastes = {name: sum(one.option.waste for one in chosen_by(name, among, cores, site=site)) for name in names}
    assert wastes["least-waste"] == min(wastes.values()), wastes


@given(among=pools, cores=st.integers(1, 80), weight=st.integers(0, 7200), order=st.booleans())
def test_what_a_user_values_changes_no_number_of_cores(
    among: list[Pilot], cores: int, weight: int, order: bool
) -> None:
    """And costs no more waste than the weight of its cores."""
    judged("a believed report", believed(*among) > 0, at_least=0.3)
    site = dataclasses.replace(SETTINGS, priority_weight=weight, priority_first=order)
    plain, chosen = (chosen_by("least-waste", among, cores, site=one) for one in (SETTINGS, site))
    assert cores_of(plain) == cores_of(chosen)
    if not order:
        more = sum(one.option.waste for one in chosen) - sum(one.option.waste for one in plain)
        assert 0 <= more <= weight * cores_of(chosen) + len(among)


def test_a_policy_that_does_not_exist_is_named_with_those_that_do() -> None:
    with pytest.raises(
        UsageError, match="no policy is called 'fastest'; there are least-waste, open-need, paper, least-kill"
    ):
        policy_called("fastest")
