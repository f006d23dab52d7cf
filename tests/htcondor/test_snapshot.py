"""Ads of real pools, as their collectors gave them, turned into facts; and answers that are not whole."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection

import pytest

from drainwise.facts.errors import PoolUnreachable
from drainwise.htcondor.ads.values import Ad, Others, slot_amounts
from drainwise.htcondor.demand.demand import IdleJobs, SeenPlace, Told
from drainwise.htcondor.node.order_list import ENDLESS
from drainwise.htcondor.pool.slots import BACKFILL_SLOT, WAITS
from drainwise.htcondor.pool.snapshot import snapshot_of
from drainwise.pool.amounts import Amounts
from drainwise.pool.facts import Account, Snapshot
from drainwise.pool.job_kinds import Place
from drainwise.reclaim.quota import weigh
from recorded_condor import ASKED, GROUPS, USERS, recorded_ads


@dataclasses.dataclass
class Answer:
    """What a collector told at `taken`; each ad can be changed."""

    slots: list[dict[str, object]]
    accounting: list[dict[str, object]]
    submitters: list[dict[str, object]]
    taken: int
    more: dict[str, list[dict[str, object]]] = dataclasses.field(default_factory=dict)

    def facts(
        self, later: int = 0, before: Collection[str] = (), told: Callable[[], Told | str] | None = None
    ) -> Snapshot:
        others = Others(self.accounting, self.submitters, **self.more)
        return snapshot_of(self.slots, others, self.taken + later, before, told)

    def slot(self, name: str) -> dict[str, object]:
        [found] = [ad for ad in self.slots if ad["Name"] == name]
        return found


def recorded(name: str) -> Answer:
    kinds, taken = recorded_ads(name)
    return Answer(kinds["Startd"], kinds["Accounting"], kinds["Submitter"], taken)


def accounts(seen: Snapshot) -> dict[str, Account]:
    return {one.name: one for one in seen.accounts}


# ---- real answers ----


def test_group_quotas_and_demand() -> None:
    """alice's group has 48 of 72 cores and holds all; bob's group is owed 24 and waits for three times 8."""
    seen = recorded(GROUPS).facts()
    assert accounts(seen) == {
        "group_alice": Account("group_alice", 72.0, 48.0, 0.0, 505.351, 1.0, 48.0, 72.0),
        "group_bob": Account("group_bob", 0.0, 24.0, 24.0, 500.0, 8.0, 24.0, 0.0),
    }
    assert seen.free_cores == 0
    assert seen.user_priorities == {"alice@pool.test": 505.351}


def test_fair_shares_where_there_are_no_groups() -> None:
    """bob is new: the accountant does not know him yet, and he wants less than his half."""
    found = accounts(recorded(USERS).facts())
    assert (found["alice@pool.test"].cores_in_use, found["alice@pool.test"].cores_owed) == (72, 48)
    share = found["bob@pool.test"].cores_share
    assert found["bob@pool.test"] == Account("bob@pool.test", 0.0, 24.0, 24.0, 500.0, 8.0, share, 0.0)
    assert (found["alice@pool.test"].cores_share, share) == pytest.approx((35.73, 36.27), abs=0.01)


def test_nodes_are_counted_by_their_version() -> None:
    """One that does not say it has an earlier one; one without hooks has none."""
    pool = recorded(GROUPS)
    pool.more["startds"] = [
        {"Name": f"slot1@{node}", "Machine": node, "LastHeardFrom": 1, **said}
        for node, said in (
            ("a", {"PilotHooksSince": pool.taken, "PilotCronVersion": "0.2.0"}),
            ("b", {"PilotHooksSince": pool.taken}),
            ("c", {}),
        )
    ]
    assert pool.facts().versions == (("", 1), ("0.2.0", 1))


@pytest.mark.parametrize("name", [GROUPS, USERS])
def test_every_running_job_is_a_pilot(name: str) -> None:
    answer = recorded(name)
    pilots = {pilot.name: pilot for pilot in answer.facts().pilots}
    assert len(pilots) == 9
    ad, pilot = answer.slot("slot1_2@node3.pool.test"), pilots["slot1_2@node3.pool.test"]
    assert pilot.run == f"{ad['GlobalJobId']}@{ad['JobStart']}"
    assert (pilot.node, pilot.user, pilot.cores) == ("node3.pool.test", "alice@pool.test", 8)
    assert (pilot.started, pilot.lease_end) == (ad["JobStart"], ad["JobStart"] + 172800)  # type: ignore[operator]
    assert (pilot.deadline, pilot.leaving, pilot.contradictory) == (None, False, False)
    assert pilot.report is not None
    assert pilot.report.used_cpu == ad["PilotUsedCpu"]


@pytest.mark.parametrize("name", ["23.9.6-groups-asked", "25.14.1-groups-asked"])
def test_orders_are_read_back_from_the_slots(name: str) -> None:
    """The batch system is the only memory: who was asked shows its deadline, and that it is retiring."""
    seen = recorded(name).facts()
    asked = [pilot for pilot in seen.pilots if pilot.deadline is not None]
    assert len(asked) >= 2
    assert all(pilot.leaving and pilot.lease_end == pilot.deadline for pilot in asked)
    assert not any(pilot.leaving for pilot in seen.pilots if pilot.deadline is None)


# ---- what a node, a user or a site can do ----


def test_a_silent_job_is_a_pilot_without_a_report() -> None:
    answer = recorded(GROUPS)
    ad = answer.slot("slot1_1@node1.pool.test")
    for name in [name for name in ad if name.startswith("Pilot")]:
        del ad[name]
    [pilot] = [one for one in answer.facts().pilots if one.name == ad["Name"]]
    assert (pilot.report, pilot.lease_end) == (None, None)


def test_a_node_that_takes_no_orders_yet_is_said_and_its_pilots_are_not_ordered() -> None:
    """Its startd started before orders were configured there; the others say nothing of it, and are asked."""
    answer = recorded(GROUPS)
    ad = answer.slot("slot1_1@node1.pool.test")
    ad.update({"PilotOrdersSince": 1795259000, "DaemonStartTime": 1795258999, "PilotVacateTime": 600})
    seen = answer.facts()
    assert {one.node for one in seen.pilots if one.cannot} == {"node1.pool.test"}
    [closed] = [one for one in seen.pilots if one.vacate is not None]
    assert (closed.name, closed.vacate) == (ad["Name"], 600)
    assert "has not been restarted since orders were configured" in closed.cannot
    [notice] = seen.notices
    assert notice.startswith("1 node takes no orders until the startd is restarted")
    assert "node1.pool.test" in notice


def test_a_slot_that_was_just_made_is_as_closed_as_its_node() -> None:
    """The cron's word comes to it a minute later; another slot of its node has it already."""
    answer = recorded(GROUPS)
    node = [ad for ad in answer.slots if ad["Machine"] == "node1.pool.test"]
    pilots = [one.name for one in answer.facts().pilots if one.node == "node1.pool.test"]
    assert len(pilots) > 1 and len(node) > 1
    node[0].update({"PilotOrdersSince": 1795259000, "DaemonStartTime": 1795258999})
    assert [one.name for one in answer.facts().pilots if one.cannot] == pilots


def test_a_report_that_the_node_found_contradictory_is_marked() -> None:
    answer = recorded(GROUPS)
    answer.slot("slot1_1@node1.pool.test")["PilotReportStanding"] = "contradictory"
    assert [one.name for one in answer.facts().pilots if one.contradictory] == ["slot1_1@node1.pool.test"]


@pytest.mark.parametrize("change", [{"GlobalJobId": 'x"#1.0#1795259515'}, {"JobStart": "now"}, {"GlobalJobId": 7}])
def test_a_job_that_cannot_be_named_is_no_pilot_but_its_cores_are_in_use(change: dict[str, object]) -> None:
    """HOSTILE 32, 44: what could not be put into an order is never a candidate."""
    answer = recorded(GROUPS)
    answer.slot("slot1_1@node1.pool.test").update(change)
    seen = answer.facts()
    assert len([one for one in seen.pilots if not one.cannot]) == 8
    assert accounts(seen)["group_alice"].cores_in_use == 72


def test_a_forged_job_id_takes_no_other_pilot_along() -> None:
    """Two slots that show the same run: an order for one would hit the other, so neither can be asked.

    A job of the parallel universe looks the same.
    """
    answer = recorded(GROUPS)
    one, other = answer.slot("slot1_1@node1.pool.test"), answer.slot("slot1_2@node1.pool.test")
    other.update({"GlobalJobId": one["GlobalJobId"], "JobStart": one["JobStart"]})
    seen = answer.facts()
    [pilot] = [pilot for pilot in seen.pilots if pilot.cannot]
    assert (pilot.name, pilot.cores) == ("slot1_1@node1.pool.test and 1 more", 16)
    assert "parallel universe" in pilot.cannot
    assert len(seen.pilots) == 8


@pytest.mark.parametrize(
    ("change", "rest"),
    [
        ({"Activity": "Retiring", "RetirementTimeRemaining": 500}, 500),
        ({"State": "Preempting", "Activity": "Vacating", "RetirementTimeRemaining": 500}, 0),
        ({"State": "Preempting", "Activity": "Killing"}, 0),
    ],
)
def test_what_the_batch_system_ends_for_its_own_reasons_is_leaving(change: dict[str, object], rest: int) -> None:
    answer = recorded(GROUPS)
    answer.slot("slot1_1@node1.pool.test").update(change)
    [pilot] = [one for one in answer.facts().pilots if one.leaving]
    assert (pilot.lease_end, pilot.deadline) == (answer.taken + rest, None)


@pytest.mark.parametrize(
    ("state", "left", "leaving"), [("Claimed", ENDLESS - 500, False), ("Claimed", 500, True), ("Preempting", 0, True)]
)
def test_a_pilot_whose_order_was_withdrawn_is_one_like_others(state: str, left: int, leaving: bool) -> None:
    """Its slot still retires, without end; when somebody else ends it, it is leaving."""
    answer = recorded(GROUPS)
    slot = answer.slot("slot1_1@node1.pool.test")
    before = next(one for one in answer.facts().pilots if one.name == slot["Name"])
    order = f"{slot['GlobalJobId']}@{slot['JobStart']}=0"
    slot.update({"State": state, "Activity": "Retiring", "RetirementTimeRemaining": left, "PilotReclaimOrders": order})
    [pilot] = [one for one in answer.facts().pilots if one.name == slot["Name"]]
    assert (pilot.leaving, pilot.deadline) == (leaving, None)
    assert leaving or pilot == before


@pytest.mark.parametrize("order", ["", "0"])
def test_no_order_is_for_a_startd_that_waits_for_its_jobs(order: str) -> None:
    """HTCondor then looks at no deadline; so it says with 68 years of retirement, for a run without its order, too."""
    answer = recorded(GROUPS)
    slot = answer.slot("slot1_1@node1.pool.test")
    orders = f"{slot['GlobalJobId']}@{slot['JobStart']}={order}" if order else ""
    slot.update({"Activity": "Retiring", "RetirementTimeRemaining": 2**31 - 5001, "PilotReclaimOrders": orders})
    assert [one.cannot for one in answer.facts().pilots if one.name == slot["Name"]] == [WAITS]


def test_a_slot_that_is_claimed_and_idle_counts_as_used_but_is_no_pilot() -> None:
    answer = recorded(GROUPS)
    ad = answer.slot("slot1_1@node1.pool.test")
    ad["Activity"] = "Idle"
    del ad["GlobalJobId"], ad["JobStart"]
    seen = answer.facts()
    assert (len(seen.pilots), accounts(seen)["group_alice"].cores_in_use) == (8, 72)


def test_a_job_that_will_start_in_an_idle_claim_is_named() -> None:
    """The schedd calls it idle until its shadow has begun."""
    answer = recorded(GROUPS)
    ad = answer.slot("slot1_1@node1.pool.test")
    ad["Activity"] = "Idle"
    del ad["GlobalJobId"], ad["JobStart"]
    held = slot_amounts(ad, ())
    total = Amounts(24, 49_152, 0, held.disk + 1)
    jobs = IdleJobs("ce", str(ad["AccountingGroup"]), 3, held, first=(1, 0), classes=frozenset("c"))
    told = Told((SeenPlace(Place("slot1@n", "n", "c", Amounts(), total), None),), (jobs,), frozenset(("ce",)))
    kinds = {kind.account: (kind.jobs, kind.starting) for kind in answer.facts(told=lambda: told).kinds or ()}
    assert (kinds["group_alice"], kinds["group_bob"]) == ((3, 1), (3, 0))


def test_cores_between_a_runs_end_and_its_nodes_next_report_are_the_pools() -> None:
    """The slot of alice's third run on node1 has gone: without its cores she would be owed fewer than before."""
    answer = recorded(USERS)
    name, node = "slot1@node1.pool.test", "node1.pool.test"
    parent = {"Name": name, "Machine": node, "LastHeardFrom": answer.taken, "ChildDSlotId": [1, 2, 3]}
    answer.more = {"startds": [parent]}
    seen = SeenPlace(Place(name, node, "c", Amounts(0, 48_768), Amounts(24, 49_152)), answer.taken)
    before = answer.facts(told=lambda: Told((seen,)))
    answer.slots.remove(answer.slot("slot1_3@node1.pool.test"))
    after = answer.facts(told=lambda: Told((seen,)))
    assert [one.unseen for one in before.places] == [Amounts()]
    assert [one.unseen for one in after.places] == [Amounts(8, 128)]
    alice = accounts(after)["alice@pool.test"]
    assert (alice.cores_in_use, alice.cores_owed) == (64, 48)
    assert accounts(before)["alice@pool.test"].cores_owed == 48


def ordered_and_left() -> Answer:
    """Of the two runs that were asked on node2 one has gone; nobody has ended its claim yet (slot1_2)."""
    return recorded(ASKED)


def never_ordered() -> Answer:
    """The same claim is idle, but its node has no order."""
    answer = recorded(ASKED)
    for slot in answer.slots:
        slot["PilotReclaimOrders"] = ""
    return answer


def test_cores_given_back_are_free_before_their_claim_ends() -> None:
    """Otherwise another pilot would be asked for the same cores while they change hands."""
    seen = ordered_and_left().facts()
    assert (len(seen.pilots), seen.free_cores, accounts(seen)["group_alice"].cores_in_use) == (8, 8, 64)
    assert weigh(seen, seen.taken, 7200).deficit == 0


def test_an_idle_claim_on_a_node_without_a_recent_order_is_held() -> None:
    """It will be used again in a moment by who holds it; an old order of a run that has gone says nothing of it."""
    for seen in (never_ordered().facts(), ordered_and_left().facts(later=300)):
        assert (seen.free_cores, accounts(seen)["group_alice"].cores_in_use) == (0, 72)


def test_what_has_started_since_the_access_point_told_waits_no_more() -> None:
    answer = recorded(GROUPS)
    [bob] = [ad for ad in answer.submitters if ad["Name"] == "group_bob.bob@pool.test"]
    for number in (1, 2):
        answer.slot(f"slot1_{number}@node1.pool.test")["AccountingGroup"] = "group_bob.bob@pool.test"
    bob["RunningJobs"] = 1
    assert accounts(answer.facts())["group_bob"].cores_wanted == 16
    bob["RunningJobs"] = 2
    assert accounts(answer.facts())["group_bob"].cores_wanted == 24


def test_free_cores_count_for_those_who_are_owed_and_wait() -> None:
    """11 free cores on one node are one 8-core job of bob's; a drained node and one without memory are none."""
    answer = recorded(GROUPS)
    parents = [ad for ad in answer.slots if ad.get("PartitionableSlot")]
    changes: list[dict[str, object]] = [{}, {"State": "Drained"}, {"Memory": 0}]
    for ad, change in zip(parents, changes):
        ad.update({"Cpus": 11, "SlotWeight": 11, **change})
    assert answer.facts().free_cores == 8


def test_where_a_slot_weighs_twice_its_cores_quotas_are_halved() -> None:
    """SLOT_WEIGHT need not be Cpus: quotas, demand and usage are in weight, a plan is in cores."""
    answer = recorded(GROUPS)
    for ad in answer.slots:
        ad["SlotWeight"] = 2 * int(str(ad["Cpus"]))
    for ad in answer.accounting:
        ad["EffectiveQuota"] = 2 * float(str(ad.get("EffectiveQuota", 0.0)))
        ad["WeightedResourcesUsed"] = 2 * float(str(ad["WeightedResourcesUsed"]))
    for ad in answer.submitters:
        ad["WeightedIdleJobs"] = 2 * int(str(ad["WeightedIdleJobs"]))
    facts = answer.facts()
    assert {one.billed for one in facts.pilots} == {2.0 * one.cores for one in facts.pilots}
    pilots = tuple(dataclasses.replace(one, billed=None) for one in facts.pilots)
    assert dataclasses.replace(facts, pilots=pilots) == recorded(GROUPS).facts()


def test_users_outside_of_groups_share_what_the_quotas_leave() -> None:
    answer = recorded(GROUPS)
    [none] = [ad for ad in answer.accounting if ad["Name"] == "<none>"]
    none["EffectiveQuota"] = 12.0
    answer.submitters.append({"Name": "carol@pool.test", "IdleJobs": 40, "LastHeardFrom": answer.taken})
    carol = accounts(answer.facts())["carol@pool.test"]
    assert (carol.cores_owed, carol.cores_wanted, carol.cores_per_job) == (12.0, 40.0, 1.0)


def test_demand_at_several_access_points_is_one_demand() -> None:
    answer = recorded(GROUPS)
    answer.submitters.append({"Name": "group_bob.bob@pool.test", "IdleJobs": 8, "WeightedIdleJobs": 8})
    bob = accounts(answer.facts())["group_bob"]
    assert (bob.cores_wanted, bob.cores_per_job) == (32.0, 32 / 11)


def test_the_first_static_slot_of_a_node_need_not_be_its_largest() -> None:
    """Of static slots the first one alone tells of the node: jobs that fit into another slot wait all the same."""
    answer = recorded(GROUPS)
    wanted = accounts(answer.facts())["group_bob"].cores_wanted
    nodes = {str(ad["Machine"]) for ad in answer.slots}
    answer.more["startds"] = [{"Name": f"slot1@{node}", "Machine": node, "TotalSlotCpus": 1} for node in nodes]
    assert accounts(answer.facts())["group_bob"].cores_wanted == wanted > 0


def test_an_access_point_that_fell_silent_waits_for_nothing() -> None:
    answer = recorded(GROUPS)
    for ad in answer.submitters:
        ad["LastHeardFrom"] = answer.taken - 3600
    assert accounts(answer.facts())["group_bob"].cores_wanted == 0


# ---- answers that are not whole (HOSTILE 54) ----


def test_missing_slots_of_who_waits_make_it_no_poorer() -> None:
    """bob's node is missing from the answer, the accountant knows what he uses: nobody gives back for him."""
    answer = recorded(GROUPS)
    [ad] = [ad for ad in answer.accounting if ad["Name"] == "group_bob"]
    ad["WeightedResourcesUsed"], ad["ResourcesUsed"] = 24.0, 3.0
    bob = accounts(answer.facts())["group_bob"]
    assert (bob.cores_in_use, bob.cores_owed) == (24.0, 24.0)


def refused(answer: Answer, later: int = 0) -> str:
    with pytest.raises(PoolUnreachable) as caught:
        answer.facts(later)
    return str(caught.value)


def test_no_slots() -> None:
    assert "knows no slots" in refused(dataclasses.replace(recorded(GROUPS), slots=[]))


def test_no_accounting_although_slots_are_in_use() -> None:
    assert "no accounting" in refused(dataclasses.replace(recorded(GROUPS), accounting=[]))


def test_slots_that_were_not_heard_for_long() -> None:
    assert "a stale answer: 12 of 12 slots" in refused(recorded(GROUPS), later=3600)


def test_a_clock_that_is_behind_decides_nothing() -> None:
    """HOSTILE 53: two hours of grace would be over on every node before they begin."""
    assert "clock is 7200 s behind" in refused(recorded(GROUPS), later=-7200)


def test_a_node_whose_clock_is_ahead_has_no_candidates_and_stops_nobody_else() -> None:
    answer = recorded(GROUPS)
    for ad in answer.slots:
        if ad["Machine"] == "node1.pool.test" and "JobStart" in ad:
            ad["JobStart"] = answer.taken + 3600
    pilots = answer.facts().pilots
    assert {one.node for one in pilots if not one.cannot} == {"node2.pool.test", "node3.pool.test"}
    ahead = [one for one in pilots if one.node == "node1.pool.test"]
    assert ahead, "its pilots are shown all the same"
    assert all("the clock of node1.pool.test is at least 3600 s ahead" in one.cannot for one in ahead)
    assert all(one.started == answer.taken for one in ahead)


@pytest.mark.parametrize(("name", "why"), [("ce+1", ""), ("ce*1", "no order can name it: its GlobalJobId, ce*1")])
def test_a_pilot_of_any_access_point_is_shown(name: str, why: str) -> None:
    """Whatever HTCondor lets an access point be called: counted, and with the reason where no order can name it."""
    answer = recorded(GROUPS)
    before = answer.facts().pilots
    for ad in answer.slots:
        if "JobStart" in ad:
            ad["GlobalJobId"] = f"{name}#{str(ad['GlobalJobId']).partition('#')[2]}"
    after = answer.facts().pilots
    assert sum(one.cores for one in after) == sum(one.cores for one in before)
    assert all(one.run.startswith(name) and one.cannot.startswith(why) for one in after)
    assert all(bool(one.cannot) is bool(why) for one in after)


def test_what_the_negotiator_matched_whole_counts_as_what_was_claimed() -> None:
    """A match of a partitionable slot is charged as all of it until the accountant looks again."""
    answer = recorded(GROUPS)
    [alice] = [ad for ad in answer.accounting if ad["Name"] == "group_alice"]
    before = accounts(answer.facts())["group_alice"]
    for ad in answer.slots:
        if ad.get("AccountingGroup") and ad["Cpus"] == 8:
            ad["Cpus"] = ad["SlotWeight"] = 1
    after = accounts(answer.facts())["group_alice"]
    assert alice["WeightedResourcesUsed"] == before.cores_in_use
    assert after.cores_running == after.cores_in_use < before.cores_in_use


def test_nobody_is_ordered_below_the_floor_that_the_administrator_gave() -> None:
    """By condor_userprio -setfloor: the oldest pilots stay, and the others may be ordered."""
    answer = recorded(GROUPS)
    [alice] = [ad for ad in answer.accounting if ad["Name"] == "group_alice.alice@pool.test"]
    alice["Floor"] = 20.0
    pilots = answer.facts().pilots
    kept = [one for one in pilots if "less than its floor of 20 cores" in one.cannot]
    assert sum(one.cores for one in kept) == 24
    assert max(one.started for one in kept) <= min(one.started for one in pilots if one not in kept)
    alice["Floor"] = 72.0
    assert all(one.cannot for one in answer.facts().pilots)


def test_a_backfill_slot_is_nobodys_capacity() -> None:
    """Its cores are free for others as they are: who has some holds nothing, and nobody's share grows by it."""
    before = recorded(GROUPS).facts()
    answer = recorded(GROUPS)
    slot = next(ad for ad in answer.slots if ad.get("RemoteOwner"))
    ad = {**slot, "Name": "slot2_1@n9", "BackfillSlot": True, "GlobalJobId": "ce1#7.0#1", "Cpus": 64}
    answer.slots.append(ad)
    seen = answer.facts()
    assert accounts(seen) == accounts(before)
    assert seen.free_cores == before.free_cores
    [more] = [one for one in seen.pilots if one.name == "slot2_1@n9"]
    assert more.cannot == BACKFILL_SLOT


def test_accounting_that_is_old() -> None:
    answer = recorded(GROUPS)
    for ad in answer.accounting:
        ad["LastHeardFrom"] = answer.taken - 3600
    assert "a stale answer: the accounting" in refused(answer)


def test_far_fewer_slots_than_the_accountant_charges() -> None:
    answer = recorded(GROUPS)
    [alice] = [ad for ad in answer.accounting if ad["Name"] == "group_alice.alice@pool.test"]
    alice["ResourcesUsed"] = 90
    assert "9 slots in use where the negotiator charges for 90" in refused(answer)


def test_a_node_that_was_not_heard_for_long_is_not_there() -> None:
    """Its cores are in nobody's use, it has no candidates, and the administrator reads so."""
    answer = recorded(GROUPS)
    for ad in answer.slots:
        if ad["Machine"] == "node1.pool.test":
            ad["LastHeardFrom"] = answer.taken - 3600
    seen = answer.facts()
    assert {pilot.node for pilot in seen.pilots} == {"node2.pool.test", "node3.pool.test"}
    assert accounts(seen)["group_alice"].cores_in_use == 48
    assert any("4 slots (24 cores) on node1.pool.test are not counted" in notice for notice in seen.notices)


def test_ads_of_other_kinds_and_sleeping_machines_are_not_slots() -> None:
    answer = recorded(GROUPS)
    others: list[dict[str, object]] = [{"MyType": "StartD", "Name": "node1"}, {"Name": "x"}, {}]
    asleep = {**answer.slot("slot1@node1.pool.test"), "Name": "slot1@node9", "Offline": True, "Cpus": 24}
    answer.slots += [*others, asleep]
    assert answer.facts() == recorded(GROUPS).facts()


def test_ads_are_only_read() -> None:
    answer = recorded(GROUPS)
    before: list[Ad] = [dict(ad) for ad in answer.slots]
    answer.facts()
    assert answer.slots == before
