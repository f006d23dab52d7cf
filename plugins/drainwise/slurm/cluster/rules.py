"""What scontrol says of the cluster: how nodes are shared, partitions, reservations, memory kept from jobs; asked once.

One scontrol with several questions on its standard input: 80 ms for a cluster of 10,000 nodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from drainwise.facts.errors import PoolUnreachable
from drainwise.slurm.cluster.node_line import SlurmNode
from drainwise.slurm.cluster.partitions import Partition, partitions_in
from drainwise.slurm.cluster.reservations import NodeReservation, reservations_in
from drainwise.slurm.jobs.cluster_config import settings_in

COMMAND = ("scontrol", "--oneliner")
QUESTIONS = "show config\nshow partition\nshow reservation\nshow node\n"

_TIME = re.compile(r"^Configuration data as of ([0-9]{9,10})$", re.MULTILINE)  # its clock, not that of slurm.conf
_KEPT = re.compile(r"^NodeName=(\S+) .* MemSpecLimit=([0-9]{1,9}) ", re.MULTILINE)


@dataclass(frozen=True)
class Selection:
    """Sharing of the cluster's nodes: `whole_nodes` to one job at a time; `memory`: jobs get it to themselves."""

    whole_nodes: bool = False
    memory: bool = True


@dataclass(frozen=True)
class ClusterRules:
    """How jobs share the nodes, and who may use which: partitions by name, reservations.

    kept_memory: what the system of a node keeps for itself, MiB, by node.
    """

    selection: Selection = field(default_factory=Selection)
    partitions: Mapping[str, Partition] = field(default_factory=dict)
    reservations: tuple[NodeReservation, ...] = ()
    kept_memory: Mapping[str, int] = field(default_factory=dict)

    def without_kept_memory(self, nodes: Iterable[SlurmNode]) -> list[SlurmNode]:
        """Return the nodes with the memory that is for jobs."""
        return [
            replace(node, memory=max(1, node.memory - self.kept_memory[node.name]))
            if node.memory is not None and node.name in self.kept_memory
            else node
            for node in nodes
        ]


def selection_in(config: str) -> Selection:
    """Return the way in which nodes are shared, by the output of `scontrol show config`."""
    found = settings_in(config)
    whole = found.get("selecttype", "").lower() == "select/linear"
    memory = "MEMORY" in found.get("selecttypeparameters", "").upper()
    return Selection(whole, memory or "SelectTypeParameters" not in config)


def rules_in(answer: str) -> ClusterRules:
    """Return the rules in the answer to QUESTIONS."""
    config, _, rest = answer.partition("\nPartitionName=")
    # A line of each partition, reservation and node begins with its name, whatever stands between the answers.
    return ClusterRules(
        selection_in(config),
        partitions_in(f"PartitionName={rest}"),
        reservations_in(rest),
        {name: int(memory) for name, memory in _KEPT.findall(rest)} if " MemSpecLimit=" in rest else {},
    )


def controller_time(answer: str) -> int:
    """Return what slurmctld's clock said when it answered QUESTIONS, UNIX s. Raises PoolUnreachable."""
    match = _TIME.search(answer)
    if match is None:
        raise PoolUnreachable("incomplete answer: scontrol show config does not tell slurmctld's time")
    return int(match[1])
