"""What one cycle would do and why: for each pilot chosen and each spared, the figures and the rule in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from drainwise.pool import Pilot, Snapshot
from drainwise.reclaim.candidates import Candidate, assess
from drainwise.reclaim.policy import Choice, Need, policy_called
from drainwise.reclaim.quota import Balance, on_its_way, weigh
from drainwise.reclaim.settings import Settings
from drainwise.reclaim.words import clock, core_hours, duration


@dataclass(frozen=True)
class Order:
    """One pilot that is asked to be gone by `deadline` (UNIX s); `waste` in core-seconds is what that should cost."""

    candidate: Candidate
    kind: str
    deadline: int
    waste: int
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

    later: cores that a limit of the cycle leaves to the next one; they are not put on anybody else.
    """

    principal: str
    user: str
    cores: int
    later: int
    orders: tuple[Order, ...]
    spared: tuple[Spared, ...]

    @property
    def cores_given(self) -> int:
        """Cores of the pilots that are asked."""
        return sum(order.pilot.cores for order in self.orders)


@dataclass(frozen=True)
class Plan:
    """One cycle's decision on the snapshot taken at `taken` (UNIX s), and the sentence that sums it up."""

    taken: int
    policy: str
    balance: Balance
    users: tuple[UserPlan, ...]
    summary: str

    @property
    def orders(self) -> tuple[Order, ...]:
        """All orders, in the order in which they would be given."""
        return tuple(order for user in self.users for order in user.orders)

    @property
    def waste(self) -> int:
        """Expected waste of all orders in core-seconds."""
        return sum(order.waste for order in self.orders)


def make_plan(snapshot: Snapshot, now: int, settings: Settings) -> Plan:
    """Decide on a snapshot at `now` (UNIX s).

    Pilots are ranked within one user only; who gives back, and how many cores, comes from the balance alone. Raises
    PoolUnreachable for a snapshot that is not whole and UsageError for a policy that does not exist.
    """
    policy_called(settings.policy)
    balance = weigh(snapshot, now, settings.horizon)
    users: list[UserPlan] = []
    missing, pilots_left = balance.deficit, settings.max_pilots
    for over in balance.over:
        beyond = over.cores
        for user in over.users:
            cores = min(missing, beyond)
            if cores <= 0:
                break
            mine = [one for one in snapshot.pilots if one.principal == over.principal and one.user == user]
            part = _user_plan(over.principal, user, mine, Need(cores, beyond), now, settings, pilots_left)
            users.append(part)
            pilots_left -= len(part.orders)
            missing -= min(cores, part.cores_given + part.later)
            beyond -= part.cores_given + part.later
    return Plan(snapshot.taken, settings.policy, balance, tuple(users), _summary(balance, users))


def _user_plan(
    principal: str, user: str, pilots: Sequence[Pilot], need: Need, now: int, settings: Settings, pilots_left: int
) -> UserPlan:
    """Choose among one user's pilots, within the limits of a cycle."""
    limit = settings.max_cores_per_user
    bounded = Need(min(need.cores, limit), min(need.most, limit))
    candidates = [assess(pilot, now, settings) for pilot in pilots]
    open_to_choice = [
        one
        for one in candidates
        if not (one.pilot.leaving or on_its_way(one.pilot, now, settings.horizon) or _too_young(one, now, settings))
    ]
    chosen = policy_called(settings.policy).choose(open_to_choice, bounded, now, settings)
    orders = tuple(_order(choice) for choice in chosen[:pilots_left])
    later = 0
    if need.cores > limit or len(chosen) > pilots_left:
        able = min(need.cores, sum(one.pilot.cores for one in open_to_choice))
        later = max(0, able - sum(order.pilot.cores for order in orders))
    too_many = {choice.candidate.pilot.run for choice in chosen[pilots_left:]}
    asked = {order.pilot.run for order in orders}
    spared = tuple(
        Spared(one, _why_spared(one, one.pilot.run in too_many, now, settings))
        for one in candidates
        if one.pilot.run not in asked
    )
    return UserPlan(principal, user, need.cores, later, orders, spared)


def _order(choice: Choice) -> Order:
    option = choice.option
    return Order(choice.candidate, option.kind, option.deadline, option.waste, choice.reason)


def _too_young(one: Candidate, now: int, settings: Settings) -> bool:
    return now - one.pilot.started < settings.min_age


def _why_spared(one: Candidate, too_many: bool, now: int, settings: Settings) -> str:
    if one.pilot.deadline is not None:
        return f"asked already to be gone by {clock(one.pilot.deadline)}"
    if one.pilot.leaving:
        return "the batch system ends it already"
    if _too_young(one, now, settings):
        return f"left alone for the first {duration(settings.min_age)} of its run"
    if too_many:
        return f"left to the next cycle: one cycle asks {settings.max_pilots} pilots at most"
    return f"not needed; asking it would waste {core_hours(one.asked.waste)}"


def _summary(balance: Balance, users: Sequence[UserPlan]) -> str:
    if balance.demand <= 0:
        return "nobody under quota waits: nothing to give back"
    if not balance.over:
        return "nobody is over quota: nothing to give back"
    if balance.deficit <= 0:
        return "enough cores are free or on their way out: nothing to give back"
    pilots = sum(len(user.orders) for user in users)
    cores = sum(user.cores_given for user in users)
    waste = core_hours(sum(order.waste for user in users for order in user.orders))
    who = "1 pilot gives" if pilots == 1 else f"{pilots} pilots give"
    text = f"{who} back {cores} of {balance.deficit} cores at an expected waste of {waste}"
    missing = balance.deficit - cores
    return text if missing <= 0 else f"{text}; {missing} cores are left over (limits of a cycle, or no pilot that fits)"
