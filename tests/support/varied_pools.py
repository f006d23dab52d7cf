"""Pools that differ in all that a decision looks at, by number, and what is decided on each, in a few short lines.

Run as a program it prints what tests/reclaim/decisions.txt holds.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import NamedTuple

from drainwise.common.run_times import RunTimes
from drainwise.facts.clients import PROFILES
from drainwise.facts.errors import UsageError
from drainwise.facts.scope_rules import ScopeRules
from drainwise.pilotad.attributes import PROCESSES
from drainwise.pilotad.observation import Observation
from drainwise.pilotad.report import PilotReport
from drainwise.pilotad.values import curve_text
from drainwise.pool.amounts import Amounts
from drainwise.pool.billing import Billing
from drainwise.pool.facts import Account, Closure, Piece, Pilot, Snapshot
from drainwise.pool.job_kinds import JobKind, Place
from drainwise.reclaim.counted_demand import UntakenRoom
from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.history import History, NodeFault, PastOrder, TrustFigures
from drainwise.reclaim.plan import Order, PartOrder, Plan
from drainwise.reclaim.plan_json import as_json
from drainwise.reclaim.quota import WhatIf
from drainwise.reclaim.seen_pilots import EndsSeen, StuckRules, kind_of_payload
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
    what_if: WhatIf | None = None
    is_for_demand: bool = True


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
    it = Case(snapshot, _settings(dice, number), _history(dice, snapshot))
    return it if number < RARE else (_rare, _standing, _rare, _waiting)[number // 3 % 4](dice, it, number)


def _rare(dice: Random, it: Case, number: int) -> Case:
    """The same with what is rare: clients and checkpoints, other bounds of the site, other requests and memories."""
    snapshot, history = it.snapshot, it.history
    pilots = tuple(_rare_pilot(dice, one) for one in _twice(snapshot))
    own = tuple(Pilot(f"w{one}", f"w{one}", "n9", "w", "wil", 2, NOW - 900 * one) for one in range(dice.randint(0, 3)))
    each = dice.choice((1, 1, 1, 2, 8))
    accounts = [replace(one, cores_wanted=3 * one.cores_wanted, cores_per_job=float(each)) for one in snapshot.accounts]
    if dice.random() < 0.4:
        accounts = [replace(one, priority=700.0, cores_running=one.cores_in_use) for one in accounts]
    kinds = snapshot.kinds and tuple(_rare_kind(dice, one) for one in snapshot.kinds)
    places = tuple(replace(one, unseen=Amounts(dice.choice((0, 0, 2)))) for one in snapshot.places)
    closures = snapshot.closures
    if dice.random() < 0.15:
        ends = None, NOW - 1, NOW + 9000
        closures = tuple(
            Closure(
                name, frozenset({f"n{one}"}), NOW + dice.choice((-600, 30, 5000, 90_000)), dice.choice(ends), "firmware"
            )
            for one, name in enumerate(("late", "m", "drainwise-r"))
        )
    snapshot = replace(
        snapshot, pilots=(*pilots, *own), accounts=tuple(accounts), kinds=kinds, places=places, closures=closures
    )
    settings = replace(
        it.settings,
        policy=dice.choice((OPEN_NEED, OPEN_NEED, "least-waste", "least-waste", "paper", "least-kill")),
        drain_only=dice.random() < 0.4,
        notice=dice.choice((0, 0, 600)),
        min_grace=dice.choice((0, 300, 1500)),
        max_grace=dice.choice((5400, 86_400)),
        max_gpus_user_hour=dice.choice((10_000_000, 1)),
        max_cores_hour=dice.choice((10_000_000, 20)),
        stuck=StuckRules(after=dice.choice((600, 14_400))),
        billing=Billing(dice.choice(((("cores", 1.0),), (("cores", 0.5), ("memory", 0.001))))),
        scope=dice.choice((ScopeRules(), ScopeRules(exempt="user=amy"))),
    )
    what_if = WhatIf(dice.choice((5, 30)), dice.choice((None, "ann")), dice.choice((None, "a")))
    history = _rare_history(dice, snapshot, history)
    return Case(snapshot, settings, history, what_if if number % 10 == 9 else None, number % 10 != 8)


def _twice(snapshot: Snapshot) -> list[Pilot]:
    """The pilots, and of most another one on the same node, under another name."""
    more = (one for one in snapshot.pilots[1:] if not one.pieces)
    return [*snapshot.pilots, *(replace(one, run=f"{one.run}b", name=f"{one.name}b") for one in more)]


def _rare_pilot(dice: Random, one: Pilot) -> Pilot:
    said, roll = one.report, dice.random()
    if dice.random() < 0.4:
        one = replace(one, client=dice.choice(sorted(PROFILES)))
    if roll < 0.4:
        one = replace(one, saved=NOW - dice.choice((0, 100, 3000)), next_save=NOW + dice.choice((-50, 1, 500, 2500)))
    if said is not None and 0.2 < roll < 0.5:
        saves = {"last_checkpoint": NOW - 400, "restart_cost": dice.choice((0, 700))} if roll < 0.4 else {}
        saves |= {"next_checkpoint": NOW + 1400} if roll < 0.3 else {"checkpoint_seconds": dice.choice((20, 300))}
        one = replace(one, report=_with(said, **saves))
    elif roll > 0.95:
        one = replace(one, contradictory=True)
    elif roll > 0.9:
        one = replace(one, leaving=True, lease_end=NOW + dice.choice((600, 50_000)))
    elif roll > 0.85:
        one = replace(one, cannot=dice.choice(("[reclaim] max_gpus says no", "out of scope by [reclaim] exempt = x")))
    elif roll > 0.8:
        one = replace(one, min_age=dice.choice((0, 50_000)), heard=NOW - dice.choice((10, 500)))
    elif said is not None and roll > 0.65:
        begins = tuple(NOW - dice.choice((60, 900, 5000)) for _ in range(dice.choice((0, 1, 2))))
        idle = 0 if begins else dice.choice((300, 20_000))
        shown = begins if dice.random() < 0.8 else ()
        one = replace(one, seen=Observation("panda", NOW - 40, len(begins), 1.5, 4000, idle, shown))
        ends = {"first_exp_job_end": None, "last_exp_job_end": None, "last_max_job_end": None, "exp_waste_curve": None}
        one = replace(one, report=_with(said, source=PROCESSES, add_final_exp_waste=None, **ends))
    if dice.random() < 0.4:
        returned = dice.choice((0, 0, 1))
        one = replace(one, can_return=one.cores - 1, returned=returned, asked=returned + dice.choice((0, 0, 1, 3)))
    return one


def _rare_kind(dice: Random, one: JobKind) -> JobKind:
    one, roll = replace(one, jobs=3 * one.jobs), dice.random()
    if roll < 0.3:
        one = replace(one, needs=Amounts(1, dice.choice((0, 512))))
    elif roll < 0.5:
        one = replace(one, jobs=1, example="77.0", asks="a GPU of the newest kind")
    elif roll < 0.7:
        one = replace(one, classes=frozenset(), planned=frozenset({"n1"}))
    return replace(one, starting=min(one.jobs, dice.choice((0, 0, 2))))


def _rare_history(dice: Random, snapshot: Snapshot, history: History) -> History:
    runs, known = [one.run for one in snapshot.pilots], RunTimes()
    for seconds in range(600, 6600, 200):
        known.learn(kind_of_payload(dice.choice(sorted(USERS)), "panda"), seconds)
    names = [one.name for one in snapshot.kinds or ()] or ["w"]
    faults = {"n1": NodeFault(NOW - dice.choice((100, 900)), dice.choice((1, 3)), dice.random() < 0.5)}
    history = replace(history, run_times=known, nodes=dice.choice(({}, faults)), failed={runs[0]: NOW - 500})
    wil = EndsSeen(dice.choice((0.0, 30.0)), 1e5)
    ends = {user: EndsSeen(dice.choice((0.0, 20.0, 900.0)), 3e5) for user in USERS if dice.random() < 0.4}
    history = replace(
        history,
        ends={**history.ends, **ends, "wil": wil},
        unanswered=dice.choice(({}, {runs[1]: NOW + dice.choice((60, 4000))})),
    )
    if dice.random() < 0.3:
        requests = (
            AdminRequest("far", NOW - 60, NOW + 200_000, 8),
            AdminRequest("named", NOW - 50, NOW + 4000, dice.choice((6, 200)), None, dice.choice(("a", "b", "nobody"))),
            AdminRequest("over", NOW - 5000, NOW - 10, 6),
            AdminRequest("empty", NOW - 40, NOW + dice.choice((-100, 20, 3000)), nodes=("n0", "n1"), reason="firmware"),
        )
        some = dice.sample(requests, 2)
        history = replace(history, requests=tuple(some), requested={runs[2]: ("named", 3), runs[3]: ("gone", 4)})
    if dice.random() < 0.6:
        back = Round(4.0, 8.0, ("n0", "n1"), NOW - 300, 2.0, dice.choice((2.0, 3.0)), 1.0, NOW - 200, NOW - 60)
        served = {runs[1]: AccountPart("n1", 8, 6.0), runs[4]: AccountPart("n0", 4, 4.0)}
        one = UnmetDemand("w", served, NOW - 600, round=back, kind=names[0] if snapshot.kinds else "")
        if dice.random() < 0.5:
            until, closed = NOW + dice.choice((-5, 700)), dice.random() < 0.5
            one = replace(one, failed=2, vain=9.0, since=NOW - 90, until=until, held=6.0, held_jobs=2.0, closed=closed)
        history = replace(history, unmet={names[0]: one})
    if snapshot.kinds:
        free = {one.name: (one.free.cores, NOW - dice.choice((100, 400))) for one in snapshot.places}
        untaken = {
            name: UntakenRoom("w", name, 1, NOW - dice.choice((100, 300, 900)), free, dice.choice((0, 0, NOW - 100)))
            for name in names
        }
        history = replace(history, untaken=dice.choice((untaken, {}, {})))
    return history


def _waiting(dice: Random, it: Case, number: int) -> Case:
    """A need is open, and most pilots are dear still: some wait for cheaper ones, some go, others return parts."""
    snapshot, pilots = it.snapshot, list[Pilot]()
    for each in _twice(snapshot):
        begun = NOW - dice.choice((60, 5000, 15_000, 18_000))
        ends = NOW + dice.choice((1000, 9000, 40_000))
        said = PilotReport(
            NOW - 60,
            used_cpu=each.cores * dice.choice((0.6, 1.0)),
            last_job_start=begun,
            first_exp_job_end=ends,
            last_exp_job_end=ends + dice.choice((0, 900)),
            add_uncom_time=float(each.cores * (NOW - begun) // dice.choice((1, 2))),
            add_final_exp_waste=0.0,
            can_postpone_last_job=True,
        )
        started = NOW - dice.choice((900, 20_000, 40_000))
        can, lease = (each.cores - 1) * (number % 2), dice.choice((None, None, None, NOW + 2000, NOW + 20_000))
        one = replace(each, report=said, started=started, leaving=False, cannot="", client="paper")
        deadline = NOW + 1500 if lease == NOW + 2000 and dice.random() < 0.4 else None
        pilots.append(replace(one, lease_end=lease, deadline=deadline, can_return=can, returned=0, asked=0))
    if snapshot.kinds is None and number % 4 == 1:
        pilots[0] = replace(pilots[0], cores=140, can_return=139)
    own = [Pilot(f"w{one}", f"w{one}", "n9", "w", "wil", 2, NOW - 900 * one) for one in range(dice.randint(0, 9))]
    kinds = snapshot.kinds and tuple(
        replace(
            one, starting=0, barred=frozenset(), needs=replace(one.needs, memory=one.needs.memory * dice.choice((1, 3)))
        )
        for one in snapshot.kinds
    )
    accounts = [replace(one, cores_owed=0.0) for one in snapshot.accounts[:2]]
    waits = replace(snapshot.accounts[2], cores_owed=100.0, cores_in_use=2.0 * len(own))
    waits = replace(waits, cores_per_job=dice.choice((1.0, 1.0, 4.0)))
    waits = replace(waits, cores_wanted=dice.choice((1.0, waits.cores_wanted, waits.cores_wanted, waits.cores_wanted)))
    snapshot = replace(snapshot, pilots=(*pilots, *own), accounts=(*accounts, waits), kinds=kinds, closures=())
    settings = replace(it.settings, policy=OPEN_NEED, drain_only=dice.random() < 0.2, horizon=7200)
    ends_seen = {
        user: EndsSeen(dice.choice((0.0, 40.0, 200.0)), 3e6) for user in (*USERS, "wil") if dice.random() < 0.6
    }
    opened = NOW - dice.choice((0, 600, 1200, 3000, 5000, 6900, 7500, 7501))
    since = dict.fromkeys(it.history.since, opened)
    history = replace(
        it.history, since=since, ends=ends_seen, requests=(), unmet={}, nodes={}, withdrawn={}, untaken={}
    )
    return Case(snapshot, settings, history)


def _standing(dice: Random, it: Case, number: int) -> Case:
    """Orders stand for all that waits, some of them dear: others may go in their place."""
    snapshot, spared = it.snapshot, dice.choice(("bea", "ann", ""))
    pilots = []
    for place, each in enumerate(_twice(snapshot)):
        is_dear, size = place % 2 == 0, each.cores if snapshot.kinds is None else dice.choice((4, 4, 4, 8))
        used, first = (size, NOW + 20_000) if is_dear else (1.0, NOW + dice.choice((60, 900, 3000)))
        said = PilotReport(
            NOW - 60,
            used_cpu=float(used),
            last_job_start=NOW - dice.choice((200, 9000)),
            first_exp_job_end=first,
            last_exp_job_end=first,
            add_uncom_time=float(dice.choice((0, 900)) * used),
            add_final_exp_waste=0.0,
            priority_factor=dice.choice((None, 1, 3)),
            can_postpone_last_job=True,
        )
        deadline = NOW + dice.choice((1800, 2400)) if is_dear and each.user != spared else None
        one = replace(
            each,
            report=said,
            started=NOW - 20_000,
            deadline=deadline,
            leaving=False,
            cannot="",
            client="paper",
            cores=size,
        )
        kept = one.pieces if deadline is None else ()
        pilots.append(replace(one, lease_end=None, can_return=0, returned=0, asked=0, pieces=kept, vacate=None))
    going = [one for one in pilots if one.deadline]
    places = tuple(
        replace(
            one, free=Amounts(0, 1024), total=Amounts(sum(it.cores for it in pilots if it.node == one.name), 99_999)
        )
        for one in snapshot.places
    )
    pilots = [
        replace(one, place=one.node, holds=Amounts(one.cores, one.cores * 2048)) if places and not one.pieces else one
        for one in pilots
    ]
    cores, less = sum(one.cores for one in going), dice.choice((0, 0, 0, 0, 0, 2))  # jobs that wait no more
    kinds = snapshot.kinds and (
        JobKind(
            "k0", "w", sum(one.cores for one in going) // 4 - less, Amounts(4, dice.choice((0, 512))), frozenset("xy")
        ),
        JobKind("k1", "w", dice.choice((0, 0, 1)), Amounts(2, 512), frozenset("xy"), places=dice.choice((1, 2))),
    )
    wanted = float(max(1, cores - 4 * less) if kinds is None else sum(one.jobs * one.cores for one in kinds))
    accounts = [replace(one, cores_owed=0.0) for one in snapshot.accounts[:2]]
    waits = replace(snapshot.accounts[2], cores_in_use=0.0, cores_owed=100.0, cores_wanted=wanted, cores_per_job=2.0)
    snapshot = replace(
        snapshot,
        pilots=tuple(pilots),
        accounts=(*accounts, waits),
        free_cores=0.0,
        kinds=kinds,
        places=places,
        closures=(),
    )
    parts = {one.run: AccountPart(one.node, one.cores, float(one.cores)) for one in going[dice.choice((0, 0, 1)) :]}
    name = "w" if kinds is None else "k0"
    unmet = {name: UnmetDemand("w", parts, NOW - 900, kind="" if kinds is None else "k0")}
    settings = replace(it.settings, policy=OPEN_NEED, max_cores_per_user_hour=dice.choice((100, 12)), horizon=7200)
    since = dict.fromkeys(("w", "k0", "k1"), NOW - 600)
    if kinds and dice.random() < 0.3:
        unmet["k1"] = UnmetDemand("w", {one.run: parts[one.run] for one in going[1:3]}, NOW - 900, kind="k1")
    doubtful = {one.run: NOW + 600 for one in pilots[1:2]} if dice.random() < 0.2 else {}
    cancelled = {one.run: ("gone", one.cores) for one in going[::3]} if dice.random() < 0.35 else {}
    history = History(since=since, unmet=unmet, unanswered=doubtful, requested=cancelled)
    return Case(snapshot, replace(settings, drain_only=number % 2 == 0), history)


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


RARE = 1000
"""The first of the pools with what is rare."""
PARTS = 87, 89, 95, 109, 111, 113, 125, 147, 159, 161, 181, 197, 199, 217
"""Pools on which parts are asked for."""
SELDOM: tuple[int, ...] = (352, 353, 373, 387, 433, 513, 567, 585, 605)
SELDOM += (1108, 1113, 1126, 1132, 1137, 1139, 1161, 1163, 1165, 1173, 1176, 1181, 1185, 1189, 1190, 1210, 1281, 1294)
SELDOM += (1301, 1305, 1307, 1319, 1324, 1333)
"""Pools on which is done what is done on few of the others: orders wait, room is replaced, all are asked for parts."""
NUMBERS = (*range(16), *PARTS, *range(RARE, RARE + 108), *SELDOM)
"""The pools of which the decision is recorded."""


def decided(number: int) -> list[str]:
    """What is decided on a pool, a line for each fact; times are seconds from NOW, wastes core-seconds.

    The last line has a checksum of all that the plan tells, word for word: see it by `plan_json.as_json`.
    """
    it = case(number)
    try:
        plan = make_plan(it.snapshot, NOW, it.settings, it.history, it.what_if, it.is_for_demand)
    except UsageError as fault:
        return [f"{number}: {fault}"]
    words = zlib.crc32(json.dumps([as_json(plan), *map(str, _rooms(plan))]).encode())
    lines = *_lines(plan), f"in words {words:08x}"
    return [f"{number} {plan.policy}: {_cores(plan)}", *(f"  {line}" for line in lines)]


def _rooms(plan: Plan) -> Iterator[object]:
    """What the JSON does not tell: the room that is kept for an order, and why a user's is given later."""
    for user in plan.users:
        yield from (one.kept for one in user.orders)
        yield from sorted(user.held.items())


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
