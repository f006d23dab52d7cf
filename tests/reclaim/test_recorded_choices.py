"""Which pilots are chosen on random pools, row by row, also where a choice ends for its number of looks.

After a change that is meant to choose otherwise: `PYTHONPATH=plugins:tests/support python
tests/reclaim/test_recorded_choices.py` prints the lines anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from drainwise.reclaim.choose.by_cores import plan_cores
from drainwise.reclaim.choose.plan import ACCOUNT, SITE, USER, Rules, make_plan
from drainwise.reclaim.choose.problem import Mask, Problem
from random_pools import random_problem, with_parts, with_spanning

FAMILIES = ("small", "users", "full", "full-users", "wide", "crowd", "crowd", "crowd")
CASES, LARGE_ROOMS = range(48), 2
RECORDED = Path(__file__).parent / "choices.txt"


def pool(number: int) -> Problem:
    """The pool of that number, as it is, with parts, or with pilots of several nodes."""
    it = random_problem(FAMILIES[number % len(FAMILIES)], number)
    change = (lambda one, _: one, with_parts, with_spanning)[number % 3]
    return change(it, number)


def rows(chosen: Mask) -> str:
    """The rows of a choice."""
    return ",".join(map(str, np.flatnonzero(chosen).tolist())) or "none"


def lines(number: int) -> Iterator[str]:
    """What is chosen: by room, with few looks and with many, and by cores."""
    it, compete = pool(number), (USER, ACCOUNT, SITE)[number // 3 % 3]
    for looks, join in ((3, False), (60, number % 2 == 0)):
        plan = make_plan(it, Rules(compete=compete, join=join, looks=looks))
        jobs = " ".join("".join(map(str, one)) for one in plan.jobs.tolist())
        served, most = plan.served.tolist(), plan.budget[:, 0].round().astype(int).tolist()
        yield f"{number} {looks}: {rows(plan.gone)} facts {rows(plan.by_facts)} jobs {jobs} of {served} within {most}"
    for cores in (5, 17, 40):
        found = plan_cores(it.rows, it.limits, cores, Rules(compete=compete))
        most = found.budget.round().astype(int).tolist()
        yield f"{number} cores {cores}: {rows(found.gone)} facts {rows(found.by_facts)} within {most}"


def large(number: int) -> Iterator[str]:
    """What a choice among hundreds of pilots amounts to: how many go, by facts and in the end; cores and wastes."""
    it = with_parts(random_problem("middle", number), number)

    def total(chosen: Mask) -> str:
        cores, loss = it.rows.spends[chosen, 0].sum(), it.rows.loss[chosen].sum()
        return f"{chosen.sum()} rows {cores:g} cores {loss:.0f} lost {it.rows.claim[chosen].sum():.0f} claimed"

    for cores in (100, 555, 1200):
        found = plan_cores(it.rows, it.limits, cores, Rules())
        yield f"large {number} cores {cores}: {total(found.gone)} facts {total(found.by_facts)}"
    if number < LARGE_ROOMS:
        plan = make_plan(it, Rules(looks=20))
        yield f"large {number}: {total(plan.gone)} facts {total(plan.by_facts)} for {plan.served.tolist()}"


def every() -> Iterator[str]:
    """All lines of the file."""
    for number in CASES:
        yield from lines(number)
    for number in range(6):
        yield from large(number)


def test_it_chooses_as_recorded() -> None:
    assert list(every()) == RECORDED.read_text().splitlines()


if __name__ == "__main__":
    print(*every(), sep="\n")
