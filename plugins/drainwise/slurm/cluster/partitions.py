"""Partitions with their limits, as facts, out of what `scontrol show partition` prints.

Slurm itself says of a job that waits for one partition alone when that is closed to it, once it comes to look at the
job; of several partitions it passes the closed ones over in silence.
"""

from __future__ import annotations

from dataclasses import dataclass

from drainwise.slurm.cluster.scontrol_words import lines_with, names_in
from drainwise.slurm.jobs.values import minutes_in, whole


@dataclass(frozen=True)
class Submitter:
    """Whose a waiting job is, as far as rules ask.

    accounts: its account and those above it whose names count for it, none where Slurm enforces no accounts. groups: of
    the operating system, None where they are not known. qos: quality of service, "" where it is not known.
    """

    user: str
    accounts: frozenset[str]
    groups: frozenset[str] | None = None
    qos: str = ""


@dataclass(frozen=True)
class Partition:
    """One partition and which jobs it takes; None: no limit.

    `tier`: those of a higher one start first. accounts, groups, qos: none: all may use it; `denied` accounts and
    `denied_qos` may not. `most_minutes`: of a job's time limit. `least_nodes`, `most_nodes`: of a job; `most_cpus`: of
    all its jobs together on a node, `most_cpus_of_socket` on each socket of one. own_qos: the quality of service whose
    limits its jobs are bound by. user_alone: its jobs share a node with jobs of their own user alone.
    """

    name: str
    up: bool = True
    tier: int = 1
    accounts: frozenset[str] = frozenset()
    denied: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    qos: frozenset[str] = frozenset()
    denied_qos: frozenset[str] = frozenset()
    own_qos: str = ""
    user_alone: bool = False
    least_nodes: int = 0
    most_nodes: int | None = None
    most_cpus: int | None = None
    most_cpus_of_socket: int | None = None
    most_minutes: int | None = None
    reserved_only: bool = False

    def unknown(self, who: Submitter) -> str:
        """Return what must be known of a submitter to decide whether the partition takes his jobs, "" when all is."""
        if self.groups and who.groups is None:
            return f"the groups of its user, of which partition {self.name} allows some"
        if (self.qos or self.denied_qos) and not who.qos:
            return f"its quality of service, of which partition {self.name} allows some"
        return ""

    def takes(self, who: Submitter, nodes: int, minutes: int | None, reservation: str) -> bool:
        """Decide whether a job with these facts may start there; minutes: its time limit, None without end."""
        if not self.up or self._keeps_out(who):
            return False
        if self.reserved_only and not reservation:
            return False
        if nodes < self.least_nodes or (self.most_nodes is not None and nodes > self.most_nodes):
            return False
        return self.most_minutes is None or (minutes is not None and minutes <= self.most_minutes)

    def _keeps_out(self, who: Submitter) -> bool:
        """Decide whether a submitter is none of those whom the partition lists."""
        if self.groups and not (who.groups or frozenset()) & self.groups:
            return True
        if who.qos not in self.qos if self.qos else who.qos in self.denied_qos:  # Slurm looks at one list alone
            return True
        named = bool(who.accounts & (self.accounts or self.denied))
        return bool(who.accounts) and (not named if self.accounts else named)

    def cpus_on(self, sockets: int) -> int | None:
        """Return how many cores of a node with so many sockets its jobs may have together."""
        of_sockets = None if self.most_cpus_of_socket is None else self.most_cpus_of_socket * max(1, sockets)
        return min((limit for limit in (self.most_cpus, of_sockets) if limit is not None), default=None)


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
            names_in(words.get("AllowGroups", "ALL")),
            names_in(words.get("AllowQos", "ALL")),
            names_in(words.get("DenyQos", "")),
            next(iter(names_in(words.get("QoS", "N/A"))), ""),
            words.get("ExclusiveUser") == "YES" or words.get("Exclusive") == "USER",  # 26.05 has the latter
            whole(words.get("MinNodes")) or 0,
            whole(words.get("MaxNodes")),
            whole(words.get("MaxCPUsPerNode")),
            whole(words.get("MaxCPUsPerSocket")),
            minutes_in(words.get("MaxTime", "")),
            words.get("ReqResv") == "YES",
        )
    return found
