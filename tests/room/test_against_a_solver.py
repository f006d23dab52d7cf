"""The choice is the one of an integer solver: the same jobs served, the same cores lost, the same cost."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given

from drainwise.pool.amounts import Amounts
from more_examples import more_examples

from .pools import Pool, as_if_large, kind, pilot, place, pools
from .solver import solved

ROOT = Path(__file__).parents[2]


@pytest.mark.daemons
@more_examples(2.5)
@given(pools())
def test_one_users_pilots_serve_what_the_solver_serves_at_its_cores_and_cost(pool: Pool) -> None:
    """Most jobs in the order of the kinds, then fewest cores, then least cost; no GPU more than facts take."""
    made = replace(pool, extra=0.0).made()
    [alice] = made.users
    by_facts = {run for one in replace(pool, extra=0.0, costs={}).made().users for run in one.runs}
    gpus = sum(one.holds.gpus for one in pool.pilots if one.run in by_facts and one.holds is not None)
    jobs, cores, cost = solved(pool, float(gpus))
    assert dict(made.jobs) == jobs
    assert alice.cores == cores
    assert alice.cost == pytest.approx(cost)


@given(pools(most_kinds=1))
def test_also_in_a_large_pool_one_kind_gets_the_most_jobs_for_the_fewest_cores(pool: Pool) -> None:
    """Places are then left out only where enough others look as good."""
    with as_if_large():
        made = replace(pool, extra=0.0).made()
    [alice] = made.users
    jobs, cores, cost = solved(pool)
    assert dict(made.jobs) == jobs
    assert alice.cores == cores
    assert alice.cost >= cost - 1e-6


@given(pools())
def test_in_a_large_pool_the_first_kind_has_the_most_jobs(pool: Pool) -> None:
    """The other kinds find room beside it; none has more than the solver finds possible."""
    with as_if_large():
        made = replace(pool, extra=0.0).made()
    jobs = solved(pool)[0]
    ours = [made.jobs.get(kind.name, 0) for kind in pool.kinds]
    best = [jobs.get(kind.name, 0) for kind in pool.kinds]
    assert ours[0] == best[0]
    assert ours <= best


def test_in_a_large_pool_a_limit_that_refuses_two_jobs_lets_one_start() -> None:
    """Room for both is cheaper for each, and takes more cores than alice may lose."""
    pilots = (pilot("a", "n0", 1), pilot("b", "n0", 1), pilot("c", "n0", 3, 4))
    pool = Pool((kind("k0", 2, 3, 2),), (place("n0", Amounts(6, 4), Amounts(1)),), pilots, most={"alice": 3})
    with as_if_large():
        assert dict(pool.made().jobs) == {"k0": 1} == solved(pool)[0]


@pytest.mark.daemons
def test_the_quality_is_compared_by_a_command() -> None:
    """`scripts/chooser_quality` prints a row for each family, and whether a threshold is missed."""
    command = [sys.executable, str(ROOT / "scripts" / "chooser_quality"), "--pools", "2", "--family", "small", "users"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stdout
    *_, small, users, last = ran.stdout.splitlines()
    assert small.startswith("| small | 2 |") and users.startswith("| users | 2 |") and last == "no threshold is missed"
