"""Which pilots a command shows: the filters of `status`, `plan`, `reclaim --once`, `explain` and `report`.

They choose what is shown, never what is decided. A name that nothing is called by is refused with those that are known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from drainwise.facts.name_patterns import called, nodes_called, unknown_name

if TYPE_CHECKING:
    from drainwise.pool.facts import Pilot, Snapshot

RUNNING, DRAINING, ORDERED, LEAVING = "running", "draining", "ordered", "leaving"
STATES = (RUNNING, DRAINING, ORDERED, LEAVING)


def state_of(pilot: Pilot, is_draining: bool) -> str:
    """Return ORDERED (to end by its deadline), LEAVING (the batch system ends it), DRAINING (by itself) or RUNNING."""
    if pilot.deadline is not None:
        return ORDERED
    if pilot.leaving:
        return LEAVING
    return DRAINING if is_draining else RUNNING


@dataclass(frozen=True)
class PilotFilter:
    """What is shown; None and () are all. nodes: patterns. limit: so many pilots at most, of several tables each."""

    users: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    limit: int | None = None

    @property
    def is_some(self) -> bool:
        """Whether a part of the pilots is wanted, and not all."""
        return bool(self.users or self.accounts or self.nodes or self.states)

    def fits(self, pilot: Pilot, is_draining: bool) -> bool:
        """Decide whether a pilot is shown."""
        return self.fits_names(pilot) and self.fits_state(pilot, is_draining)

    def fits_state(self, pilot: Pilot, is_draining: bool) -> bool:
        """Decide the same by its state alone."""
        return not self.states or state_of(pilot, is_draining) in self.states

    def fits_names(self, pilot: Pilot) -> bool:
        """Decide the same by user, account and node alone."""
        return self.fits_place(pilot.account, pilot.user, pilot.nodes)

    def fits_place(self, account: str, user: str, nodes: Collection[str]) -> bool:
        """Decide the same by its names, where there is no pilot but a record of it."""
        on_node = not self.nodes or any(nodes_called(one, nodes) for one in self.nodes)
        return on_node and self.fits_user(account, user)

    def fits_user(self, account: str, user: str) -> bool:
        """Decide whether anything of a user under an account may be shown."""
        return fits_any(self.users, user) and fits_any(self.accounts, account)

    def require_known(self, snapshot: Snapshot) -> None:
        """Raise UsageError for a user, an account or a node that the snapshot does not know."""
        accounts = {one.account for one in snapshot.pilots} | {one.name for one in snapshot.accounts}
        self.require(
            "with pilots",
            {one.user for one in snapshot.pilots},
            accounts,
            {node for one in snapshot.pilots for node in one.nodes} if self.nodes else (),
        )

    def require(self, where: str, users: Collection[str], accounts: Collection[str], nodes: Collection[str]) -> None:
        """Raise UsageError for a name that is not among the known ones; where: words that follow the kind of name."""
        for name in self.users:
            if not called(name, users):
                raise unknown_name(f"user {where}", name, users)
        for name in self.accounts:
            if not called(name, accounts):
                raise unknown_name("account", name, accounts)
        for name in self.nodes:
            if not nodes_called(name, nodes):
                raise unknown_name(f"node {where}", name, nodes)


def fits_any(names: Iterable[str], one: str) -> bool:
    """Return whether one of the names, or pattern, is meant; all are where there is none."""
    return not names or any(called(name, (one,)) for name in names)
