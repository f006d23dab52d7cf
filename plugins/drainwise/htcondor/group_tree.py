"""Who is owed how much within a tree of accounting groups: what one leaves unused goes to its relatives first.

A group's quota covers the groups below it (`SubtreeQuota`); what they are not given is for the jobs of the group
itself. A group that uses more than its own part is not over quota as long as its tree leaves that much unused: the
negotiator shares a tree's surplus within the tree before anybody else has it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

from drainwise.fair_share import shared_out

_LEAST_WEIGHT = 1e-6
"""A group without quota comes after all that have one, but not before nobody."""


def owed_in_trees(
    quotas: Mapping[str, float], demands: Mapping[str, float], fixed: Collection[str] = ()
) -> dict[str, float]:
    """Cores owed to each group, by its own jobs.

    quotas: cores by group name, each with what is below it; `a.b` is below `a`, whatever the case. demands: cores that
    the jobs of each group itself use and wait for; a group that is not there has none. fixed: the groups that are never
    given more than their quota (GROUP_ACCEPT_SURPLUS).
    """
    lower = {name.lower(): name for name in quotas}
    children: dict[str | None, list[str]] = defaultdict(list)
    for group, name in lower.items():
        children[lower.get(_parent_of(group, lower))].append(name)
    owed: dict[str, float] = {}
    for root in children[None]:
        owed.update(_shared(root, quotas[root], children, quotas, demands, fixed))
    return owed


def _parent_of(group: str, known: Mapping[str, str]) -> str:
    """The group that has this one, "" when none does; a level that is not configured is passed over."""
    while "." in group:
        group = group.rpartition(".")[0]
        if group in known:
            return group
    return ""


def _shared(
    group: str,
    cores: float,
    children: Mapping[str | None, list[str]],
    quotas: Mapping[str, float],
    demands: Mapping[str, float],
    fixed: Collection[str],
) -> dict[str, float]:
    """What `cores` for a group and all below it make for each of them."""
    below = children.get(group, [])
    parts = {child: quotas[child] for child in below}
    parts[group] = max(0.0, quotas[group] - sum(parts.values()))
    wants = {child: _demand_of(child, children, demands) for child in below}
    wants[group] = demands.get(group, 0.0)
    left = max(0.0, cores - sum(min(part, wants[name]) for name, part in parts.items()))
    short = {name: wants[name] - part for name, part in parts.items() if wants[name] > part and name not in fixed}
    lent = shared_out(left, {name: max(parts[name], _LEAST_WEIGHT) for name in short}, short)
    owed = {group: parts[group] + lent.get(group, 0.0)}
    for child in below:
        owed.update(_shared(child, parts[child] + lent.get(child, 0.0), children, quotas, demands, fixed))
    return owed


def _demand_of(group: str, children: Mapping[str | None, list[str]], demands: Mapping[str, float]) -> float:
    return demands.get(group, 0.0) + sum(_demand_of(child, children, demands) for child in children.get(group, []))
