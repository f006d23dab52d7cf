"""What scontrol says of the cluster: how nodes are shared, partitions, reservations, memory kept from jobs; asked once.

One scontrol with several questions on its standard input: 80 ms for a cluster of 10,000 nodes. The lines of
`scontrol --oneliner show` have words `Key=value`; what stands there is the administrators'. Slurm itself says of a job
that waits for one partition alone when that is closed to it, once it comes to look at the job; of several partitions it
passes the closed ones over in silence.
"""

from __future__ import annotations

import grp
import os
import pwd
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from drainwise.facts.errors import PoolUnreachable
from drainwise.facts.units import parse_clock
from drainwise.slurm.jobs.commands import settings_in
from drainwise.slurm.jobs.job import SlurmJob
from drainwise.slurm.jobs.values import CORES, count_in, minutes_in, whole
from drainwise.slurm.node.host_list import hosts
from drainwise.slurm.pool.limits import Limits
from drainwise.slurm.pool.node_line import SlurmNode

_NOTHING = {"(null)", "N/A", "ALL", "UNLIMITED", "NONE"}


def lines_with(answer: str, key: str) -> Iterator[dict[str, str]]:
    """Yield the values of each line that begins with `key` by their keys: of one that stands there twice the first."""
    for line in answer.splitlines():
        if line.startswith(f"{key}="):
            yield dict(word.partition("=")[::2] for word in reversed(line.split()) if "=" in word)


def names_in(value: str) -> frozenset[str]:
    """Return the names in a list; none where all are meant, or nobody."""
    return frozenset() if value in _NOTHING else frozenset(filter(None, value.split(",")))


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
    limits its jobs are bound by. user_alone: its jobs share a node with jobs of their own user alone. grace: its
    GraceTime, s; modes: the words of its PreemptMode.
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
    grace: int = 0
    modes: frozenset[str] = frozenset()

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
            whole(words.get("GraceTime")) or 0,
            frozenset(words.get("PreemptMode", "").lower().split(",")),
        )
    return found


MAINTENANCE, FLOATS, MAGNETIC = "MAINT", "TIME_FLOAT", "MAGNETIC"


@dataclass(frozen=True)
class NodeReservation:
    """One reservation: its nodes from `start` to `end` (UNIX s); `cpus` of them in all, None where that is not known.

    `active`: the time has come. `flags`: in Slurm's words; one that floats begins always later, and never. users,
    accounts: whose jobs may use it, with a minus before those who may not; none: all.
    """

    name: str
    nodes: frozenset[str]
    start: int
    end: int
    cpus: int | None = None
    active: bool = False
    flags: frozenset[str] = frozenset()
    users: frozenset[str] = frozenset()
    accounts: frozenset[str] = frozenset()

    @property
    def floats(self) -> bool:
        """Whether its start is never reached."""
        return FLOATS in self.flags

    def attracts(self, who: Submitter) -> bool:
        """Decide whether jobs of a submitter that ask for no reservation may start in it."""
        is_his = _is_listed(self.users, {who.user}) and _is_listed(self.accounts, who.accounts)
        return MAGNETIC in self.flags and not self.floats and is_his


def reservations_in(answer: str) -> tuple[NodeReservation, ...]:
    """Return the reservations of nodes in the answer; those of licences alone have none and are passed over."""
    found = []
    for words in lines_with(answer, "ReservationName"):
        start, end = whole(words.get("StartTime")), whole(words.get("EndTime"))
        nodes = _nodes(words.get("Nodes", ""))
        if start is None or end is None or not nodes:
            continue
        found.append(
            NodeReservation(
                words["ReservationName"],
                nodes,
                start,
                end,
                count_in(words.get("TRES", ""), CORES),
                words.get("State") == "ACTIVE",
                names_in(words.get("Flags", "")),
                names_in(words.get("Users", "")),
                names_in(words.get("Accounts", "")),
            )
        )
    return tuple(found)


def _is_listed(listed: frozenset[str], names: Collection[str]) -> bool:
    denied = {name[1:] for name in listed if name.startswith("-")}
    allowed = {name for name in listed if not name.startswith("-")}
    return denied.isdisjoint(names) and (not allowed or not allowed.isdisjoint(names))


def _nodes(text: str) -> frozenset[str]:
    try:
        return frozenset() if text == "(null)" else frozenset(hosts(text))
    except ValueError:
        return frozenset()


COMMAND = ("scontrol", "--oneliner")
QUESTIONS = "show config\nshow partition\nshow reservation\nshow node\n"

_TIME = re.compile(r"^Configuration data as of ([0-9]{9,10})$", re.MULTILINE)  # its clock, not that of slurm.conf
_KEPT = re.compile(r"^NodeName=(\S+) .* MemSpecLimit=([0-9]{1,9}) ", re.MULTILINE)
_SHAPE = re.compile(
    r"^NodeName=(\S+) .*?\bCoresPerSocket=([0-9]{1,6}) .*? Sockets=([0-9]{1,6}) .*?\bThreadsPerCore=([0-9]{1,4}) ",
    re.MULTILINE,
)
_IN_PARTITIONS = re.compile(r"^NodeName=(\S+) .*\bPartitions=[^ (]", re.MULTILINE)
_NUMBERS = re.compile("[0-9]+")
PARENTS_COUNT = (23, 2)
"""The release since which an account that a partition names stands for those below (by its source; seen on 24.11)."""


@dataclass(frozen=True)
class Selection:
    """Sharing of the cluster's nodes: `whole_nodes` to one job at a time; `memory`: jobs get it to themselves.

    unit: what one job has to itself at least: `core`, `socket`, "" where that is a thread.
    """

    whole_nodes: bool = False
    memory: bool = True
    unit: str = ""


@dataclass(frozen=True)
class Shape:
    """How a node's cores lie: cores of a socket, sockets, threads of a core."""

    cores: int = 1
    sockets: int = 1
    threads: int = 1


@dataclass(frozen=True)
class ClusterRules:
    """How jobs share the nodes, and who may use which: partitions by name, reservations.

    kept_memory: what the system of a node keeps for itself, MiB, by node; shapes: of nodes whose cores have threads, or
    that have several sockets. release: Slurm's. enforced: what Slurm's accounting enforces, in its words. groups: those
    of the users that were looked up. limits: of whoever waits. nodes: those of any partition. preempt_type,
    preempt_modes: Slurm's PreemptType, and the words of PreemptMode; preempt_exempt: its PreemptExemptTime, s.
    """

    selection: Selection = field(default_factory=Selection)
    partitions: Mapping[str, Partition] = field(default_factory=dict)
    reservations: tuple[NodeReservation, ...] = ()
    kept_memory: Mapping[str, int] = field(default_factory=dict)
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    release: tuple[int, ...] = ()
    enforced: frozenset[str] = frozenset()
    groups: Mapping[str, frozenset[str]] = field(default_factory=dict)
    limits: Limits = field(default_factory=dict)
    nodes: frozenset[str] = frozenset()
    preempt_type: str = ""
    preempt_modes: frozenset[str] = frozenset()
    preempt_exempt: int = 0

    def on(self, nodes: Iterable[SlurmNode]) -> list[SlurmNode]:
        """Return the nodes as they are for jobs: with the memory that these may have, and the grain of their cores."""
        return [self._on(node) for node in nodes]

    def _on(self, node: SlurmNode) -> SlurmNode:
        kept, shape = self.kept_memory.get(node.name), self.shapes.get(node.name)
        if kept is not None and node.memory is not None:
            node = replace(node, memory=max(1, node.memory - kept))
        if shape is None:
            return node
        # Where slurm.conf gives a node no more CPUs than cores, a CPU is a core.
        threads = shape.threads if node.cpus > shape.cores * shape.sockets else 1
        grain = {"core": threads, "socket": threads * shape.cores}.get(self.selection.unit, 1)
        return replace(node, grain=max(1, grain), threads=threads, sockets=shape.sockets)

    def submitter(self, user: str, above: Iterable[str], qos: str) -> Submitter:
        """Return whose a job is; above: its account, then those above it up to the root, as far as they are known."""
        accounts = tuple(above) if "associations" in self.enforced else ()
        counted = accounts if self.release >= PARENTS_COUNT else accounts[:1]
        return Submitter(user, frozenset(counted), self.groups.get(user), qos)


def selection_in(config: str) -> Selection:
    """Return the way in which nodes are shared, by the output of `scontrol show config`."""
    found = settings_in(config)
    whole = found.get("selecttype", "").lower() == "select/linear"
    parameters = found.get("selecttypeparameters", "").upper()
    unit = next((word.lower() for word in ("CORE", "SOCKET") if f"CR_{word}" in parameters), "")
    return Selection(whole, "MEMORY" in parameters or "SelectTypeParameters" not in config, unit)


def rules_in(answer: str) -> ClusterRules:
    """Return the rules in the answer to QUESTIONS."""
    config, _, rest = answer.partition("\nPartitionName=")
    # A line of each partition, reservation and node begins with its name, whatever stands between the answers.
    settings = settings_in(config)
    shapes = {name: Shape(*map(int, numbers)) for name, *numbers in _SHAPE.findall(rest)}
    return ClusterRules(
        selection_in(config),
        partitions_in(f"PartitionName={rest}"),
        reservations_in(rest),
        {name: int(memory) for name, memory in _KEPT.findall(rest)} if " MemSpecLimit=" in rest else {},
        {name: shape for name, shape in shapes.items() if shape.threads > 1 or shape.sockets > 1},
        tuple(int(number) for number in _NUMBERS.findall(settings.get("slurm_version", ""))[:2]),
        frozenset(settings.get("accountingstorageenforce", "").lower().split(",")) - {""},
        nodes=frozenset(_IN_PARTITIONS.findall(rest)),
        preempt_type=settings.get("preempttype", "").lower(),
        preempt_modes=frozenset(settings.get("preemptmode", "").lower().split(",")),
        preempt_exempt=int(parse_clock(settings.get("preemptexempttime", "")) or 0),
    )


def controller_time(answer: str) -> int:
    """Return what slurmctld's clock said when it answered QUESTIONS, UNIX s. Raises PoolUnreachable."""
    match = _TIME.search(answer)
    if match is None:
        raise PoolUnreachable("incomplete answer: scontrol show config does not tell slurmctld's time")
    return int(match[1])


def groups_of(waiting: Iterable[SlurmJob], partitions: Mapping[str, Partition]) -> dict[str, frozenset[str]]:
    """Return the groups of each user who waits for such a partition; one whom this machine does not know is absent."""
    restricted = {name for name, one in partitions.items() if one.groups}
    users = {job.user for job in waiting if restricted.intersection(job.partitions)} if restricted else set()
    found = {}
    for user in users:
        try:
            numbers = os.getgrouplist(user, pwd.getpwnam(user).pw_gid)
            found[user] = frozenset(grp.getgrgid(number).gr_name for number in numbers)
        except KeyError:
            continue
    return found
