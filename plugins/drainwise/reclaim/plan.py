"""One cycle's decision: for each pilot chosen and spared, the figures and the rule in words."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from drainwise.facts.units import CORE_H
from drainwise.pool.abilities import KeptRoom
from drainwise.pool.facts import Pilot
from drainwise.pool.job_kinds import RoomFor
from drainwise.reclaim.candidates import Candidate, Candidates, in_words
from drainwise.reclaim.choose.problem import Whole
from drainwise.reclaim.counted_demand import Paused, Unplaced
from drainwise.reclaim.prices import prices_of
from drainwise.reclaim.quota import Balance
from drainwise.reclaim.reasons import LATER, LIMIT, NOT_NEEDED, Reason
from drainwise.reclaim.unmet_demand import AccountPart


@dataclass(frozen=True)
class Need:
    """Cores that one user has to give back: at least `cores` if pilots of fitting sizes exist, never above `most`."""

    cores: int
    most: int


@dataclass(frozen=True)
class Order:
    """One pilot that is ordered to end by `deadline` (UNIX s); `waste` in core-seconds is what that should cost.

    cores_back: when its cores should be free, UNIX s. promised: the waste by the pilot's own claims, in core-seconds,
    which is less than `waste` where its user's claims are moved for want of trust. request: the request or closing of
    nodes that it is for, "" when it is for those who wait. room: what its pilot makes room for, with others there; None
    where cores are counted. kept: what must be kept there for it, where no pilot makes that room alone. instead_of:
    runs whose orders are withdrawn for this one, by name; it is given only when they are. extra: cores that its user
    gives back beyond what facts take, by its own reports; at the first of its orders.
    """

    candidate: Candidate
    kind: str
    deadline: int
    cores_back: int
    waste: int
    promised: int
    reason: str
    request: str = ""
    room: RoomFor | None = None
    kept: KeptRoom | None = None
    instead_of: tuple[str, ...] = ()
    extra: int = 0

    @property
    def pilot(self) -> Pilot:
        """The pilot that gets the order."""
        return self.candidate.pilot


@dataclass(frozen=True)
class PartOrder:
    """One pilot that is asked to return `cores` of the cores that it holds, beside what it has returned, and to go on.

    by: until when that is asked, UNIX s. chunk: cores that are of use only together. cores_back: when all of them
    should be free, UNIX s; None where that is not expected by then. waste: core-seconds that should idle until then.
    counted: those of the cores that are counted on; others are asked for as it costs nothing.
    """

    candidate: Candidate
    cores: int
    by: int
    chunk: int
    cores_back: int | None
    waste: int
    reason: str
    counted: int

    @property
    def pilot(self) -> Pilot:
        """The pilot that is asked."""
        return self.candidate.pilot

    @property
    def in_all(self) -> int:
        """Cores of its lease that it is to have returned in all."""
        return self.pilot.returned + self.cores

    @property
    def stands(self) -> bool:
        """Whether it was asked for as many already."""
        return self.pilot.asked == self.in_all

    def at_least_asked(self) -> PartOrder:
        """Return the part where it is asked for no less than stands."""
        return replace(self, cores=max(self.cores, self.pilot.returning))


def still_asked(pilot: Pilot, demand: float) -> int:
    """Return the cores that a pilot of which no more is needed should have returned in all.

    As long as anybody waits what it has returned stays so; else it may have again what nobody uses.
    """
    return pilot.returned if demand > 0 else 0


@dataclass(frozen=True)
class Withdrawal:
    """One pilot whose order is to be withdrawn; `saved` in core-seconds is what that should save.

    instead: runs that get an order in its place, by name; none where its reason has gone.
    """

    pilot: Pilot
    saved: int
    reason: str
    instead: tuple[str, ...] = ()


@dataclass(frozen=True)
class Spared:
    """One pilot of a user who gives cores back that is left alone, and why; price: core-seconds, as `UserPlan`."""

    candidate: Candidate
    reason: Reason
    price: int | None = None


@dataclass(frozen=True)
class UserPlan:
    """One user's part: `cores` to give back for `account`, who gets an order and who is spared.

    need: what a policy has to find for it, rounded up to whole pilots where that is right. later: cores that a limit
    of the cycle leaves to the next one; they are not put on anybody else. limit: that limit in words, or "", and
    limited_by: its key of [reclaim], or "". open: the pilots among which was chosen; closed: those that may get no
    order, with why. request: as in `Order`. held: pilots that were chosen and are better ordered later, with why
    by run. returns: parts of pilots that go on.
    """

    account: str
    user: str
    cores: int
    later: int
    limit: str
    orders: tuple[Order, ...]
    open: Candidates = field(repr=False, compare=False)
    closed: Sequence[tuple[Pilot, Reason]] = field(repr=False, compare=False)
    need: Need
    request: str = ""
    held: Mapping[str, str] = field(default_factory=dict)
    returns: tuple[PartOrder, ...] = ()
    limited_by: str = ""

    @property
    def cores_returned(self) -> int:
        """Cores that pilots with a part are to give back: no more than are needed beside those that go."""
        return min(sum(one.cores for one in self.returns), max(0, self.need.cores - self.cores_given))

    @property
    def cores_given(self) -> int:
        """Cores of the pilots that get an order."""
        return sum(order.pilot.cores for order in self.orders)

    @cached_property
    def spared(self) -> tuple[Spared, ...]:
        """Those that are left alone, each with its reason: made when they are looked at, for they may be many."""
        spared = [self.spared_at(row) for row in sorted(self.spared_rows.tolist())]
        return (*spared, *(Spared(one, why) for one, (_, why) in zip(self._others, self.closed)))

    @cached_property
    def _others(self) -> Candidates:
        """Those that may get no order."""
        return Candidates(tuple(one for one, _ in self.closed), self.open.now, self.open.settings, self.open.history)

    @cached_property
    def spared_rows(self) -> Whole:
        """The rows of `open` that might have got an order and have none, the least price for each core first."""
        ordered = {one.pilot.run for one in self.orders} | {one.pilot.run for one in self.returns}
        rows = np.array([row for row, pilot in enumerate(self.open.pilots) if pilot.run not in ordered], dtype=np.int64)
        prices = np.array([*self.prices.values()])[rows]
        return rows[np.argsort(prices / self.open.sizes[rows], kind="stable")]

    @cached_property
    def prices(self) -> Mapping[str, int]:
        """What ending each pilot of `open` costs its user, in core-seconds, by run: its waste, with what the site adds
        for waiting and for what its user values.
        """
        costs = prices_of(self.open.figures, self.open.settings).astype(np.int64)
        return dict(zip((one.run for one in self.open.pilots), costs.tolist()))

    def spared_first(self, fits: Callable[[Pilot, bool], bool], most: int | None) -> tuple[list[Spared], int]:
        """Return the spared pilots that fit, no more than `most`, and how many fit in all.

        The least wasteful per core come first, those that may get no order last. fits: by a pilot, whether it drains.
        """
        draining, closed = self.open.figures.columns.draining, self._others.figures.columns.draining
        rows = [row for row in self.spared_rows.tolist() if fits(self.open.pilots[row], bool(draining[row]))]
        last = [row for row, (one, _) in enumerate(self.closed) if fits(one, bool(closed[row]))]
        found = [self.spared_at(row) for row in rows[:most]]
        left = None if most is None else max(0, most - len(found))
        found += [Spared(self._others[row], self.closed[row][1]) for row in last[:left]]
        return found, len(rows) + len(last)

    def spared_at(self, row: int) -> Spared:
        """Return one of `spared_rows` with its reason."""
        one = self.open[row]
        price = self.prices[one.pilot.run]
        if held := self.held.get(one.pilot.run):
            return Spared(one, Reason(held, LATER), price)
        words = f"not needed; with an order: {in_words(one, one.best, self.open.now)}"
        words += f"; {self.limit}" if self.limit else ""
        return Spared(one, Reason(words, LIMIT if self.limited_by else NOT_NEEDED), price)


@dataclass(frozen=True)
class Plan:
    """One cycle's decision on the snapshot taken at `taken` (UNIX s), and the sentence that sums it up.

    usable: cores of the orders that lie together as the waiting jobs need them; None when the jobs are not known.
    withdrawals: of the orders whose reason has gone. notices: what the decision could not count on, a sentence each.
    closed_nodes: nodes with pilots that can get no order. stuck: pilots without any payload for long.
    waiting: cores that accounts are owed and wait for, by account. parts: for each of these, its parts of the pilots
    with an order, by run. paused: demand that does not count now. unplaced: jobs that do not start where they should.
    since: when the need of each account that waits opened, UNIX s; None where none stays open. asked_no_more: pilots
    that were asked for cores which nobody needs now. missing: jobs of each kind without room; None where cores are
    counted.
    """

    taken: int
    policy: str
    balance: Balance
    users: tuple[UserPlan, ...]
    withdrawals: tuple[Withdrawal, ...]
    usable: int | None
    summary: str
    notices: tuple[str, ...] = ()
    closed_nodes: int = 0
    stuck: int = 0
    waiting: Mapping[str, float] = field(default_factory=dict)
    parts: Mapping[str, Mapping[str, AccountPart]] = field(default_factory=dict)
    paused: tuple[Paused, ...] = ()
    unplaced: tuple[Unplaced, ...] = ()
    since: Mapping[str, int] | None = None
    asked_no_more: tuple[Pilot, ...] = ()
    missing: Mapping[str, int] | None = None

    @property
    def returns(self) -> tuple[PartOrder, ...]:
        """All orders for parts, in the order in which they would be given."""
        return tuple(one for user in self.users for one in user.returns)

    @property
    def orders(self) -> tuple[Order, ...]:
        """All orders, in the order in which they would be given."""
        return tuple(order for user in self.users for order in user.orders)

    def next_best(self, runs: Collection[str]) -> Spared | None:
        """Return what the cheapest other choice would have been for a need that these runs serve: of their users the
        pilot of the least price for each core that might have got an order.
        """
        users = [one for one in self.users if any(order.pilot.run in runs for order in one.orders)]
        first = [(one, int(one.spared_rows[0])) for one in users if len(one.spared_rows)]
        each = [one.prices[one.open.pilots[row].run] / one.open.sizes[row] for one, row in first]
        return None if not first else (best := first[int(np.argmin(each))])[0].spared_at(best[1])

    @property
    def unit(self) -> str:
        """In which what it wastes is billed."""
        found = [one.candidate.unit for one in self.orders] + [one.candidate.unit for one in self.returns]
        return found[0] if found else CORE_H

    @property
    def billed(self) -> int:
        """Expected waste of all orders in seconds of `unit`."""
        some = [(one.waste, one.candidate.billed) for one in self.orders]
        some += [(one.waste, one.candidate.billed) for one in self.returns]
        return round(sum(waste * billed for waste, billed in some))

    @property
    def waste(self) -> int:
        """Expected waste of all orders in core-seconds."""
        return sum(order.waste for order in self.orders) + sum(one.waste for one in self.returns)
