"""Look again at the orders that stand: what no need uses is withdrawn, what others beat by far is replaced.

Facts say which orders have lost their reason. Claims say which pilots of one user go in place of which of its others:
together no more cores, gone no later than the deadlines of the orders that they replace, and far cheaper. A pilot whose
order was withdrawn gets no other one for a while (`history.PAUSE`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from drainwise.facts.units import core_hours
from drainwise.pool.facts import Pilot, Snapshot
from drainwise.pool.free_cores import whole_cores
from drainwise.pool.job_kinds import RoomFor
from drainwise.pool.scope import is_out_of_scope
from drainwise.reclaim.candidates import Candidates
from drainwise.reclaim.choose.by_cores import plan_cores
from drainwise.reclaim.choose.choose import choose
from drainwise.reclaim.choose.fill import reprieve
from drainwise.reclaim.choose.plan import Rules
from drainwise.reclaim.choose.problem import Limits, Mask, Real, State, Whole, whole_pilots
from drainwise.reclaim.columns import columns_of
from drainwise.reclaim.decide.open_until import pilots_by_user
from drainwise.reclaim.decide.user_plans import Allowances, able_and_closed, orders_of, with_kept_rooms
from drainwise.reclaim.figures import figures_of
from drainwise.reclaim.history import History, void_orders
from drainwise.reclaim.plan import Need, Order, Plan, UserPlan, Withdrawal
from drainwise.reclaim.prices import valued
from drainwise.reclaim.quota import Balance, on_their_way
from drainwise.reclaim.reasons import Reason
from drainwise.reclaim.room import DemandLeft, PlaceRoom, problem_of, room_for, rows_of
from drainwise.reclaim.settings import ReclaimSettings
from drainwise.reclaim.unmet_demand import AccountPart, UnmetDemand

_Groups = list[tuple[list[int], list[int]]]
"""Of one user rows of pilots with orders, and those that go in their place."""
_Replaced = list[tuple[UserPlan, list[Withdrawal]]]
"""The orders of each user that replace others, and those others."""
_LOOKS = 300  # at groups of places, of all users
_NAMED = 3
_WORSE = 1.5  # an order stands until it costs so many times what another pilot costs
_LEAST_WORSE = 300  # and core-seconds a core more
_ENDLESS = 1e12  # cores


def _stands(pilot: Pilot, now: int) -> bool:
    """Return whether a pilot has an order that may be withdrawn: of one that is out of the scope also a request's."""
    return pilot.deadline is not None and pilot.deadline > now and (not pilot.reserved or is_out_of_scope(pilot))


def withdrawals(
    snapshot: Snapshot,
    balance: Balance,
    now: int,
    settings: ReclaimSettings,
    history: History,
    needed: Collection[str] | None = None,
) -> tuple[Withdrawal, ...]:
    """Return the orders to withdraw at `now` (UNIX s); the best priority comes first.

    No more cores than are on their way beyond the demand, or beyond what an account holds over its quota: so no cycle
    orders again what this one withdraws. For an order that was not answered none is withdrawn, as it may not be carried
    out. Where `needed` says whose room waiting jobs use, those keep their orders and no others. An order that
    is void (`void_orders`) is withdrawn in any case. Of one user's pilots those that save the most; how many cores that
    are comes from the sizes alone.
    """
    standing = [one for one in snapshot.pilots if _stands(one, now)]
    if not standing:
        return ()
    void, going, found = void_orders(snapshot, history), Counter[str](), list[Withdrawal]()
    in_doubt = sum(one.cores for one in snapshot.pilots if one.unanswered is not None and not one.reserved)
    back = sum(one.cores for one in standing if one.run in void and not one.reserved)
    spare = max(0, whole_cores(balance.free + balance.leaving - in_doubt - balance.demand) - back)
    for one in snapshot.pilots:
        going[one.account] += one.cores * ((one.deadline is not None or one.leaving) and one.run not in void)
    over = ((one.name, max(0.0, one.cores_in_use - one.cores_owed)) for one in snapshot.accounts)
    beyond = {name: whole_cores(going[name] - cores) for name, cores in over}
    first = {one.name: (one.priority, one.name) for one in snapshot.accounts}
    users = pilots_by_user(one for one in standing if one.run in void or one.run not in (needed or ()))
    for whose in sorted(users, key=lambda it: (first[it[0]], snapshot.user_priorities.get(it[1], 0.0), it[1])):
        if needed is None and not (spare or beyond[whose[0]] or void):
            continue
        ordered = _going_on(users[whose], now, settings, history)
        saved, sizes, stays = ordered.figures.drained, ordered.sizes, np.zeros(len(ordered), dtype=bool)
        others = np.array([one.run not in void for one in ordered.pilots])
        left = beyond[whose[0]]
        if needed is None:
            of = ordered.figures.columns
            price = valued(saved, sizes, of.priority_factor, of.billed, settings)[others]
            # As few cores as can be by facts, of those the cheapest: which of the orders stand is what is chosen.
            size, rest = sizes[others].astype(float), float(sizes[others].sum() - max(spare, left))
            rows = whole_pilots(size, np.zeros_like(sizes[others]), np.zeros_like(size), price)
            stays[others] = plan_cores(rows, _limits([[0]], [_ENDLESS]), rest, Rules()).gone
        is_spare = needed is not None or spare >= left
        reason = "nobody waits for these cores any more" if is_spare else f"{whose[0]} is not over quota"
        for row in np.flatnonzero(~stays).tolist():
            pilot, less = ordered.pilots[row], int(saved[row])
            why = void.get(pilot.run, reason)
            found.append(Withdrawal(pilot, less, f"{why}; going on saves {core_hours(less)}"))
        spare, beyond[whose[0]] = (max(0, cores - int(sizes[others & ~stays].sum())) for cores in (spare, left))
    return tuple(found)


def needed_runs(
    kinds: DemandLeft, pilots: Sequence[Pilot], now: int, settings: ReclaimSettings, unmet: Mapping[str, UnmetDemand]
) -> frozenset[str]:
    """Return the runs on their way out whose room a waiting job uses: their orders have not lost their reason.

    Of those of one place the ones that go first, until they hold what is used: where a large one would do without small
    ones, these would be withdrawn and ordered again as the demand changes. Runs with orders for jobs that need several
    places at once stand together, as long as they are on no more places than these jobs need: a place that comes free
    elsewhere may be gone before the last of the set has left.
    """
    leaving = on_their_way(pilots, now, settings.horizon)
    there = [one for one in leaving if any(name in kinds.facts.index for name, _ in one.returns())]
    there.sort(key=lambda one: (one.deadline or one.lease_end or 0, one.run))
    price = np.arange(len(there), dtype=float)
    every = np.ones(len(there), dtype=bool)
    state = _state(kinds, there, every, 0 * every, price, _limits([[0]], [_ENDLESS]))
    reprieve(state)
    rows, last = state.problem.rows, np.full(len(kinds.facts.places), -1)
    goes = state.gone[rows.row]
    np.maximum.at(last, rows.place[goes], rows.row[goes])
    kept = {there[row].run for row in rows.row[rows.row <= last[rows.place]].tolist()}
    spots = np.bincount(kinds.served.kind, kinds.served.jobs, len(kinds.jobs))
    for number, kind in enumerate(kinds.facts.kinds):
        runs = unmet[kind.name].runs if kind.places > 1 and kind.name in unmet else {}
        if runs and len({place for one in pilots if one.run in runs for place, _ in one.returns()}) <= spots[number]:
            kept.update(runs)
    return frozenset(kept)


def with_replacements(
    plan: Plan, kinds: DemandLeft | None, snapshot: Snapshot, now: int, settings: ReclaimSettings, history: History
) -> Plan:
    """Return the plan at `now` (UNIX s) in which other pilots go in place of those whose orders cost more by far.

    kinds: what waits by kind, for the same jobs of which the others make room; None where cores are counted.
    """
    ordered = {(one.account, one.user) for one in snapshot.pilots if _stands(one, now)}
    by_user = sorted(pilots_by_user(one for one in snapshot.pilots if (one.account, one.user) in ordered).items())
    allowances = Allowances(history, now, settings)
    users = [user for whose, pilots in by_user if (user := _user(whose, pilots, now, settings, history, allowances))]
    cycle, pilots, time = allowances.together(), snapshot.pilots, settings.time_to_start
    found = _by_cores(users, cycle) if kinds is None else _by_room(users, kinds, pilots, cycle, time)
    plans = {(one.account, one.user, one.request): one for one in plan.users}
    parts = {name: dict(one) for name, one in plan.parts.items()}
    for part, _ in found:
        for order in part.orders:
            for name, known in history.unmet.items():
                if cores := sum(known.runs[run].cores for run in order.instead_of if run in known.runs):
                    nodes, whole = " ".join(order.pilot.nodes), order.pilot.cores
                    parts.setdefault(name, {})[order.pilot.run] = AccountPart(nodes, whole, min(cores, float(whole)))
        before = plans.get(key := (part.account, part.user, ""))
        cores, orders = (before.cores, before.orders) if before else (0, ())
        plans[key] = replace(before or part, cores=cores + part.cores, orders=(*orders, *part.orders))
    if not found:
        return plan
    withdrawn = [one for _, more in found for one in more]
    words = "1 order is" if len(withdrawn) == 1 else f"{len(withdrawn)} orders are"
    summary = f"{plan.summary}; {words} withdrawn, as others cost less by far"
    withdrawals = (*plan.withdrawals, *withdrawn)
    return replace(plan, users=tuple(plans.values()), withdrawals=withdrawals, summary=summary, parts=parts)


@dataclass(frozen=True)
class _User:
    """A user's `pilots`: first the `count` whose orders stand for those who wait, then those that are `able` to go.

    allowed: cores that may be ordered of it now. spent: core-seconds that each costs from now on, with what waiting is
    worth. price: the same with what its user values; of an order only what others may cost to be worth it; infinite for
    a pilot that would not be gone in time. saved: core-seconds, by each order that is withdrawn.
    """

    whose: tuple[str, str]
    allowed: int
    count: int
    pilots: Sequence[Pilot]
    sizes: Whole
    spent: Real
    price: Real
    saved: Real
    able: Candidates
    closed: Sequence[tuple[Pilot, Reason]]


def _user(
    whose: tuple[str, str],
    pilots: Sequence[Pilot],
    now: int,
    settings: ReclaimSettings,
    history: History,
    allowances: Allowances,
) -> _User | None:
    """Return a user with orders that stand and pilots that may get one; an order for a request is not looked at."""
    some = [one for one in pilots if _stands(one, now) and one.run not in history.requested]
    if not some:
        return None
    ordered, left = _going_on(some, now, settings, history), max(one.deadline or now for one in some) - now
    sooner = replace(settings, horizon=left)
    others_of, closed = able_and_closed(pilots, now, sooner, history)[whose]
    able = Candidates(tuple(others_of), now, sooner, history)
    mine, others = ordered.figures, able.figures
    spent = np.concatenate((mine.price, others.price))
    sizes, priority, billed = (
        np.concatenate((getattr(mine.columns, name), getattr(others.columns, name)))
        for name in ("cores", "priority_factor", "billed")
    )
    price = valued(spent, sizes, priority, billed, settings)
    count, worth = len(ordered), np.maximum((price / sizes - _LEAST_WORSE) / _WORSE, 0) * sizes
    price = np.where(np.arange(len(sizes)) < count, worth, price)
    if settings.drain_only:
        late = others.columns.least_grace + settings.order_latency + others.columns.vacate > left
        price[count:][late & np.isinf(others.leave)] = np.inf
    every = (*ordered.pilots, *able.pilots)
    allowed = allowances.of(whose[1], settings.max_cores, 0).cores
    return _User(whose, allowed, count, every, sizes, spent, price, mine.drained, able, closed)


def _going_on(pilots: Sequence[Pilot], now: int, settings: ReclaimSettings, history: History) -> Candidates:
    """Return pilots with orders as what they cost when they go on draining: each until its own deadline.

    That they drain is our own doing, so what idles from now on is no waste that is lost already. The margin lies within
    the deadline that they have.
    """
    rows = tuple(sorted(pilots, key=lambda one: one.run))
    deadlines = np.array([one.deadline for one in rows], dtype=float)
    left = int(deadlines.max()) - now
    until = replace(settings, margin=0, drain_only=True, horizon=left, grace=left, max_grace=left, min_grace=left)
    columns = columns_of(rows, now, until, history)
    draining, ends = np.zeros(len(rows), dtype=bool), np.minimum(columns.lease_end, deadlines)
    columns = replace(columns, draining=draining, lease_end=ends)
    return Candidates(rows, now, until, history, lambda: figures_of(columns, now, until))


def _by_cores(users: Sequence[_User], cycle: int) -> _Replaced:
    """Let a pilot of as many cores go in place of each order that it beats by far; cycle: cores of these at most."""
    replaced: _Replaced = []
    for user in users:
        sizes, price, found = user.sizes, user.price, list[tuple[list[int], list[int]]]()
        for size in np.unique(sizes[: user.count]).tolist():
            rows = np.flatnonzero(sizes == size)
            old, new = rows[rows < user.count], rows[rows >= user.count]
            old, new = old[np.argsort(-price[old], kind="stable")], new[np.argsort(price[new], kind="stable")]
            found += [([row], [other]) for row, other in zip(old.tolist(), new.tolist()) if price[other] < price[row]]
        found.sort(key=lambda pair: -price[pair[0][0]] / sizes[pair[0][0]])
        cores = np.cumsum([sizes[old[0]] for old, _ in found])
        if within := [pair for pair, total in zip(found, cores) if total <= min(cycle, user.allowed)]:
            replaced.append(_part(user, within))
            cycle -= replaced[-1][0].cores_given
    return replaced


def _limits(binds: Sequence[Sequence[int]], most: Sequence[float]) -> Limits:
    """Return limits on cores, and which of them bind each user."""
    users, none = np.zeros(len(binds), dtype=np.int64), np.zeros(len(binds))
    return Limits(users, none, np.array(binds), np.array(most, dtype=float), np.zeros(len(most), dtype=np.int64), none)


def _by_room(
    users: Sequence[_User], kinds: DemandLeft, pilots: Sequence[Pilot], cycle: int, time_to_start: int
) -> _Replaced:
    """Let other pilots of each user, of no more cores together, make room for the same jobs; as `_by_cores`.

    Not in place of orders for jobs that need several places, nor on places with orders to others' pilots. What no other
    job uses may be used, too, by one user.
    """
    replaced: _Replaced = []
    places = list[PlaceRoom]()
    facts, served, taken, count = kinds.facts, kinds.served, set[str](), sum(one.count for one in users)
    ordered = {(one.place, one.account, one.user) for one in pilots if one.deadline is not None}
    shared = {place for place, users_of in Counter(place for place, _, _ in ordered).items() if users_of > 1}
    for user in users:
        known = [one.place in facts.index and one.place not in taken and not one.pieces for one in user.pilots]
        rows = np.flatnonzero(known)
        some, price = [user.pilots[row] for row in rows.tolist()], user.price[rows]
        stands: Mask = np.less(rows, user.count)
        mine = facts.at(sorted({one.place for one in some}))
        at = np.array([facts.index[one.name] for one in mine.places], dtype=np.int64)
        uses = served.some(np.isin(served.place, at))
        uses = replace(uses, place=np.searchsorted(at, uses.place))
        here = replace(kinds, facts=mine, room=kinds.room[at], closed=kinds.closed[at], served=uses)
        limits = _limits([(0, -1), (0, 1)], [user.sizes[rows[stands]].sum(), min(cycle, user.allowed)])
        state = _state(here, some, stands, (~stands).astype(int), price, limits)
        at, jobs, of_sets = state.problem.rows.place, state.served.tolist(), state.jobs[:, mine.needs.several > 1]
        state.price[stands & np.isin(at, [*np.nonzero(of_sets)[0], *(mine.index.get(name, -1) for name in shared)])] = 0
        cost, looks = state.cost(), 5 + _LOOKS * user.count // count
        found = choose(state.problem, state.price, looks, state)
        old, new = stands & ~found.gone, found.gone & ~stands
        if not new.any() or found.cost() >= cost or found.served.tolist() != jobs:
            continue
        rooms = dict[str, RoomFor]()
        for place in np.unique(at[new]).tolist():
            runs = tuple(some[one].run for one in np.flatnonzero(found.gone & (at == place)))
            places.append(PlaceRoom(room_for(mine, mine.places[place].name, found.jobs[place]), runs))
            rooms |= dict.fromkeys(runs, places[-1].room)
        replaced.append(_part(user, [(rows[old].tolist(), rows[new].tolist())], rooms))
        cycle -= replaced[-1][0].cores_given
        taken |= {one.place for one, goes in zip(some, new) if goes}
    ordered_at = [facts.index.get(one.place, -1) for user in users for one in user.pilots[: user.count]]
    others = served.some(~np.isin(served.place, ordered_at) | ~served.returning.any(axis=1))
    back = {one.pilot.run for _, more in replaced for one in more}
    going, kinds = [one for one in pilots if one.run not in back], replace(kinds, served=others)
    parts = with_kept_rooms([one for one, _ in replaced], kinds, places, going, time_to_start)
    return list(zip(parts, (more for _, more in replaced)))


def _state(kinds: DemandLeft, pilots: Sequence[Pilot], stands: Mask, user: Whole, price: Real, limits: Limits) -> State:
    """Return the choice in which those of these pilots go whose orders stand, for the jobs that their room serves."""
    facts = kinds.facts
    rows = rows_of(facts, pilots, user, price, 0)
    place, gives = rows.place, rows.gives
    jobs, room = np.zeros((len(facts.places), len(facts.kinds)), dtype=np.int64), kinds.room.copy()
    back = stands[rows.row]
    here = np.isin(np.arange(len(room)), place[back])
    uses = kinds.served.some(here[kinds.served.place] & kinds.served.returning.any(axis=1))
    np.add.at(jobs, (uses.place, uses.kind), uses.jobs)
    np.add.at(room, uses.place, uses.free + uses.returning)
    np.subtract.at(room, place[back], gives[back])
    room[here] = np.maximum(room[here], 0)
    owed, closed = np.full(len(kinds.owed), _ENDLESS), kinds.closed & ~here
    left = replace(kinds, jobs=jobs.sum(axis=0), owed=owed, room=room, closed=closed)
    state = State(problem_of(left, rows, limits), price)
    state.go(np.flatnonzero(stands))
    for kind in np.flatnonzero(jobs.any(axis=0)).tolist():
        state.serve(kind, np.flatnonzero(jobs[:, kind]), jobs[jobs[:, kind] > 0, kind])
    return state


def _part(
    user: _User, groups: _Groups, rooms: Mapping[str, RoomFor] = MappingProxyType({})
) -> tuple[UserPlan, list[Withdrawal]]:
    """Return a user's orders in place of others, and those others; rooms: that the new ones make, by run."""
    withdrawn, stead, able = list[Withdrawal](), dict[str, tuple[tuple[str, ...], str]](), user.able
    for old, new in groups:
        mine, theirs = ([user.pilots[row] for row in rows] for rows in (old, new))
        cost, runs = core_hours(int(user.spent[new].sum())), tuple(one.run for one in theirs)
        which = "another pilot costs" if len(new) == 1 else "other pilots cost"
        for row, pilot in zip(old, mine):
            spent, saved = core_hours(int(user.spent[row])), int(user.saved[row])
            why = f"{which} less by far: {_named(theirs)} {cost}, this one {spent} from now on"
            withdrawn.append(Withdrawal(pilot, saved, f"{why}; going on saves {core_hours(saved)}", runs))
        spent = core_hours(int(user.spent[old].sum()))
        said = f"in place of {_named(mine)}, whose order would cost {spent} from now on"
        stead |= dict.fromkeys(runs, (tuple(one.run for one in mine), said))
    some = able.some([row for row, one in enumerate(able.pilots) if one.run in stead])
    need, orders = Need(int(some.sizes.sum()), int(some.sizes.sum())), list[Order]()
    for order in orders_of(some):
        (before, said), room = stead[order.pilot.run], rooms.get(order.pilot.run)
        why = "; ".join((order.reason, said, *([room.in_words()] if room else [])))
        orders.append(replace(order, reason=why, room=room, instead_of=before))
    return UserPlan(*user.whose, need.cores, 0, "", tuple(orders), able, user.closed, need), withdrawn


def _named(pilots: Sequence[Pilot]) -> str:
    names = [one.name for one in pilots]
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
