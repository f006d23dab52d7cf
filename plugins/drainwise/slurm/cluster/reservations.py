"""Reservations as facts, as `scontrol show reservation` prints them: nodes that some jobs alone may use, for a time."""

from __future__ import annotations

from dataclasses import dataclass

from drainwise.slurm.cluster.scontrol_words import lines_with, names_in
from drainwise.slurm.jobs.values import cores_in, whole
from drainwise.slurm.node.host_list import hosts

MAINTENANCE, FLOATS = "MAINT", "TIME_FLOAT"


@dataclass(frozen=True)
class NodeReservation:
    """One reservation: its nodes from `start` to `end` (UNIX s); `cpus` of them in all, None where that is not known.

    `active`: the time has come. `flags`: in Slurm's words; one that floats begins always later, and never.
    """

    name: str
    nodes: frozenset[str]
    start: int
    end: int
    cpus: int | None = None
    active: bool = False
    flags: frozenset[str] = frozenset()

    @property
    def is_maintenance(self) -> bool:
        """Whether the site works on the nodes meanwhile."""
        return MAINTENANCE in self.flags

    @property
    def floats(self) -> bool:
        """Whether its start is never reached."""
        return FLOATS in self.flags


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
                cores_in(words.get("TRES", "")),
                words.get("State") == "ACTIVE",
                names_in(words.get("Flags", "")),
            )
        )
    return tuple(found)


def _nodes(text: str) -> frozenset[str]:
    try:
        return frozenset() if text == "(null)" else frozenset(hosts(text))
    except ValueError:
        return frozenset()
