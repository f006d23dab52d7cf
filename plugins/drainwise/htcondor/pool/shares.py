"""What HTCondor's accountant says, and the cores owed to each account: group quotas, else shares by effective priority.

An account is an accounting group where the pool has group quotas. A group's quota covers the groups below it
(`SubtreeQuota`); what they are not given is for the jobs of the group itself. A group that uses more than its own part
is not over quota as long as its tree leaves that much unused: the negotiator shares a tree's surplus within the tree
before anybody else has it.

Users outside of groups share what the quotas leave (the quota of `<none>`), all users of a pool without groups share
the whole pool: in proportion to 1/priority, and nobody more than it uses and wants.
"""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from drainwise.htcondor.ads.values import LARGEST_POOL, Ad, number, odd_number, text
from drainwise.pool.facts import Account
from drainwise.pool.shares import Branch, shared_out

NO_GROUP = "<none>"
_NEW_USER = 0.5  # the real priority of whoever has not used anything; the effective one is this times the factor
_DEFAULT_FACTOR = 1000.0
_WORST = 1e15  # an effective priority beyond this counts as this
_RANGES = {
    "EffectiveQuota": sys.float_info.max,  # what is larger than every pool is a whole pool
    "SubtreeQuota": sys.float_info.max,
    "PriorityFactor": _WORST,
    "ResourcesUsed": LARGEST_POOL,
    "WeightedResourcesUsed": LARGEST_POOL,
}
_QUOTAS = ("EffectiveQuota", "SubtreeQuota")


@dataclass(frozen=True)
class AccountingRecord:
    """One line of the accountant: `quota` and `used` in slot weight, `slots` used; `priority` is the effective one.

    A group's quota is for all groups below it too, what it uses is not. ceiling: the weight that a submitter may use at
    most; floor: what it has before shares count. surplus: whether a group is given more than its quota. odd: an
    attribute with a value that cannot be, which says nothing, or "". unsure: what it is owed can therefore not be said.
    """

    name: str
    is_group: bool
    quota: float
    priority: float
    factor: float
    used: float
    slots: float
    ceiling: float | None = None
    floor: float = 0.0
    surplus: bool = True
    odd: str = ""
    unsure: bool = False


@dataclass(frozen=True)
class Use:
    """One account's use and demand in cores; `jobs` that wait; its use with slots that only the accountant states."""

    in_use: float
    wanted: float
    jobs: float
    accounted: float
    priority: float


def accounting_record(ad: Ad) -> AccountingRecord | None:
    """Read an Accounting ad; None when it has no name or priority."""
    name = text(ad, "Name")
    if name is None or ad.get("Priority") is None:
        return None
    is_group = ad.get("IsAccountingGroup") is True
    odd = {one for one, most in _RANGES.items() if odd_number(ad, {one: most})}
    priority = ad["Priority"]
    if (type(priority) is int or type(priority) is float) and priority >= 0:
        priority = min(priority, _WORST)
    else:
        odd.add("Priority")
        priority = _NEW_USER * _DEFAULT_FACTOR
    # Of the root's quota only what no group has is of use; of a group's, EffectiveQuota may or may not have its
    # children's in it (NEGOTIATOR_ALLOW_QUOTA_OVERSUBSCRIPTION), SubtreeQuota always has.
    own, whole = number(ad, "EffectiveQuota") or 0.0, number(ad, "SubtreeQuota")
    quota = own if whole is None or name == NO_GROUP else whole

    def sound(one: str, instead: float = 0.0) -> float:
        return instead if one in odd else number(ad, one) or instead

    return AccountingRecord(
        name,
        is_group,
        quota=0.0 if odd.intersection(_QUOTAS) else min(quota, LARGEST_POOL),
        priority=priority,
        factor=sound("PriorityFactor", _DEFAULT_FACTOR),
        used=sound("WeightedResourcesUsed"),
        slots=sound("ResourcesUsed"),
        ceiling=number(ad, "Ceiling"),
        floor=number(ad, "Floor") or 0.0,
        surplus=text(ad, "SurplusPolicy") != "no",
        odd=min(odd, default=""),
        unsure=bool(odd.intersection(_QUOTAS if is_group else ("Priority",))),
    )


def endless(uses: Mapping[str, Use]) -> dict[str, Use]:
    """Make the demand of all who use or want anything endless: then each is owed its own share."""
    return {name: replace(use, wanted=math.inf) if use.in_use + use.wanted else use for name, use in uses.items()}


def fair_shares(cores: float, uses: Mapping[str, Use]) -> dict[str, float]:
    """Return the cores owed to each account when `cores` are shared in proportion to 1/priority.

    Whoever uses and wants less than its share gets that; the rest is shared among the others in the same proportion, as
    the negotiator does when it goes round again with what is left.
    """
    weights = {name: 1.0 / max(use.priority, _NEW_USER) for name, use in uses.items()}
    return shared_out(cores, weights, {name: use.in_use + use.wanted for name, use in uses.items()})


def owed_in_trees(
    quotas: Mapping[str, float], demands: Mapping[str, float], fixed: Collection[str] = ()
) -> dict[str, float]:
    """Return the cores owed to each group, by its own jobs.

    quotas: cores by group name, each with what is below it; `a.b` is below `a`, whatever the case. demands: cores that
    the jobs of each group itself use and wait for; a group that is not there has none. fixed: the groups that are never
    given more than their quota (GROUP_ACCEPT_SURPLUS).
    """
    branches = {name.lower(): Branch(name, part=part, is_fixed=name in fixed) for name, part in quotas.items()}
    roots: list[Branch] = []
    for group, branch in branches.items():
        above = group.rpartition(".")[0]
        while above and above not in branches:  # a level that is not configured is passed over
            above = above.rpartition(".")[0]
        (branches[above].children if above else roots).append(branch)
    return {name: owed for root in roots for name, owed in root.owed(root.part, demands)}


class Accountant:
    """The accountant by its records: the pool's groups, the account of each submitter, quotas, priorities."""

    def __init__(self, records: Iterable[AccountingRecord]) -> None:
        self.records = tuple(records)
        named = {one.name.lower(): one for one in self.records if one.is_group and one.name != NO_GROUP}
        self.groups = named if any(one.quota > 0 for one in named.values()) else {}
        """The accounting groups by their name in lower case, as HTCondor compares; none in a pool without quotas."""
        root = next((one for one in self.records if one.name == NO_GROUP), None)
        self._outside = 0.0 if root is None else root.quota
        self.new_user_priority = _NEW_USER * (_DEFAULT_FACTOR if root is None else root.factor)
        """The effective priority of a user that the accountant does not know yet."""
        self._accounts: dict[str, str] = {}

    def account_of(self, submitter: str) -> str:
        """Return the account of a submitter (`group_a.sub.alice@pool`): its longest group, else the submitter."""
        if submitter not in self._accounts:
            lower = submitter.lower()
            inside = [group for group in self.groups if lower == group or lower.startswith(f"{group}.")]
            self._accounts[submitter] = self.groups[max(inside, key=len)].name if inside else submitter
        return self._accounts[submitter]

    def rooms(self, ratio: float = 1.0) -> dict[str, float]:
        """Return the cores that each submitter with a ceiling may use beside what it uses; ratio: see `uses`."""
        return {one.name: max(0.0, one.ceiling - one.used) * ratio for one in self.records if one.ceiling is not None}

    def uses(
        self, held: Iterable[tuple[str, int]], waiting: Mapping[str, tuple[float, float]], ratio: float
    ) -> dict[str, Use]:
        """Return use and demand by account; a group that has a quota is there even when it uses nothing.

        held: the submitter and the cores of each slot in use. waiting: jobs and cores that wait, by submitter. ratio:
        cores for a slot weight of 1.
        """
        in_use, wanted, jobs = (defaultdict[str, float](float) for _ in range(3))
        slots: dict[str, int] = defaultdict(int)
        for submitter, taken in held:
            account = self.account_of(submitter)
            in_use[account] += taken
            slots[account] += 1
        for submitter, (number_of_jobs, cores) in waiting.items():
            account = self.account_of(submitter)
            jobs[account] += number_of_jobs
            wanted[account] += cores
        by_name = {record.name: record for record in self.records}
        found = {}
        for name in {*in_use, *wanted, *(record.name for record in self.groups.values() if record.quota > 0)}:
            record = by_name.get(name)
            # It may be charged for slots whose ads are not there. Of those that are there their own size counts: a
            # match of a partitionable slot is charged as the whole slot at first.
            unseen = 0.0 if record is None or record.slots <= slots[name] else 1 - slots[name] / record.slots
            accounted = in_use[name] + (0.0 if record is None else record.used * unseen) * ratio
            priority = self.new_user_priority if record is None else record.priority
            found[name] = Use(in_use[name], wanted[name], jobs[name], accounted, priority)
        return found

    def accounts(self, uses: Mapping[str, Use], ratio: float, cores: int) -> tuple[Account, ...]:
        """Return the accounts by name; cores: of the whole pool; ratio: see `uses`."""
        owed, shares = self._owed(uses, ratio, cores), self._owed(endless(uses), ratio, cores)
        unsure = self._unsure(uses)
        return tuple(
            _account(name, use, owed[name], shares[name], name in unsure) for name, use in sorted(uses.items())
        )

    def _owed(self, uses: Mapping[str, Use], ratio: float, cores: int) -> dict[str, float]:
        """Return the cores owed to each account: a group's part of its quota; for others, a fair share of the rest."""
        quotas = owed_in_trees(
            {record.name: record.quota * ratio for record in self.groups.values()},
            {name: use.in_use + use.wanted for name, use in uses.items()},
            frozenset(record.name for record in self.groups.values() if not record.surplus),
        )
        outside = {name: use for name, use in uses.items() if name not in quotas}
        return {**quotas, **fair_shares(self._outside * ratio if self.groups else float(cores), outside)}

    def _unsure(self, uses: Iterable[str]) -> frozenset[str]:
        """Return the accounts whose share is unknown: their record is odd, or one in their tree."""
        unsure = {record.name for record in self.records if record.unsure}
        if not unsure:
            return frozenset()
        in_groups = {group.name for group in self.groups.values()}
        roots = {_root(name) for name in unsure if name in in_groups}
        return frozenset(
            name
            for name in uses
            if (_root(name) in roots if name in in_groups else unsure.intersection((name, NO_GROUP)))
        )

    def user_priorities(self, claimed: Iterable[tuple[str, str | None]]) -> dict[str, float]:
        """Return the effective priority by owner; the worst, where one runs under several accounting names.

        claimed: owner and submitter of each slot in use.
        """
        by_submitter = {record.name: record.priority for record in self.records if not record.is_group}
        priorities: dict[str, float] = {}
        for owner, submitter in claimed:
            priorities[owner] = max(priorities.get(owner, 0.0), by_submitter.get(submitter or "", 0.0))
        return priorities


def _root(group: str) -> str:
    return group.lower().partition(".")[0]


def _account(name: str, use: Use, owed: float, share: float, unsure: bool) -> Account:
    """Make the account; one that waits is not counted poorer where fewer slots report than the accountant charges.

    unsure: what it is owed cannot be said, so it is owed what it has.
    """
    in_use = max(use.in_use, min(use.accounted, owed))
    return Account(
        name,
        cores_in_use=in_use,
        cores_owed=in_use if unsure else owed,
        cores_wanted=0.0 if unsure else use.wanted,
        priority=use.priority,
        cores_per_job=max(1.0, use.wanted / use.jobs) if use.jobs > 0 and not unsure else 1.0,
        cores_share=in_use if unsure else share,
        cores_running=use.in_use,
    )
