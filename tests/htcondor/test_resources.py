"""Amounts in ads: what slots have, what jobs ask for; whatever stands there becomes an amount."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.htcondor.ads.values import countables, job_needs, resources_of, slot_amounts
from drainwise.pool.amounts import Amounts

odd = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just(10**400)
NAMES = ("GPUs", "Licence")


def needs(**asked: object) -> Amounts:
    return job_needs(asked.get, NAMES)


def test_a_slot_has_what_every_slot_has_and_what_its_site_counts() -> None:
    ad = {"Cpus": 8, "Memory": 16_256, "Disk": 8_384_156, "GPUs": 2, "Licence": 3, "TotalSlotCpus": 24.0}
    assert slot_amounts(ad, NAMES) == Amounts(8, 16_256, 2, 8187, (("licence", 3),))
    assert slot_amounts(ad, (), "TotalSlot") == Amounts(24)


def test_a_job_asks_for_as_much_memory_as_a_partitionable_slot_would_give_it() -> None:
    """In steps of 128 MiB, the disk in MiB; seen on 23.9.6 and 25.14.1."""
    asked = needs(RequestCpus=4, RequestMemory=3000, RequestDisk=1025, RequestGPUs=1, RequestLicence=2)
    assert asked == Amounts(4, 3072, 1, 2, (("licence", 2),))


@pytest.mark.parametrize("cores", [None, "8", True, 0, -3, float("nan")])
def test_a_job_that_does_not_say_its_cores_asks_for_one(cores: object) -> None:
    assert needs(RequestCpus=cores) == Amounts(1)


def test_countables_are_what_not_every_node_has() -> None:
    """In one spelling, whatever the nodes write; ClassAd names compare without case."""
    assert countables(["Cpus Memory Disk Swap", "Cpus Memory Disk Swap Gpus", "cpus GPUs", None, 7]) == ("Gpus",)
    assert resources_of([{"MachineResources": "Cpus Foo"}, {}]) == ("Foo",)


@given(st.dictionaries(st.sampled_from(("Cpus", "Memory", "Disk", *NAMES)), odd))
def test_any_slot_has_amounts_of_nothing_or_more(ad: dict[str, object]) -> None:
    found = slot_amounts(ad, NAMES)
    assert min(found.cores, found.memory, found.gpus, found.disk) >= 0
    assert all(0 < amount <= 10**12 for _, amount in found.named())


@given(st.dictionaries(st.sampled_from([f"Request{name}" for name in ("Cpus", "Memory", "Disk", *NAMES)]), odd))
def test_any_job_asks_for_amounts_that_can_be_written(asked: dict[str, object]) -> None:
    found = job_needs(asked.get, NAMES)
    assert found.cores >= 1
    assert all(0 < amount < 2**53 for _, amount in found.named())
    assert found.memory % 128 == 0
