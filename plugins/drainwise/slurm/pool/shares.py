"""The cores that each account is owed: Slurm's tree of accounts with their shares, out of the lines of `sshare`.

Shares count among siblings, as in Slurm's Fair Tree: an account's cores are divided among its children (and its own
users) in proportion to their shares, and what one of them has no use for goes to its siblings. That is where Slurm's
own priorities lead in the long run. An account with `fairshare=parent` has no share of its own: its jobs count for the
nearest account above that has one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from drainwise.facts.errors import PoolUnreachable
from drainwise.pool.shares import LEAST_WEIGHT, Branch

COMMAND = ("sshare", "--all", "--noheader", "--parsable2", "--format=Account,User,RawShares,RawUsage")
WORST = 1e6
"""The largest priority: of whoever used cores without any share."""

_LARGEST = 1e18  # of shares, and of core-seconds; sums and ratios of those are numbers still


@dataclass(frozen=True)
class Shares:
    """The tree of accounts below Slurm's root account.

    root: those that have a share of their own. sharing: of each account the one whose share counts for it. above: the
    account above each. usage: decayed core-seconds of each. users: of each account, shares and usage of its users.
    """

    root: Branch
    sharing: Mapping[str, str]
    above: Mapping[str, str]
    usage: Mapping[str, float]
    users: Mapping[str, Mapping[str, tuple[float, float]]]

    @cached_property
    def _ratios(self) -> Mapping[str, float]:
        return dict(_ratios(self.root, 1.0, self.usage, self.usage[self.root.name]))

    def sharing_account(self, account: str) -> str:
        """Return the account whose share counts for jobs of `account`: itself where Slurm does not know it."""
        return self.sharing.get(account, account)

    def knows(self, account: str) -> bool:
        """Return whether an account has a share of its own."""
        return account in self._ratios

    @property
    def accounts(self) -> frozenset[str]:
        """All accounts of the tree."""
        return frozenset(self.sharing)

    def lineage(self, account: str) -> tuple[str, ...]:
        """Return an account and those above it, up to the root; itself alone where Slurm does not know it."""
        found = [account]
        while (above := self.above.get(found[-1])) is not None:
            found.append(above)
        return tuple(found)

    def priority_of(self, account: str) -> float:
        """Return its part of the usage over its part of the shares: above 1 it has used more than its share.

        1/LevelFS.
        """
        return self._ratios.get(account, 0.0)

    def owed(self, cores: float, needs: Mapping[str, float]) -> dict[str, float]:
        """Return the cores owed to each account in `needs` (cores it uses and wants) when `cores` are shared out.

        Nobody knows what an account without a place in the tree is owed: what it has, it keeps, and nothing is taken
        from others for it.
        """
        known = {name: need for name, need in needs.items() if name in self._ratios}
        outside = {name: need for name, need in needs.items() if name not in known}
        owed = dict(self.root.owed(max(0.0, cores - math.fsum(outside.values())), known))
        return {**{name: owed.get(name, 0.0) for name in known}, **outside}

    def own(self, cores: float, needs: Mapping[str, float]) -> dict[str, float]:
        """Return the own share of each account in `needs`: what it is owed if each need were without end."""
        endless = {name: math.inf if need and name in self._ratios else need for name, need in needs.items()}
        return self.owed(cores, endless)

    def user_priorities(self) -> dict[str, float]:
        """Return each user's part of its account's usage over its part of the shares there; of several the worst."""
        priorities: dict[str, float] = {}
        for account, users in self.users.items():
            shares = math.fsum(share for share, _ in users.values())
            for user, (share, usage) in users.items():
                ratio = _ratio(usage, self.usage[account], share, shares)
                priorities[user] = max(priorities.get(user, 0.0), ratio)
        return priorities


def shares_in(answer: str) -> Shares:
    """Return the shares in the output of COMMAND. Raises PoolUnreachable when they are not whole."""
    path: list[tuple[str, Branch]] = []
    sharing: dict[str, str] = {}
    above: dict[str, str] = {}
    usages: dict[str, float] = {}
    users: dict[str, dict[str, tuple[float, float]]] = {}
    for line in answer.splitlines():
        words = line.split("|")
        if len(words) != 4:
            raise PoolUnreachable("incomplete answer: sshare printed a line that is no account")
        name, depth = words[0].lstrip(" "), len(words[0]) - len(words[0].lstrip(" "))
        shares, usage = None if words[2] == "parent" else _number(words[2]), _number(words[3])
        if words[1]:
            branches = dict(path)
            if name not in branches:
                raise PoolUnreachable("incomplete answer: sshare printed a user without an account")
            own = 1.0 if shares is None else shares
            branches[name].own_weight += own
            # A user who has several associations with the account, each for a partition, stands there once for each.
            had = users.setdefault(name, {}).get(words[1], (0.0, 0.0))
            users[name][words[1]] = (had[0] + own, had[1] + usage)
            continue
        branch = Branch(name, shares or 0.0)
        if path:
            if depth < 1 or depth > len(path):
                raise PoolUnreachable("incomplete answer: sshare printed an account without its parent")
            above[name], parent = path[depth - 1]
            if shares is None:
                branch = parent
            else:
                parent.children.append(branch)
        sharing[name], usages[name] = branch.name, usage
        path[depth:] = [(name, branch)]
    if not path:
        raise PoolUnreachable(
            "sshare knows no accounts: shares need Slurm's accounting (slurmdbd) and PriorityType=priority/multifactor"
        )
    return Shares(path[0][1], sharing, above, usages, users)


def _number(text: str) -> float:
    try:
        number = float(text or 0)
    except ValueError:
        raise PoolUnreachable("incomplete answer: sshare printed a number that is none") from None
    return min(number, _LARGEST) if math.isfinite(number) and number >= 0 else 0.0


def _ratios(branch: Branch, share: float, usage: Mapping[str, float], total: float) -> Iterator[tuple[str, float]]:
    """Yield each account that has a share with its priority; `share`: its part of the whole, `total`: all usage."""
    yield branch.name, _ratio(usage[branch.name], total, share, 1.0)
    weights = [max(child.weight, LEAST_WEIGHT) for child in branch.children]
    whole = math.fsum((*weights, branch.own_weight))
    for child, weight in zip(branch.children, weights):
        yield from _ratios(child, share * weight / whole, usage, total)


def _ratio(usage: float, total: float, share: float, shares: float) -> float:
    if usage <= 0 or total <= 0:
        return 0.0
    return WORST if share <= 0 or shares <= 0 else min(WORST, usage / total * shares / share)
