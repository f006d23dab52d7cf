"""What scontrol says of the cluster: how nodes are shared, partitions, reservations, memory kept from jobs; asked once.

One scontrol with several questions on its standard input: 80 ms for a cluster of 10,000 nodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from drainwise.facts.errors import PoolUnreachable
from drainwise.slurm.cluster.limits import Limits
from drainwise.slurm.cluster.node_line import SlurmNode
from drainwise.slurm.cluster.partitions import Partition, Submitter, partitions_in
from drainwise.slurm.cluster.reservations import NodeReservation, reservations_in
from drainwise.slurm.jobs.commands import settings_in

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
    of the users that were looked up. limits: of whoever waits. nodes: those of any partition.
    """

    selection: Selection = field(default_factory=Selection)
    partitions: Mapping[str, Partition] = field(default_factory=dict)
    reservations: tuple[NodeReservation, ...] = ()
    kept_memory: Mapping[str, int] = field(default_factory=dict)
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    release: tuple[int, ...] = ()
    enforced: frozenset[str] = frozenset()
    groups: Mapping[str, frozenset[str]] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    nodes: frozenset[str] = frozenset()

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
    )


def controller_time(answer: str) -> int:
    """Return what slurmctld's clock said when it answered QUESTIONS, UNIX s. Raises PoolUnreachable."""
    match = _TIME.search(answer)
    if match is None:
        raise PoolUnreachable("incomplete answer: scontrol show config does not tell slurmctld's time")
    return int(match[1])
