"""A study: all jobs, a second line where an owner dominates, and each thing varied while the rest stays."""

from __future__ import annotations

from dataclasses import replace

import pytest

from drainwise.facts.errors import UsageError
from drainwise_simulate.scenario import EXACT, Scenario
from drainwise_simulate.study import ERRORS, LIARS, study
from drainwise_simulate.trace import Trace, TraceJob

from .small import POLICIES, excerpt, swept

# Whole simulations take their time.
pytestmark = [pytest.mark.daemons, pytest.mark.in_turn("simulator", "results")]

SMALL = Scenario(cores=256, moments=2)


def owned(share: int) -> Trace:
    """The excerpt, where user `big` of group `one` has so many of each ten jobs; all run equally long."""
    jobs = [
        job._replace(
            run=3000.0, requested=6000.0, user="big" if number % 10 < share else f"u{number % 10}", group="one"
        )
        for number, job in enumerate(excerpt().jobs)
    ]
    return Trace("made-up", tuple(jobs))


def test_a_user_who_dominates_is_taken_out_in_a_second_line() -> None:
    """The site is smaller by that share, so that it is as busy; a group that has everything cannot be taken out."""
    found = study(owned(6), SMALL, POLICIES[-2:])
    assert [part.title for part in found.parts] == ["all jobs", "without user big, who has 60 % of the core-hours"]
    everything, rest = found.parts
    assert rest.jobs == everything.jobs * 4 // 10
    assert sum(rest.scenario.pilots) == pytest.approx(0.4 * 256, abs=8) and {one.policy for one in rest.lines} == {
        "youngest-first",
        "clairvoyant",
    }
    assert not found.notes


def test_nobody_dominates_below_the_share() -> None:
    """It is a setting."""
    assert len(study(owned(6), SMALL, POLICIES[-1:], dominant=0.7).parts) == 1
    assert len(study(owned(4), SMALL, POLICIES[-1:]).parts) == 1


def test_too_small_a_rest_is_said() -> None:
    """A few pilots are no comparison."""
    found = study(owned(9), SMALL, POLICIES[-1:])
    assert len(found.parts) == 1
    assert found.notes == ("not shown without user big, who has 90 % of the core-hours: too few pilots would be left",)


def test_what_is_varied() -> None:
    """Each sweep changes its one thing; without liars it is the study itself, and so it is at the study's horizon."""
    found = swept()
    values = {sweep.name: [point.value for point in sweep.points] for sweep in found.sweeps}
    assert values["error"] == list(ERRORS) and values["liars"] == list(LIARS)
    assert len(values["estimates"]) == 2 and 7200 in values["horizon"]
    points = {sweep.name: {point.label: point.outcomes for point in sweep.points} for sweep in found.sweeps}
    itself = found.parts[0].outcomes
    assert points["liars"]["0 %"] == points["horizon"]["2 h"] == points["estimates"]["scouts"] == itself
    known = study(excerpt(), replace(found.scenario, estimates=EXACT), POLICIES, 2, dominant=0.99)
    assert points["error"]["0"] == known.parts[0].outcomes != itself


def test_the_optimum_is_never_beaten() -> None:
    """In no decision of any case: nobody who decides on the same state wastes less."""
    found = swept()
    every = [found.parts[0].outcomes] + [point.outcomes for sweep in found.sweeps for point in sweep.points]
    for outcomes in every:
        best = {(one.replication, one.burst): one.waste for one in outcomes if one.policy == "clairvoyant"}
        for one in outcomes:
            assert one.waste >= best[one.replication, one.burst] - 1e-3 * one.given, one


def test_a_log_whose_jobs_do_not_fit() -> None:
    """Nothing to compare is an error and not a table of zeros."""
    wide = Trace("wide.swf", (TraceJob(1, 0, 60, 64, 600, "u", "g"),))
    with pytest.raises(UsageError, match=r"wide\.swf: none of its 1 jobs fits the site's pilots"):
        study(wide, SMALL, POLICIES)
    some = Trace("some.swf", (*wide.jobs, *excerpt().jobs))
    assert study(some, SMALL, POLICIES[-1:]).unfit == {"wider than every pilot": 1}
