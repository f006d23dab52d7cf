"""Who reads a plan is told what it could not count on; who cannot be asked is not asked."""

from __future__ import annotations

from dataclasses import replace

from drainwise.reclaim.notices import notices_of
from drainwise.reclaim.plan import make_plan

from .facts import NOW, SETTINGS, pilot, report, snapshot


def test_a_pilot_that_cannot_be_asked_is_spared_with_the_reason_and_another_one_goes() -> None:
    cheap = pilot(1, report(0.1, start=NOW), cannot="its node takes no orders yet")
    plan = make_plan(snapshot(cheap, pilot(2, report()), deficit=8), NOW, SETTINGS)
    assert [order.pilot.name for order in plan.orders] == ["slot1_2@node1"]
    [spared] = plan.users[0].spared
    assert spared.reason == "cannot be asked: its node takes no orders yet"
    assert plan.notices == ("1 pilot (8 cores) cannot be asked: its node takes no orders yet",)


def test_the_reason_with_the_most_cores_comes_after_the_notices_of_the_batch_system() -> None:
    pilots = (pilot(1, cannot="a"), pilot(2, cannot="b", cores=4), pilot(3, cannot="b", cores=8), pilot(4))
    seen = replace(snapshot(*pilots), notices=("slot1@n9 is left out: Cpus = 1e308",))
    assert notices_of(seen) == (
        "slot1@n9 is left out: Cpus = 1e308",
        "2 pilots (12 cores) cannot be asked: b",
        "1 pilot (8 cores) cannot be asked: a",
    )


def test_however_many_notices_there_are_twenty_are_shown() -> None:
    seen = replace(snapshot(pilot(1)), notices=tuple(f"notice {number}" for number in range(100)))
    assert notices_of(seen) == (*(f"notice {number}" for number in range(20)), "80 more notices")


def test_a_pilot_whose_claim_would_end_it_at_once_is_not_asked() -> None:
    """Its claim was given more vacate time than any deadline lies ahead: it would have SIGTERM before it is told."""
    site = replace(SETTINGS, grace=600, horizon=600, vacate=30, told=60)
    cheap = pilot(1, report(0.1, start=NOW), vacate=540)
    plan = make_plan(snapshot(cheap, pilot(2, report()), deficit=8), NOW, site)
    assert [order.pilot.name for order in plan.orders] == ["slot1_2@node1"]
    [spared] = plan.users[0].spared
    assert spared.reason.startswith("its claim lets it be ended 9m before a deadline")
    [order] = make_plan(snapshot(replace(cheap, vacate=539), pilot(2), deficit=8), NOW, site).orders
    assert order.pilot.name == "slot1_1@node1", "one second less, and it can be told"


def test_nodes_with_pilots_that_cannot_be_asked_are_counted_once() -> None:
    pilots = (pilot(1, cannot="a"), pilot(2, cannot="a"), pilot(3))
    assert make_plan(snapshot(*pilots), NOW, SETTINGS).closed_nodes == 1
    assert make_plan(snapshot(pilot(3)), NOW, SETTINGS).closed_nodes == 0
