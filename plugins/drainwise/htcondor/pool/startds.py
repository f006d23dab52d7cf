"""The facts that each startd states for all its slots, and so which slots that the collector shows are not there.

The collector keeps an ad for a quarter of an hour: a node that lost its power shows its pilots as long,
and when it is back, the dynamic slots of before stand beside the new ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from drainwise.htcondor.ads.values import LARGEST_SLOT, Ad, moment, odd_number, text, whole
from drainwise.htcondor.node import (
    CRON_VERSION,
    HOOKS_SINCE,
    RETURNED_AGE,
    SECOND_SLOT,
    UPDATE_INTERVAL,
    USUAL_INTERVAL,
)
from drainwise.htcondor.pool.slots import SILENT_AFTER, Slot
from drainwise.pool.clocks import CLOCKS_DIFFER

_MISSED_UPDATES = 3
_LEAST_SILENCE = 30  # seconds; a startd that starts many jobs at once may be late by as much
_LONGEST_INTERVAL = 86_400


@dataclass(frozen=True)
class _Parent:
    """A slot that has dynamic slots: when its ad came, its startd's start (UNIX s), and their numbers if stated.

    cores: those of its dynamic slots included. returned_age: see `Startds.returned_age`.
    """

    heard: int
    started: int | None
    children: frozenset[object] | None
    cores: int = 0
    returned_age: int = 0


class Startds:
    """The startds of a pool by the ads of `pool_ads.MACHINES`; a node without such an ad is as HTCondor is by default.

    cores: of the largest slot that these ads tell of, None when no node says it. started: when each node's startd
    started (UNIX s), where it says so. longest_interval: seconds within which every startd tells what it has.
    """

    def __init__(self, ads: Iterable[Ad]) -> None:
        self.cores: int | None = None
        self.started: dict[str, int] = {}
        self.hooks_since: dict[str, int] = {}
        """Since when (UNIX s) all jobs that start on a node find its hooks; not there where its cron does not tell."""
        self.second: dict[str, str] = {}
        """The second slots over the cores of others (see `[htcondor] partial_return`), each with that first one."""
        self.versions: dict[str, str] = {}
        """Of drainwise on each node where it publishes; "" where it does not say it."""
        self._intervals: dict[str, int] = {}
        self._heard: dict[str, int] = {}
        self._parents: dict[str, _Parent] = {}
        for ad in ads:
            self._take(ad)

    def _take(self, ad: Ad) -> None:
        name, machine, heard = text(ad, "Name"), text(ad, "Machine"), moment(ad, "LastHeardFrom") or 0
        if name is None or machine is None or odd_number(ad, {"TotalSlotCpus": LARGEST_SLOT}):
            return
        cores, started = whole(ad, "TotalSlotCpus"), moment(ad, "DaemonStartTime")
        if cores is not None:
            self.cores = max(cores, self.cores or 0)
        if started is not None:
            self.started[machine] = max(started, self.started.get(machine, 0))
        interval = whole(ad, UPDATE_INTERVAL)
        if interval and interval <= _LONGEST_INTERVAL:
            self._intervals[machine] = max(interval, self._intervals.get(machine, 0))
        since = moment(ad, HOOKS_SINCE)
        if since is not None:
            self.hooks_since[machine] = since
        said = text(ad, CRON_VERSION)
        if said is not None or since is not None:
            self.versions[machine] = said or ""
        self._heard[machine] = max(heard, self._heard.get(machine, 0))
        age = whole(ad, RETURNED_AGE) or 0
        self._parents[name] = _Parent(heard, started, _children(ad), cores or 0, age)
        if ad.get(SECOND_SLOT) is True:
            self.second[name] = f"slot1@{name.partition('@')[2]}"

    @property
    def machines(self) -> frozenset[str]:
        """Return the nodes that have sent an ad."""
        return frozenset(self._heard)

    @property
    def longest_interval(self) -> int:
        """Return the longest interval (s); HTCondor's own where a node states none, or none has sent an ad."""
        known = [self._intervals.get(machine, USUAL_INTERVAL) for machine in self._heard]
        return max(known, default=USUAL_INTERVAL)

    def dynamic_slots(self) -> frozenset[str]:
        """Return the names of all dynamic slots that the startds state."""
        return frozenset(
            f"{base}_{number}@{host}"
            for name, parent in self._parents.items()
            for base, _, host in (name.partition("@"),)
            for number in parent.children or ()
        )

    def has(self, slot: Slot, now: int) -> bool:
        """Decide whether a slot that the collector shows is there at `now` (UNIX s).

        It is not when it was not heard of for three updates of its startd, nor when that startd was heard of since and
        does not list it, or has started since.
        """
        heard = slot.heard
        if heard is None:
            return True
        if not self.speaks(slot.machine, heard, now):
            return False
        if heard >= self._heard.get(slot.machine, 0):
            return True
        head, _, host = slot.name.partition("@")
        base, _, number = head.rpartition("_")
        parent = self._parents.get(f"{base}@{host}")
        if parent is None or heard >= parent.heard or not (number.isascii() and number.isdigit()):
            return True
        if parent.children is not None:
            return int(number[:9]) in parent.children
        return parent.started is None or heard + CLOCKS_DIFFER >= parent.started

    def speaks(self, machine: str, heard: int | None, now: int) -> bool:
        """Decide whether an ad of a node, `heard` of at that UNIX time (s), is new enough at `now`."""
        return heard is None or now - heard <= self._silent_after(machine)

    def place_of(self, slot: str) -> str:
        """Return the name of the slot to which this one's cores go back: its own one unless it is dynamic."""
        head, _, host = slot.partition("@")
        parent = f"{head.rpartition('_')[0]}@{host}"
        place = parent if parent in self._parents else slot
        return self.second.get(place, place)

    def cores_of(self, place: str) -> int:
        """Return the cores of a partitionable slot with its dynamic slots; 0 for one that is not known."""
        parent = self._parents.get(place)
        return 0 if parent is None else parent.cores

    def returned_age(self, place: str) -> int:
        """Return for how long (s) the node of a slot believes what it has read of cores that pilots have returned."""
        parent = self._parents.get(place)
        return 0 if parent is None else parent.returned_age

    def _silent_after(self, machine: str) -> int:
        interval = self._intervals.get(machine)
        return SILENT_AFTER if interval is None else max(_LEAST_SILENCE, _MISSED_UPDATES * interval)


def _children(ad: Ad) -> frozenset[object] | None:
    """Return the numbers of a partitionable slot's dynamic slots; None where its startd does not list them."""
    listed = ad.get("ChildDSlotId")
    if isinstance(listed, list):
        return frozenset(number for number in listed if type(number) is int)
    count = ad.get("NumDynamicSlots")
    return frozenset() if type(count) is int and count == 0 else None
