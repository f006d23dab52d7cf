"""Turns the ads of a pool into the facts that the reclaim agent decides on. Pure: ads and a time in, a snapshot out.

Cores are `Cpus` sums of slots. Quotas, usage and idle demand come in slot weight; they count as cores × (Σ Cpus /
Σ SlotWeight) of the pool's slots, which is 1 where SLOT_WEIGHT is Cpus, as by default.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from drainwise.clocks import CLOCKS_DIFFER, wrong_clock
from drainwise.errors import PoolUnreachable
from drainwise.free_cores import Hole, Waiting, usable_cores
from drainwise.htcondor.closed_nodes import closed_notices, closed_pilots
from drainwise.htcondor.group_tree import owed_in_trees
from drainwise.htcondor.pool_ads import Ad, moment, number, text
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
from drainwise.htcondor.slots import (
    SILENT_AFTER,
    Slot,
    given_back,
    heard_lately,
    pilot_of,
    slot_of,
)
from drainwise.pool import Pilot, Principal, Snapshot

_MISSING_SLOTS = 10  # claimed slots that may be missing beside the accountant's word: jobs end between two cycles


def snapshot_of(slot_ads: Iterable[Ad], accounting: Iterable[Ad], submitters: Iterable[Ad], now: int) -> Snapshot:
    """The facts in the ads at `now` (UNIX s).

    Raises PoolUnreachable when they cannot be a whole and recent answer: no slots, most of them long unheard of, no
    accounting although slots are in use, or far fewer slots in use than the accountant charges.
    """
    account_ads = list(accounting)
    accounts = [account for account in map(account_of, account_ads) if account is not None]
    known = groups(accounts)
    slots, pilots, principal_names = _in_slots(slot_ads, known, now)
    claimed = [slot for slot in slots if slot.submitter is not None]
    _require_whole(slots, claimed, account_ads, accounts, now)
    ratio = _cores_per_weight(slots)
    back = given_back(slots, now)
    held = [slot for slot in claimed if slot.name not in back]
    running = Counter(slot.submitter for slot in held if not slot.idle)
    waiting = {
        name: (jobs, cores * ratio)
        for name, (jobs, cores) in _idle((ad for ad in submitters if heard_lately(ad, now)), running).items()
    }
    principal_names.update((name, principal_of(name, known)) for name in waiting)
    uses = _uses(held, waiting, accounts, known, principal_names, ratio)
    free = [slot for slot in slots if slot.usable or slot.name in back]
    cores = sum(slot.cores for slot in (*held, *free))
    owed = _owed(uses, accounts, known, ratio, cores)
    shares = _owed(endless(uses), accounts, known, ratio, cores)
    principals = tuple(_principal(name, use, owed[name], shares[name]) for name, use in sorted(uses.items()))
    holes = [Hole(slot.cores, slot.ad.get("PartitionableSlot") is True) for slot in free]
    runs = Counter(pilot.run for pilot in pilots)
    return Snapshot(
        taken=now,
        # A user can forge a GlobalJobId where the access point lets it: an order for such a run would hit both.
        pilots=tuple(pilot for pilot in closed_pilots(pilots, slots) if runs[pilot.run] == 1),
        principals=principals,
        free_cores=float(usable_cores(holes, (job for job in map(_waiting, principals) if job is not None))),
        user_priorities=_user_priorities(claimed, accounts),
        notices=closed_notices(slots),
    )


def _in_slots(
    slot_ads: Iterable[Ad], known: Mapping[str, Account], now: int
) -> tuple[list[Slot], list[Pilot], dict[str, str]]:
    """The slots, the pilots in them, and the principal of each submitter: as the ads come in, in one go."""
    slots: list[Slot] = []
    pilots: list[Pilot] = []
    principal_names: dict[str, str] = {}
    for ad in slot_ads:
        slot = slot_of(ad, now)
        if slot is None:
            continue
        slots.append(slot)
        if slot.submitter is None:
            continue
        if slot.submitter not in principal_names:
            principal_names[slot.submitter] = principal_of(slot.submitter, known)
        pilot = pilot_of(slot, principal_names[slot.submitter], now) if slot.heard else None
        if pilot is not None:
            pilots.append(pilot)
    return slots, pilots, principal_names


def _require_whole(
    slots: Sequence[Slot], claimed: Sequence[Slot], account_ads: Sequence[Ad], accounts: Sequence[Account], now: int
) -> None:
    if not slots:
        raise PoolUnreachable(
            "half an answer: the collector knows no slots; is this its pool, and has it just started?"
        )
    ahead = max((moment(slot.ad, "LastHeardFrom") or 0) for slot in slots) - now
    if ahead > CLOCKS_DIFFER:
        raise wrong_clock(f"{ahead} s behind", "the collector's")
    unheard = sum(not slot.heard for slot in slots)
    if unheard * 2 > len(slots):
        raise PoolUnreachable(f"a stale answer: {unheard} of {len(slots)} slots were not heard for {SILENT_AFTER} s")
    if not claimed:
        return
    if not any(not account.is_group for account in accounts):
        raise PoolUnreachable(
            f"half an answer: {len(claimed)} slots in use and no accounting in the collector; is the negotiator up?"
        )
    if not any(heard_lately(ad, now) for ad in account_ads):
        raise PoolUnreachable(f"a stale answer: the accounting is older than {SILENT_AFTER} s; is the negotiator up?")
    charged = sum(account.slots for account in accounts if not account.is_group)
    if charged - len(claimed) > max(_MISSING_SLOTS, charged / 2):
        raise PoolUnreachable(
            f"half an answer: {len(claimed)} slots in use where the negotiator charges for {charged:.0f}"
        )


def _cores_per_weight(slots: Sequence[Slot]) -> float:
    cores, weight = sum(slot.cores for slot in slots), math.fsum(slot.weight for slot in slots)
    return cores / weight if weight > 0 and cores > 0 else 1.0


def _idle(submitters: Iterable[Ad], running: Mapping[str | None, int]) -> dict[str, tuple[float, float]]:
    """Idle jobs and their weight by submitter, over all access points.

    An access point tells seldom how many jobs wait, the nodes at once which ones run: what has started since it told
    (`running`: slots with a job by submitter) waits no more.
    """
    idle: dict[str, tuple[float, float]] = {}
    told: dict[str, float] = defaultdict(float)
    for ad in submitters:
        name, jobs = text(ad, "Name"), number(ad, "IdleJobs")
        if name is not None:
            runs = number(ad, "RunningJobs")
            told[name] += math.inf if runs is None else runs
        if name is None or not jobs:
            continue
        weight = number(ad, "WeightedIdleJobs")
        before = idle.get(name, (0.0, 0.0))
        idle[name] = (before[0] + jobs, before[1] + (jobs if weight is None else weight))
    return {name: _less(waits, running.get(name, 0) - told[name]) for name, waits in idle.items()}


def _less(waits: tuple[float, float], started: float) -> tuple[float, float]:
    """Jobs and weight that still wait when `started` of the jobs run by now."""
    jobs, weight = waits
    left = jobs - max(0.0, min(jobs, started))
    return left, weight * left / jobs


def _uses(
    claimed: Sequence[Slot],
    waiting: Mapping[str, tuple[float, float]],
    accounts: Sequence[Account],
    known: Mapping[str, Account],
    principal_names: Mapping[str, str],
    ratio: float,
) -> dict[str, Use]:
    """Use and demand by principal; a group that has a quota is there even when it uses nothing."""
    in_use: dict[str, float] = defaultdict(float)
    wanted: dict[str, float] = defaultdict(float)
    jobs: dict[str, float] = defaultdict(float)
    for slot in claimed:
        in_use[principal_names[slot.submitter or ""]] += slot.cores
    for submitter, (number_of_jobs, cores) in waiting.items():
        principal = principal_names[submitter]
        jobs[principal] += number_of_jobs
        wanted[principal] += cores
    by_name = {account.name: account for account in accounts}
    names = {*in_use, *wanted, *(account.name for account in known.values() if account.quota > 0)}
    newcomer = new_user_priority(accounts)
    return {
        name: Use(
            in_use[name],
            wanted[name],
            jobs[name],
            accounted=by_name[name].used * ratio if name in by_name else 0.0,
            priority=by_name[name].priority if name in by_name else newcomer,
        )
        for name in names
    }


def _owed(
    uses: Mapping[str, Use], accounts: Sequence[Account], known: Mapping[str, Account], ratio: float, cores: int
) -> dict[str, float]:
    """Cores owed to each principal: a group's part of its quota; to the others their fair share of what these leave."""
    quotas = owed_in_trees(
        {account.name: account.quota * ratio for account in known.values()},
        {name: use.in_use + use.wanted for name, use in uses.items()},
    )
    outside = {name: use for name, use in uses.items() if name not in quotas}
    left = float(cores)
    if known:
        left = next((account.quota * ratio for account in accounts if account.name == NO_GROUP), 0.0)
    return {**quotas, **fair_shares(left, outside)}


def _principal(name: str, use: Use, owed: float, share: float) -> Principal:
    """Where fewer slots were heard of than the accountant charges, a principal that waits is not counted poorer."""
    return Principal(
        name,
        cores_in_use=max(use.in_use, min(use.accounted, owed)),
        cores_owed=owed,
        cores_wanted=use.wanted,
        priority=use.priority,
        cores_per_job=max(1.0, use.wanted / use.jobs) if use.jobs else 1.0,
        cores_share=share,
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
