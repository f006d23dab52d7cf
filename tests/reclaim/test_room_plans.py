"""Pilots go whose room a waiting job takes; nobody goes for a job that could not start."""

from __future__ import annotations

from dataclasses import replace

import pytest

from drainwise.pilotad.report import PilotReport
from drainwise.pool.abilities import KeptRoom
from drainwise.pool.amounts import Amounts
from drainwise.pool.facts import Account, Piece, Pilot, Snapshot
from drainwise.pool.job_kinds import JobKind, Place, kind_name
from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.history import History, PastOrder
from drainwise.reclaim.plan import Plan
from drainwise.reclaim.plan_json import as_json
from drainwise.reclaim.prices import BY_WASTE, POLICIES
from drainwise.reclaim.settings import ReclaimSettings
from drainwise.reclaim.unmet_demand import AccountPart, watched, with_orders

from .facts import NOW, SETTINGS, pilot, report

GIB = 1024


def alices(number: int, node: str, cores: int = 8, memory: int = 16 * GIB, gpus: int = 0, **more: object) -> Pilot:
    """A pilot of alice's that drains within 2000 s; the higher its number, the more it wastes."""
    one = pilot(number, report(8.0, final=float(number * 400)), cores=cores)
    return replace(one, node=node, place=node, holds=Amounts(cores, memory, gpus), **more)  # type: ignore[arg-type]


def kind(
    jobs: int, needs: Amounts, *classes: str, account: str = "bob", places: int = 1, whole: bool = False
) -> JobKind:
    name = kind_name(account, needs, "", places, whole=whole)
    return JobKind(name, account, jobs, needs, frozenset(classes or {"plain"}), places, whole, example="17.0")


def pool(pilots: list[Pilot], kinds: list[JobKind], places: list[Place], beyond: int = 10_000) -> Snapshot:
    """Alice has all cores in use, `beyond` what she is owed at most; bob is owed what he waits for."""
    used = sum(one.cores for one in pilots if one.account == "group_a")
    wanted = sum(one.jobs * one.cores for one in kinds if one.classes)
    accounts = (
        Account("group_a", used, max(0, used - beyond), 0.0, 1000.0),
        Account("bob", 0.0, 10_000.0, wanted, 500.0, 8.0),
    )
    return Snapshot(NOW, tuple(pilots), accounts, kinds=tuple(kinds), places=tuple(places))


def place(name: str, cores: int = 32, memory: int = 64 * GIB, gpus: int = 0, of: str = "plain") -> Place:
    return Place(name, name, of, Amounts(), Amounts(cores, memory, gpus))


def plan(snapshot: Snapshot, settings: ReclaimSettings = SETTINGS, history: History | None = None) -> Plan:
    return make_plan(snapshot, NOW, settings, history)


def numbers(of: Plan) -> list[int]:
    return sorted(int(order.pilot.run.split("#")[1].split(".")[0]) for order in of.orders)


FOUR_NODES = [alices(4 * node + slot, f"n{node}") for node in range(4) for slot in range(4)]
PLACES = [place(f"n{node}") for node in range(4)]


def test_a_job_of_8_cores_and_32_gib_gets_the_room_of_one_node() -> None:
    """Two pilots of one node, the cheapest node; not four pilots of four nodes, nor one alone."""
    found = plan(pool(FOUR_NODES, [kind(1, Amounts(8, 32 * GIB))], PLACES))
    assert numbers(found) == [0, 1]
    assert "room for 1 of 1 waiting job" in found.summary
    assert all("makes room on n0 for 1 of bob (8 cores, 32 GiB memory)" in order.reason for order in found.orders)


KILLED = report(8.0, first_end=NOW + 90_000, last_end=NOW + 90_000, start=NOW - 1000)
LEAVES = report(6.0, first_end=NOW + 1000, last_end=NOW + 2000, final=2500.0, start=NOW - 10_000)


@pytest.mark.parametrize("by", ["cores", "kinds"])
@pytest.mark.parametrize(
    ("said", "waste", "policy"),
    [
        pytest.param(KILLED, 8000, "least-waste", id="killed"),
        pytest.param(KILLED, 8000, "least-kill", id="by what a kill loses"),
        pytest.param(KILLED, 8000, "paper", id="as the paper kills"),
        pytest.param(LEAVES, 4500 + 6 * (12_000 + SETTINGS.margin) // 10, "least-waste", id="leaves"),
    ],
)
def test_what_is_claimed_counts_in_full_beside_what_is_known(
    said: PilotReport, waste: int, policy: str, by: str
) -> None:
    """A pilot that says nothing lost 8 cores x its run time: it goes where that is less by 1 %, and stays if more."""
    for share, goes in ((0.99, 2), (1.01, 1)):
        silent = replace(alices(2, "n1"), report=None, started=NOW - round(waste * share / 8))
        seen = pool([replace(alices(1, "n0"), report=said), silent], [kind(1, Amounts(8))], PLACES[:2])
        seen = seen if by == "kinds" else replace(seen, kinds=None, places=())
        found = plan(seen, replace(SETTINGS, policy=policy))
        assert numbers(found) == [goes]
        assert found.waste == (waste if goes == 1 else 8 * (NOW - silent.started))


def test_memory_poor_nodes_are_left_alone() -> None:
    poor = [replace(one, holds=Amounts(8, 2 * GIB)) for one in FOUR_NODES[:4]]
    places = [place("n0", memory=8 * GIB, of="poor"), *PLACES[1:]]
    found = plan(pool([*poor, *FOUR_NODES[4:]], [kind(1, Amounts(8, 16 * GIB))], places))
    assert numbers(found) == [4]


def test_a_job_that_needs_a_gpu_gets_the_pilot_that_has_it() -> None:
    with_gpu = [
        replace(one, holds=Amounts(8, 16 * GIB, 1)) if one.run.startswith("ce#13.") else one for one in FOUR_NODES
    ]
    places = [*PLACES[:3], place("n3", gpus=1)]
    assert numbers(plan(pool(with_gpu, [kind(1, Amounts(8, 0, 1))], places))) == [13]


def test_a_kind_that_fits_no_node_costs_nobody_anything_and_is_named() -> None:
    nowhere = replace(kind(3, Amounts(8, 4096 * GIB)), classes=frozenset())
    found = plan(pool(FOUR_NODES, [nowhere], PLACES))
    assert not found.orders
    assert found.notices[0].startswith("3 waiting jobs of bob (8 cores, 4096 GiB memory, such as 17.0) fit no node")


def test_jobs_run_only_where_they_may() -> None:
    places = [*PLACES[:2], place("n2", of="other"), place("n3", of="other")]
    assert numbers(plan(pool(FOUR_NODES, [kind(2, Amounts(8), "other")], places))) == [8, 9]


def test_what_is_free_or_returns_serves_first() -> None:
    free = [replace(PLACES[0], free=Amounts(8, 16 * GIB)), *PLACES[1:]]
    goes = [replace(one, deadline=NOW + 600) if one.run.startswith("ce#9.") else one for one in FOUR_NODES]
    assert numbers(plan(pool(goes, [kind(2, Amounts(8))], free))) == []
    assert numbers(plan(pool(goes, [kind(3, Amounts(8))], free))) == [0]
    assert numbers(plan(pool(goes, [kind(1, Amounts(8, 48 * GIB))], free))) == [0, 1]  # with what is free on n0


def test_an_order_whose_room_a_job_uses_stands_and_another_one_is_withdrawn() -> None:
    """Two orders on n0 for a job that needs both; one elsewhere for nobody."""
    goes = [
        replace(one, deadline=NOW + 600) if one.run.split(".")[0] in {"ce#0", "ce#1", "ce#9"} else one
        for one in FOUR_NODES
    ]
    found = plan(pool(goes, [kind(1, Amounts(8, 32 * GIB))], PLACES))
    assert not found.orders
    assert [one.pilot.run.split(".")[0] for one in found.withdrawals] == ["ce#9"]


def test_orders_for_several_kinds_of_jobs_stand_until_their_jobs_start() -> None:
    """The small jobs come first and could start in the room of the large one, which fits nowhere else."""
    places = [replace(PLACES[0], node_class="other"), *PLACES[1:]]
    kinds = [kind(2, Amounts(8, 16 * GIB), "plain", "other"), kind(1, Amounts(32, 64 * GIB), "other")]
    seen = pool(FOUR_NODES, kinds, places)
    found = plan(seen)
    assert numbers(found) == [0, 1, 2, 3, 4, 5]
    unmet = {one.key: one for one in with_orders({}, seen, found.parts, NOW)}
    ordered = {order.pilot.run for order in found.orders}
    goes = [replace(one, deadline=NOW + 600) if one.run in ordered else one for one in FOUR_NODES]
    again = plan(pool(goes, kinds, places), history=History(unmet=unmet))
    assert not again.orders
    assert not again.withdrawals
    free = [replace(places[0], free=Amounts(32, 64 * GIB)), *places[1:]]
    there = pool(goes[4:], kinds, free)
    back = {one.key: one for one in watched(unmet, there, NOW, SETTINGS).values()}
    assert not plan(there, history=History(unmet=back)).withdrawals


@pytest.mark.parametrize("policy", BY_WASTE)
def test_orders_for_a_job_of_several_nodes_stand_together(policy: str) -> None:
    """Although a node comes free elsewhere; without the job, or where they are more than it needs, they do not."""
    site, jobs = replace(SETTINGS, policy=policy), [kind(1, Amounts(32), places=2, whole=True)]
    seen = pool(FOUR_NODES, jobs, PLACES)
    found = plan(seen, site)
    assert numbers(found) == list(range(8))
    unmet = {one.key: one for one in with_orders({}, seen, found.parts, NOW)}
    ordered = {order.pilot.run for order in found.orders}
    goes = [replace(one, deadline=NOW + 600) if one.run in ordered else one for one in FOUR_NODES]
    places = [*PLACES, replace(place("n4"), free=Amounts(32, 64 * GIB))]
    again = plan(pool(goes, jobs, places), site, History(unmet=unmet))
    assert not again.orders and not again.withdrawals
    assert len(plan(pool(goes, [], places), site, History(unmet=unmet)).withdrawals) == 8
    [known] = unmet.values()
    more = [replace(one, deadline=NOW + 600) for one in FOUR_NODES[:12]]
    runs = {one.run: AccountPart(one.node, 8, 8.0) for one in more}
    beside = History(unmet={known.key: replace(known, runs=runs)})
    assert len(plan(pool([*more, *FOUR_NODES[12:]], jobs, PLACES), site, beside).withdrawals) == 4


def test_no_more_cores_go_than_the_account_holds_beyond_its_quota() -> None:
    found = plan(pool(FOUR_NODES, [kind(4, Amounts(8, 32 * GIB))], PLACES, beyond=20))
    assert len(found.orders) == 2
    assert "for 3 no room can be made now" in found.summary
    assert any(notice.startswith("no room can be made now for 3 of 4 waiting jobs of bob") for notice in found.notices)


def test_memory_of_a_small_job_is_made_room_for_as_long_as_the_giver_keeps_its_own_share() -> None:
    """alice is owed all but the 2 cores that bob waits for; the memory of bob's job is held by two of her pilots."""
    seen = pool(FOUR_NODES, [kind(1, Amounts(2, 32 * GIB))], PLACES)
    alice = replace(seen.accounts[0], cores_owed=126.0, cores_share=64.0)
    found = plan(replace(seen, accounts=(alice, replace(seen.accounts[1], cores_per_job=2.0))))
    assert numbers(found) == [0, 1]
    poor = replace(alice, cores_share=126.0)
    assert not plan(replace(seen, accounts=(poor, replace(seen.accounts[1], cores_per_job=2.0)))).orders


def test_a_limit_of_the_cycle_delays_the_rest() -> None:
    found = plan(pool(FOUR_NODES, [kind(4, Amounts(8))], PLACES), replace(SETTINGS, max_cores=16))
    (part,) = found.users
    assert (part.cores, part.cores_given, part.later) == (32, 16, 16)
    assert part.limit == "[reclaim] max_cores_per_cycle allows 16 cores now"


def test_the_sites_cores_of_an_hour_bound_all_users_together() -> None:
    """Two users of one account: neither gets the whole rest of the hour for itself."""
    pilots = [replace(one, user="alice" if number % 2 else "amy") for number, one in enumerate(FOUR_NODES)]
    seen, earlier = pool(pilots, [kind(16, Amounts(8))], PLACES), History((PastOrder(NOW - 60, "bea", 40),))
    assert len({order.pilot.user for order in plan(seen).orders}) == 2
    found = plan(seen, replace(SETTINGS, max_cores_hour=56), earlier)
    assert sum(order.pilot.cores for order in found.orders) == 16
    assert {one.limited_by for one in found.users if one.later} == {"max_cores_per_hour"}


@pytest.mark.parametrize(("most", "earlier", "orders"), [(10_000_000, 0, 4), (3, 0, 3), (3, 2, 1), (3, 3, 0)])
def test_the_gpus_of_a_user_are_bound_within_an_hour(most: int, earlier: int, orders: int) -> None:
    """The youngest go; why the others do not is said. An order of another user, or of long ago, counts for nothing."""
    pilots = [
        replace(one, started=NOW - 20_000 + number, holds=replace(one.holds, gpus=1))
        for number, one in enumerate(FOUR_NODES)
        if one.holds
    ]
    places = [replace(one, total=replace(one.total, gpus=8)) for one in PLACES]
    seen = pool(pilots, [kind(4, Amounts(8, gpus=1))], places)
    past = History(
        (
            PastOrder(NOW - 60, "alice", 8, earlier),
            PastOrder(NOW - 60, "amy", 8, 9),
            PastOrder(NOW - 3700, "alice", 8, 9),
        )
    )
    found = plan(seen, replace(SETTINGS, max_gpus_user_hour=most), past)
    assert len(found.orders) == orders
    if most == 3:
        youngest = {one.run for one in pilots[-(3 - earlier) :]} if earlier < 3 else set()
        assert {order.pilot.run for order in found.orders} == youngest
        assert any("max_gpus_per_user_per_hour lets no more GPUs of alice be taken" in one for one in found.notices)


def test_claims_change_which_pilots_go_and_nothing_else() -> None:
    kinds = [kind(1, Amounts(8, 32 * GIB)), kind(2, Amounts(4, 16 * GIB))]
    claims = plan(pool(FOUR_NODES, kinds, PLACES))
    silent = plan(pool([replace(one, report=None) for one in FOUR_NODES], kinds, PLACES))
    for one in (claims, silent):
        assert sum(order.pilot.cores for order in one.orders) == 32
    assert sum(order.waste for order in claims.orders) < sum(order.waste for order in silent.orders)


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_makes_the_same_room_with_as_many_cores(policy: str) -> None:
    found = plan(pool(FOUR_NODES, [kind(2, Amounts(8, 32 * GIB))], PLACES), replace(SETTINGS, policy=policy))
    assert sum(order.pilot.cores for order in found.orders) == 32
    assert "room for 2 of 2" in found.summary


def test_a_whole_node_is_a_hole_of_its_size() -> None:
    found = plan(pool(FOUR_NODES, [kind(1, Amounts(1), whole=True)], PLACES))
    assert numbers(found) == [0, 1, 2, 3]


def test_the_plan_names_the_jobs_also_as_json() -> None:
    found = as_json(plan(pool(FOUR_NODES, [kind(1, Amounts(8))], PLACES)))
    (order,) = found["users"][0]["orders"]  # type: ignore[index]
    assert order["room"]["place"] == "n0"
    assert [(one["account"], one["jobs"], one["asks"], one["example"]) for one in order["room"]["jobs"]] == [
        ("bob", 1, "8 cores", "17.0")
    ]
    assert found["cores_usable"] == 8


def test_nobody_goes_where_nobody_waits() -> None:
    assert not plan(pool(FOUR_NODES, [], PLACES)).orders


def kept(of: Plan) -> dict[str, KeptRoom]:
    return {order.pilot.place: order.kept for order in of.orders if order.kept is not None}


def test_room_that_no_pilot_makes_alone_is_kept_for_its_jobs() -> None:
    """Two pilots of one node for one job; its need is kept until the last has left."""
    found = plan(pool(FOUR_NODES, [kind(1, Amounts(8, 32 * GIB))], PLACES))
    last = max(order.deadline for order in found.orders) + SETTINGS.time_to_start
    need = Amounts(8, 32 * GIB)
    assert kept(found) == {"n0": KeptRoom("n0", "n0", 2, last, need, need)}
    assert all(order.kept is not None for order in found.orders)


def test_room_that_each_pilot_makes_alone_is_not_kept() -> None:
    for jobs in (1, 2, 16):
        found = plan(pool(FOUR_NODES, [kind(jobs, Amounts(8))], PLACES))
        assert len(found.orders) == jobs
        assert not kept(found)


def test_what_is_free_is_kept_with_what_a_pilot_gives_back() -> None:
    free = [replace(PLACES[0], free=Amounts(4, 32 * GIB)), *PLACES[1:]]
    found = plan(pool(FOUR_NODES, [kind(1, Amounts(12, 8 * GIB))], free))
    assert numbers(found) == [0]
    assert kept(found)["n0"].total == Amounts(12, 8 * GIB)
    assert kept(found)["n0"].pilots == 1


def test_what_is_kept_is_for_all_jobs_that_the_place_will_serve() -> None:
    """A job of 8 cores for which a pilot goes already, another account's of 16 for which two go now."""
    goes = [
        replace(one, deadline=NOW + SETTINGS.horizon) if one.run.startswith("ce#3.") else one for one in FOUR_NODES[:4]
    ]
    small, large = kind(1, Amounts(8, GIB)), kind(1, Amounts(16, 2 * GIB))
    found = plan(pool(goes, [small, large], PLACES[:1]))
    assert numbers(found) == [0, 1]
    last = max(NOW + SETTINGS.horizon, *(order.deadline for order in found.orders)) + SETTINGS.time_to_start
    assert kept(found) == {"n0": KeptRoom("n0", "n0", 3, last, Amounts(8, GIB), Amounts(24, 3 * GIB))}


def test_where_cores_are_counted_nothing_is_kept() -> None:
    seen = pool(FOUR_NODES, [kind(1, Amounts(16))], PLACES)
    found = plan(replace(seen, kinds=None))
    assert found.orders
    assert not kept(found)


def wide(number: int, nodes: str, cores: int = 8, final: float = 0.0) -> Pilot:
    """A pilot of alice's with as many cores on each of several nodes."""
    one = pilot(number, report(float(cores * len(nodes)), final=final), cores=cores * len(nodes))
    pieces = tuple(Piece(f"n{node}", f"n{node}", Amounts(cores, 16 * GIB)) for node in nodes)
    return replace(one, node=f"n[{nodes[0]}-{nodes[-1]}]", pieces=pieces)


def test_a_pilot_of_several_nodes_goes_where_it_is_as_good_and_cheaper() -> None:
    """Two jobs of 8 cores: 16 cores go in any case; on n0 and n1 it costs next to nothing, elsewhere it costs a lot."""
    jobs = [kind(2, Amounts(8))]
    found = plan(pool([wide(0, "01"), wide(30, "01", final=9000.0), *FOUR_NODES[8:]], jobs, PLACES))
    assert numbers(found) == [0]
    (order,) = found.orders
    assert order.room is not None and (order.room.place, [number for _, number in order.room.jobs]) == ("n0, n1", [2])
    assert "makes room on n0, n1 for 2 of bob (8 cores)" in order.reason
    assert "room for 2 of 2 waiting jobs" in found.summary
    dear = plan(pool([wide(0, "01", final=90_000.0), *FOUR_NODES[8:]], jobs, PLACES))
    assert numbers(dear) == [8, 9]


def test_a_pilot_of_several_nodes_is_not_taken_for_less_than_all_of_it() -> None:
    """One job of 8 cores: a pilot of one node gives back fewer cores, whatever they claim."""
    jobs = [kind(1, Amounts(8))]
    alone = numbers(plan(pool(FOUR_NODES[12:], jobs, PLACES)))
    assert len(alone) == 1
    assert numbers(plan(pool([wide(0, "01"), *FOUR_NODES[12:]], jobs, PLACES))) == alone
    assert numbers(plan(pool([wide(0, "01")], jobs, PLACES))) == [0]


def test_a_pilot_of_several_nodes_and_one_of_one_node_make_room_together() -> None:
    """16 cores on n0: 8 of each. And a job that needs two nodes at once gets them from one pilot."""
    both = pool([wide(0, "01"), alices(7, "n0")], [kind(1, Amounts(16))], [place("n0", 16), place("n1", 16)])
    assert numbers(plan(both)) == [0, 7]
    spread = pool([wide(0, "01"), wide(5, "01", final=9000.0)], [kind(1, Amounts(8), places=2)], PLACES[:2])
    assert numbers(plan(spread)) == [0]


def test_a_pilot_of_several_nodes_keeps_to_the_limits() -> None:
    """Of a cycle, and of its account."""
    jobs = [kind(2, Amounts(8))]
    seen = pool([wide(0, "01")], jobs, PLACES)
    assert numbers(plan(seen, replace(SETTINGS, max_cores=15))) == []
    assert numbers(plan(seen, replace(SETTINGS, max_cores=16))) == [0]
    mixed = pool([wide(0, "01"), *FOUR_NODES[8:]], jobs, PLACES)
    assert numbers(plan(mixed, replace(SETTINGS, max_cores=8))) == [8]


def test_what_a_pilot_of_several_nodes_gives_back_counts_on_each() -> None:
    """Its order stands while a job uses one of its pieces, no second one is given, and it is withdrawn without one."""
    goes = replace(wide(0, "01"), deadline=NOW + 600)
    assert plan(pool([goes, *FOUR_NODES[8:]], [kind(2, Amounts(8))], PLACES)).orders == ()
    stands = plan(pool([goes, *FOUR_NODES[8:]], [kind(1, Amounts(8))], PLACES))
    assert (stands.orders, stands.withdrawals) == ((), ())
    away = [*PLACES[:2], place("n2", of="other"), place("n3", of="other")]
    idle = plan(pool([goes, *FOUR_NODES[8:]], [kind(1, Amounts(8), "other")], away))
    assert [one.pilot.run for one in idle.withdrawals] == [goes.run] and numbers(idle) == [8]


def test_the_round_of_a_pilot_of_several_nodes_is_watched_on_all_of_them() -> None:
    """What starts on its second node was served."""
    seen = pool([wide(0, "01")], [kind(2, Amounts(8))], PLACES)
    decided = plan(seen)
    known = {one.key: one for one in with_orders({}, seen, decided.parts, NOW)}
    started = [
        replace(alices(20 + row, f"n{row}"), account="bob", user="bob", started=NOW + 60, report=None) for row in (0, 1)
    ]
    after = replace(pool(started, [], PLACES), taken=NOW + 70)
    watched_now = watched(known, after, NOW + 70, SETTINGS)
    assert not watched_now or all(one.failed == 0 and one.round.gained >= 16 for one in watched_now.values())
