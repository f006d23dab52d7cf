"""Count the demand: without what is paused, and for a moment without what cores that have just come back may serve."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from drainwise.facts.units import clock
from drainwise.pool.facts import Account, Snapshot
from drainwise.pool.job_kinds import JobKind
from drainwise.reclaim.quota import Balance, require_whole, weigh
from drainwise.reclaim.settings import ReclaimSettings
from drainwise.reclaim.unmet_demand import UnmetDemand, jobs_of

_ROUNDING = 1e-6


@dataclass(frozen=True)
class Paused:
    """Demand of one account that does not count from `since` to `until` (UNIX s): `cores` of those that it waits for.

    failed: rounds in a row that did not help; vain: cores that came back in them and were not used. asks: what the jobs
    ask for, where their kind is known.
    """

    account: str
    cores: float
    since: int
    until: int
    failed: int
    vain: float
    asks: str = ""

    @property
    def sentence(self) -> str:
        """For the administrator."""
        asks = f" ({self.asks})" if self.asks else ""
        return (
            f"{self.account} waits for {self.cores:g} cores that do not count from {clock(self.since)} to"
            f" {clock(self.until)}: {self.vain:.0f} cores came back for it in {self.failed} rounds and its jobs{asks}"
            " did not start; do they need memory, a GPU, a feature or a node that pilots do not have?"
        )


def weighed(
    snapshot: Snapshot, unmet: Mapping[str, UnmetDemand], now: int, settings: ReclaimSettings
) -> tuple[Snapshot, Snapshot, Balance]:
    """Return the snapshot with the demand that counts at `now` (UNIX s), the part to give orders for, and the balance.

    Cores that have come back for an account within the time to start may still serve it; so do cores that it holds
    without a job in them. For so much no second order is given, and yet none is withdrawn for that. Raises
    PoolUnreachable as `require_whole` does.
    """
    require_whole(snapshot)
    if not unmet and not any(one.starting for one in snapshot.kinds or ()):
        return snapshot, snapshot, weigh(snapshot, now, settings.horizon)
    if snapshot.kinds is None:
        counts = _changed(snapshot, unmet, lambda account, known: _without_paused(account, known, now))
        needs_orders = _changed(
            counts, unmet, lambda account, known: _without_coming(account, known, now, settings, snapshot.free_cores)
        )
    else:
        held = {one.name: one.jobs for one in snapshot.kinds if one.name in unmet and is_held(unmet[one.name], now)}
        counts = _without_jobs(snapshot, held)
        coming = {one.name: _jobs_coming(one, unmet[one.name], counts, now, settings) for one in _known(counts, unmet)}
        starting = {one.name: one.starting + coming.get(one.name, 0) for one in counts.kinds or ()}
        needs_orders = _without_jobs(counts, starting)
    balance, to_order = weigh(counts, now, settings.horizon), weigh(needs_orders, now, settings.horizon)
    deficit, below = min(balance.deficit, to_order.deficit), min(balance.below_share, to_order.below_share)
    return counts, needs_orders, replace(balance, deficit=deficit, below_share=below, over=to_order.over)


def _changed(
    snapshot: Snapshot, unmet: Mapping[str, UnmetDemand], change: Callable[[Account, UnmetDemand], Account]
) -> Snapshot:
    accounts = (change(one, unmet[one.name]) if one.name in unmet else one for one in snapshot.accounts)
    return replace(snapshot, accounts=tuple(accounts))


def _known(snapshot: Snapshot, unmet: Mapping[str, UnmetDemand]) -> list[JobKind]:
    return [one for one in snapshot.kinds or () if one.name in unmet]


def is_held(known: UnmetDemand, now: int) -> bool:
    """Return whether the demand of a kind does not count at `now` (UNIX s)."""
    return known.closed and now < known.until


def _without_jobs(snapshot: Snapshot, without: Mapping[str, int]) -> Snapshot:
    """Return the snapshot without so many jobs of each kind, by its name; itself where that takes none."""
    if not any(without.values()):
        return snapshot
    kinds, less = list[JobKind](), Counter[str]()
    for one in snapshot.kinds or ():
        jobs = min(one.jobs, without.get(one.name, 0))
        if one.classes:
            less[one.account] += jobs * one.cores
        kinds.append(replace(one, jobs=one.jobs - jobs))
    accounts = (
        replace(one, cores_wanted=max(0.0, one.cores_wanted - less[one.name])) if less[one.name] else one
        for one in snapshot.accounts
    )
    return replace(snapshot, kinds=tuple(kinds), accounts=tuple(accounts))


def _jobs_coming(kind: JobKind, known: UnmetDemand, snapshot: Snapshot, now: int, settings: ReclaimSettings) -> int:
    """Return how many jobs of a kind cores that have just come back may still serve, beside those that are free."""
    if not _is_back(known, now, settings):
        return 0
    free = sum(one.free.cores + one.unseen.cores for one in snapshot.places if one.node in known.nodes)
    return math.ceil(_coming(known, free) / kind.cores)


def runs_beside(
    snapshot: Snapshot, unmet: Mapping[str, UnmetDemand], now: int, settings: ReclaimSettings
) -> frozenset[str]:
    """Return the runs with orders for jobs of a kind that cores which have just come back may still serve.

    They make room together. Between the end of a run and its node's next report no slot shows those cores.
    snapshot: with the demand that counts at `now` (UNIX s).
    """
    waiting = [one for one in _known(snapshot, unmet) if one.jobs]
    coming = [one.name for one in waiting if _jobs_coming(one, unmet[one.name], snapshot, now, settings)]
    return frozenset(run for name in coming for run in unmet[name].runs)


def intended_room(
    snapshot: Snapshot, unmet: Mapping[str, UnmetDemand], now: int, settings: ReclaimSettings
) -> dict[str, dict[str, int]]:
    """Return the jobs of each kind for which room was made on a place, by the names of kind and place.

    On places of runs with orders as many as these orders were for; where cores have just come back at `now` (UNIX s)
    as many as they may still serve. Kinds whose jobs need several places at once are left out.
    """
    place_of = {one.run: one.place for one in snapshot.pilots if one.place}
    found: dict[str, dict[str, int]] = {}
    for kind in _known(snapshot, unmet):
        if kind.places > 1:
            continue
        known, cores = unmet[kind.name], defaultdict[str, float](float)
        for run, part in known.runs.items():
            if run in place_of:
                cores[place_of[run]] += part.cores
        if _is_back(known, now, settings):
            for place in snapshot.places:
                if place.node in known.nodes:
                    cores[place.name] += _coming(known, 0.0)
        found[kind.name] = {name: math.ceil(some / kind.cores - _ROUNDING) for name, some in cores.items()}
    return found


def nodes_with_cores_back(unmet: Mapping[str, UnmetDemand], now: int, settings: ReclaimSettings) -> frozenset[str]:
    """Return the nodes where cores have come back at `now` (UNIX s) that may still serve those they came back for."""
    return frozenset(node for one in unmet.values() if _is_back(one, now, settings) for node in one.nodes)


def _is_back(known: UnmetDemand, now: int, settings: ReclaimSettings) -> bool:
    return known.back > 0 and now < known.last + settings.time_to_start


def _coming(known: UnmetDemand, free: float) -> float:
    """Return the cores of a round, its first pieces included, that are neither in use nor among `free` ones."""
    return max(0.0, known.settled + known.back - known.served - known.gained - free)


def _without_paused(account: Account, known: UnmetDemand, now: int) -> Account:
    held, held_jobs = _held(account, known, now)
    wanted, jobs = account.cores_wanted - held, jobs_of(account) - held_jobs
    per_job = wanted / jobs if held and jobs > 0.5 else account.cores_per_job
    return replace(account, cores_wanted=max(0.0, wanted), cores_per_job=max(1.0, per_job))


def _without_coming(account: Account, known: UnmetDemand, now: int, settings: ReclaimSettings, free: float) -> Account:
    if not _is_back(known, now, settings):
        return account
    coming = _coming(known, free)  # what is free is counted already
    in_use = account.cores_in_use + min(coming, max(0.0, account.cores_owed - account.cores_in_use))
    return replace(account, cores_wanted=max(0.0, account.cores_wanted - coming), cores_in_use=in_use)


def _held(account: Account, known: UnmetDemand, now: int) -> tuple[float, float]:
    """Return the cores and jobs of the account's demand that are paused."""
    if now >= known.until:
        return 0.0, 0.0
    if known.closed:
        return account.cores_wanted, jobs_of(account)
    return min(known.held, account.cores_wanted), known.held_jobs


def paused(snapshot: Snapshot, unmet: Mapping[str, UnmetDemand], now: int) -> tuple[Paused, ...]:
    """Return the paused demand at `now` (UNIX s), the most cores first."""
    found = []
    for account in snapshot.accounts:
        known = unmet.get(account.name)
        cores = 0.0 if known is None else _held(account, known, now)[0]
        if known is not None and cores > 0:
            found.append(Paused(account.name, cores, known.since, known.until, known.failed, known.vain))
    for kind in snapshot.kinds or ():
        known = unmet.get(kind.name)
        if known is not None and is_held(known, now) and kind.classes:
            cores, asks = float(kind.jobs * kind.cores), kind.in_words()
            found.append(Paused(kind.account, cores, known.since, known.until, known.failed, known.vain, asks))
    return tuple(sorted(found, key=lambda one: (-one.cores, one.account, one.asks)))
