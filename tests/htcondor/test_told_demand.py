"""Demand by kinds: what the access points tell of their jobs, within what keeps jobs from starting."""

from __future__ import annotations

import dataclasses

from drainwise.htcondor.demand.demand import Demand, DemandLimits, IdleJobs, SeenPlace, Told, demand_of
from drainwise.pool.amounts import Amounts
from drainwise.pool.job_kinds import Place

BOB, ALICE = "bob@pool.test", "alice@pool.test"
SMALL, LARGE = Amounts(8, 4096), Amounts(24, 65_536)
PLACES = (
    SeenPlace(Place("slot1@n1", "n1", "small", Amounts(), SMALL), None),
    SeenPlace(Place("slot1@n2", "n2", "large", Amounts(), LARGE), None),
)


def group(jobs: int, cores: int, *classes: str, first: int = 1, submitter: str = BOB, **more: object) -> IdleJobs:
    made = IdleJobs("ce1", submitter, jobs, Amounts(cores), first=(first, 0), classes=frozenset(classes))
    return dataclasses.replace(made, **more)  # type: ignore[arg-type]


def submitter_ad(jobs: int, cores: int, name: str = BOB, schedd: str = "ce1") -> dict[str, object]:
    return {"Name": name, "ScheddName": schedd, "IdleJobs": jobs, "WeightedIdleJobs": cores, "RunningJobs": 0}


def found(
    *groups: IdleJobs,
    submitters: tuple[dict[str, object], ...] = (),
    schedds: tuple[dict[str, object], ...] = (),
    rooms: dict[str, float] | None = None,
    silent: dict[str, str] | None = None,
    limits_left: dict[str, float] | None = None,
) -> Demand:
    told = Told(PLACES, groups, frozenset(("ce1",)), silent or {}, (), limits_left or {})
    return demand_of(submitters, schedds, DemandLimits({}, 1.0, 24, rooms or {}), told, lambda name: name[:3])


def test_what_can_run_somewhere_is_demand_and_a_kind() -> None:
    seen = found(group(3, 4, "small", "large"), submitters=(submitter_ad(90, 900),))
    assert seen.waiting == {BOB: (3, 12)}, "the access point's own answer, not its older ad"
    [kind] = seen.kinds or ()
    assert (kind.account, kind.jobs, kind.needs, kind.classes) == ("bob", 3, Amounts(4), frozenset(("small", "large")))
    assert (kind.example, seen.notices) == ("ce1#1.0", ())


def test_jobs_that_start_in_their_users_idle_claims_are_named() -> None:
    """One claim holds enough for a job, one too little, one is another user's."""
    told = Told(PLACES, (group(2, 4, "small"), group(1, 4, "small", first=9)), frozenset(("ce1",)))
    claims = {BOB: (Amounts(4), Amounts(2)), ALICE: (Amounts(4),)}
    seen = demand_of((), (), DemandLimits({}, 1.0, 24, {}, claims), told)
    assert [(kind.jobs, kind.starting) for kind in seen.kinds or ()] == [(3, 1)]
    assert seen.waiting == {BOB: (3, 12)}, "they wait until they run"


def test_what_can_run_nowhere_is_a_kind_without_classes_and_no_demand() -> None:
    seen = found(group(3, 64))
    assert seen.waiting == {BOB: (0, 0)}
    [kind] = seen.kinds or ()
    assert (kind.jobs, kind.classes) == (3, frozenset())


def test_nobody_waits_is_told_too() -> None:
    assert found().kinds == ()


def test_kinds_come_in_the_order_in_which_jobs_should_start() -> None:
    """The user's priority first, then the age."""
    seen = found(group(1, 1, "small", first=5), group(1, 2, "small", first=9, priority=3), group(1, 4, "small"))
    assert [kind.needs.cores for kind in seen.kinds or ()] == [2, 4, 1]


def test_an_access_point_starts_no_more_than_it_may() -> None:
    """MAX_JOBS_RUNNING = 9, of which 6 run: what can run nowhere takes none of the rest."""
    schedd = {"Name": "ce1", "MaxJobsRunning": 9, "ShadowsRunning": 6}
    seen = found(group(5, 64), group(2, 1, "small", first=2), group(2, 8, "small", first=3), schedds=(schedd,))
    assert [kind.jobs for kind in seen.kinds or ()] == [5, 2, 1]
    assert seen.waiting == {BOB: (3, 10)}
    assert "MAX_JOBS_RUNNING" in seen.notices[0]


def test_a_submitter_starts_no_more_than_its_ceiling() -> None:
    seen = found(group(5, 2, "small"), group(1, 1, "small", first=2, submitter=ALICE), rooms={BOB: 5.0})
    assert seen.waiting == {BOB: (2, 4), ALICE: (1, 1)}
    assert "ceiling" in seen.notices[0]


def test_no_more_jobs_start_than_a_concurrency_limit_lets() -> None:
    """Each submitter takes of what the ones before have left; a limit that is not known lets all start."""
    first = group(3, 2, "small", first=1, limits={"db": 2.0, "unknown": 9.0})
    second = group(9, 1, "small", first=2, submitter=ALICE, limits={"db": 0.5})
    seen = found(first, second, group(4, 8, "small", first=3), limits_left={"db": 5.0})
    assert [(kind.jobs, kind.needs.cores) for kind in seen.kinds or ()] == [(2, 2), (2, 1), (4, 8)]
    assert seen.waiting == {BOB: (6, 36), ALICE: (2, 2)}
    assert len(seen.notices) == 1 and "DB_LIMIT" in seen.notices[0]


def test_an_access_point_that_is_silent_counts_by_cores_wherever_they_fit() -> None:
    """As before there were kinds, and the administrator is told."""
    waits = (submitter_ad(1, 4), submitter_ad(3, 36, ALICE, "ce2"))
    seen = found(group(1, 4, "small"), submitters=waits, silent={"ce2": "it does not answer"})
    assert seen.waiting == {BOB: (1, 4), ALICE: (3, 36)}
    [_, kind] = seen.kinds or ()
    assert (kind.account, kind.jobs, kind.needs, kind.classes) == ("ali", 3, Amounts(12), frozenset(("large",)))
    assert "does not tell" in kind.asks
    assert seen.notices == ("the jobs of ce2 count by their cores alone, wherever they may run: it does not answer",)


def test_jobs_that_could_not_be_matched_may_run_wherever_they_fit() -> None:
    seen = found(group(2, 10, classes=None))
    [kind] = seen.kinds or ()
    assert kind.classes == {"large"}
    assert seen.waiting == {BOB: (2, 20)}


def test_thousands_of_groups_are_at_most_fifty_kinds() -> None:
    seen = found(*(group(1, 1, "small", first=number, key=str(number)) for number in range(3000)))
    assert len(seen.kinds or ()) == 50
    assert seen.waiting == {BOB: (3000, 3000)}
    assert "2950 kinds of waiting jobs beyond the 50 largest" in seen.notices[-1]


def test_without_any_answer_there_are_no_kinds() -> None:
    assert demand_of([submitter_ad(3, 24)], (), DemandLimits({}, 1.0, 24, {})) == Demand({BOB: (3, 24)}, ())
