"""Who is owed how many cores: group quotas, and fair shares by effective priority where there are none.

A principal is an accounting group where the pool has group quotas; `group_tree` says what a group itself is owed. Users
outside of groups share what the quotas leave (the quota of `<none>`), all users of a pool without groups share the
whole pool: in proportion to 1/priority, and nobody more than it uses and wants.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from drainwise.fair_share import shared_out
from drainwise.htcondor.pool_ads import LARGEST_POOL, Ad, number, odd_number, text

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
class Account:
    """One line of the accountant: `quota` and `used` in slot weight, `slots` used; `priority` is the effective one.

    A group's quota is for all groups below it too, what it uses is not. ceiling: the weight that a submitter may use at
    most. surplus: whether a group is given more than its quota. odd: an attribute with a value that cannot be, which
    says nothing, or "". unsure: what it is owed can therefore not be said.
    """

    name: str
    is_group: bool
    quota: float
    priority: float
    factor: float
    used: float
    slots: float
    ceiling: float | None = None
    surplus: bool = True
    odd: str = ""
    unsure: bool = False


@dataclass(frozen=True)
class Use:
    """What one principal uses and waits for, in cores; `jobs` that wait; what the accountant says it uses."""

    in_use: float
    wanted: float
    jobs: float
    accounted: float
    priority: float


def account_of(ad: Ad) -> Account | None:
    """An Accounting ad; None when it has no name or priority."""
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

    return Account(
        name,
        is_group,
        quota=0.0 if odd.intersection(_QUOTAS) else min(quota, LARGEST_POOL),
        priority=priority,
        factor=sound("PriorityFactor", _DEFAULT_FACTOR),
        used=sound("WeightedResourcesUsed"),
        slots=sound("ResourcesUsed"),
        ceiling=number(ad, "Ceiling"),
        surplus=text(ad, "SurplusPolicy") != "no",
        odd=min(odd, default=""),
        unsure=bool(odd.intersection(_QUOTAS if is_group else ("Priority",))),
    )


def groups(accounts: Iterable[Account]) -> dict[str, Account]:
    """The pool's accounting groups by their lower-case name (HTCondor's compare without case); none without quotas."""
    named = {one.name.lower(): one for one in accounts if one.is_group and one.name != NO_GROUP}
    return named if any(one.quota > 0 for one in named.values()) else {}


def principal_of(submitter: str, known: Mapping[str, Account]) -> str:
    """The principal of a submitter (`group_a.sub.alice@pool`): its longest group, else the submitter itself."""
    lower = submitter.lower()
    inside = [group for group in known if lower == group or lower.startswith(f"{group}.")]
    return known[max(inside, key=len)].name if inside else submitter


def new_user_priority(accounts: Iterable[Account]) -> float:
    """The effective priority of a user that the accountant does not know yet."""
    return _NEW_USER * next((one.factor for one in accounts if one.name == NO_GROUP), _DEFAULT_FACTOR)


def endless(uses: Mapping[str, Use]) -> dict[str, Use]:
    """The same when all who use or want anything want without end: then what each is owed is its own share."""
    return {name: replace(use, wanted=math.inf) if use.in_use + use.wanted else use for name, use in uses.items()}


def fair_shares(cores: float, uses: Mapping[str, Use]) -> dict[str, float]:
    """Cores owed to each principal when `cores` are shared in proportion to 1/priority.

    Whoever uses and wants less than its share gets that; the rest is shared among the others in the same proportion, as
    the negotiator does when it goes round again with what is left.
    """
    weights = {name: 1.0 / max(use.priority, _NEW_USER) for name, use in uses.items()}
    return shared_out(cores, weights, {name: use.in_use + use.wanted for name, use in uses.items()})
