"""What one cycle would do and why: for each pilot chosen and each spared, the figures and the rule in words."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from drainwise.pool import Pilot, Snapshot
from drainwise.reclaim.arrays import Whole
from drainwise.reclaim.cancel import Cancel, cancels
from drainwise.reclaim.candidates import KILL, Candidate, Candidates, candidates_of
from drainwise.reclaim.doubt import refusing_nodes, why_held_off, with_unanswered
from drainwise.reclaim.fit import jobs_waiting, usable
from drainwise.reclaim.limits import cores_allowed, too_soon
from drainwise.reclaim.notices import notices_of
from drainwise.reclaim.paused_demand import Paused, paused, weighed
from drainwise.reclaim.policy import Choice, Need, policy_called
from drainwise.reclaim.question import Question, balance_for, without_limits
from drainwise.reclaim.quota import Balance, on_its_way, owed, whole_cores
from drainwise.reclaim.reach import total_to_give
from drainwise.reclaim.record import Record
from drainwise.reclaim.settings import Settings
from drainwise.reclaim.unmet_demand import Part, for_whom
from drainwise.reclaim.words import clock, core_hours, duration


@dataclass(frozen=True)
class Order:
    """One pilot that is asked to be gone by `deadline` (UNIX s); `waste` in core-seconds is what that should cost.

    cores_back: when its cores should be free, UNIX s. promised: the waste by the pilot's own word, in core-seconds,
    which is less than `waste` where its user's claims are moved for want of trust.
    """

    candidate: Candidate
    kind: str
    deadline: int
    cores_back: int
    waste: int
    promised: int
    reason: str

    @property
    def pilot(self) -> Pilot:
        """The pilot that is asked."""
        return self.candidate.pilot


@dataclass(frozen=True)
class Spared:
    """One pilot of a user who gives cores back that is left alone, and why."""

    candidate: Candidate
    reason: str


@dataclass(frozen=True)
class UserPlan:
    """One user's part: `cores` to give back for `principal`, who is asked for them and who is spared.

    need: what the policies are asked for it, rounded up to whole pilots where that is right. later: cores that a limit
    of the cycle leaves to the next one; they are not put on anybody else. limit: that limit in words, or "". open: the
    pilots among which was chosen; closed: those that may not be asked, with why by run.
    """

    principal: str
    user: str
    cores: int
    later: int
    limit: str
    orders: tuple[Order, ...]
    open: Candidates = field(repr=False, compare=False)
    closed: tuple[Candidates, Mapping[str, str]] = field(repr=False, compare=False)
    need: Need

    @property
    def cores_given(self) -> int:
        """Cores of the pilots that are asked."""
        return sum(order.pilot.cores for order in self.orders)

    @cached_property
    def spared(self) -> tuple[Spared, ...]:
        """Those that are left alone, each with its reason: made when they are looked at, for they may be many."""
        asked = {order.pilot.run for order in self.orders}
        others, why = self.closed
        spared = [Spared(one, _not_needed(one, self.limit)) for one in self.open if one.pilot.run not in asked]
        return (*spared, *(Spared(one, why[one.pilot.run]) for one in others))

    @cached_property
    def spared_rows(self) -> Whole:
        """The rows of `open` that might have been asked and are not, the least wasteful per core first."""
        asked = {order.pilot.run for order in self.orders}
        rows = np.array([row for row, pilot in enumerate(self.open.pilots) if pilot.run not in asked], dtype=np.int64)
        return rows[np.argsort(self.open.figures.least[rows] / self.open.sizes[rows], kind="stable")]

    def spared_at(self, row: int) -> Spared:
        """One of `spared_rows` with its reason."""
        return Spared(self.open[row], _not_needed(self.open[row], self.limit))


@dataclass(frozen=True)
class Plan:
    """One cycle's decision on the snapshot taken at `taken` (UNIX s), and the sentence that sums it up.

    usable: cores of the orders that lie together as the waiting jobs need them; None when the jobs are not known.
    cancels: requests whose reason has gone. notices: what the decision could not count on, a sentence each.
    closed_nodes: nodes with pilots that cannot be asked. waiting: cores that accounts are owed and wait for, by
    account. parts: for each of these, its parts of the pilots that are asked, by run. paused: demand that does not
    count now.
    """

    taken: int
    policy: str
    balance: Balance
    users: tuple[UserPlan, ...]
    cancels: tuple[Cancel, ...]
    usable: int | None
    summary: str
    notices: tuple[str, ...] = ()
    closed_nodes: int = 0
    waiting: Mapping[str, float] = field(default_factory=dict)
    parts: Mapping[str, Mapping[str, Part]] = field(default_factory=dict)
    paused: tuple[Paused, ...] = ()

    @property
    def orders(self) -> tuple[Order, ...]:
        """All orders, in the order in which they would be given."""
        return tuple(order for user in self.users for order in user.orders)

    @property
    def waste(self) -> int:
        """Expected waste of all orders in core-seconds."""
        return sum(order.waste for order in self.orders)


def make_plan(
    snapshot: Snapshot, now: int, settings: Settings, record: Record | None = None, question: Question | None = None
) -> Plan:
    """Decide on a snapshot at `now` (UNIX s), knowing what `record` tells of earlier cycles.

    Pilots are ranked within one user only; who gives back, and how many cores, comes from what the batch system knows
    alone. With a `question` its cores are planned for, whatever the pool's own balance and the limits of a cycle are.
    Raises PoolUnreachable for a snapshot that is not whole and UsageError for a policy or user that does not exist.
    """
    policy_called(settings.policy)
    record = record or Record()
    snapshot = with_unanswered(snapshot, record.unanswered)
    if question is None:
        counts, asks, balance = weighed(snapshot, record.unmet, now, settings)
        released, pauses = cancels(counts, balance, now, settings, record), paused(snapshot, record.unmet, now)
    else:
        settings, released, pauses, counts, asks = without_limits(settings), (), (), snapshot, snapshot
        balance = balance_for(question, snapshot, now, settings)
    wait = too_soon(record, now, settings) if balance.deficit > 0 else ""
    users = _user_plans(snapshot, balance, now, settings, record, wait)
    asked = [order.pilot for user in users for order in user.orders]
    refusing = refusing_nodes(record.nodes, now, settings)
    fitting = usable(asked, jobs_waiting(counts)) if question is None else None
    return Plan(
        snapshot.taken,
        settings.policy,
        balance,
        tuple(users),
        released,
        fitting,
        summary=wait or _summary(balance, users, fitting, pauses),
        notices=(*([refusing] if refusing else []), *notices_of(snapshot, pauses)),
        closed_nodes=len({pilot.node for pilot in snapshot.pilots if pilot.cannot}),
        waiting={one.name: cores for one in counts.principals if (cores := owed(one)) > 0},
        parts=for_whom(asks, asked, balance.deficit, record.unmet),
        paused=pauses,
    )


def _user_plans(
    snapshot: Snapshot, balance: Balance, now: int, settings: Settings, record: Record, wait: str
) -> list[UserPlan]:
    """Each user's part in turn, until the deficit is covered; what a limit delays is asked of nobody else."""
    pilots: dict[tuple[str, str], list[Pilot]] = defaultdict(list)
    for pilot in snapshot.pilots:
        pilots[pilot.principal, pilot.user].append(pilot)
    users: list[UserPlan] = []
    taken: Counter[str] = Counter()  # by user, who may run under several accounts
    missing, own, cycle = balance.deficit, balance.below_share, 0 if wait else settings.max_cores
    for over in balance.over:
        beyond, most = over.cores, over.most
        for user in over.users:
            cores = min(missing, beyond)
            if cores <= 0:
                break
            allowed = max(0, min(cycle, cores_allowed(user, record, now, settings) - taken[user]))
            part_of, whose = _Part(cores, beyond, own, most), (over.principal, user)
            part = _user_plan(whose, pilots[whose], part_of, allowed, now, settings, record, wait)
            users.append(part)
            cycle -= part.cores_given
            taken[user] += part.cores_given
            gone = part.cores_given + part.later
            missing, own, beyond, most = missing - gone, own - gone, beyond - gone, most - gone
    return users


@dataclass(frozen=True)
class _Part:
    """Cores that one user is to give back: at most `beyond`, what its principal holds beyond what it is owed.

    own: so many are for those who use less than their own share: for them at most `most`, which leaves the principal
    its own share.
    """

    cores: int
    beyond: int
    own: int
    most: int

    def need(self, sizes: Whole) -> Need:
        """What pilots of these sizes are asked for: rounded up beyond `beyond` only where the own shares need it."""
        own = min(self.cores, self.own)
        if total_to_give(sizes, self.cores, self.beyond) >= own:
            return Need(self.cores, self.beyond)
        return Need(own, self.most)


def _user_plan(
    whose: tuple[str, str],
    pilots: Sequence[Pilot],
    part: _Part,
    allowed: int,
    now: int,
    settings: Settings,
    record: Record,
    wait: str,
) -> UserPlan:
    """Choose among one user's pilots, no more cores than are allowed now."""
    closed = {pilot.run: why for pilot in pilots if (why := _why_closed(pilot, now, settings, record))}
    able = candidates_of((pilot for pilot in pilots if pilot.run not in closed), now, settings, record)
    others = candidates_of((pilot for pilot in pilots if pilot.run in closed), now, settings, record)
    need = part.need(able.sizes)
    bounded = Need(min(need.cores, allowed), min(need.most, allowed))
    orders = _orders(policy_called(settings.policy).choose(able, bounded), able)
    later, limit = 0, ""
    if part.cores > allowed:
        limit = wait or f"a limit allows {allowed} cores now"
        possible = min(part.cores, int(able.sizes.sum()))
        later = max(0, possible - sum(order.pilot.cores for order in orders))
    return UserPlan(*whose, part.cores, later, limit, orders, able, (others, closed), need)


def _orders(choices: Sequence[Choice], among: Candidates) -> tuple[Order, ...]:
    """The orders, each with what its pilot would waste by its own word, before its user's claims are moved."""
    word: dict[tuple[str, str], int] = {}
    if among.figures.columns.doubt.any():
        chosen = (choice.candidate.pilot for choice in choices)
        believed = candidates_of(chosen, among.figures.now, among.settings)
        word = {(one.pilot.run, way.kind): way.waste for one in believed for way in one.options}
    return tuple(_order(one, word.get((one.candidate.pilot.run, one.option.kind), one.option.waste)) for one in choices)


def _order(choice: Choice, promised: int) -> Order:
    way = choice.option
    return Order(choice.candidate, way.kind, way.deadline, way.cores_back, way.waste, promised, choice.reason)


def _why_closed(pilot: Pilot, now: int, settings: Settings, record: Record) -> str:
    """Why a pilot may not be asked by what the batch system itself knows or did, or ""."""
    if pilot.deadline is not None:
        return f"asked already to be gone by {clock(pilot.deadline)}"
    if pilot.leaving or (pilot.unanswered is None and on_its_way(pilot, now, settings.horizon)):
        return "the batch system ends it already"
    if pilot.cannot:
        return f"cannot be asked: {pilot.cannot}"
    longest = max(settings.notice, min(settings.grace, settings.max_grace, settings.horizon))
    if pilot.vacate is not None and pilot.vacate > settings.vacate and pilot.vacate + settings.told >= longest:
        return (
            f"its claim lets it be ended {duration(pilot.vacate)} before a deadline, and no deadline lies further ahead"
            f" than {duration(longest)}: it would be ended before it is told"
        )
    if now - pilot.started < settings.min_age:
        return f"left alone for the first {duration(settings.min_age)} of its run"
    return why_held_off(pilot, now, settings, record)


def _not_needed(one: Candidate, limit: str) -> str:
    how = "killing" if one.best.kind == KILL else "asking"
    return f"not needed; {how} it would waste {core_hours(one.best.waste)}" + (f"; {limit}" if limit else "")


def _summary(balance: Balance, users: Sequence[UserPlan], fitting: int | None, pauses: Sequence[Paused]) -> str:
    if balance.demand <= 0 and pauses:
        return "only demand that is paused waits: nothing to give back"
    if balance.demand <= 0:
        return "nobody under quota waits: nothing to give back"
    if not balance.over:
        return "nobody is over quota: nothing to give back"
    needed = whole_cores(balance.demand - balance.free - balance.leaving)
    if balance.deficit <= 0 < min(needed, sum(one.cores for one in balance.over)):
        return "cores that have just come back may serve those who wait: nothing to give back for now"
    if balance.deficit <= 0:
        return "enough cores are free or on their way out: nothing to give back"
    pilots = sum(len(user.orders) for user in users)
    cores = sum(user.cores_given for user in users)
    waste = core_hours(sum(order.waste for user in users for order in user.orders))
    who = "1 pilot gives" if pilots == 1 else f"{pilots} pilots give"
    text = f"{who} back {cores} of {balance.deficit} cores at an expected waste of {waste}"
    missing, scattered = balance.deficit - cores, 0 if fitting is None else min(cores, balance.deficit) - fitting
    if missing > 0:
        text += f"; {missing} cores are left over (limits of a cycle, or no pilot that fits)"
    if scattered > 0:
        text += f"; {scattered} of them lie in pieces too small for the jobs that wait"
    return text
