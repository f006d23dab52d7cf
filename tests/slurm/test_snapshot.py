"""The snapshot of a cluster: who runs what, who is owed what, who waits, and who can be asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise import __version__
from drainwise.facts.errors import PoolUnreachable
from drainwise.facts.scope_rules import Scope, ScopeRules
from drainwise.facts.signs import NO_SIGN, SIGN_PERIOD
from drainwise.pilotad.report import CONTRADICTORY, FRESH, PilotReport
from drainwise.pool.facts import Pilot, Snapshot
from drainwise.pool.notices import notices_of
from drainwise.reclaim.quota import require_whole
from drainwise.slurm.jobs.admin_comment import Published, comment_text, without_directories_text
from drainwise.slurm.jobs.job import SlurmJob, odd_fields
from drainwise.slurm.jobs.node_sign import sign_in, sign_text
from drainwise.slurm.jobs.values import ALIVE, SUSPENDED
from drainwise.slurm.pool.node_line import SlurmNode
from drainwise.slurm.pool.places import NodeShare
from drainwise.slurm.pool.rules import ClusterRules, Selection, selection_in
from drainwise.slurm.pool.shares import shares_in
from drainwise.slurm.pool.snapshot import (
    DRAINING_NODE,
    HETEROGENEOUS,
    NO_DIRECTORIES,
    SEVERAL_NODES,
    UNKNOWN_PIECES,
    SiteRules,
    snapshot_of,
)
from drainwise.slurm.pool.transport import Answers

from .recorded_cluster import NOW, START, VERSIONS, jobs, nodes, shares

GRACE = 7200
T0 = 1795270000
TREE = shares_in("root|||0\n atlas||2|0\n  atlas|alice|1|0\n cms||1|0\n  cms|bob|1|0\n")
RUNNING = SlurmJob(
    number=17,
    user="alice",
    account="atlas",
    partitions=("main",),
    states=frozenset({"RUNNING"}),
    reason="None",
    cores=8,
    node_count=1,
    node="n1",
    start=T0,
    end=T0 + 86400,
    limit=1440,
    priority=100,
)
WAITING = replace(
    RUNNING,
    number=18,
    user="bob",
    account="cms",
    states=frozenset({"PENDING"}),
    reason="Resources",
    node="",
    start=None,
)
MAIN = frozenset({"main"})


def machine(
    name: str, allocated: int, cores: int, idle: int, draining: bool, partitions: frozenset[str], memory: int = 16384
) -> SlurmNode:
    return SlurmNode(name, allocated, cores, idle, draining, partitions, not draining, cores, memory, unused=idle)


NODE = machine("n1", 8, 8, 0, False, MAIN)


def view(
    *found: SlurmJob, at: list[SlurmNode] | None = None, now: int = T0 + 1000, exposed: tuple[int, ...] = ()
) -> Snapshot:
    snapshot = snapshot_of(Answers(found, [NODE] if at is None else at, TREE), SiteRules(GRACE, exposed), now)
    require_whole(snapshot)
    return snapshot


def demand(job: SlurmJob, *at: SlurmNode, selection: Selection | None = None) -> tuple[float, float]:
    """What a waiting job's account wants while alice's pilot runs: cores, and cores of a piece."""
    answers = Answers([RUNNING, job], list(at or [NODE]), TREE, ClusterRules(selection or Selection()))
    found = snapshot_of(answers, SiteRules(GRACE), T0 + 1000)
    require_whole(found)
    return next(((one.cores_wanted, one.cores_per_job) for one in found.accounts if one.name == "cms"), (0.0, 0.0))


def pilot(job: SlurmJob, now: int = T0 + 1000) -> Pilot:
    (only,) = view(job, now=now).pilots
    return only


@pytest.mark.parametrize("version", VERSIONS)
def test_recorded_cluster(version: str) -> None:
    """Both versions give the same facts; the reclaim agent takes them as whole."""
    now, start = NOW[version], START[version]
    snapshot = snapshot_of(Answers(jobs(version), nodes(version), shares(version)), SiteRules(GRACE), now)
    require_whole(snapshot)
    by_name = {one.name: one for one in snapshot.pilots}
    # Not the waiting ones.
    assert set(by_name) == {"1", "2", "3", "4_1", "4_2", "5", "6", "7", "8", "9", "10"}
    # The job of two nodes, and the heterogeneous one.
    assert {name for name, one in by_name.items() if one.cannot} == {"5", "8", "9"}
    assert by_name["1"].report == PilotReport(
        start + 131,
        used_cpu=3.0,
        last_job_start=start + 5,
        first_exp_job_end=start + 1131,
        last_exp_job_end=start + 2131,
        last_max_job_end=start + 3131,
        add_uncom_time=12.5,
        add_final_exp_waste=100.0,
        priority_factor=1,
        can_postpone_last_job=True,
    )
    assert by_name["2"].deadline == by_name["2"].lease_end == start + 732
    assert by_name["3"].lease_end is None
    assert {name for name, one in by_name.items() if one.leaving} == {"6", "7"}
    assert {name for name, one in by_name.items() if one.deadline} == {"2"}
    assert by_name["10"].report is None
    assert by_name["10"].account == "cms"
    figures = {one.name: (one.cores_in_use, one.cores_wanted, one.cores_per_job) for one in snapshot.accounts}
    assert figures == {"atlas": (20, 0, 1), "cms": (2, 0, 1), "cms-prod": (0, 24, 8), "cms-users": (0, 16, 8)}
    owed = {one.name: one.cores_owed for one in snapshot.accounts}
    assert owed["cms-prod"] == pytest.approx(5.2)  # of all 26 cores
    assert owed["atlas"] == pytest.approx(19 * 2 / 3)  # seven lie idle that no waiting job fits into
    assert snapshot.free_cores == 0  # four on one node; the jobs need eight


@pytest.mark.parametrize(
    "reason", ["Dependency", "JobHeldUser", "AssocGrpCpuLimit", "QOSMaxJobsPerUserLimit", "BeginTime", "None", ""]
)
def test_a_job_that_waits_for_something_else_than_cores_is_no_demand(reason: str) -> None:
    accounts = view(RUNNING, replace(WAITING, reason=reason)).accounts
    assert {one.name: one.cores_wanted for one in accounts} in ({"atlas": 0}, {"atlas": 0, "cms": 0})


def test_tasks_of_an_array_wait_together() -> None:
    cms = view(RUNNING, replace(WAITING, array=18, tasks=5)).accounts[1]
    assert (cms.name, cms.cores_wanted, cms.cores_per_job) == ("cms", 40, 8)


@pytest.mark.parametrize(("running", "wanted"), [(0, 16), (1, 8), (2, 0), (3, 0)])
def test_an_array_wants_no_more_than_it_may_have_running(running: int, wanted: int) -> None:
    """`--array=1-9%2`: tasks beyond that would not start on cores that pilots give back."""
    bobs = replace(RUNNING, user="bob", account="cms", array=18, node="n2")
    tasks = [replace(bobs, number=30 + task, task=task) for task in range(running)]
    there = [NODE, machine("n2", 8 * running, 32, 32 - 8 * running, False, MAIN)]
    found = view(RUNNING, *tasks, replace(WAITING, array=18, tasks=5, at_once=2), at=there).accounts
    assert [one.cores_wanted for one in found] == [0, wanted]


def test_a_job_of_several_nodes_wants_whole_parts() -> None:
    there = [machine(name, 8, 16, 0, False, MAIN) for name in ("n1", "n2")]
    assert demand(replace(WAITING, node_count=2, cores=32), *there) == (32, 16)


def test_a_job_that_shares_no_node_wants_whole_nodes() -> None:
    """`--exclusive`, of one core or on two nodes; a partition or a select plugin that gives whole nodes."""
    two = [machine(name, 8, 8, 0, False, MAIN) for name in ("n1", "n2")]
    one_core = replace(WAITING, cores=1)
    assert demand(one_core, *two) == (1, 1)
    assert demand(replace(one_core, whole_nodes=True), *two) == (8, 8)
    assert demand(replace(one_core, whole_nodes=True, cores=2, node_count=2), *two) == (16, 8)
    assert demand(one_core, *two, selection=Selection(whole_nodes=True)) == (8, 8)


def test_a_job_that_wants_a_nodes_memory_wants_its_cores() -> None:
    """Where jobs have their memory to themselves; the usual memory for a core is one core's, also if it does not
    divide."""
    huge = replace(WAITING, cores=1, memory=16384 << 20)
    assert demand(huge) == (8, 8)
    assert demand(replace(huge, memory=8192 << 20)) == (4, 4)
    assert demand(replace(huge, memory=2200 << 20)) == (1, 1)
    assert demand(huge, selection=Selection(memory=False)) == (1, 1)


@pytest.mark.parametrize(
    "change",
    [
        {"cores": 9},
        {"memory": 16385 << 20},
        {"features": "gpu"},
        {"features": "gpu&fast"},
        {"node_count": 2, "cores": 2},
        {"priority": 0},
    ],
)
def test_what_no_node_has_is_no_demand(change: dict[str, int | str]) -> None:
    """Cores or memory of one node, features, more nodes than there are; and what is held, whatever its reason says."""
    job = replace(WAITING, **{"cores": 1, **change})  # type: ignore[arg-type]
    assert demand(job)[0] == 0
    (notice,) = view(RUNNING, job).notices or ("",)
    assert ("18" in notice) == ("priority" not in change)


@pytest.mark.parametrize("features", ["gpu|fast", "[rack1*2", "fast"])
def test_features_that_a_node_may_have_are_demand(features: str) -> None:
    job = replace(WAITING, cores=1, features=features)
    assert demand(job, replace(NODE, features=frozenset({"fast"}))) == (1, 1)


def test_an_odd_job_is_left_out_and_named() -> None:
    """2^31 cores, 1e18 nodes, a start in the year 30000: nothing is calculated with them."""
    jobs = [
        replace(WAITING, number=30, odd=odd_fields(2**31, 1, 1, ())),
        replace(RUNNING, number=31, odd=odd_fields(1, 10**18, 1, ())),
        replace(RUNNING, number=32, odd=odd_fields(1, 1, 1, (10**12,))),
    ]
    found = view(RUNNING, *jobs)
    assert [one.name for one in found.pilots] == ["17"]
    assert {one.name: one.cores_wanted for one in found.accounts} == {"atlas": 0}
    assert [notice.split(" is left out")[0] for notice in found.notices] == ["job 30", "job 31", "job 32"]


GPU = frozenset({"gpu"})


@pytest.mark.parametrize(
    ("partitions", "wanted"), [(("main",), 8), (("gpu",), 0), (("gpu", "main"), 8), (("gone",), 0), (("",), 0)]
)
def test_who_waits_for_nodes_without_pilots_is_no_demand(partitions: tuple[str, ...], wanted: int) -> None:
    """Pilots that left would not help it; its account is there all the same, and is owed what it uses."""
    there = [NODE, machine("n3", 4, 8, 0, False, GPU)]
    busy = replace(RUNNING, number=19, user="bob", account="cms", node_count=2, node="n[3-4]", cores=4)
    found = view(RUNNING, busy, replace(WAITING, partitions=partitions), at=there).accounts
    assert [(one.name, one.cores_wanted) for one in found] == [("atlas", 0), ("cms", wanted)]
    if not wanted:
        assert found[1].cores_owed <= found[1].cores_in_use


def test_pilots_that_no_order_can_reach_bring_no_demand_within_reach() -> None:
    """A job of several nodes, and one on a draining node, would give nothing back."""
    there = [NODE, machine("n3", 8, 8, 0, True, GPU), machine("n5", 8, 8, 0, False, GPU)]
    for other in (replace(RUNNING, number=19, node="n3"), replace(RUNNING, number=19, node="n[4-5]", node_count=2)):
        found = view(RUNNING, other, replace(WAITING, partitions=("gpu",)), at=there).accounts
        assert {one.name: one.cores_wanted for one in found}["cms"] == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_a_recorded_cluster_whose_pilots_are_elsewhere_has_no_demand(version: str) -> None:
    """The jobs that wait there want `main`; on nodes of another partition alone nobody can make room for them."""
    moved = [replace(node, partitions=GPU) for node in nodes(version)]
    found = snapshot_of(Answers(jobs(version), moved, shares(version)), SiteRules(GRACE), NOW[version]).accounts
    assert {one.name: one.cores_wanted for one in found} == {"atlas": 0, "cms": 0, "cms-prod": 0, "cms-users": 0}


PARTITIONS = st.frozensets(st.sampled_from(["a", "b", "c", "d"]), min_size=1)


@given(
    places=st.lists(st.tuples(PARTITIONS, st.booleans(), st.booleans()), min_size=1, max_size=6),
    waiting=st.lists(PARTITIONS, max_size=6),
)
def test_demand_is_what_could_start_on_some_pilots_node(
    places: list[tuple[frozenset[str], bool, bool]], waiting: list[frozenset[str]]
) -> None:
    """Each waiting job counts if and only if one pilot's node would take it; more pilots never make the demand less."""
    there = [machine(f"n{i}", 8 * taken, 64, 0, draining, names) for i, (names, taken, draining) in enumerate(places)]
    running = [replace(RUNNING, number=100 + i, node=f"n{i}") for i, (_, taken, _) in enumerate(places) if taken]
    pending = [
        replace(WAITING, number=200 + i, partitions=tuple(sorted(names)), cores=1 << i)
        for i, names in enumerate(waiting)
    ]
    found = {one.name: one.cores_wanted for one in view(*running, *pending, at=there).accounts}
    takers = [names for names, taken, draining in places if taken and not draining]
    counted = sum(1 << i for i, names in enumerate(waiting) if any(names & taker for taker in takers))
    assert found.get("cms", 0) == counted
    fewer = {one.name: one.cores_wanted for one in view(*running[1:], *pending, at=there).accounts}
    assert fewer.get("cms", 0) <= counted


def test_free_cores_count_where_the_waiting_jobs_may_run_and_fit() -> None:
    """Those of a partition that none of them may use, or too few on one node, would only look free."""
    there = [NODE, machine("n2", 0, 4, 4, False, MAIN), machine("n3", 0, 64, 64, False, frozenset({"gpu"}))]
    assert view(RUNNING, replace(WAITING, tasks=9), at=there).free_cores == 0
    there.append(machine("n4", 0, 16, 16, False, MAIN))
    assert view(RUNNING, replace(WAITING, tasks=9), at=there).free_cores == 16


@pytest.mark.parametrize(
    ("end", "limit", "deadline"),
    [
        (T0 + 1440 * 60, 1440, None),
        (T0 + 4001, 67, T0 + 4001),
        (T0 + 1000 + GRACE, 137, T0 + 1000 + GRACE),
        (T0 + 1000 + GRACE + 1, 137, None),
        (T0 + 4001, 4294441727, T0 + 4001),
        (T0 + 1440 * 60 + 30, 1440, None),
        (T0 + 4001, None, None),
    ],
)
def test_a_lease_that_was_shortened_to_end_within_the_grace_was_ordered(
    end: int, limit: int | None, deadline: int | None
) -> None:
    """Also one without a limit before, whose time limit Slurm makes 4294441727; not one that was suspended for a while.

    A user may shorten its own lease: a day from now its cores are not counted as on their way (HOSTILE 38).
    """
    one = pilot(replace(RUNNING, end=end, limit=limit))
    assert (one.lease_end, one.deadline) == (end, deadline)


def published(**keys: int | str) -> SlurmJob:
    """The job with a report of the run that is named."""
    of = {"job": 17, "start": T0, "standing": FRESH, **keys}
    report = PilotReport(T0 + 900, used_cpu=3.0)
    return replace(
        RUNNING,
        comments=(comment_text(Published(int(of["job"]), int(of["start"]), "n1", report, str(of["standing"]))),),
    )


def test_nodes_are_counted_by_the_version_of_their_newest_report() -> None:
    """A node that was upgraded meanwhile may have a comment of the version before on an older report."""

    def reporting(number: int, node: str, at: int, version: str) -> SlurmJob:
        comment = comment_text(Published(number, T0, node, PilotReport(T0 + at), FRESH, version=version))
        return replace(RUNNING, number=number, node=node, comments=(comment,))

    jobs = [reporting(17, "n1", 900, "0.1.0"), reporting(18, "n1", 950, "0.2.0"), reporting(19, "n2", 900, "")]
    nodes = [machine("n1", 16, 16, 0, False, MAIN), machine("n2", 8, 8, 0, False, MAIN)]
    assert view(*jobs, at=nodes).versions == (
        ("", 1),
        ("0.2.0", 1),
    )


def test_a_report_of_this_run_counts() -> None:
    assert pilot(published()).report == PilotReport(T0 + 900, used_cpu=3.0)


@pytest.mark.parametrize("keys", [{"job": 18}, {"start": T0 - 1000}])
def test_a_report_of_another_run_does_not(keys: dict[str, int]) -> None:
    """HOSTILE 48: AdminComment survives a requeue."""
    assert pilot(published(**keys)).report is None


def test_a_report_that_contradicts_itself_is_told() -> None:
    one = pilot(published(standing=CONTRADICTORY))
    assert one.contradictory
    assert one.report == PilotReport(T0 + 900)


@pytest.mark.parametrize(
    "job",
    [
        replace(RUNNING, states=frozenset({"RUNNING", "CONFIGURING"})),
        replace(RUNNING, states=frozenset({"SUSPENDED"}), node=""),
    ],
)
def test_a_job_that_does_not_run_is_no_pilot(job: SlurmJob) -> None:
    assert view(job).pilots == ()


def test_a_suspended_run_is_on_its_node_and_has_no_cores() -> None:
    """The node goes on with its directories; the pool counts its cores as others'."""
    job = replace(RUNNING, states=frozenset({SUSPENDED}))
    assert job.node and job.states <= ALIVE
    seen = view(job)
    assert (seen.pilots, [one for one in seen.accounts if one.cores_in_use]) == ((), [])


@pytest.mark.parametrize(
    ("change", "why"), [({"node_count": 2, "node": "n[1-2]"}, SEVERAL_NODES), ({"het": 17}, HETEROGENEOUS)]
)
def test_a_job_that_may_be_no_pilot_or_is_a_part_of_one_is_named(change: dict[str, int | str], why: str) -> None:
    """Also when its lease was shortened: that is no order of ours."""
    (one,) = view(replace(RUNNING, end=T0 + 4001, limit=67, **change)).pilots  # type: ignore[arg-type]
    assert (one.cannot, one.deadline) == (why, None)


SAID = PilotReport(T0 + 900, used_cpu=5.0)
TWO = replace(RUNNING, node_count=2, node="n[1-2]", comments=(comment_text(Published(17, T0, "n1", SAID)),))
SHARES = {17: (NodeShare("n1", 6, 600), NodeShare("n2", 2, 200))}


def test_a_pilot_of_two_nodes_has_a_piece_on_each() -> None:
    """It can be asked once it has reported; its deadline is seen, and its cores count on both nodes."""
    at = [machine("n1", 6, 8, 2, False, MAIN), machine("n2", 2, 8, 6, False, MAIN)]
    at = [replace(node, unused=node.idle) for node in at]
    job = replace(TWO, end=T0 + 4001, limit=67)
    answers = Answers([job, WAITING], at, TREE, ClusterRules(Selection(memory=True)), SHARES)
    seen = snapshot_of(answers, SiteRules(GRACE), T0 + 1000)
    (one,) = seen.pilots
    assert (one.cannot, one.deadline, one.cores, one.report) == ("", T0 + 4001, 8, SAID)
    pieces = [(it.node, it.place, it.holds.cores, it.holds.memory) for it in one.pieces]
    assert (pieces, one.nodes) == ([("n1", "n1", 6, 600), ("n2", "n2", 2, 200)], ("n1", "n2"))
    assert [(it.name, it.free.cores, it.unseen.cores) for it in seen.places] == [("n1", 2, 0), ("n2", 6, 0)]
    assert seen.accounts[0].cores_in_use == 8


def test_a_pilot_of_two_nodes_cannot_be_asked_without_its_pieces_or_when_all_its_nodes_drain() -> None:
    """One that drains is not enough: the other node gets its cores back."""
    at = [machine("n1", 6, 8, 2, False, MAIN), machine("n2", 2, 8, 6, True, MAIN)]

    def why(shares: Mapping[int, tuple[NodeShare, ...]], nodes: list[SlurmNode]) -> str:
        (one,) = snapshot_of(Answers([TWO], nodes, TREE, allocations=shares), SiteRules(GRACE), T0 + 1000).pilots
        return one.cannot

    assert why({}, at) == UNKNOWN_PIECES
    assert why(SHARES, at) == ""
    assert why(SHARES, [replace(node, draining=True) for node in at]) == DRAINING_NODE


def test_a_pilot_on_a_draining_node_is_not_ordered() -> None:
    """Its cores would be of no use to anybody; they still count as used."""
    snapshot = view(RUNNING, at=[replace(NODE, draining=True)])
    assert [one.cannot for one in snapshot.pilots] == [DRAINING_NODE]
    assert snapshot.accounts[0].cores_in_use == 8


def test_a_run_that_its_node_cannot_tell_is_named() -> None:
    """By what its node says of this very run; silent ones, and those with somebody else's comment, can be asked."""
    comments = {
        without_directories_text(17, T0, "n1"): NO_DIRECTORIES,
        without_directories_text(17, T0 - 9, "n1"): "",
        without_directories_text(18, T0, "n1"): "",
        "": "",
        'see ticket 4711 "directories":false': "",
    }
    for comment, cannot in comments.items():
        one = pilot(replace(RUNNING, comments=(comment,)))
        assert (one.cannot, one.report) == (cannot, None)


def test_no_pilot_is_ordered_whose_node_gives_no_sign_of_life() -> None:
    """It would not be told. A report is a sign; where no node ever gave one, they are of an earlier drainwise."""
    late, other = T0 + 3 * SIGN_PERIOD, replace(machine("n2", 0, 8, 8, False, MAIN), extra=sign_text(T0))

    def cannot(extra: str, now: int = late, *scopes: Scope) -> str:
        nodes = [replace(NODE, extra=extra), other]
        found = snapshot_of(Answers([RUNNING], nodes, TREE), SiteRules(GRACE, scope=ScopeRules(scopes=scopes)), now)
        assert dict(found.versions) == dict(Counter([__version__] * (1 + (sign_in(extra) is not None))))
        assert any(one.endswith("(n1)") for one in notices_of(found)) == bool(found.pilots[0].cannot)
        return found.pilots[0].cannot

    assert cannot(sign_text(late - SIGN_PERIOD)) == cannot(sign_text(late - 2 * SIGN_PERIOD)) == ""
    assert cannot(sign_text(T0)) == cannot("") == NO_SIGN
    assert cannot("rack=7") == "", "its agent has nowhere to give one"
    assert cannot("", now=T0 + SIGN_PERIOD) == ""  # it has just begun
    report = PilotReport(late - 60, used_cpu=1.0)
    told = comment_text(Published(17, T0, "n1", report, version=__version__))
    found = snapshot_of(Answers([replace(RUNNING, comments=(told,))], [NODE, other], TREE), SiteRules(GRACE), late)
    assert found.pilots[0].cannot == ""
    assert snapshot_of(Answers([RUNNING], [NODE], TREE), SiteRules(GRACE), late).pilots[0].cannot == ""
    assert cannot("", late, Scope("ended by Slurm alone", "user=alice", multi_node=True)) == ""


@pytest.mark.parametrize(("billed", "whole"), [((40, 20), 60), ((40, None), None), ((None, None), None)])
def test_a_heterogeneous_job_is_billed_for_all_its_parts_or_not_at_all(
    billed: tuple[int | None, ...], whole: int | None
) -> None:
    """Who is billed nothing would be the cheapest to end."""
    parts = [
        replace(RUNNING, number=17 + place, het=17, het_offset=place, billed=one) for place, one in enumerate(billed)
    ]
    held = {one.number: (NodeShare("n1", one.cores, 0),) for one in parts}
    scope = ScopeRules(scopes=(Scope("whole", "user=alice", multi_node=True),))
    found = snapshot_of(Answers(parts, [NODE], TREE, allocations=held), SiteRules(GRACE, scope=scope), T0 + 60)
    [pilot] = found.pilots
    assert (pilot.cannot, pilot.cores, pilot.billed) == ("", sum(one.cores for one in parts), whole)


@pytest.mark.parametrize("states", [{"COMPLETING"}, {"PENDING", "COMPLETING"}, {"CANCELLED", "COMPLETING"}])
def test_a_run_that_is_being_ended_is_leaving_and_neither_waits_nor_was_ordered(states: set[str]) -> None:
    """As 22.05 and 24.11 say it; Slurm tells a start in the future for one that is requeued."""
    now = T0 + 1000
    job = replace(RUNNING, states=frozenset(states), start=now + 3, reason="Resources")
    (one,) = view(job, at=[machine("n1", 0, 8, 0, False, MAIN)]).pilots
    assert (one.leaving, one.deadline, one.lease_end, one.started) == (True, None, now, now)


@pytest.mark.parametrize(
    ("states", "allocated", "free", "unseen"),
    [
        ({"RUNNING"}, 8, 0, 0),
        ({"RUNNING"}, 4, 0, 0),
        ({"RUNNING"}, 0, 4, 0),
        ({"COMPLETING"}, 8, 0, 0),
        ({"COMPLETING"}, 4, 0, 0),
        (None, 8, 0, 4),
        (None, 4, 4, 0),
    ],
)
def test_jobs_and_nodes_are_asked_at_two_moments(
    states: set[str] | None, allocated: int, free: int, unseen: int
) -> None:
    """A job of 4 cores of 8 ends, or has started: neither is what it holds free, nor are its cores lost.

    Another one has the other cores all the time, but in the case where sinfo was asked before both.
    """
    half = replace(RUNNING, cores=4)
    found = [half] if allocated or states is None else []
    found += [] if states is None else [replace(half, number=19, states=frozenset(states))]
    node = replace(machine("n1", allocated, 8, 8 - allocated, False, MAIN), unused=8 - allocated)
    [place] = view(*found, at=[node]).places
    assert (place.free.cores, place.unseen.cores) == (free, unseen)


def test_what_jobs_of_several_nodes_have_is_not_unseen() -> None:
    several = replace(RUNNING, node_count=2, node="n[1-2]", cores=16)
    [place] = view(several, at=[NODE]).places
    assert (place.free.cores, place.unseen.cores) == (0, 0)


def test_an_exposed_run_is_leaving_with_native_preemption_only() -> None:
    job = replace(RUNNING, priority=1)
    assert not view(job).pilots[0].leaving
    assert view(job, exposed=(1,)).pilots[0].leaving


def test_jobs_that_are_hidden_from_us_are_half_an_answer() -> None:
    """HOSTILE 54: with PrivateData=jobs, squeue shows a plain user nothing but its own."""
    with pytest.raises(PoolUnreachable, match="PrivateData"):
        view(RUNNING, at=[NODE, machine("n2", 128, 128, 0, False, MAIN)])


def test_no_nodes_are_half_an_answer() -> None:
    with pytest.raises(PoolUnreachable, match="no nodes"):
        view(RUNNING, at=[])


@pytest.mark.parametrize(
    ("config", "selection"),
    [
        ("SelectType = select/cons_tres\nSelectTypeParameters = CR_CORE_MEMORY\n", Selection(False, True, "core")),
        ("SelectType = select/cons_tres\nSelectTypeParameters = CR_SOCKET\n", Selection(False, False, "socket")),
        ("SelectType              = select/cons_res\nSelectTypeParameters    = CR_CPU\n", Selection(False, False)),
        ("SelectType = select/linear\nSelectTypeParameters = NONE\n", Selection(True, False)),
        ("SelectType = select/linear\nSelectTypeParameters = (null)\n", Selection(True, False)),
        ("", Selection(False, True)),
    ],
)
def test_how_nodes_are_shared_out(config: str, selection: Selection) -> None:
    assert selection_in(config) == selection


@pytest.mark.parametrize("start", [T0, None])
def test_who_is_being_ended_and_waits_again_is_leaving(start: int | None) -> None:
    """Slurm's own preemption requeues a job: it has a node and no start while it is ended."""
    preempted = replace(RUNNING, states=frozenset({"PENDING", "COMPLETING"}), reason="Resources", start=start, end=None)
    seen = view(preempted, WAITING)
    [pilot] = seen.pilots
    assert (pilot.name, pilot.leaving, pilot.cores) == ("17", True, 8)
    assert {one.name: one.cores_wanted for one in seen.accounts} == {"atlas": 0.0, "cms": 8.0}


def test_an_account_that_sshare_does_not_know_keeps_what_it_has_and_is_owed_no_more() -> None:
    """An answer that was cut at a line's end looks whole: nobody gives anything back for such an account."""
    there = [NODE, replace(NODE, name="n2")]
    stranger = replace(RUNNING, number=19, account="lost", node="n2", user="carol")
    seen = view(RUNNING, stranger, replace(WAITING, account="lost"), at=there)
    owed = {one.name: (one.cores_in_use, one.cores_owed) for one in seen.accounts}
    assert owed == {"atlas": (8.0, 8.0), "lost": (8.0, 8.0)}
