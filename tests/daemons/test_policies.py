"""Least waste against youngest first on real batch systems: other pilots are taken, and less is really wasted."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from scenario import comparison
from scenario.compared_condor import compared_condor
from scenario.compared_slurm import compared_slurm
from scenario.comparison import LEAST_WASTE, YOUNGEST_FIRST, ComparedPool, Result

pytestmark = pytest.mark.play
RELEASE = "trixie"  # the policies are the same on every release; the scenario's own tests run on all of them
SYSTEMS: dict[str, Callable[[str], AbstractContextManager[ComparedPool]]] = {
    "HTCondor": compared_condor,
    "Slurm": compared_slurm,
}


def run_both(pool: ComparedPool, capfd: pytest.CaptureFixture[str]) -> dict[str, Result]:
    """Both policies on one pool; what each wasted is shown, whatever pytest captures."""
    results = comparison.compare(pool, (YOUNGEST_FIRST, LEAST_WASTE), print)
    with capfd.disabled():
        print("", type(pool).__name__, *comparison.lines(results), sep="\n")
    return {result.policy: result for result in results}


@pytest.mark.parametrize("system", SYSTEMS)
def test_least_waste_takes_other_pilots_and_wastes_less(system: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Youngest first loses what the two young pilots run; least waste takes those whose payloads are short."""
    with SYSTEMS[system](RELEASE) as compared:
        results = run_both(compared, capfd)
    assert results[YOUNGEST_FIRST].chosen == set(comparison.YOUNG)
    assert results[LEAST_WASTE].chosen == {"soon-1", "soon-2"}
    assert all(one.kind == "kill" and one.vacated for one in results[YOUNGEST_FIRST].pilots)
    # A payload that has just begun may be cheaper to kill than to wait for.
    left = [one for one in results[LEAST_WASTE].pilots if one.kind == "leave"]
    assert not any(one.lost or one.vacated for one in left)
    lost = comparison.WANTED * comparison.PILOT_CORES * comparison.AGE
    assert results[YOUNGEST_FIRST].waste >= 0.8 * lost, "what the young ones ran since they began"
    assert results[LEAST_WASTE].waste < results[YOUNGEST_FIRST].waste / 2
