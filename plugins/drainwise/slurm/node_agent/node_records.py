"""The records of this host's nodes: what every prolog there wants to know, learnt anew each hour."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from drainwise.features import host
from drainwise.node.settings import NodeSettings
from drainwise.slurm.jobs.scontrol_jobs import JobAnswer
from drainwise.slurm.node.node_record import NodeRecord, write_record

RECORD_PERIOD = 3600
"""Seconds until a node's CPUs are asked for again."""


class NodeRecords:
    """The record of each node. `fault`: called with a node and what is wrong there."""

    def __init__(self, fault: Callable[[str, str], None]) -> None:
        self._fault = fault
        self._records: dict[str, NodeRecord] = {}
        self._due: dict[str, int] = {}

    def of(self, node: str) -> NodeRecord:
        """Return what is known of a node."""
        return self._records.get(node, NodeRecord())

    def due(self, nodes: Iterable[str], now: int) -> tuple[str, ...]:
        """Return those of the nodes that slurmctld is to be asked for; `now` in UNIX s."""
        return tuple(node for node in nodes if now >= self._due.get(node, 0))

    def learn(self, nodes: Mapping[str, int], answer: JobAnswer, settings: NodeSettings, now: int) -> None:
        """Write down what slurmctld and the kernel say of these nodes (name to a descriptor of its directory)."""
        for node, directory in nodes.items():
            physical, logical = host.cores()
            scratch = host.scratch_bytes(settings.scratch_dir)
            record = self._records[node] = NodeRecord(
                answer.cpus.get(node), physical, logical, scratch, answer.features.get(node, ())
            )
            try:
                write_record(directory, record)
            except OSError as error:
                self._fault(f"node {node}", f"its record is not written: {error.strerror}")
            self._due[node] = now + RECORD_PERIOD
