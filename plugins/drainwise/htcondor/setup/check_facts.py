"""The facts that `drainwise check htcondor` judges: the answers of the pool's daemons, slots and files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from drainwise.htcondor.setup.surroundings import Surroundings


@dataclass(frozen=True)
class OrderTrial:
    """A startd's answer to who would give it orders.

    identity: as whom it knows the caller, "" when it does not; allowed: whether it gives that identity ADMINISTRATOR.
    taken: whether it took a value by the way of an order; None where that could not be tried. by_root: whether the
    caller is root, as the agent usually is. beside: whether the caller is on the startd's own machine.
    """

    identity: str
    allowed: bool
    taken: bool | None
    by_root: bool
    beside: bool = False


@dataclass(frozen=True)
class DaemonFacts:
    """One daemon: the `role` it plays (execute, access, central), its `machine`, and its knobs by lower-case name.

    The knobs' values are as the daemon uses them, with all macros resolved; a knob that is not set is not there.
    `version` is HTCondor's, such as (25, 14, 1), empty when unknown. `fault` says why it did not answer. `trial` is of
    an execute daemon that answered.
    """

    role: str
    machine: str
    version: tuple[int, ...]
    knobs: Mapping[str, str]
    fault: str = ""
    trial: OrderTrial | None = None


@dataclass(frozen=True)
class SlotFacts:
    """One slot: its name and machine, its startd's clock when it sent the ad, and what the node published on it.

    Times are UNIX seconds. `cron_heartbeat` is None when no cron has published there; `orders_visible` says whether the
    slot has the attribute PilotReclaimDeadline, whatever its value. `unusable`: files of the node that jobs need and
    cannot use, as its cron found them. `orders_since`: since when its configuration lets a startd that starts take
    orders; 0: not at all; None when it does not say. `heard`: the collector's clock when the ad came, 0: unknown.
    """

    name: str
    machine: str
    clock: int
    startd_started: int
    cron_heartbeat: int | None
    orders_visible: bool
    unusable: tuple[str, ...] = ()
    orders_since: int | None = None
    heard: int = 0


@dataclass(frozen=True)
class FileFacts:
    """A file on the node itself: `fault` says why it cannot be looked at; else mode, owner's uid and ctime (UNIX s).

    `exposed` is the first directory above it that somebody else than root can write to, empty when there is none.
    """

    path: str
    fault: str = ""
    mode: int = 0
    owner: int = 0
    modified: int = 0
    exposed: str = ""


@dataclass(frozen=True)
class PoolFacts:
    """All facts of one look at the pool; `files` only of `local_machine`, when that is an execute node.

    `here`: this machine's name, whatever it is. `install`: the command that puts a file in place again that is missing.
    `around`: of that node, as far as it is known.
    """

    daemons: tuple[DaemonFacts, ...]
    slots: tuple[SlotFacts, ...]
    local_machine: str = ""
    files: tuple[FileFacts, ...] = ()
    here: str = ""
    install: str = ""
    around: Surroundings | None = None
