"""The startds of a pool: what each states for all its slots, whether all have told of themselves, and asking them.

The collector keeps an ad for a quarter of an hour: a node that lost its power shows its pilots as long,
and when it is back, the dynamic slots of before stand beside the new ones.

A collector that has started anew does not know all startds yet. Which there are is known by the last whole answer, also
to an agent that has started since: it is kept in a file. Those that are missing are asked directly.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial

from drainwise.common.bounded_call import each_within
from drainwise.common.local_file import read_json, replace_file
from drainwise.facts.errors import FeatureError, PoolError, PoolUnreachable
from drainwise.facts.signs import NO_SIGN, is_missed
from drainwise.htcondor import node as names
from drainwise.htcondor.ads.values import (
    CLOCK,
    LARGEST_POOL,
    LARGEST_SLOT,
    Ad,
    Others,
    moment,
    named,
    number,
    odd_number,
    text,
    whole,
)
from drainwise.htcondor.pool.slots import SILENT_AFTER, Slot
from drainwise.pool.clocks import CLOCKS_DIFFER, clock_off

_MISSED_UPDATES = 3
_LEAST_SILENCE = 30  # seconds; a startd that starts many jobs at once may be late by as much
_LONGEST_INTERVAL = 86_400
# A startd loses its first update to a collector that has started anew: it goes into the connection of before.
_UPDATES, _SLACK = 2, 15
_WAIT_FOR_SILENT = 120  # s

MOST_ASKED = 256
"""Startds that are asked for one snapshot."""
_ALL_SECONDS, _EACH_SECONDS = 12.0, 4.0
_YOUNG = 3600  # s; an older collector knows all there is
_KEPT = 300  # s; an answer is as good as an update of the usual interval
_LARGEST = 64 << 20  # bytes of the file

Answer = tuple[list[Ad], list[Ad]]
"""What a startd says: the ads that concern all its slots, then those of its slots."""


@dataclass(frozen=True)
class _Parent:
    """A slot that has dynamic slots: when its ad came, its startd's start (UNIX s), and their numbers if stated.

    cores: those of its dynamic slots included. returned_age: see `Startds.shared`.
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
        self.unordered: dict[str, str] = {}
        """Why no pilot of a node is to be ordered, as the node's times tell; not there where nothing is wrong."""
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
        interval = whole(ad, names.UPDATE_INTERVAL)
        if interval and interval <= _LONGEST_INTERVAL:
            self._intervals[machine] = max(interval, self._intervals.get(machine, 0))
        since = moment(ad, names.HOOKS_SINCE)
        if since is not None:
            self.hooks_since[machine] = since
        said = text(ad, names.CRON_VERSION)
        if said is not None or since is not None:
            self.versions[machine] = said or ""
        why = _why_unordered(machine, moment(ad, CLOCK), heard, moment(ad, names.CRON_HEARTBEAT))
        if why:
            self.unordered[machine] = why
        self._heard[machine] = max(heard, self._heard.get(machine, 0))
        age = whole(ad, names.RETURNED_AGE) or 0
        self._parents[name] = _Parent(heard, started, _children(ad), cores or 0, age)
        if ad.get(names.SECOND_SLOT) is True:
            self.second[name] = f"slot1@{name.partition('@')[2]}"

    @property
    def machines(self) -> frozenset[str]:
        """Return the nodes that have sent an ad."""
        return frozenset(self._heard)

    @property
    def longest_interval(self) -> int:
        """Return the longest interval (s); HTCondor's own where a node states none, or none has sent an ad."""
        known = [self._intervals.get(machine, names.USUAL_INTERVAL) for machine in self._heard]
        return max(known, default=names.USUAL_INTERVAL)

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
        interval = self._intervals.get(machine)
        most = SILENT_AFTER if interval is None else max(_LEAST_SILENCE, _MISSED_UPDATES * interval)
        return heard is None or now - heard <= most

    def place_of(self, slot: str) -> str:
        """Return the name of the slot to which this one's cores go back: its own one unless it is dynamic."""
        head, _, host = slot.partition("@")
        parent = f"{head.rpartition('_')[0]}@{host}"
        place = parent if parent in self._parents else slot
        return self.second.get(place, place)

    def shared(self, place: str) -> tuple[int, int]:
        """Return the cores of a partitionable slot with its dynamic slots, 0 for one that is not known; and for how
        long (s) its node believes what it has read of cores that pilots have returned.
        """
        parent = self._parents.get(place)
        return (0, 0) if parent is None else (parent.cores, parent.returned_age)


def _why_unordered(machine: str, clock: int | None, heard: int, cron: int | None) -> str:
    """Say what is wrong with a node's times, in UNIX s, as its startd sent them: its clock, and when its cron last ran.

    heard: when the collector received them, by its own clock.
    """
    if clock is None or not heard:
        return ""
    if off := clock_off(clock, heard):
        how = f"{abs(off)} s {'ahead' if off > 0 else 'behind'}"
        return f"the clock of {machine} is {how}: deadlines would be wrong there"
    return NO_SIGN if cron is not None and is_missed(cron, clock) else ""


def _children(ad: Ad) -> frozenset[object] | None:
    """Return the numbers of a partitionable slot's dynamic slots; None where its startd does not list them."""
    listed = ad.get("ChildDSlotId")
    if isinstance(listed, list):
        return frozenset(number for number in listed if type(number) is int)
    count = ad.get("NumDynamicSlots")
    return frozenset() if type(count) is int and count == 0 else None


def collector_start(collectors: Iterable[Ad]) -> int | None:
    """Return when the collector started (UNIX s), of several the youngest; None when none says."""
    starts = []
    for ad in collectors:
        at, lived = moment(ad, "StatsLastUpdateTime"), number(ad, "StatsLifetime")
        if at is not None and lived is not None and lived <= LARGEST_POOL:
            starts.append(at - int(lived))
    return max(starts, default=None)


def require_refilled(
    startds: Startds,
    slot_names: Collection[str],
    collectors: Sequence[Ad],
    masters: Sequence[Ad],
    before: Collection[str],
    now: int,
    silent: Collection[str] = (),
) -> None:
    """Raise PoolUnreachable while a collector that has just started cannot have heard of all nodes yet at `now`.

    Startds tell it of themselves one after the other, each within its UPDATE_INTERVAL. A pool that has started with its
    collector is whole as far as it is there: its startds tell of themselves when they start. before: the nodes of the
    last whole answer; when all of them are back, nothing is missing. A node that has gone is waited for no longer than
    all the others may take; one of `silent`, which did not answer when it was asked directly, for two minutes.
    """
    start = collector_start(collectors)
    if start is None:
        return
    left = start + _UPDATES * startds.longest_interval + _SLACK - now
    older = (moment(ad, "DaemonStartTime") or now for ad in masters)
    if left <= 0 or min((*startds.started.values(), *older), default=now) >= start - CLOCKS_DIFFER:
        return
    expected = set(before) or {node for ad in masters if "STARTD_StartTime" in ad and (node := text(ad, "Machine"))}
    gone = set(silent) if now - start >= _WAIT_FOR_SILENT else set()
    missing = expected - startds.machines - gone
    slots = startds.dynamic_slots() - set(slot_names)
    if before and not missing and not slots:
        return
    lacks = f"{len(missing)} nodes are missing ({named(missing)}); " if missing else ""
    lacks += f"{len(slots)} slots are missing ({named(slots)}); " if slots else ""
    raise PoolUnreachable(
        f"incomplete answer: the collector started {now - start} s ago, and not every startd has sent it its ads"
        f" yet: {lacks}nothing is decided before all are back, or {left} s have passed"
    )


class KnownStartds:
    """The startds of the last whole answer with their addresses, by node; file: where they are kept, "" for nowhere."""

    def __init__(self, file: str = "") -> None:
        self._file = file
        self._addresses: dict[str, str] | None = None
        self._answers: dict[str, tuple[int, Answer]] = {}
        self.silent: frozenset[str] = frozenset()
        """Those that were asked for the last snapshot and did not answer."""

    @property
    def nodes(self) -> frozenset[str]:
        """Return the nodes of the last whole answer."""
        return frozenset(self._known())

    def learn(self, startds: Iterable[Ad]) -> None:
        """Take in the machine ads of a whole answer."""
        seen = {node: text(ad, "MyAddress") or "" for ad in startds if (node := text(ad, "Machine")) is not None}
        self._answers, self.silent = {}, frozenset()
        if seen == self._known():
            return
        self._addresses = seen
        directory, name = os.path.split(self._file)
        with suppress(OSError):  # it is not there, or another user's: then only this process knows them
            replace_file(name, json.dumps(seen).encode("ascii"), directory)

    def completed(
        self, others: Others, slots: Iterable[Ad], question: Callable[[str], Answer], now: int
    ) -> tuple[Others, Iterable[Ad]]:
        """Complete the answer of a collector that has just started by what the startds that it lacks say themselves.

        What they say stands in the place of what it has of them. question: see `ask`; now: UNIX s.
        """
        start = collector_start(others.collectors)
        if start is None or now - start > _YOUNG or not self._known():
            return others, slots
        slots = list(slots)
        answers = self.ask(self.missing(others, slots), question, now)

        def elsewhere(ads: Iterable[Ad]) -> list[Ad]:
            return [ad for ad in ads if text(ad, "Machine") not in answers]

        machines = elsewhere(others.startds) + [ad for some, _ in answers.values() for ad in some]
        return replace(others, startds=machines), elsewhere(slots) + [ad for _, some in answers.values() for ad in some]

    def missing(self, others: Others, slots: Collection[Ad]) -> dict[str, str]:
        """Return the address of each known startd that the collector lacks, or some of whose slots it lacks."""
        startds = Startds(others.startds)
        lacking = startds.dynamic_slots() - {text(ad, "Name") or "" for ad in slots}
        half = {name.partition("@")[2] for name in lacking}
        return {
            node: address
            for node, address in self._known().items()
            if address and (node not in startds.machines or node in half)
        }

    def ask(self, missing: Mapping[str, str], question: Callable[[str], Answer], now: int) -> dict[str, Answer]:
        """Return what the missing startds say, as far as they say it in time; by node.

        question: asks the startd at an address, as `collector.startd_answer`; now: UNIX s.
        """
        self._answers = {node: one for node, one in self._answers.items() if node in missing and now - one[0] <= _KEPT}
        due = [node for node in missing if node not in self._answers]
        due = sorted(due, key=lambda node: (node in self.silent, node))[:MOST_ASKED]
        end, silent = time.monotonic() + _ALL_SECONDS, set(self.silent) & missing.keys()
        calls = (partial(question, missing[node]) for node in due)
        with closing(each_within(_EACH_SECONDS, calls, "a startd")) as answers:
            for place, answer in answers:
                if isinstance(answer, PoolError):
                    silent.add(due[place])
                else:
                    silent.discard(due[place])
                    self._answers[due[place]] = now, (_heard(answer[0], now), _heard(answer[1], now))
                if time.monotonic() > end:
                    break
        self.silent = frozenset(silent)
        return {node: answer for node, (_, answer) in self._answers.items()}

    def _known(self) -> dict[str, str]:
        if self._addresses is None:
            self._addresses = _read(self._file) if self._file else {}
        return self._addresses


def _heard(ads: Iterable[Ad], now: int) -> list[Ad]:
    return [{**ad, "LastHeardFrom": now, CLOCK: None} for ad in ads]


def _read(path: str) -> dict[str, str]:
    try:
        known = read_json(path, _LARGEST)
    except (FeatureError, ValueError):
        return {}
    if not isinstance(known, dict):
        return {}
    return {node: address for node, address in known.items() if isinstance(address, str)}
