"""Turns the ads of a pool into the facts that the reclaim agent decides on. Pure: ads and a time in, a snapshot out.

Cores are `Cpus` sums of slots. Quotas, usage and idle demand come in slot weight; they count as cores × (Σ Cpus /
Σ SlotWeight) of the pool's slots, which is 1 where SLOT_WEIGHT is Cpus, as by default.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from drainwise.free_cores import Hole, Waiting, usable_cores
from drainwise.htcondor.closed_nodes import closed_notices, closed_pilots
from drainwise.htcondor.demand import demand_of
from drainwise.htcondor.group_tree import owed_in_trees
from drainwise.htcondor.left_out import notices_of
from drainwise.htcondor.pool_ads import LARGEST_POOL, LARGEST_SLOT, Ad, Others, odd_number
from drainwise.htcondor.shares import (
    NO_GROUP,
    Account,
    Use,
    account_of,
    endless,
    fair_shares,
    groups,
    new_user_priority,
    principal_of,
)
from drainwise.htcondor.slots import Slot, given_back, heard_lately, pilot_of, slot_of
from drainwise.htcondor.startds import Startds
from drainwise.htcondor.whole_answer import require_refilled, require_whole
from drainwise.pool import Pilot, Principal, Snapshot

_CLOSE = 100.0
"""A slot whose cores per weight differ by more than this from the pool's middle one does not weigh the pool."""


def snapshot_of(slot_ads: Iterable[Ad], others: Others, now: int, before: Collection[str] = ()) -> Snapshot:
    """The facts in the ads at `now` (UNIX s); before: the nodes of the last whole answer, see `require_refilled`.

    What cannot be so (a slot of a node that has gone, a number that no pool has) is left out, and the notices say so.
    Raises PoolUnreachable when the ads cannot be a whole and recent answer: no slots, most of them long unheard of, a
    collector that has just started, no accounting although slots are in use, or far fewer slots in use than the
    accountant charges.
    """
    accounts = [account for account in map(account_of, others.accounting) if account is not None]
    known, startds, names = groups(accounts), Startds(others.startds), Principals(accounts)
    seen = _seen(slot_ads, startds, names, now)
    slots = seen.slots
    claimed = [slot for slot in slots if slot.submitter is not None]
    require_refilled(startds, {slot.name for slot in slots}, others.collectors, others.masters, before, now)
    require_whole(slots, seen.gone, claimed, others.accounting, accounts, now)
    ratio, strange = _cores_per_weight(slots)
    back = given_back(slots, now)
    held = [slot for slot in claimed if slot.name not in back]
    running = Counter(slot.submitter for slot in held if not slot.idle)
    submitters = [ad for ad in others.submitters if heard_lately(ad, now)]
    largest = None if startds.cores is None else max(startds.cores, *(slot.cores for slot in slots))
    demand = demand_of(submitters, others.schedds, accounts, running, ratio, largest if ratio == 1.0 else None)
    uses = _uses(held, demand.waiting, accounts, known, names, ratio)
    free = [slot for slot in slots if slot.usable or slot.name in back]
    cores = sum(slot.cores for slot in (*held, *free))
    owed = _owed(uses, accounts, known, ratio, cores)
    shares = _owed(endless(uses), accounts, known, ratio, cores)
    unsure = _unsure(uses, accounts, known)
    principals = tuple(
        _principal(name, use, owed[name], shares[name], name in unsure) for name, use in sorted(uses.items())
    )
    holes = [Hole(slot.cores, slot.ad.get("PartitionableSlot") is True) for slot in free]
    return Snapshot(
        taken=now,
        pilots=tuple(closed_pilots(seen.pilots(), slots)),
        principals=principals,
        free_cores=float(usable_cores(holes, (job for job in map(_waiting, principals) if job is not None))),
        user_priorities=_user_priorities(claimed, accounts),
        notices=(*closed_notices(slots), *notices_of(slots, seen.gone, seen.odd, strange, accounts), *demand.notices),
    )


class Principals(dict[str, str]):
    """The principal of each submitter, found once."""

    def __init__(self, accounts: Iterable[Account]) -> None:
        super().__init__()
        self._groups = groups(accounts)

    def __missing__(self, submitter: str) -> str:
        name = self[submitter] = principal_of(submitter, self._groups)
        return name


@dataclass(frozen=True)
class _Seen:
    """Slots that are there, slots that the collector knows from before, ads with a number that cannot be; the runs."""

    slots: list[Slot]
    gone: list[Slot]
    odd: list[Ad]
    runs: dict[str, list[Pilot]]

    def pilots(self) -> Iterator[Pilot]:
        """The runs, each once."""
        for pilots in self.runs.values():
            yield pilots[0] if len(pilots) == 1 else _in_several_slots(pilots)


def _seen(slot_ads: Iterable[Ad], startds: Startds, names: Principals, now: int) -> _Seen:
    """What the ads show: as they come in, in one go."""
    seen = _Seen([], [], [], defaultdict(list))
    since = startds.hooks_since
    for ad in slot_ads:
        slot = slot_of(ad)
        if slot is None:
            if odd_number(ad, {"Cpus": LARGEST_SLOT}):
                seen.odd.append(ad)
        elif not startds.has(slot, now):
            seen.gone.append(slot)
        else:
            seen.slots.append(slot)
            if slot.submitter is not None:
                pilot = pilot_of(slot, names[slot.submitter], now, since.get(slot.machine))
                if pilot is not None:
                    seen.runs[pilot.run].append(pilot)
    return seen


def _in_several_slots(pilots: Sequence[Pilot]) -> Pilot:
    """A run that several slots show: of a job of several nodes, or a GlobalJobId that a user forged.

    An order for it would reach all of them, whose ever they are.
    """
    return replace(
        pilots[0],
        name=f"{pilots[0].name} and {len(pilots) - 1} more",
        cores=sum(pilot.cores for pilot in pilots),
        cannot="its run is in several slots: a job of the parallel universe, or a forged GlobalJobId",
    )


def _cores_per_weight(slots: Sequence[Slot]) -> tuple[float, list[Slot]]:
    """Cores for a slot weight of 1, and the slots whose weight cannot be: one of them would move all shares."""
    if all(slot.weight == slot.cores for slot in slots):
        return 1.0, []
    each = sorted(slot.cores / slot.weight for slot in slots if 0 < slot.weight <= LARGEST_POOL and slot.cores > 0)
    middle = each[len(each) // 2] if each else math.inf
    sound: list[Slot] = []
    strange: list[Slot] = []
    for slot in slots:
        if slot.cores > 0:
            close = slot.weight > 0 and middle / _CLOSE <= slot.cores / slot.weight <= middle * _CLOSE
            (sound if close else strange).append(slot)
    if not sound:
        return 1.0, strange
    return sum(slot.cores for slot in sound) / math.fsum(slot.weight for slot in sound), strange


def _uses(
    claimed: Sequence[Slot],
    waiting: Mapping[str, tuple[float, float]],
    accounts: Sequence[Account],
    known: Mapping[str, Account],
    names: Principals,
    ratio: float,
) -> dict[str, Use]:
    """Use and demand by principal; a group that has a quota is there even when it uses nothing."""
    in_use: dict[str, float] = defaultdict(float)
    wanted: dict[str, float] = defaultdict(float)
    jobs: dict[str, float] = defaultdict(float)
    for slot in claimed:
        in_use[names[slot.submitter or ""]] += slot.cores
    for submitter, (number_of_jobs, cores) in waiting.items():
        principal = names[submitter]
        jobs[principal] += number_of_jobs
        wanted[principal] += cores
    by_name = {account.name: account for account in accounts}
    principals = {*in_use, *wanted, *(account.name for account in known.values() if account.quota > 0)}
    newcomer = new_user_priority(accounts)
    return {
        name: Use(
            in_use[name],
            wanted[name],
            jobs[name],
            accounted=by_name[name].used * ratio if name in by_name else 0.0,
            priority=by_name[name].priority if name in by_name else newcomer,
        )
        for name in principals
    }


def _owed(
    uses: Mapping[str, Use], accounts: Sequence[Account], known: Mapping[str, Account], ratio: float, cores: int
) -> dict[str, float]:
    """Cores owed to each principal: a group's part of its quota; to the others their fair share of what these leave."""
    quotas = owed_in_trees(
        {account.name: account.quota * ratio for account in known.values()},
        {name: use.in_use + use.wanted for name, use in uses.items()},
        frozenset(account.name for account in known.values() if not account.surplus),
    )
    outside = {name: use for name, use in uses.items() if name not in quotas}
    left = float(cores)
    if known:
        left = next((account.quota * ratio for account in accounts if account.name == NO_GROUP), 0.0)
    return {**quotas, **fair_shares(left, outside)}


def _unsure(uses: Iterable[str], accounts: Iterable[Account], known: Mapping[str, Account]) -> frozenset[str]:
    """The principals of which cannot be said what they are owed: their account is odd, or one in their tree."""
    unsure = {account.name for account in accounts if account.unsure}
    if not unsure:
        return frozenset()
    in_groups = {group.name for group in known.values()}
    roots = {_root(name) for name in unsure if name in in_groups}
    return frozenset(
        name for name in uses if (_root(name) in roots if name in in_groups else unsure.intersection((name, NO_GROUP)))
    )


def _root(group: str) -> str:
    return group.lower().partition(".")[0]


def _principal(name: str, use: Use, owed: float, share: float, unsure: bool) -> Principal:
    """Where fewer slots were heard of than the accountant charges, a principal that waits is not counted poorer.

    unsure: what it is owed cannot be said, so it is owed what it has.
    """
    in_use = max(use.in_use, min(use.accounted, owed))
    return Principal(
        name,
        cores_in_use=in_use,
        cores_owed=in_use if unsure else owed,
        cores_wanted=0.0 if unsure else use.wanted,
        priority=use.priority,
        cores_per_job=max(1.0, use.wanted / use.jobs) if use.jobs > 0 and not unsure else 1.0,
        cores_share=in_use if unsure else share,
        cores_running=use.in_use,
    )


def _waiting(principal: Principal) -> Waiting | None:
    """The jobs of a principal that waits and is owed cores: free cores are for them first."""
    cores = math.ceil(principal.cores_per_job)
    jobs = math.floor(min(principal.cores_wanted, principal.cores_owed - principal.cores_in_use) / cores)
    return Waiting(cores, jobs) if jobs > 0 else None


def _user_priorities(claimed: Iterable[Slot], accounts: Iterable[Account]) -> dict[str, float]:
    """Effective priority by owner; the worst, where one runs under several accounting names."""
    by_submitter = {account.name: account.priority for account in accounts if not account.is_group}
    priorities: dict[str, float] = {}
    for slot in claimed:
        owner, priority = slot.owner, by_submitter.get(slot.submitter or "", 0.0)
        priorities[owner] = max(priorities.get(owner, 0.0), priority)
    return priorities
