"""Nodes whose pilots return cores: two slots over the same cores, of which each core counts once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.htcondor.demand.matching import without_kept_room
from drainwise.htcondor.pool.places import counted_once, lent_cores, no_more_lent_notices, with_parts
from drainwise.htcondor.pool.pool import HTCondorPool
from drainwise.htcondor.pool.slots import Slot, pilot_of, slot_of
from drainwise.htcondor.pool.startds import Startds
from drainwise.pilotad.report import PilotReport
from drainwise.pool.amounts import Amounts
from drainwise.pool.facts import Pilot, Snapshot

NOW, HOST, CORES = 1795260000, "node1.pool.test", 8
AGE = 30
STATES = PilotReport(NOW, returned_cores=0, returned_since=NOW - 9)


def slot(name: str, cores: int, **more: object) -> Slot:
    """A slot of the node; a dynamic one is claimed by the job that is named after it."""
    ad: dict[str, Any] = {
        "Name": f"{name}@{HOST}",
        "Machine": HOST,
        "Cpus": cores,
        "Memory": 1024,
        "State": "Unclaimed",
    }
    if "_" in name:
        ad |= {"State": "Claimed", "RemoteUser": "alice@pool.test", "GlobalJobId": f"ce#{name[-1]}.0#{NOW - 900}"}
        ad |= {"JobStart": NOW - 900}
    else:
        ad["PartitionableSlot"] = True
    found = slot_of({**ad, **more})
    assert found is not None
    return found


def returned(name: str, cores: int, given: int, age: int = 1) -> Slot:
    """A slot whose pilot has returned some of its cores; age: since its node has read so, s."""
    bare = slot(name, cores)
    return slot(name, cores, PilotReturnedBy=bare.run, PilotReturnedAt=NOW - age, PilotReturnedCpus=given)


def startds(*more: dict[str, Any]) -> Startds:
    """The node's two partitionable slots."""
    return Startds(
        [
            {"Name": f"{name}@{HOST}", "Machine": HOST, "TotalSlotCpus": CORES, "PilotReturnedAge": AGE, **second}
            for name, second in (("slot1", {}), ("slot2", {"PilotSecondSlot": True}))
        ]
        + list(more)
    )


def test_lent_is_what_this_run_returned_and_its_node_has_read_lately() -> None:
    """Not another run's word, not an old one, and never all cores."""
    assert lent_cores(returned("slot1_1", 8, 5), AGE, NOW) == 5
    assert lent_cores(returned("slot1_1", 8, 8), AGE, NOW) == 7
    assert lent_cores(returned("slot1_1", 8, 5, age=AGE), AGE, NOW) == 0
    word = {"PilotReturnedBy": slot("slot1_1", 8).run, "PilotReturnedCpus": 5, "PilotReturnedAt": NOW - AGE - 9}
    heard = [slot("slot1_1", 8, **word, LastHeardFrom=NOW - ago) for ago in (9, 10)]
    assert [lent_cores(one, AGE, NOW) for one in heard] == [0, 5], "as it was when the node spoke"
    other = slot("slot1_1", 8, PilotReturnedBy=f"ce#1.0#{NOW}@{NOW - 900}", PilotReturnedAt=NOW, PilotReturnedCpus=5)
    assert lent_cores(other, AGE, NOW) == 0


def test_what_is_returned_is_free_once_and_paid_for_until_others_hold_it() -> None:
    """8 cores, 5 returned, 3 of them borrowed: 2 are free, and the pilot pays for 5."""
    seen = [slot("slot2", 5), returned("slot1_1", 8, 5), slot("slot2_1", 3)]
    found = {one.name.partition("@")[0]: one for one in counted_once(seen, startds(), NOW)}
    assert set(found) == {"slot1", "slot1_1", "slot2_1"}
    assert (found["slot1"].cores, found["slot1"].weight, found["slot1"].usable) == (2, 2.0, True)
    assert (found["slot1_1"].lent, found["slot1_1"].unpaid) == (5, 3)
    assert found["slot1_1"].holds == Amounts(3, 1024)


@pytest.mark.parametrize(("stated", "left"), [(None, 1024), (100, 924), (640, 384), (9999, 384)])
def test_memory_is_lent_as_far_as_it_was_returned_and_belongs_to_the_cores(stated: int | None, left: int) -> None:
    """As the node's own START has it."""
    bare = slot("slot1_1", 8)
    word = {"PilotReturnedBy": bare.run, "PilotReturnedAt": NOW - 1, "PilotReturnedCpus": 5}
    gives = slot("slot1_1", 8, **word, PilotReturnedMemory=stated)
    [found] = [one for one in counted_once([slot("slot2", 5), gives], startds(), NOW) if one.name == gives.name]
    assert found.holds == Amounts(3, left)


def test_a_pool_without_such_nodes_is_as_it_is() -> None:
    """Also a slot2 of another kind: nothing is taken from it."""
    seen = [slot("slot1", 8), slot("slot2", 8), slot("slot2_1", 3)]
    assert counted_once(seen, Startds([{"Name": f"slot2@{HOST}", "Machine": HOST, "TotalSlotCpus": 8}]), NOW) is seen


@given(
    st.lists(st.tuples(st.integers(1, 8), st.integers(0, 9)), max_size=5),
    st.lists(st.integers(1, 4), max_size=6),
)
def test_each_core_counts_once(pilots: list[tuple[int, int]], others: list[int]) -> None:
    """What is held, without what is lent, and what is free are the node's cores, and so is what is paid for."""
    first = [returned(f"slot1_{number}", cores, given) for number, (cores, given) in enumerate(pilots)]
    second = [slot(f"slot2_{number}", cores) for number, cores in enumerate(others)]
    lent = sum(lent_cores(one, AGE, NOW) for one in first)
    claimed = sum(one.cores for one in (*first, *second))
    if sum(one.cores for one in first) > CORES or claimed - lent > CORES:
        return  # START lets nobody in then
    found = counted_once([slot("slot1", 1), slot("slot2", 8), *first, *second], startds(), NOW)
    assert sum(one.cores - one.lent for one in found) == CORES
    paid = sum(one.cores - one.unpaid for one in found if one.submitter is not None)
    assert paid == min(claimed, CORES)


@pytest.mark.parametrize(
    "free",
    [
        "ifThenElse(MY.DynamicSlot is true,MY.PilotFreeCpus >= 0 && true,int(TARGET.RequestCpus) <= MY.PilotFreeCpus)",
        'ifThenElse(regexp("_[0-9]+@",MY.Name),(8 + (sum(MY.slot1_ChildPilotLentCpus) ?: 0)) >= 0 && true,'
        "int(TARGET.RequestCpus) <= (8 + (sum(MY.slot1_ChildPilotLentCpus) ?: 0)))",
    ],
)
def test_the_start_of_a_place_is_what_it_is_when_nothing_runs_there(free: str) -> None:
    """What is really free there now is an amount, and no condition of the place."""
    assert without_kept_room(f"(X && (Y)) && (true) && ({free})") == "(X && (Y)) && (true)"


def pilots_of(*slots: Slot, now: int = NOW, report: PilotReport | None = STATES, second: bool = True) -> list[Pilot]:
    """The pilots of these slots, each with this report, as a snapshot shows them."""
    node = startds() if second else Startds([{"Name": f"slot1@{HOST}", "Machine": HOST, "TotalSlotCpus": CORES}])
    found = [pilot_of(one, "group_alice", now, place=node.place_of(one.name)) for one in slots]
    counted = counted_once([slot("slot2", 8), *slots], node, now)
    return list(with_parts([replace(one, report=report, cannot="") for one in found if one], counted, node, now))


def test_a_pilot_that_states_what_it_returned_can_return_more() -> None:
    """Where its node has the second slot, all but one of the cores that it holds."""
    [one] = pilots_of(returned("slot1_1", 8, 5))
    assert (one.cores, one.returned, one.can_return, one.asked) == (3, 5, 2, 0)
    [silent] = pilots_of(slot("slot1_1", 8), report=None)
    [other] = pilots_of(slot("slot1_1", 8), report=PilotReport(NOW))
    [alone] = pilots_of(slot("slot1_1", 8), second=False)
    [distrusted] = pilots_of(slot("slot1_1", 8, PilotLendsNoMore=NOW - 9))
    assert [one.can_return for one in (silent, other, alone, distrusted)] == [0, 0, 0, 0]


def test_a_wish_stands_for_its_run_alone_and_until_its_time() -> None:
    """From then on no more is asked than is returned."""
    run = slot("slot1_1", 8).run
    asked = {"PilotReturnAsked": f"ce#9.0#{NOW}@{NOW}=7:0:1 {run}=6:{NOW + 60}:2"}
    [one] = pilots_of(slot("slot1_1", 8, **asked))
    assert (one.asked, one.returning) == (6, 6)
    gives = {"PilotReturnedBy": run, "PilotReturnedAt": NOW - 1, "PilotReturnedCpus": 4}
    [one] = pilots_of(slot("slot1_1", 8, **asked, **gives))
    assert (one.asked, one.returned, one.returning) == (6, 4, 2)
    [one] = pilots_of(slot("slot1_1", 8, **asked, **gives | {"PilotReturnedAt": NOW + 59}), now=NOW + 60)
    assert (one.asked, one.returned, one.returning) == (4, 4, 0)
    [one] = pilots_of(slot("slot1_1", 4, **asked))
    assert one.asked == 3, "one core stays"
    [other] = pilots_of(slot("slot1_2", 8, PilotReturnAsked=f"{run}=6:0:1"))
    assert other.asked == 0


def test_whom_nothing_is_lent_of_is_told_once() -> None:
    """By the notices as long as it is so, and once in the journal, as what was followed up."""
    there = [slot("slot1_1", 4, PilotLendsNoMore=NOW), slot("slot1_2", 4, PilotLendsNoMore=NOW), slot("slot1_3", 4)]
    [notice] = no_more_lent_notices(there)
    assert "pilots of alice@pool.test" in notice and HOST in notice
    pool, seen = HTCondorPool(), Snapshot(NOW, (), (), notices=("another", notice))
    assert [pool.follow_up(seen), pool.follow_up(seen)] == [[notice], []]
