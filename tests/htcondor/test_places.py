"""Places and what is free there, in accord with the slots of the same snapshot."""

from __future__ import annotations

from dataclasses import replace

from drainwise.htcondor.ads.values import Others
from drainwise.htcondor.demand.demand import SeenPlace, Told
from drainwise.htcondor.pool.places import places_of
from drainwise.htcondor.pool.slots import Slot, slot_of
from drainwise.htcondor.pool.snapshot import snapshot_of
from drainwise.htcondor.pool.startds import Startds
from drainwise.pool.amounts import Amounts
from drainwise.pool.job_kinds import Place
from recorded_condor import GROUPS, recorded_ads

NOW = 1_795_249_000
TOTAL = Amounts(24, 65_536, 2)
PARENT = {"Name": "slot1@n1", "Machine": "n1", "LastHeardFrom": NOW, "ChildDSlotId": [1, 2], "PilotUpdateInterval": 60}


def seen(free: Amounts, name: str = "slot1@n1", heard: int = NOW) -> SeenPlace:
    return SeenPlace(Place(name, "n1", "c", free, TOTAL), heard)


def slot(name: str, cores: int, gpus: int = 0) -> Slot:
    ad = {"Name": name, "Machine": "n1", "State": "Claimed", "Cpus": cores, "Memory": 4096, "GPUs": gpus}
    found = slot_of({**ad, "RemoteOwner": "alice@pool"}, ("GPUs",))
    assert found is not None
    return found


def place(free: Amounts) -> tuple[Place, ...]:
    return (Place("slot1@n1", "n1", "c", free, TOTAL),)


def test_what_is_free_is_what_the_place_says() -> None:
    claimed = [slot("slot1_1@n1", 16, 1), slot("slot1_2@n1", 6)]
    free = Amounts(2, 57_344, 1)
    assert places_of([seen(free)], claimed, (), Startds([PARENT]), NOW) == place(free)


def test_what_a_slot_of_the_snapshot_holds_is_not_free() -> None:
    """The place was asked a moment later, when the run of slot1_2 had ended already."""
    claimed = [slot("slot1_1@n1", 16, 1), slot("slot1_2@n1", 6)]
    later = Amounts(8, 61_440, 1)
    assert places_of([seen(later)], claimed, (), Startds([PARENT]), NOW) == place(Amounts(2, 57_344, 1))


def test_what_is_neither_free_nor_in_a_slot_of_the_snapshot_is_unseen() -> None:
    """The run of slot1_2 has ended, and the place has not said since what is free: not so where it says nothing."""
    claimed = [slot("slot1_1@n1", 16, 1)]
    before = seen(Amounts(2, 57_344, 1))
    [found] = places_of([before], claimed, (), Startds([PARENT]), NOW)
    assert (found.free, found.unseen) == (Amounts(2, 57_344, 1), Amounts(6, 4096))
    for silent in (before._replace(is_unclaimed=False), before._replace(place=replace(before.place, divisible=False))):
        [found] = places_of([silent], claimed, (), Startds([PARENT]), NOW)
        assert found.unseen == Amounts()


def test_what_came_back_as_ordered_is_free_although_its_claim_has_not_ended() -> None:
    claimed = [slot("slot1_1@n1", 16, 1), slot("slot1_2@n1", 6)]
    found = places_of([seen(Amounts(2, 57_344, 1))], claimed, {"slot1_2@n1"}, Startds([PARENT]), NOW)
    assert found == place(Amounts(8, 61_440, 1))


def test_a_place_that_is_silent_is_none() -> None:
    assert places_of([seen(Amounts(), heard=NOW - 200)], (), (), Startds([PARENT]), NOW) == ()


def test_a_static_slot_is_its_own_place() -> None:
    startds = Startds([PARENT])
    assert [startds.place_of(name) for name in ("slot1_7@n1", "slot2@n1", "my_1@n1")] == [
        "slot1@n1",
        "slot2@n1",
        "my_1@n1",
    ]


def test_a_snapshot_without_what_was_told_is_as_before() -> None:
    """No answer in time: cores count, and the administrator reads why."""
    kinds, taken = recorded_ads(GROUPS)
    others = Others(kinds["Accounting"], kinds["Submitter"])
    silent = snapshot_of(kinds["Startd"], others, taken, told=lambda: "it did not answer within 8 s")
    plain = snapshot_of(kinds["Startd"], others, taken)
    assert (silent.kinds, silent.places, silent.accounts) == (None, (), plain.accounts)
    assert silent.notices == ("demand counts by cores alone: it did not answer within 8 s",)
    known = Others(kinds["Accounting"], [{**ad, "ScheddName": "ce1"} for ad in kinds["Submitter"]])
    nobody = snapshot_of(kinds["Startd"], known, taken, told=lambda: Told(answered=frozenset(("ce1",))))
    assert nobody.kinds == ()
    assert {one.cores_wanted for one in nobody.accounts} == {0.0}
