"""The cores that each account is owed: Slurm's tree of accounts with their shares, out of the lines of `sshare`.

Shares count among siblings, as in Slurm's Fair Tree: an account's cores are divided among its children (and its own
users) in proportion to their shares, and what one of them has no use for goes to its siblings. That is where Slurm's
own priorities lead in the long run. An account with `fairshare=parent` has no share of its own: its jobs count for the
nearest account above that has one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from drainwise.facts.errors import PoolUnreachable
from drainwise.pool.fair_share import shared_out

COMMAND = ("sshare", "--all", "--noheader", "--parsable2", "--format=Account,User,RawShares,RawUsage")
WORST = 1e6
"""The largest priority: of whoever used cores without any share."""

_LARGEST = 1e18  # of shares, and of core-seconds; sums and ratios of those are numbers still
_LEAST_WEIGHT = 1e-6  # no share at all: cores that nobody else has use for
_OWN = ""  # an account's own users beside the accounts below it


@dataclass
class Branch:
    """One account: its shares (None: its parent's), the usage (decayed core-seconds) and shares of its users."""

    name: str
    shares: float | None
    usage: float
    users: dict[str, tuple[float, float]] = field(default_factory=dict)
    children: list[Branch] = field(default_factory=list)


class Shares:
    """The tree of accounts below Slurm's root account."""

    def __init__(self, root: Branch) -> None:
        self._root = root
        self._sharing = dict(_named(root, root.name))
        self._ratios = dict(_ratios(root, 1.0, root.usage))
        self._above = dict(_parents(root))

    def sharing_account(self, account: str) -> str:
        """Return the account whose share counts for jobs of `account`: itself where Slurm does not know it."""
        return self._sharing.get(account, account)

    def knows(self, account: str) -> bool:
        """Return whether an account has a share of its own."""
        return account in self._ratios

    @property
    def accounts(self) -> frozenset[str]:
        """All accounts of the tree."""
        return frozenset(self._sharing)

    def lineage(self, account: str) -> tuple[str, ...]:
        """Return an account and those above it, up to the root; itself alone where Slurm does not know it."""
        found = [account]
        while (above := self._above.get(found[-1])) is not None:
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
        owed = dict(_divided(self._root, max(0.0, cores - math.fsum(outside.values())), known))
        return {**{name: owed.get(name, 0.0) for name in known}, **outside}

    def own(self, cores: float, needs: Mapping[str, float]) -> dict[str, float]:
        """Return the own share of each account in `needs`: what it is owed if each need were without end."""
        endless = {name: math.inf if need and name in self._ratios else need for name, need in needs.items()}
        return self.owed(cores, endless)

    def user_priorities(self) -> dict[str, float]:
        """Return each user's part of its account's usage over its part of the shares there; of several the worst."""
        priorities: dict[str, float] = {}
        for branch in _branches(self._root):
            shares = math.fsum(share for share, _ in branch.users.values())
            for user, (share, usage) in branch.users.items():
                ratio = _ratio(usage, branch.usage, share, shares)
                priorities[user] = max(priorities.get(user, 0.0), ratio)
        return priorities


def shares_in(answer: str) -> Shares:
    """Return the shares in the output of COMMAND. Raises PoolUnreachable when they are not whole."""
    path: list[Branch] = []
    root: Branch | None = None
    for line in answer.splitlines():
        words = line.split("|")
        if len(words) != 4:
            raise PoolUnreachable("incomplete answer: sshare printed a line that is no account")
        name, depth = words[0].lstrip(" "), len(words[0]) - len(words[0].lstrip(" "))
        shares, usage = _shares(words[2]), _number(words[3])
        if words[1]:
            if not path or name not in {branch.name for branch in path}:
                raise PoolUnreachable("incomplete answer: sshare printed a user without an account")
            account = next(branch for branch in reversed(path) if branch.name == name)
            # A user who has several associations with the account, each for a partition, stands there once for each.
            had = account.users.get(words[1], (0.0, 0.0))
            account.users[words[1]] = (had[0] + (1.0 if shares is None else shares), had[1] + usage)
            continue
        branch = Branch(name, shares, usage)
        if root is None:
            root = branch
        elif depth < 1 or depth > len(path):
            raise PoolUnreachable("incomplete answer: sshare printed an account without its parent")
        else:
            path[depth - 1].children.append(branch)
        path[depth:] = [branch]
    if root is None:
        raise PoolUnreachable(
            "sshare knows no accounts: shares need Slurm's accounting (slurmdbd) and PriorityType=priority/multifactor"
        )
    return Shares(root)


def _shares(text: str) -> float | None:
    return None if text == "parent" else _number(text)


def _number(text: str) -> float:
    try:
        number = float(text or 0)
    except ValueError:
        raise PoolUnreachable("incomplete answer: sshare printed a number that is none") from None
    return min(number, _LARGEST) if math.isfinite(number) and number >= 0 else 0.0


def _branches(branch: Branch) -> Iterator[Branch]:
    yield branch
    for child in branch.children:
        yield from _branches(child)


def _parents(branch: Branch) -> Iterator[tuple[str, str]]:
    """Return each account with the one above it."""
    for child in branch.children:
        yield child.name, branch.name
        yield from _parents(child)


def _named(branch: Branch, sharing: str) -> Iterator[tuple[str, str]]:
    """Return each account with the one whose share counts for it."""
    own = sharing if branch.shares is None else branch.name
    yield branch.name, own
    for child in branch.children:
        yield from _named(child, own)


def _with_shares(branch: Branch) -> list[Branch]:
    """Return the next accounts below that have a share of their own; one without passes its children on."""
    found: list[Branch] = []
    for child in branch.children:
        found += [child] if child.shares is not None else _with_shares(child)
    return found


def _one_of(branch: Branch) -> Iterator[Branch]:
    """Return an account and those below it whose users count as its own, as they have no share but its."""
    yield branch
    for child in branch.children:
        if child.shares is None:
            yield from _one_of(child)


def _weights(branch: Branch) -> dict[str, float]:
    """Return what competes for an account's cores: the accounts below it, and its own users as one."""
    weights = {child.name: max(child.shares or 0.0, _LEAST_WEIGHT) for child in _with_shares(branch)}
    own = math.fsum(share for one in _one_of(branch) for share, _ in one.users.values())
    return {**weights, _OWN: own} if own > 0 or not weights else weights


def _divided(branch: Branch, cores: float, needs: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    below = {child.name: child for child in _with_shares(branch)}
    wanted = {name: math.fsum(needs.get(one.name, 0.0) for one in _branches(child)) for name, child in below.items()}
    wanted[_OWN] = needs.get(branch.name, 0.0)
    weights = _weights(branch)
    if wanted[_OWN] > 0:
        weights.setdefault(_OWN, _LEAST_WEIGHT)
    weights = {name: max(weight, _LEAST_WEIGHT) for name, weight in weights.items()}
    for name, part in shared_out(cores, weights, wanted).items():
        if name == _OWN:
            yield branch.name, part
        else:
            yield from _divided(below[name], part, needs)


def _ratios(branch: Branch, share: float, total: float) -> Iterator[tuple[str, float]]:
    """Return each account that has a share with its priority; `share`: its part of the whole, `total`: all usage."""
    yield branch.name, _ratio(branch.usage, total, share, 1.0)
    weights = _weights(branch)
    whole = math.fsum(weights.values())
    for child in _with_shares(branch):
        yield from _ratios(child, share * weights[child.name] / whole, total)


def _ratio(usage: float, total: float, share: float, shares: float) -> float:
    if usage <= 0 or total <= 0:
        return 0.0
    return WORST if share <= 0 or shares <= 0 else min(WORST, usage / total * shares / share)
