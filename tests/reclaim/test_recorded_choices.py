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
CASES = range(48)
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


def test_it_chooses_as_recorded() -> None:
    assert [line for number in CASES for line in lines(number)] == RECORDED.read_text().splitlines()


if __name__ == "__main__":
    for one in CASES:
        print(*lines(one), sep="\n")
