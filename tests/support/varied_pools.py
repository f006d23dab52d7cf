"""Pools that differ in all that a decision looks at, by number, and what is decided on each, in a few short lines.

Run as a program it prints what tests/reclaim/decisions.txt holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import NamedTuple

from drainwise.pilotad.observation import Observation
from drainwise.pilotad.report import PilotReport
from drainwise.pilotad.values import curve_text
from drainwise.pool.amounts import Amounts
from drainwise.pool.closures import Closure
from drainwise.pool.facts import Account, Piece, Pilot, Snapshot
from drainwise.pool.job_kinds import JobKind, Place
from drainwise.reclaim.counted_demand import UntakenRoom
from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.history import History, NodeFault, PastOrder, TrustFigures
from drainwise.reclaim.plan import Order, PartOrder, Plan
from drainwise.reclaim.seen_pilots import EndsSeen
from drainwise.reclaim.settings import OPEN_NEED, ReclaimSettings
from drainwise.reclaim.unmet_demand import AccountPart, Round, UnmetDemand
from drainwise.requests.request import AdminRequest

NOW = 1_795_249_000
USERS = {"ann": "a", "amy": "a", "bea": "b"}
POLICIES = ("least-waste", OPEN_NEED, "least-kill", "paper", "youngest-first", "least-waste")


class Case(NamedTuple):
    """What a decision is given at NOW."""

    snapshot: Snapshot
    settings: ReclaimSettings
    history: History


def case(number: int) -> Case:
    """The pool of that number: of three in a row one counts cores, one has plain places, one all that places can."""
    dice = Random(number)
    nodes = [f"n{one}" for one in range(dice.randint(2, 4))]
    pilots = [_pilot(dice, one, dice.choice(nodes), number) for one in range(dice.randint(5, 10))]
    if number % 3 == 2:
        held = Amounts(4, 8192)
        pilots[0] = replace(
            pilots[0], cores=8, place="", holds=None, pieces=tuple(Piece(one, one, held) for one in nodes[:2])
        )
    kinds = None if number % 3 == 0 else tuple(_kind(dice, one, number) for one in range(dice.randint(1, 4)))
    places = () if kinds is None else tuple(_place(dice, name, pilots) for name in nodes)
    used = {account: float(sum(one.cores for one in pilots if one.account == account)) for account in "ab"}
    wanted = float(dice.randint(8, 40)) if kinds is None else float(sum(one.jobs * one.cores for one in kinds))
    share = None if dice.random() < 0.5 else 8.0
    accounts = (
        *(Account(name, held, held * dice.choice((0.0, 0.3, 0.5)), 0.0, 900.0) for name, held in used.items()),
        Account("w", float(dice.choice((0, 4))), float(dice.choice((16, 100, 100))), wanted, 500.0, 4.0, share),
    )
    closed = (Closure("m", frozenset(nodes[:1]), NOW + dice.choice((1800, 7200))),) if dice.random() < 0.15 else ()
    priorities = {"ann": 700.0, "amy": dice.choice((700.0, 900.0)), "bea": 800.0}
    snapshot = Snapshot(
        NOW,
        tuple(pilots),
        accounts,
        float(dice.choice((0, 2))),
        priorities,
        kinds=kinds,
        places=places,
        closures=closed,
    )
    return Case(snapshot, _settings(dice, number), _history(dice, snapshot))


def _report(dice: Random, cores: int, started: int) -> PilotReport | None:
    if (roll := dice.random()) < 0.12:
        return None
    used = cores * dice.choice((1.0, 1.0, 0.75, 0.5))
    first = NOW + dice.choice((60, 900, 2400, 6000))
    last = first + dice.choice((0, 0, 600, 3000, 20_000))
    begun = max(started, NOW - dice.choice((300, 3000, 30_000)))
    said = PilotReport(
        NOW - (9000 if roll > 0.95 else 60),
        used_cpu=used,
        last_job_start=begun,
        first_exp_job_end=first,
        last_exp_job_end=last,
        last_max_job_end=last + 5000 if roll > 0.6 else None,
        add_uncom_time=float(round(used * (begun - started) * dice.choice((0.0, 0.3)))),
        add_final_exp_waste=float(round((cores - used / 2) * (last - first))),
        priority_factor=dice.choice((None, None, 1, 2, -1)),
        can_postpone_last_job=roll > 0.2,
    )
    if roll < 0.7:
        return said
    steps = [(first, cores * 60, round(used * (last - begun + 60))), (last + 1, cores * 900, 0)]
    return _with(said, exp_waste_curve=curve_text(steps))


def _with(said: PilotReport, **other: object) -> PilotReport:
    """The same report with other values."""
    return PilotReport(**{name: getattr(said, name) for name in PilotReport.__match_args__} | other)  # type: ignore[arg-type]


def _pilot(dice: Random, number: int, node: str, seed: int) -> Pilot:
    cores, user, started = dice.choice((2, 4, 8, 8)), dice.choice(sorted(USERS)), NOW - dice.choice((30, 4000, 40_000))
    one = Pilot(f"r{number}", f"p{number}", node, USERS[user], user, cores, started)
    one = replace(one, report=_report(dice, cores, started), place=node if seed % 3 else "")
    one = replace(one, holds=Amounts(cores, cores * 2048, int(dice.random() < 0.2)) if seed % 3 else None)
    roll = dice.random()
    if roll < 0.1:
        one = replace(one, deadline=NOW + dice.choice((600, 5000, 9000)))
    elif roll < 0.15:
        one = replace(one, leaving=True)
    elif roll < 0.2:
        one = replace(one, cannot="its node has no drop-in")
    elif roll < 0.25:
        one = replace(one, lease_end=NOW + dice.choice((2000, 20_000)))
    elif roll < 0.3 and one.report is None:
        one = replace(one, client="glidein", seen=Observation("glidein", NOW - 30, 0, 0.0, 0, 9000))
    elif roll < 0.35:
        one = replace(one, vacate=dice.choice((0, 1200)))
    elif seed % 2:
        one = replace(one, can_return=cores - 1, returned=dice.choice((0, 2)))
        one = replace(one, asked=one.returned + dice.choice((0, 0, 1)))
    return one


def _kind(dice: Random, number: int, seed: int) -> JobKind:
    cores = dice.choice((1, 2, 4, 6))
    classes = dice.choice((("x",), ("x", "y"), ("y",), ("x", "y")))
    one = JobKind(
        f"k{number}", "w", dice.randint(2, 5), Amounts(cores, cores * dice.choice((0, 1024))), frozenset(classes)
    )
    if seed % 3 == 1:
        return one
    roll = dice.random()
    if roll < 0.2:
        return replace(one, places=2)
    if roll < 0.35:
        return replace(one, whole=True)
    if roll < 0.45:
        return replace(one, needs=Amounts(cores, 0, 1))
    if roll < 0.55:
        return replace(one, starting=1)
    if roll < 0.65:
        return replace(one, barred=frozenset({"n0"}))
    if roll < 0.75:
        return replace(one, at=frozenset({"n1"}))
    return one if roll < 0.9 else replace(one, classes=frozenset())


def _place(dice: Random, name: str, pilots: list[Pilot]) -> Place:
    held = [back for one in pilots for place, back in one.returns() if place == name]
    cores = sum(one.cores for one in held)
    free = Amounts(dice.choice((0, 0, 1, 3)), 2048 * dice.choice((1, 4)))
    total = Amounts(cores + free.cores, sum(one.memory for one in held) + free.memory, sum(one.gpus for one in held))
    return Place(name, name, "y" if name == "n1" else "x", free, total, divisible=dice.random() < 0.9)


def _settings(dice: Random, number: int) -> ReclaimSettings:
    return ReclaimSettings(
        policy=POLICIES[number // 3 % len(POLICIES)],
        horizon=dice.choice((3600, 7200)),
        grace=dice.choice((3600, 7200)),
        max_grace=86_400,
        heartbeat_limit=3600,
        max_cores=dice.choice((100, 100, 12)),
        max_cores_per_user=dice.choice((100, 100, 8)),
        max_cores_per_user_hour=dice.choice((100, 100, 16)),
        margin=dice.choice((0, 300)),
        vacate=dice.choice((0, 60)),
        order_latency=dice.choice((0, 60)),
        drain_only=dice.random() < 0.5,
        waiting_cost=dice.choice((0.0, 1.0)),
        extra_cores=dice.choice((None, 0, 4)),
        reports_compete=dice.choice(("user", "account", "site")),
    )


def _history(dice: Random, snapshot: Snapshot) -> History:
    runs = [one.run for one in snapshot.pilots]
    some, needs = dice.sample(runs, 4), [one.name for one in snapshot.kinds or ()] or ["w"]
    found = History(since={name: NOW - dice.choice((0, 600, 4000)) for name in needs})
    if dice.random() < 0.5:
        sizes = PastOrder(NOW - 4000, "ann", 8), PastOrder(NOW - 600, dice.choice(("ann", "bea")), 6, 1, 2)
        trust = {"ann": TrustFigures(9, 90_000, 300_000, 210_000, 400_000, 8, 2)}
        found = replace(found, orders=sizes, trust=trust, broken={"ann": 0.3, "bea": 0.02})
    if dice.random() < 0.3:
        found = replace(
            found, failed={some[0]: NOW - 300}, withdrawn={some[1]: NOW - 900}, unanswered={some[2]: NOW + 60}
        )
    if dice.random() < 0.2:
        found = replace(found, nodes={"n0": NodeFault(NOW - 60, 1, True)})
    if dice.random() < 0.3:
        request = AdminRequest("r", NOW - 60, NOW + 7200, dice.choice((4, 10)), dice.choice((None, "ann")))
        if dice.random() < 0.4:
            request = AdminRequest("r", NOW - 60, NOW + 5000, nodes=("n1",))
        found = replace(found, requests=(request,), requested={some[3]: (dice.choice(("r", "gone")), 4)})
    if dice.random() < 0.4:
        served = {one.run: AccountPart(one.node, one.cores, one.cores) for one in snapshot.pilots if one.deadline}
        back = Round(back=4.0, whole=8.0, last=NOW - 60, nodes=("n0",)) if dice.random() < 0.5 else Round()
        fails = {"failed": 3, "since": NOW - 60, "until": NOW + 600, "held": 4.0, "held_jobs": 1.0}
        unmet = UnmetDemand("w", served, NOW - 600, kind=needs[0] if snapshot.kinds else "", round=back)
        found = replace(found, unmet={needs[0]: replace(unmet, **fails) if dice.random() < 0.4 else unmet})  # type: ignore[arg-type]
    if dice.random() < 0.3:
        found = replace(found, ends={"ann": EndsSeen(40.0, 2e6)}, counted={runs[0]: 2})
    if snapshot.kinds and dice.random() < 0.3:
        places = {one.name: (one.free.cores, NOW - 400) for one in snapshot.places}
        found = replace(found, untaken={needs[-1]: UntakenRoom("w", needs[-1], 2, NOW - 500, places)})
    return found


NUMBERS = (*range(60), 87, 89, 95, 109, 111, 113, 125, 147, 159, 161, 181, 197, 199, 217)
"""The pools of which the decision is recorded; on the last ones parts are asked for."""


def decided(number: int) -> list[str]:
    """What is decided on a pool, a line for each fact; times are seconds from NOW, wastes core-seconds."""
    it = case(number)
    plan = make_plan(it.snapshot, NOW, it.settings, it.history)
    return [f"{number} {plan.policy}: {_cores(plan)}", *(f"  {line}" for line in _lines(plan))]


def _cores(plan: Plan) -> str:
    of = plan.balance
    counts = (
        f"demand {of.demand:g} free {of.free:g} leaving {of.leaving:g} surplus {of.surplus:g} deficit {of.deficit:g}"
    )
    return f"{counts} usable {plan.usable} closed {plan.closed_nodes} stuck {plan.stuck} notices {len(plan.notices)}"


def _lines(plan: Plan) -> Iterator[str]:
    for user in plan.users:
        bounds = f"cores {user.cores} of {user.need.cores}-{user.need.most} later {user.later} {user.limited_by}"
        yield f"{user.user} of {user.account}: {bounds} {user.request}".rstrip()
        for order in user.orders:
            yield _order(order, user.prices.get(order.pilot.run))
        for part in user.returns:
            yield _part(part)
        for one in user.spared:
            yield f"spare {one.candidate.pilot.run} {one.reason.code} {one.price}"
    for gone in plan.withdrawals:
        yield f"withdraw {gone.pilot.run} saves {gone.saved} instead {' '.join(gone.instead)}".rstrip()
    for name, parts in sorted(plan.parts.items()):
        yield f"for {name}: {' '.join(f'{run}={part.cores:g}' for run, part in parts.items())}"
    since = {name: at - NOW for name, at in (plan.since or {}).items()}
    for name, found in (("waiting", plan.waiting), ("missing", plan.missing), ("since", since)):
        if found:
            yield f"{name} {' '.join(f'{key}={value:g}' for key, value in sorted(found.items()))}"
    for pause in plan.paused:
        yield f"paused {pause.account} {pause.cores:g}"
    for jobs in plan.unplaced:
        yield f"unplaced {jobs.account} {jobs.jobs} jobs {jobs.cores} cores since {jobs.since - NOW}"
    if plan.asked_no_more:
        yield f"asked no more {' '.join(one.run for one in plan.asked_no_more)}"


def _order(one: Order, price: int | None) -> str:
    times = (
        f"by {one.deadline - NOW} back {one.cores_back - NOW} waste {one.waste} promised {one.promised} price {price}"
    )
    room = "" if one.room is None else f" for {one.room.place} {_jobs(one)}"
    kept = "" if one.kept is None else " kept"
    more = "".join(f" {name} {value}" for name, value in (("request", one.request), ("extra", one.extra)) if value)
    return f"{one.kind} {one.pilot.run} {times}{room}{kept}{more} {' '.join(one.instead_of)}".rstrip()


def _jobs(one: Order) -> str:
    assert one.room is not None
    return "+".join(f"{jobs}{kind.name}" for kind, jobs in one.room.jobs)


def _part(one: PartOrder) -> str:
    back = None if one.cores_back is None else one.cores_back - NOW
    cores = f"{one.cores} in all {one.in_all} counted {one.counted} chunk {one.chunk}"
    return f"return {one.pilot.run} {cores} by {one.by - NOW} back {back} waste {one.waste}"


if __name__ == "__main__":
    for one in NUMBERS:
        print(*decided(one), sep="\n")
