"""Reservations as facts, as `scontrol show reservation` prints them: nodes that some jobs alone may use, for a time."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from drainwise.slurm.cluster.partitions import Submitter
from drainwise.slurm.cluster.scontrol_words import lines_with, names_in
from drainwise.slurm.jobs.values import cores_in, whole
from drainwise.slurm.node.host_list import hosts

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
    def is_maintenance(self) -> bool:
        """Whether the site works on the nodes meanwhile."""
        return MAINTENANCE in self.flags

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
                cores_in(words.get("TRES", "")),
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
