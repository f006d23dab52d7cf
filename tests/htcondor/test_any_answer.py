"""Whatever stands in an ad: a snapshot and a decision on it, or a refusal in one sentence, and soon."""

from __future__ import annotations

import dataclasses
import functools
import tracemalloc

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from drainwise.facts.errors import PoolError
from drainwise.htcondor.ads.values import LARGEST_SLOT, Others
from drainwise.htcondor.pool import collector
from drainwise.htcondor.pool.snapshot import snapshot_of
from drainwise.pool.facts import Snapshot
from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.plan import Plan
from drainwise.reclaim.plan_json import as_json
from drainwise.reclaim.prices import POLICIES
from drainwise.reclaim.settings import ReclaimSettings
from more_examples import more_examples
from recorded_condor import GROUPS, USERS, recorded_ads

SETTINGS = ReclaimSettings("least-waste", 7200, 7200, 86_400, 3600, 10**6, 10**6, 10**6, min_age=0)
ATTRIBUTES = {
    "slots": collector.SLOT_ATTRIBUTES,
    "accounting": collector.ACCOUNTING_ATTRIBUTES,
    "submitters": collector.SUBMITTER_ATTRIBUTES,
    "startds": collector.MACHINE_ATTRIBUTES,
    "schedds": collector.SCHEDD_ATTRIBUTES,
    "collectors": collector.COLLECTOR_ATTRIBUTES,
    "masters": collector.MASTER_ATTRIBUTES,
}


@functools.cache
def _whole(name: str) -> tuple[dict[str, list[dict[str, object]]], int]:
    kinds, taken = recorded_ads(name)
    nodes = sorted({str(ad["Machine"]) for ad in kinds["Startd"]})
    startds: list[dict[str, object]] = [
        {
            "Name": f"slot1@{node}",
            "Machine": node,
            "TotalSlotCpus": 24,
            "DaemonStartTime": taken - 4000,
            "LastHeardFrom": taken - 1,
            "NumDynamicSlots": 3,
            "ChildDSlotId": [1, 2, 3],
            "PilotUpdateInterval": 60,
            "PilotHooksSince": taken - 4000,
        }
        for node in nodes
    ]
    ads: dict[str, list[dict[str, object]]] = {
        "slots": kinds["Startd"],
        "accounting": kinds["Accounting"],
        "submitters": kinds["Submitter"],
        "startds": startds,
        "schedds": [{"Name": "central", "MaxJobsRunning": 1000, "ShadowsRunning": 9, "LastHeardFrom": taken}],
        "collectors": [{"Name": "pool", "StatsLifetime": 4000, "StatsLastUpdateTime": taken}],
        "masters": [{"Machine": node, "DaemonStartTime": taken - 4000, "STARTD_StartTime": 1} for node in nodes],
    }
    return ads, taken


def whole(name: str) -> tuple[dict[str, list[dict[str, object]]], int]:
    """A real answer with what tells that it is whole; each ad may be changed."""
    ads, taken = _whole(name)
    return {kind: [dict(ad) for ad in some] for kind, some in ads.items()}, taken


def facts(ads: dict[str, list[dict[str, object]]], taken: int) -> Snapshot:
    return snapshot_of(ads["slots"], Others(**{kind: some for kind, some in ads.items() if kind != "slots"}), taken)


def decided(seen: Snapshot, policy: str = "least-waste") -> Plan:
    plan = make_plan(seen, seen.taken, dataclasses.replace(SETTINGS, policy=policy))
    as_json(plan)
    return plan


numbers = (0, 1, -1, 8, 2**31 - 1, 2**31, 2**63 - 1, -(2**63), 10**30, 10**400, 5e-324, 0.5, 1e15, 1e16, 1e308)
odd = st.sampled_from(
    (*numbers, float("inf"), float("-inf"), float("nan"), True, False, None, "", "x\x1b[31m\n", "é" * 999)
)
values = odd | st.integers() | st.floats() | st.text(max_size=9) | st.lists(st.integers(0, 4) | odd, max_size=4)
changes = st.lists(
    st.sampled_from([(kind, name) for kind, names in ATTRIBUTES.items() for name in names]).flatmap(
        lambda place: st.tuples(st.just(place), st.integers(0, 20), values)
    ),
    min_size=1,
    max_size=4,
)


@more_examples(1.5)
@pytest.mark.reached(0.02, "few values make the whole answer one to refuse: the second example")
@example(GROUPS, [(("collectors", "StatsLifetime"), 0, 1)], "least-kill")
@example(GROUPS, [(("slots", "PilotVacateTime"), 0, 10**400)], "least-kill")
@given(st.sampled_from((GROUPS, USERS)), changes, st.sampled_from(sorted(POLICIES)))
def test_any_value_anywhere_is_a_snapshot_or_a_refusal(
    name: str, changed: list[tuple[tuple[str, str], int, object]], policy: str
) -> None:
    """HOSTILE 36, 37: one odd ad among thousands ends no cycle; the decision on the rest is made in a moment."""
    ads, taken = whole(name)
    for (kind, attribute), place, value in changed:
        ads[kind][place % len(ads[kind])][attribute] = value
    try:
        seen = facts(ads, taken)
        decided(seen, policy)
    except PoolError as fault:
        assert len(str(fault)) < 2000
        return
    assert all(notice.isprintable() and len(notice) < 1000 for notice in seen.notices)


def test_the_answer_as_it_was_has_no_notice() -> None:
    for name in (GROUPS, USERS):
        (ads, taken), (kinds, _) = whole(name), recorded_ads(name)
        plain = snapshot_of(kinds["Startd"], Others(kinds["Accounting"], kinds["Submitter"]), taken)
        seen = facts(ads, taken)
        assert {pilot.place.partition("@")[0] for pilot in seen.pilots} == {"slot1"}
        pilots = tuple(dataclasses.replace(pilot, place=pilot.name) for pilot in seen.pilots)
        assert dataclasses.replace(seen, pilots=pilots) == plain
        assert plain.notices == ()


@pytest.mark.parametrize("weight", [1e308, 0, -8, float("nan"), float("inf"), "heavy", 5e-324, 1e7, 10**400])
def test_one_odd_weight_rescales_nobody(weight: object) -> None:
    """SlotWeight = 1e308 on one slot, as whoever may WRITE to a startd can push it: its cores still count."""
    ads, taken = whole(GROUPS)
    before = facts(ads, taken)
    ads["slots"][0]["SlotWeight"] = weight
    seen = facts(ads, taken)
    assert (seen.accounts, seen.pilots) == (before.accounts, before.pilots)
    assert "the weight of slot1_" in seen.notices[0]


@pytest.mark.parametrize("cores", [2**31, 1e300, LARGEST_SLOT + 1, -4, "8", float("nan")])
def test_one_slot_with_odd_cores_is_left_out_and_named(cores: object) -> None:
    ads, taken = whole(GROUPS)
    before = facts(ads, taken)
    [ad] = [ad for ad in ads["slots"] if ad["Name"] == "slot1_1@node1.pool.test"]
    ad["Cpus"] = cores
    seen = facts(ads, taken)
    assert set(seen.pilots) == {pilot for pilot in before.pilots if pilot.name != ad["Name"]}
    assert seen.notices[0].startswith("1 slots are left out (slot1_1@node1.pool.test): Cpus = ")


def test_a_running_slot_does_not_sleep_whatever_it_says() -> None:
    """Offline = true pushed over all of a user's slots would hide them, and stop the agent for missing slots."""
    ads, taken = whole(GROUPS)
    before = facts(ads, taken)
    for ad in ads["slots"]:
        ad["Offline"] = True
    ads["slots"].append({**ads["slots"][0], "Name": "slot1@node9", "State": "Unclaimed", "Offline": True})
    seen = facts(ads, taken)
    assert (seen.pilots, seen.accounts) == (before.pilots, before.accounts)
    assert "Offline = true is not believed" in seen.notices[0]


@pytest.mark.parametrize("name", ["EffectiveQuota", "SubtreeQuota"])
def test_a_group_whose_quota_cannot_be_neither_gives_nor_gets(name: str) -> None:
    ads, taken = whole(GROUPS)
    assert decided(facts(ads, taken)).orders
    [line] = [ad for ad in ads["accounting"] if ad["Name"] == "group_alice"]
    line[name] = float("nan")
    seen = facts(ads, taken)
    [alice] = [one for one in seen.accounts if one.name == "group_alice"]
    assert (alice.cores_owed, alice.cores_wanted) == (alice.cores_in_use, 0)
    assert not decided(seen).orders
    assert "the accounting of group_alice says" in seen.notices[0]


@pytest.mark.parametrize("name", ["ResourcesUsed", "WeightedResourcesUsed", "PriorityFactor"])
def test_who_has_an_endless_usage_gives_back_as_others(name: str) -> None:
    """The negotiator makes it of weights that a user pushed: that must not keep the user's cores."""
    ads, taken = whole(GROUPS)
    before = decided(facts(ads, taken))
    for ad in ads["accounting"]:
        ad[name] = float("inf")
    seen = facts(ads, taken)
    assert decided(seen).orders == before.orders
    assert name in seen.notices[0]


def test_the_largest_slots_that_are_believed_are_chosen_among_in_a_moment() -> None:
    """Sums of cores are tables in the choice: 2^31 cores would need gigabytes, and the time to fill them."""
    ads, taken = whole(GROUPS)
    for number, ad in enumerate(ads["slots"]):
        if "JobStart" in ad:
            ad["Cpus"] = LARGEST_SLOT - number
            ad["SlotWeight"] = ad["Cpus"]
    ads["submitters"][0].update({"IdleJobs": 10**6, "WeightedIdleJobs": 2 * 10**7, "RunningJobs": 0})
    [bob] = [ad for ad in ads["accounting"] if ad["Name"] == "group_bob"]
    bob.update({"SubtreeQuota": 50_000.0, "EffectiveQuota": 50_000.0})
    seen = facts(ads, taken)
    tracemalloc.start()
    try:
        assert decided(seen).balance.deficit > LARGEST_SLOT
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()
