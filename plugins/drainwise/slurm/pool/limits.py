"""How much the limits of Slurm's accounting leave to whoever waits, as slurmctld itself counts it.

Slurm names such a limit as a job's reason only once it comes to look at the job: until then the job waits by priority.
A limit of the partition's quality of service takes the place of the same one of the job's, and that of the same one of
the associations.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

COMMAND = ("scontrol", "--oneliner", "show", "assoc_mgr", "flags=assoc,qos")
ENFORCED = "limits"
"""The word of AccountingStorageEnforce without which no limit binds."""
MOST_BYTES = 1 << 28

# Each limit by its key: what it counts (`jobs`, `amounts`, `minutes` of amounts, or the amounts of one `job`), and by
# which name it takes the place of one of another record. Seen on 22.05, 24.11 and 26.05.
_OF_ALL = {"GrpJobs": ("jobs", "all"), "GrpTRES": ("amounts", "all"), "GrpTRESRunMins": ("minutes", "all")}
_OF_A_JOB = {"MaxTRESPJ": ("job", "job")}
_OF_A_USER = {"MaxJobs": ("jobs", "user"), **_OF_A_JOB}
_IN_BRACES = {
    **{f"MaxJobs{whose}": ("jobs", name) for whose, name in (("PU", "user"), ("PA", "account"))},
    **{f"MaxTRES{whose}": ("amounts", name) for whose, name in (("PU", "user"), ("PA", "account"))},
    **{f"MaxTRESRunMins{whose}": ("minutes", name) for whose, name in (("PU", "user"), ("PA", "account"))},
}

_RECORD = re.compile(
    r"^(?:ClusterName=\S+ Account=(\S+) UserName=(\S*) Partition=(\S*) |QOS=(\S+)\(\d+\) )(.*)$", re.MULTILINE
)
_BRACES = re.compile(r"(\S+?)(?:\(\d+\))?=\{([^}]*)\}")
_NUMBER = re.compile(r"([0-9]{1,18})(?:\.[0-9]+)?(?:\(([0-9]{1,18})(?:\.[0-9]+)?\))?")

Holder = tuple[str, ...]
"""Whose a limit is: an association's account, user and partition; or a quality of service, with an account or user."""
Limit = tuple[str, str, str]
"""What a limit counts, the name by which another takes its place, and the resource ("" of jobs)."""
Bound = tuple[Holder, Limit, float]
"""A limit, and how much one task takes of it."""
Limits = Mapping[Holder, Mapping[Limit, float]]
"""What each limit leaves, by its holder and what it is; without any where Slurm enforces none."""


@dataclass(frozen=True)
class Asked:
    """What one task of a waiting job would count for: minutes of its time limit, resources by Slurm's names."""

    minutes: float
    resources: Mapping[str, float]

    def of(self, limit: Limit) -> float:
        """Return how much it takes of a limit."""
        counts, _, resource = limit
        amount = 1.0 if counts == "jobs" else self.resources.get(resource, 0.0)
        return amount * self.minutes if counts == "minutes" and amount else amount


def limits_in(answer: str) -> Limits:
    """Return the limits in the output of COMMAND."""
    found: dict[Holder, Mapping[Limit, float]] = {}
    names: dict[str, str] = {}
    for account, user, partition, qos, text in _RECORD.findall(answer):
        if not qos:
            name, _, uid = user.rstrip(")").partition("(")
            names[uid] = name
            found[account, name, partition] = dict(_left(text, {**_OF_ALL, **_OF_A_USER} if user else _OF_ALL))
            continue
        own, _, inner = text.partition(" Account Limits=")
        found["qos", qos] = dict(_left(own, {**_OF_ALL, **_OF_A_JOB}))
        for whose, block in zip(("account", "user"), inner.partition(" User Limits=")[::2]):
            for name, said in _BRACES.findall(block):
                who = names.get(name, name) if whose == "user" else name  # 22.05 has the number alone
                found["qos", qos, whose, who] = dict(_left(said, _IN_BRACES))
    return {holder: left for holder, left in found.items() if left}


def _left(text: str, table: Mapping[str, tuple[str, str]]) -> Iterator[tuple[Limit, float]]:
    for word in text.split():
        key, _, value = word.partition("=")
        if key in table:
            counts, name = table[key]
            for part in value.split(","):
                resource, equals, number = part.rpartition("=")
                match = _NUMBER.fullmatch(number)
                if match is not None:
                    yield (counts, name, resource if equals else ""), float(match[1]) - float(match[2] or 0)


class Allowance:
    """What the limits leave, as waiting jobs are counted one after the other in the order of the queue."""

    def __init__(self, limits: Limits) -> None:
        self._left = {holder: dict(left) for holder, left in limits.items()}
        self.held_back: dict[str, int] = {}
        """Tasks that a limit holds back, by the limit in words."""

    def bounds(self, asked: Asked, holders: Iterable[Holder]) -> tuple[Bound, ...]:
        """Return the limits of these holders, the first of whom bind most, that bind jobs which ask so."""
        seen: dict[Limit, str] = {}
        found: list[Bound] = []
        for holder in holders:
            level = holder[1] if holder[0] == "qos" else ""
            binding = (limit for limit in self._left.get(holder, ()) if seen.setdefault(limit, level) == level)
            found += [(holder, limit, asked.of(limit)) for limit in binding]
        return tuple(found)

    def take(self, tasks: int, bounds: Iterable[Bound]) -> int:
        """Return how many of a job's tasks these limits allow, and count them."""
        allowed, least = tasks, None
        for bound in bounds:
            if (fits := self._fitting(bound)) < allowed:
                allowed, least = fits, bound
        for holder, limit, amount in bounds:
            if limit[0] != "job":
                self._left[holder][limit] -= allowed * amount
        if least is not None:
            holder, limit, _ = least
            words = f"{limit[2] or 'jobs'} of {' '.join(filter(None, holder))}"
            self.held_back[words] = self.held_back.get(words, 0) + tasks - allowed
        return allowed

    def _fitting(self, bound: Bound) -> int:
        holder, limit, amount = bound
        left = self._left[holder][limit]
        if limit[0] == "job":
            return 0 if amount > left else 1 << 30
        return max(0, math.floor(left / amount)) if amount else 1 << 30
