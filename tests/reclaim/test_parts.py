"""Parts of pilots that can return cores and go on: which are asked, for how many, and that nothing else changes."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pytest_mock import MockerFixture

from drainwise.facts.cut_deadline import Claims
from drainwise.pool.facts import Pilot, Snapshot
from drainwise.pool.snapshot_json import snapshot_as_json, snapshot_from_json, snapshot_hash
from drainwise.reclaim.decide import decision
from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.history import History
from drainwise.reclaim.plan import Plan
from drainwise.reclaim.plan_json import as_json
from drainwise.reclaim.prices import POLICIES
from reached_asserts import judged

from .facts import NOW, SETTINGS, account, believed, pilot, report, reports, snapshot, sound_reports

HOUR = 3600
BUSY = report(used=8.0, first_end=NOW + 50_000, last_end=NOW + 60_000, uncommitted=8.0 * 15_000)


def able(number: int, *, cores: int = 8, ends: int = 1000, used: float | None = None, asked_for: int = 0) -> Pilot:
    """A pilot that can return all of its cores but one; its payloads end together after so many seconds."""
    said = report(used=cores if used is None else used, first_end=NOW + ends, last_end=NOW + ends, uncommitted=9e4)
    return replace(pilot(number, said, cores=cores), can_return=cores - 1, asked=asked_for)


def plan_for(*pilots: Pilot, cores: int, per_job: float = 1.0, policy: str = "least-waste") -> Plan:
    """The plan when bob wants so many cores, in jobs of so many."""
    pool = snapshot(*pilots, deficit=cores)
    accounts = (pool.accounts[0], account("group_b", 0, cores, wanted=cores, per_job=per_job))
    return make_plan(replace(pool, accounts=accounts), NOW, replace(SETTINGS, policy=policy), History())


def asked(plan: Plan) -> dict[str, int]:
    """Cores that each pilot is asked to return, by its name."""
    return {one.pilot.name: one.cores for one in plan.returns}


def test_single_cores_are_asked_of_everybody_and_no_payload_is_lost() -> None:
    """Whose payload ends first does not matter: each is asked for all that is missing, at no cost."""
    plan = plan_for(able(1), able(2), able(3, ends=90_000), cores=5)
    assert plan.orders == () and plan.waste == 0
    assert list(asked(plan).values()) == [5, 5, 5]
    assert plan.users[0].cores_returned == 5
    assert "; 3 pilots return 5 cores as payloads end, and go on" in plan.summary
    assert plan.since == {"group_b": NOW}


def test_what_is_not_expected_in_time_is_taken_from_a_whole_pilot() -> None:
    """Two pilots should free 14 cores within the horizon; for 22 the third goes, and they are asked for the rest."""
    plan = plan_for(able(1), able(2), pilot(3, BUSY), cores=22)
    assert [one.pilot.name for one in plan.orders] == ["slot1_3@node1"]
    assert asked(plan) == {"slot1_1@node1": 7, "slot1_2@node1": 7}
    assert plan.users[0].cores_given + plan.users[0].cores_returned == 22


def test_a_job_of_several_cores_is_served_by_one_pilot() -> None:
    """4 cores together: the pilot in which they are free without waiting, and nobody else idles for it."""
    plan = plan_for(able(1, cores=16), able(2, cores=16, used=12.0), cores=4, per_job=4.0)
    assert asked(plan) == {"slot1_2@node1": 4} and plan.orders == ()
    [part] = plan.returns
    assert (part.chunk, part.by, part.cores_back, part.waste) == (4, NOW + SETTINGS.horizon, NOW, 0)


def test_what_idles_until_a_chunk_is_free_is_its_cost() -> None:
    """A pilot whose cores come free one after the other is passed over for one whose cores come free together."""
    slowly = report(used=8.0, first_end=NOW + 100, last_end=NOW + 7000, final=8.0 * 3450, uncommitted=9e4)
    plan = plan_for(replace(pilot(1, slowly), can_return=7), able(2, ends=6000), cores=4, per_job=4.0)
    assert asked(plan) == {"slot1_2@node1": 4} and plan.waste == 0


def test_what_stands_is_found_again_and_nobody_goes_for_it() -> None:
    """Both were asked for all that is missing: together that is more than alice is over by."""
    first = plan_for(able(1), able(2), cores=8)
    assert first.orders == () and asked(first) == {"slot1_1@node1": 7, "slot1_2@node1": 7}
    again = plan_for(able(1, asked_for=7), able(2, asked_for=7), cores=8)
    assert again.orders == () and asked(again) == asked(first) and again.users[0].cores_returned == 8


def test_who_is_asked_already_and_needed_no_more_is_named() -> None:
    """What stands is not asked again; a pilot that nobody needs any more is told so."""
    stands = plan_for(able(1, asked_for=5), cores=5)
    assert [one.stands for one in stands.returns] == [True] and stands.asked_no_more == ()
    over = plan_for(able(1, asked_for=5), cores=0)
    assert [one.name for one in over.asked_no_more] == ["slot1_1@node1"]
    assert as_json(over)["asked_no_more"] == [able(1).run]


def test_policies_that_do_not_choose_by_waste_know_no_parts() -> None:
    """Their rule is kept as written."""
    for policy in POLICIES:
        plan = plan_for(able(1), able(2), cores=8, policy=policy)
        assert bool(plan.returns) == (policy in {"least-waste", "open-need"}), policy


pilots_of_any_kind = st.lists(
    st.sampled_from((1, 4, 8, 16)).flatmap(lambda cores: st.tuples(st.just(cores), reports(cores), st.booleans())),
    min_size=1,
    max_size=6,
).map(
    lambda rows: tuple(
        replace(pilot(number, said, cores=cores), can_return=(cores - 1) * can)
        for number, (cores, said, can) in enumerate(rows)
    )
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # each example stops what the last one patched
@given(pilots_of_any_kind, st.integers(0, 40), st.sampled_from((1.0, 4.0)), st.sampled_from(tuple(POLICIES)))
def test_without_pilots_that_can_return_nothing_changes(
    mocker: MockerFixture, pilots: tuple[Pilot, ...], cores: int, per_job: float, policy: str
) -> None:
    """The plan is that of code that knows no parts, and no word of its JSON is new."""
    mocker.stopall()
    judged("a believed report", believed(*pilots) > 0, at_least=0.3)
    whole = tuple(replace(one, can_return=0) for one in pilots)
    plan = plan_for(*whole, cores=cores, per_job=per_job, policy=policy)
    mocker.patch.object(decision, "parts_count", autospec=True, return_value=False)
    assert as_json(plan_for(*whole, cores=cores, per_job=per_job, policy=policy)) == as_json(plan)
    words = str(as_json(plan))
    assert all(word not in words for word in ("return", "asked", "chunk"))


@given(pilots_of_any_kind, st.integers(1, 40), st.sampled_from((1.0, 4.0)), st.data())
def test_no_claim_changes_how_many_cores_go(
    pilots: tuple[Pilot, ...], cores: int, per_job: float, data: st.DataObject
) -> None:
    """Whatever the pilots report: whole pilots and parts make the same number of cores together."""
    judged("a believed report", believed(*pilots) > 0, at_least=0.3)
    others = tuple(replace(one, report=data.draw(sound_reports(one.cores))) for one in pilots)
    totals = set()
    for some in (pilots, others):
        plan = plan_for(*some, cores=cores, per_job=per_job)
        totals.add(sum(part.cores_given + part.cores_returned for part in plan.users))
        for one in plan.returns:
            assert 0 < one.cores <= one.pilot.can_return and one.cores % one.chunk == 0
        assert {one.pilot.run for one in plan.orders}.isdisjoint(one.pilot.run for one in plan.returns)
    assert len(totals) == 1


def _snapshots() -> st.SearchStrategy[Snapshot]:
    return st.tuples(pilots_of_any_kind, st.integers(0, 3)).map(
        lambda it: snapshot(*(replace(one, returned=it[1], asked=it[1]) for one in it[0]))
    )


@given(_snapshots())
def test_a_snapshot_keeps_what_can_be_returned(pool: Snapshot) -> None:
    """Saved and read back it is the same; without any such pilot it has no new key."""
    assert snapshot_from_json(snapshot_as_json(pool)) == pool
    assert snapshot_hash(snapshot_from_json(snapshot_as_json(pool))) == snapshot_hash(pool)
    bare = replace(pool, pilots=tuple(replace(one, returned=0, can_return=0, asked=0) for one in pool.pilots))
    assert all(not {"returned", "can_return", "asked"} & set(one) for one in snapshot_as_json(bare)["pilots"])  # type: ignore[attr-defined]


def test_busy_cores_fall_from_the_first_end_to_the_last() -> None:
    """All are busy until the first expected end, none after the last; evenly in between where they end evenly."""
    claims = Claims(8.0, 8.0, 0.0, 1000.0, 3000.0, 0.0, 8000.0)
    share = [claims.busy_share(0.0, moment) for moment in (0.0, 1000.0, 2000.0, 3000.0)]
    assert share == [1.0, 1.0, 0.5, 0.0]
