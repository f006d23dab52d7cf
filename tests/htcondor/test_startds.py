"""Which slots are there: what a startd was heard to have, not what the collector still remembers of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from drainwise.facts.signs import NO_SIGN, SIGN_PERIOD
from drainwise.htcondor.pool.slots import Slot, closed_pilots, slot_of
from drainwise.htcondor.pool.startds import Startds
from drainwise.pool.facts import Pilot

NOW = 1795249000
NODE = "node1.pool.test"


def parent(heard: int = NOW - 10, **more: object) -> dict[str, object]:
    """A partitionable slot of a startd that has run for an hour and has the dynamic slots 1 and 2."""
    ad = {"Name": f"slot1@{NODE}", "Machine": NODE, "TotalSlotCpus": 24, "DaemonStartTime": NOW - 3600}
    return {**ad, "LastHeardFrom": heard, "ChildDSlotId": [1, 2], "NumDynamicSlots": 2, **more}


def slot(number: int, heard: int | None) -> Slot:
    ad = {"Name": f"slot1_{number}@{NODE}", "Machine": NODE, "State": "Claimed", "Cpus": 8, "LastHeardFrom": heard}
    made = slot_of(ad)
    assert made is not None
    return made


@pytest.mark.parametrize(
    ("interval", "silent", "there"),
    [
        (10, 30, True),
        (10, 31, False),
        (1, 30, True),  # a startd that starts many jobs at once may be late
        (60, 180, True),
        (60, 181, False),
        (1200, 3600, True),
        (None, 900, True),
        (None, 901, False),
        (0, 900, True),
        ("soon", 900, True),
        (2**40, 900, True),
    ],
)
def test_after_three_updates_a_slot_is_not_there(interval: object, silent: int, there: bool) -> None:
    """A node that does not say its interval has HTCondor's own, 300 s."""
    startds = Startds([parent(heard=NOW - silent, PilotUpdateInterval=interval)])
    assert startds.has(slot(1, NOW - silent), NOW) is there


def test_a_dynamic_slot_that_its_startd_does_not_list_is_not_there() -> None:
    """The node is back after a power cut; the slots of before are 50 s old, and nobody would miss an update yet."""
    startds = Startds([parent(ChildDSlotId=[], NumDynamicSlots=0)])
    assert not startds.has(slot(1, NOW - 60), NOW)


def test_a_slot_that_was_made_since_its_startd_was_heard_of_is_there() -> None:
    startds = Startds([parent(ChildDSlotId=[1])])
    assert startds.has(slot(2, NOW - 10), NOW)
    assert startds.has(slot(2, NOW - 5), NOW)
    assert not startds.has(slot(2, NOW - 11), NOW)


def test_a_listed_slot_is_there() -> None:
    assert Startds([parent()]).has(slot(2, NOW - 200), NOW)


@pytest.mark.parametrize(("heard", "there"), [(NOW - 300, False), (NOW - 100, True)])
def test_where_no_list_is_told_a_slot_older_than_its_startd_is_not_there(heard: int, there: bool) -> None:
    """ADVERTISE_PSLOT_ROLLUP_INFORMATION = False; clocks may differ by a minute."""
    startds = Startds([parent(ChildDSlotId=None, NumDynamicSlots=1, DaemonStartTime=NOW - 120)])
    assert startds.has(slot(1, heard), NOW) is there


@pytest.mark.parametrize("name", [f"slot2@{NODE}", f"slot1_x@{NODE}", "slot1_1", f"slot1_{'9' * 9000}@{NODE}"])
def test_a_slot_without_a_parent_is_there_while_it_is_heard_of(name: str) -> None:
    startds = Startds([parent()])
    ad = {"Name": name, "Machine": NODE, "State": "Claimed", "Cpus": 8, "LastHeardFrom": NOW - 60}
    found = slot_of(ad)
    assert found is not None
    assert startds.has(found, NOW) is ("9999" not in name)


def test_a_slot_that_nobody_says_when_it_was_heard_of_is_there() -> None:
    assert Startds([parent()]).has(slot(9, None), NOW)


def test_the_largest_slot_and_the_slowest_startd_count() -> None:
    other = {**parent(PilotUpdateInterval=60), "Name": "slot1@node2", "Machine": "node2", "TotalSlotCpus": 64.0}
    odd = {**parent(), "Name": "slot1@node3", "Machine": "node3", "TotalSlotCpus": 2**31}
    startds = Startds([parent(PilotUpdateInterval=10), other, odd])
    assert (startds.cores, startds.longest_interval) == (64, 60)
    assert startds.machines == {NODE, "node2"}
    assert startds.dynamic_slots() == {f"slot1_1@{NODE}", f"slot1_2@{NODE}", "slot1_1@node2", "slot1_2@node2"}
    assert Startds([]).longest_interval == 300


@pytest.mark.parametrize(
    ("clock", "cron", "why"),
    [
        (NOW - 10, NOW - 60, ""),
        (NOW - 10, NOW - 10 - 2 * SIGN_PERIOD, ""),
        (NOW - 10, NOW - 10 - 3 * SIGN_PERIOD, NO_SIGN),
        (NOW + 590, NOW + 580, f"the clock of {NODE} is 600 s ahead: deadlines would be wrong there"),
        (NOW - 610, NOW - 620, f"the clock of {NODE} is 600 s behind: deadlines would be wrong there"),
        (NOW + 15, NOW, ""),
        (NOW - 120, NOW - 130, ""),  # a busy collector takes it in later
        (NOW - 10, None, ""),  # an earlier drainwise, or none
        (None, 0, ""),
        ("now", NOW, ""),
    ],
)
def test_nobody_is_ordered_on_a_node_whose_clock_is_wrong_or_whose_cron_is_silent(
    clock: object, cron: object, why: str
) -> None:
    """Its own clock tells how old its cron's heartbeat is; the collector's, what is wrong with that clock."""
    startds = Startds([parent(MyCurrentTime=clock, PilotCronHeartbeat=cron)])
    assert startds.unordered == ({NODE: why} if why else {})
    pilot = Pilot("17@1", f"slot1_1@{NODE}", NODE, "atlas", "alice", 8, NOW - 3600)
    told, other = closed_pilots([pilot, replace(pilot, cannot="it leaves")], [], startds.unordered)
    assert (told.cannot, other.cannot) == (why, "it leaves")
