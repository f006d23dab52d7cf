"""Cores that a pilot returns and uses again: never a payload on one that others may hold, whatever the two sides do."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.pilot.decide.decision import decide
from drainwise.pilot.decide.lease import Lease, ReturnedCores
from drainwise.pilot.decide.payload import Backlog
from drainwise.pilot.decide.settings import PilotSettings
from drainwise.pilot.decide.workload import RestingValues, Workload, report_of, running_since
from drainwise.pilot.lease_record import USEFUL, LeaseUse
from drainwise.pilotad.partial_return import (
    NOTHING_RETURNED,
    Acknowledgement,
    PartialReturn,
    ReturnedPart,
    acknowledgement,
    returned_part,
)
from drainwise.pilotad.report import standing_and_rule

from .work import T0, no_orders, payload


def settled(part: ReturnedCores, wish: PartialReturn | None, used: int, now: float) -> tuple[int, int, int]:
    """What is stated, usable and fillable then, with no acknowledgement."""
    part.settle(wish, None, used, now)
    return part.stated.cores, part.usable, part.fillable


def test_each_core_is_returned_when_its_payload_has_ended() -> None:
    """Asked for 4 of 8 full cores: nothing more starts in them; the others are filled again for the whole lease."""
    part, wish = ReturnedCores(8, T0, memory=2000), PartialReturn(4)
    assert settled(part, None, 8, T0) == (0, 8, 8)
    assert settled(part, wish, 8, T0 + 1) == (0, 8, 4)
    assert settled(part, wish, 7, T0 + 2) == (1, 7, 4)
    assert settled(part, wish, 5, T0 + 3) == (3, 5, 4)
    assert settled(part, wish, 3, T0 + 4) == (4, 4, 4)
    assert part.stated == ReturnedPart(4, 8000, T0 + 4)
    assert settled(part, wish, 4, T0 + 5) == (4, 4, 4)


def test_cores_come_back_in_chunks() -> None:
    """As the jobs need that wait; the last chunk may be smaller."""
    part, wish = ReturnedCores(16, T0), PartialReturn(10, chunk=4)
    returned = [settled(part, wish, used, T0)[0] for used in range(16, 4, -1)]
    assert returned == [0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 10, 10]


def test_a_wish_that_is_over_asks_for_nothing_more() -> None:
    """What is returned stays so; what is not gets payloads again."""
    part, wish = ReturnedCores(8, T0), PartialReturn(4, by=T0 + 100)
    assert settled(part, wish, 6, T0 + 50) == (2, 6, 4)
    assert settled(part, wish, 4, T0 + 100) == (2, 6, 6)


def test_cores_are_used_again_in_two_steps() -> None:
    """The smaller number first; only the answer to it, and to no other, lets them be used."""
    part = ReturnedCores(8, T0)
    part.settle(PartialReturn(5), None, 0, T0 + 10)
    assert (part.stated, part.usable) == (ReturnedPart(5, 0, T0 + 10), 3)
    old = Acknowledgement(T0 + 10, 8)
    part.settle(PartialReturn(2), old, 3, T0 + 10)
    assert (part.stated, part.usable) == (ReturnedPart(2, 0, T0 + 11), 3)
    part.settle(PartialReturn(2), Acknowledgement(T0 + 11, 4), 3, T0 + 20)
    assert (part.stated.since, part.usable, part.fillable) == (T0 + 11, 4, 4)
    part.settle(PartialReturn(2), Acknowledgement(T0 + 11, 8), 3, T0 + 30)
    assert (part.usable, part.fillable) == (6, 6)
    part.settle(None, Acknowledgement(T0 + 11, 8), 3, T0 + 31)
    assert (part.stated.cores, part.usable) == (0, 6)


def test_a_pilot_of_one_core_returns_none() -> None:
    """Who wants it asks it to leave."""
    assert settled(ReturnedCores(1, T0), PartialReturn(9), 0, T0) == (0, 1, 1)


@dataclass
class Site:
    """A batch system that lends returned cores as its reads and its notices come: late, or not at all."""

    borrowed: int = 0
    believed: ReturnedPart = NOTHING_RETURNED
    wish: PartialReturn | None = None
    told: tuple[PartialReturn | None, Acknowledgement | None] = (None, None)


@dataclass
class Played:
    """One pilot, its payloads' cores in use, and the brute-force sums beside its own."""

    part: ReturnedCores
    use: LeaseUse
    running: list[tuple[int, int]] = field(default_factory=list)
    useful: int = 0
    returned: int = 0
    stated: list[ReturnedPart] = field(default_factory=list)

    @property
    def used(self) -> int:
        return sum(cores for cores, _ in self.running)


def steps_of(chance: random.Random) -> list[tuple[str, int, int]]:
    """What happens, one thing a second; a wish comes seldom, so that what follows it has time to go wrong."""
    found = []
    for _ in range(60):
        what = chance.choice(
            (*("read", "ask", "acknowledge") * 2, "borrower ends", "payload ends", "payload ends", "wish")
        )
        least = -1 if what == "wish" else 0
        found.append((what, chance.randint(least, 6), chance.choice((1, 1, 2))))
    return found


def fill(pilot: Played, cores: int, width: int, now: float) -> None:
    """Start payloads of that width as the pilot decides."""
    workload, settings, lease = Workload(T0), PilotSettings(), Lease(cores, T0, None)
    for place, (each, began) in enumerate(pilot.running):
        workload.add(running_since(payload(f"{place}", each), began))
    waiting = Backlog([payload(f"new {place}", width) for place in range(cores)])
    orders = no_orders(lease, settings, now)
    chosen = decide(workload, waiting, lease, orders, settings, now, True, pilot.part.fillable)
    pilot.running += [(each.cores, int(now)) for each in chosen.start]


@pytest.mark.parametrize("seed", range(100))
def test_no_core_is_ever_used_twice(seed: int) -> None:
    """Each side acts on what it has read last, in any order, and takes all that it may: payloads and borrowers fit the
    lease at every moment, each statement has a time of its own, and the sums are those of a count second by second.
    """
    chance = random.Random(seed)
    cores, width, steps = chance.randint(1, 6), chance.randint(1, 2), steps_of(chance)
    site = Site()
    pilot = Played(ReturnedCores(cores, T0), LeaseUse(cores, T0))
    for now, (what, number, more) in enumerate(steps, T0 + 1):
        pilot.returned += cores - pilot.part.usable
        if what == "read":
            site.believed = pilot.part.stated
        elif what == "ask":
            site.told = (site.wish, site.told[1])
        elif what == "acknowledge":
            site.told = (site.told[0], acknowledgement(site.believed, cores, site.borrowed))
        elif what == "wish":
            site.wish = None if number < 0 else PartialReturn(number, chunk=more)
        elif what == "borrower ends":
            site.borrowed = max(0, site.borrowed - number)
        elif pilot.running:
            ended, began = pilot.running.pop(number % len(pilot.running))
            pilot.use.add(USEFUL, ended, began, now)
            pilot.useful += ended * (now - began)
        site.borrowed = max(site.borrowed, site.believed.cores)
        usable = pilot.part.usable
        pilot.part.settle(*site.told, pilot.used, now)
        if pilot.part.usable != usable:
            pilot.use.give_back(cores - pilot.part.usable, now)
        if pilot.used + width <= pilot.part.usable:
            fill(pilot, cores, width, now)
        assert pilot.used <= pilot.part.usable <= cores - pilot.part.stated.cores
        assert pilot.used + site.borrowed <= cores
        assert 0 <= pilot.part.stated.cores <= cores - 1
        if not pilot.stated or pilot.stated[-1] != pilot.part.stated:
            pilot.stated.append(pilot.part.stated)
    times = [one.since for one in pilot.stated]
    assert times == sorted(set(times))
    end = T0 + len(steps)
    for each, began in pilot.running:
        pilot.use.add(USEFUL, each, began, end)
        pilot.useful += each * (end - began)
    spent = pilot.use.at(end)
    assert (spent.returned, spent.useful) == (pilot.returned, pilot.useful)
    assert spent.lease == spent.useful + spent.idle + spent.returned
    assert spent.idle >= 0


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 900), st.integers(1, 3000)), max_size=6), st.integers(0, 40)
)
def test_its_report_is_believed(running: list[tuple[int, int, int]], asked: int) -> None:
    """With cores returned it contradicts nothing, and its final waste is that of the cores that are left."""
    cores, now = 24, T0 + 1000
    workload, part = Workload(T0), ReturnedCores(24, T0, memory=100)
    for place, (width, elapsed, left) in enumerate(running):
        workload.add(running_since(payload(str(place), width, maximum=elapsed + left), now - elapsed))
    part.settle(PartialReturn(asked), None, workload.used, now)
    report = report_of(workload, Lease(cores, T0, None), True, 0, now, part=part.stated)
    assert standing_and_rule(report, now, 3600, T0, cores) == ("fresh", "")
    believed = returned_part(report, cores, 2400, now, 3600, T0)
    assert believed == part.stated
    assert believed.cores == min(asked, cores - 1, cores - workload.used)
    first, last = report.first_exp_job_end or 0, report.last_exp_job_end or 0
    held = cores - believed.cores
    seconds = range(first, last)
    busy = sum(width for width, elapsed, left in running for second in seconds if now + left > second)
    assert report.add_final_exp_waste == pytest.approx(held * len(seconds) - busy)


def test_values_that_rest_move_when_cores_are_returned() -> None:
    """Otherwise the cores in use that are stated would contradict those that are returned."""
    lease, workload = Lease(8, T0, None), Workload(T0)
    part, resting = ReturnedCores(8, T0), RestingValues(600)
    workload.add(running_since(payload("a", 8), T0))
    for moment, can_postpone in ((1, False), (2, True)):
        resting.stated(report_of(workload, lease, can_postpone, 0, T0 + moment, part=part.stated), T0 + moment)
    workload.remove("a")
    part.settle(PartialReturn(4), None, 0, T0 + 3)
    said = resting.stated(report_of(workload, lease, True, 0, T0 + 3, part=part.stated), T0 + 3)
    assert (said.used_cpu, said.returned_cores) == (0.0, 4)
    assert standing_and_rule(said, T0 + 3, 3600, T0, 8) == ("fresh", "")
