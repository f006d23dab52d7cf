"""Partitions with their limits, as facts, out of what `scontrol show partition` prints.

Slurm itself says of a job that waits for one partition alone when that is closed to it; of several it passes the closed
ones over in silence. Groups of users and qualities of service that a partition allows are not looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

from drainwise.slurm.cluster.scontrol_words import lines_with, names_in
from drainwise.slurm.jobs.values import minutes_in, whole


@dataclass(frozen=True)
class Partition:
    """One partition and which jobs it takes; None: no limit.

    `tier`: those of a higher one start first. accounts: none: all may use it; `denied` may not. `most_minutes`: of a
    job's time limit. `least_nodes`, `most_nodes`: of a job; `most_cpus`: of a job on a node.
    """

    name: str
    up: bool = True
    tier: int = 1
    accounts: frozenset[str] = frozenset()
    denied: frozenset[str] = frozenset()
    least_nodes: int = 0
    most_nodes: int | None = None
    most_cpus: int | None = None
    most_minutes: int | None = None
    reserved_only: bool = False

    def takes(self, account: str, nodes: int, minutes: int | None, reservation: str) -> bool:
        """Decide whether a job with these facts may start there; minutes: its time limit, None without end."""
        if not self.up or account in self.denied or (self.accounts and account not in self.accounts):
            return False
        if self.reserved_only and not reservation:
            return False
        if nodes < self.least_nodes or (self.most_nodes is not None and nodes > self.most_nodes):
            return False
        return self.most_minutes is None or (minutes is not None and minutes <= self.most_minutes)


def partitions_in(answer: str) -> dict[str, Partition]:
    """Return the partitions in the answer by their names."""
    found = {}
    for words in lines_with(answer, "PartitionName"):
        name = words["PartitionName"]
        found[name] = Partition(
            name,
            words.get("State", "UP") == "UP",
            whole(words.get("PriorityTier")) or 0,
            names_in(words.get("AllowAccounts", "ALL")),
            names_in(words.get("DenyAccounts", "")),
            whole(words.get("MinNodes")) or 0,
            whole(words.get("MaxNodes")),
            whole(words.get("MaxCPUsPerNode")),
            minutes_in(words.get("MaxTime", "")),
            words.get("ReqResv") == "YES",
        )
    return found
