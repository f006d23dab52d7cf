"""Which pilots are chosen on random pools, row by row, also where a choice ends for its number of looks.

After a change that is meant to choose otherwise: `PYTHONPATH=plugins:tests/support python
tests/reclaim/test_recorded_choices.py` prints the lines anew.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from drainwise.reclaim.choose import problem
from drainwise.reclaim.choose.by_cores import CoresNeed, cores_by_claims, cores_by_facts, plan_cores
from drainwise.reclaim.choose.plan import ACCOUNT, SITE, USER, Rules, make_plan
from drainwise.reclaim.choose.problem import Limits, Mask, Needs, Parts, Places, Problem, Whole, whole_pilots
from random_pools import random_problem, with_parts, with_spanning

FAMILIES = ("small", "users", "full", "full-users", "wide", "crowd", "crowd", "crowd")
CASES = (*range(30), *range(36, 85, 8), 70, 79, 109, 142, 145, 227, 238, 262, 358, 406)
RECORDED = Path(__file__).parent / "choices.txt"


@dataclass(frozen=True, eq=False)
class Watched(Problem):
    """A problem that notes at which places is looked, in which order."""

    looked: list[bytes] = field(default_factory=list)

    def pieces(self, places: Whole, order: Whole | None = None) -> tuple[Whole, Whole]:
        self.looked.append(places.tobytes())
        return super().pieces(places, order)

    def way(self) -> str:
        """A checksum of where was looked since it was asked last, and how often."""
        count, found = len(self.looked), zlib.crc32(b",".join(self.looked))
        self.looked.clear()
        return f"by {count} looks {found:08x}"


def watched(it: Problem) -> Watched:
    return Watched(it.rows, it.places, it.needs, it.limits)


def pool(number: int) -> Watched:
    """The pool of that number, as it is, with parts, or with pilots of several nodes."""
    it = random_problem(FAMILIES[number % len(FAMILIES)], number)
    change = (lambda one, _: one, with_parts, with_spanning)[number % 3]
    return watched(change(it, number))


def rows_in(chosen: Mask) -> str:
    """The rows of a choice."""
    return ",".join(map(str, np.flatnonzero(chosen).tolist())) or "none"


def lines(number: int) -> Iterator[str]:
    """What is chosen: by room, with few looks and with many, and by cores."""
    it, compete = pool(number), (USER, ACCOUNT, SITE)[number // 3 % 3]
    for looks, join in ((3, False), (60, number % 2 == 0)):
        plan = make_plan(it, Rules(compete=compete, join=join, looks=looks))
        jobs = " ".join("".join(map(str, one)) for one in plan.jobs.tolist())
        served, most = plan.served.tolist(), plan.budget[:, 0].round().astype(int).tolist()
        chosen = f"{rows_in(plan.gone)} facts {rows_in(plan.by_facts)} jobs {jobs} of {served} within {most}"
        yield f"{number} {looks}: {chosen} {it.way()}"
    for cores in (5, 17, 40):
        found = plan_cores(it.rows, it.limits, cores, Rules(compete=compete))
        most = found.budget.round().astype(int).tolist()
        yield f"{number} cores {cores}: {rows_in(found.gone)} facts {rows_in(found.by_facts)} within {most}"


def large(number: int) -> Iterator[str]:
    """What a choice among hundreds of pilots amounts to: how many go, by facts and in the end; cores and wastes."""
    it = watched(with_parts(random_problem("middle", number), number))

    def total(chosen: Mask) -> str:
        cores, loss = it.rows.spends[chosen, 0].sum(), it.rows.loss[chosen].sum()
        return f"{chosen.sum()} rows {cores:g} cores {loss:.0f} lost {it.rows.claim[chosen].sum():.0f} claimed"

    plan = make_plan(it, Rules(looks=20))
    yield f"large {number}: {total(plan.gone)} facts {total(plan.by_facts)} for {plan.served.tolist()} {it.way()}"


def shaped(number: int) -> str:
    """What is chosen on few places of many pilots, where many kinds wait, or on many places."""
    family = ("tall", "broad")[number % 2]
    change = (lambda one, _: one, with_parts, with_spanning)[number // 2 % 3]
    it = watched(change(random_problem(family, number), number))
    plan = make_plan(it, Rules(compete=(USER, SITE)[number // 3 % 2], looks=12))
    return f"shaped {number}: {rows_in(plan.gone)} facts {rows_in(plan.by_facts)} of {plan.served.tolist()} {it.way()}"


def mixed(number: int) -> str:
    """What is chosen where two kinds of small jobs could share a place in more mixes than are looked at."""
    dice = Random(number)
    sizes = np.array([dice.choice((4, 8, 12)) for _ in range(10)], dtype=float)
    loss = sizes * [float(dice.randrange(9000)) for _ in sizes]
    rows = whole_pilots(sizes, np.zeros(10, dtype=np.int64), loss, loss)
    rows = replace(rows, place=np.array([0] * 8 + [1] * 2))
    places = Places(np.zeros((2, 1)), np.full(2, 96.0), np.ones(2, dtype=bool))
    one, jobs = np.ones(2, dtype=np.int64), np.array([dice.randint(20, 30), dice.randint(20, 30)])
    cores = np.array([1.0, dice.choice((1.0, 2.0))])
    needs = Needs(
        0 * one, jobs, cores[:, None], np.ones((2, 2), dtype=bool), one > 1, one, cores, jobs, np.array([1e9])
    )
    limits = Limits(
        np.zeros(1, dtype=np.int64), np.zeros(1), np.array([[0]]), np.array([70.0]), 0 * one[:1], np.zeros(1)
    )
    it = watched(Problem(rows, places, needs, limits))
    plan = make_plan(it, Rules(join=number % 2 == 0, looks=20))
    return f"mixed {number}: {rows_in(plan.gone)} jobs {plan.jobs.tolist()} of {jobs.tolist()} {it.way()}"


SIZES = (8, 8, 8, 8, 3), (8, 12), (3, 5, 7, 64), (1, 2, 4, 8, 16), (6, 10, 15), (8, 8, 8, 1, 64), tuple(range(1, 99, 3))


def crowded(number: int) -> str:
    """What is chosen by cores alone where users have limits in common, some of which delay, and parts to return."""
    dice = Random(number)
    users = dice.choice((1, 3, 6, 30))
    count = dice.choice((30, 90, 300 if users < 30 else 900))
    sizes = np.array([dice.choice(SIZES[number % len(SIZES)]) for _ in range(count)])
    whose = np.sort([dice.randrange(users) for _ in range(count)])
    loss = np.array([dice.choice((0, 100, 5000, 70_000)) + dice.randrange(900) for _ in range(count)]) * sizes
    claim = np.array([dice.randrange(1 + int(most)) for most in loss])
    rows = whole_pilots(sizes.astype(float), whose, loss.astype(float), claim.astype(float))
    some = [one for one in range(count) if sizes[one] > 1 and dice.random() < number % 4 / 6]
    parts = [(one, dice.randrange(1, int(sizes[one]))) for one in some for _ in range(dice.choice((1, 3)))]
    of, cores = np.array(sorted(set(parts)), dtype=np.int64).reshape(-1, 2).T
    costs = np.array([dice.choice((0, 300, 1e12)) * one for one in cores.tolist()])
    rows = problem.with_parts(rows, Parts(of, cores, costs, np.array([dice.random() < 0.1 for _ in of], dtype=bool)))
    account, total = np.arange(users) % 3, int(sizes.sum())
    binds = np.column_stack((account, np.full(users, 3), 4 + np.arange(users)))
    binds[[dice.random() < 0.2 for _ in range(users)], 2] = -1
    most = np.array([dice.choice((0, total // 9, total // 2)) for _ in range(3)] + [dice.choice((total, total // 4))])
    most = np.append(most, [dice.choice((total, 1 + total // users // 2)) for _ in range(users)]).astype(float)
    extra = np.array([dice.choice((np.nan, 0.0, 9.0)) for _ in range(users)])
    limits = Limits(
        account, np.arange(users)[::-1].astype(np.float64), binds, most, np.zeros(len(most), dtype=np.int64), extra
    )
    wanted = dice.choice((total // 9, total // 3, total // 2)) | 1
    delays = np.array([dice.random() < 0.4 for _ in most])
    need = CoresNeed(wanted, dice.choice((0, wanted // 2, wanted)), most * dice.choice((1, 2)), delays)
    facts = cores_by_facts(rows, limits, need)
    plan = cores_by_claims(rows, limits, facts, Rules(compete=dice.choice((USER, ACCOUNT, SITE))))
    gives = [int(rows.spends[chosen, 0].sum()) for chosen in (plan.by_facts, plan.gone)]
    each = (facts.rest, facts.asked, facts.wanted, facts.most, facts.given, facts.later, plan.budget)
    words = zlib.crc32(repr([np.minimum(one, 1e6).round(3).tolist() for one in each]).encode())
    chosen = zlib.crc32(np.packbits([plan.by_facts, plan.gone]).tobytes())
    cores = f"{gives[0]} by facts, {gives[1]} of {wanted} later {facts.later.sum():g}"
    return f"crowded {number}: {cores} {words:08x} {chosen:08x}"


def chosen(kind: str) -> Iterator[str]:
    """The lines that begin so; "": those that begin with a number."""
    if kind == "large":
        for number in range(2):
            yield from large(number)
    elif kind == "mixed":
        yield from map(mixed, range(8))
    elif kind == "shaped":
        yield from map(shaped, (1, 2, 3, 6, 7, 8, 12, 13, 16, 18, 19, 20))
    elif kind == "crowded":
        yield from map(crowded, (*range(72), 162))
    else:
        for number in CASES:
            yield from lines(number)


@pytest.mark.parametrize("kind", ["", "large", "mixed", "shaped", "crowded"])
def test_it_chooses_as_recorded(kind: str) -> None:
    recorded = [line for line in RECORDED.read_text().splitlines() if line.startswith(kind or tuple("0123456789"))]
    assert list(chosen(kind)) == recorded


if __name__ == "__main__":
    print(*(line for kind in ("", "large", "mixed", "shaped", "crowded") for line in chosen(kind)), sep="\n")
