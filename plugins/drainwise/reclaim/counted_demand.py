"""Which demand counts: without what is paused, and without what cores that have just come back may serve.

Waiting jobs that the batch system does not start where they should are noticed, by a rule that nobody has told.

A kind of jobs for which room lies free and that does not take it is served by nothing; one that fits no place may still
be one that the batch system means to start. Both are named. Room that was free for the time to start is no room for
that kind until something changes there. After twice that time, once a day for an account, room is made for one of its
jobs where the batch system has planned it: of a whole place, from accounts that hold more than their own share. Then
`unmet_demand` judges, as for every job.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from drainwise.facts.units import clock
from drainwise.pool.amounts import Amounts, amounts
from drainwise.pool.facts import Account, Snapshot
from drainwise.pool.job_kinds import JobKind, Place
from drainwise.reclaim.quota import Balance, weigh
from drainwise.reclaim.settings import ReclaimSettings
from drainwise.reclaim.unmet_demand import Round, UnmetDemand, jobs_of, kind_as_account

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
    without a job in them. For so much no second order is given, and yet none is withdrawn for that. The snapshot is
    whole.
    """
    if snapshot.kinds is None:
        recent, free = _recent(unmet, now, settings), snapshot.free_cores
        accounts = [_without_paused(one, unmet.get(one.name), now) for one in snapshot.accounts]
        counts = needs_orders = replace(snapshot, accounts=tuple(accounts))
        if recent:
            accounts = [_without_coming(one, recent[one.name], free) if one.name in recent else one for one in accounts]
            needs_orders = replace(counts, accounts=tuple(accounts))
    else:
        closed = {name for name, one in unmet.items() if one.closed and now < one.until}
        counts = _without_jobs(snapshot, {one.name: one.jobs for one in snapshot.kinds if one.name in closed})
        coming = _jobs_coming(counts, unmet, now, settings)
        needs_orders = _without_jobs(counts, {one.name: one.starting + coming[one.name] for one in snapshot.kinds})
    balance = weigh(counts, now, settings.horizon)
    to_order = balance if needs_orders is counts else weigh(needs_orders, now, settings.horizon)
    deficit, below = min(balance.deficit, to_order.deficit), min(balance.below_share, to_order.below_share)
    return counts, needs_orders, replace(balance, deficit=deficit, below_share=below, over=to_order.over)


def _without_jobs(snapshot: Snapshot, without: Mapping[str, int]) -> Snapshot:
    """Return the snapshot without so many jobs of each kind, by its name; itself where that takes none."""
    if not any(without.values()):
        return snapshot
    kinds, less = list[JobKind](), Counter[str]()
    for one in snapshot.kinds or ():
        jobs = min(one.jobs, without.get(one.name, 0))
        less[one.account] += jobs * one.cores if one.classes else 0
        kinds.append(replace(one, jobs=one.jobs - jobs))
    accounts = (
        replace(one, cores_wanted=max(0.0, one.cores_wanted - less[one.name])) if less[one.name] else one
        for one in snapshot.accounts
    )
    return replace(snapshot, kinds=tuple(kinds), accounts=tuple(accounts))


def _without_paused(account: Account, known: UnmetDemand | None, now: int) -> Account:
    held, held_jobs = _held(account, known, now)
    if not held:
        return account
    wanted, jobs = account.cores_wanted - held, jobs_of(account) - held_jobs
    per_job = wanted / jobs if jobs > 0.5 else account.cores_per_job
    return replace(account, cores_wanted=max(0.0, wanted), cores_per_job=max(1.0, per_job))


def _held(account: Account, known: UnmetDemand | None, now: int) -> tuple[float, float]:
    """Return the cores and jobs of the account's demand that are paused."""
    if known is None or now >= known.until:
        return 0.0, 0.0
    if known.closed:
        return account.cores_wanted, jobs_of(account)
    return min(known.held, account.cores_wanted), known.held_jobs


def _without_coming(account: Account, came: Round, free: float) -> Account:
    coming = came.coming(free)  # what is free is counted already
    in_use = account.cores_in_use + min(coming, max(0.0, account.cores_owed - account.cores_in_use))
    return replace(account, cores_wanted=max(0.0, account.cores_wanted - coming), cores_in_use=in_use)


def _recent(unmet: Mapping[str, UnmetDemand], now: int, settings: ReclaimSettings) -> dict[str, Round]:
    """Return the rounds of cores that have come back at `now` (UNIX s) and may still serve those they came back for."""
    least = now - settings.time_to_start
    return {name: one.round for name, one in unmet.items() if one.round.back > 0 and one.round.last > least}


def nodes_with_cores_back(unmet: Mapping[str, UnmetDemand], now: int, settings: ReclaimSettings) -> frozenset[str]:
    """Return the nodes where cores have come back at `now` (UNIX s) that may still serve those they came back for."""
    return frozenset(node for one in _recent(unmet, now, settings).values() for node in one.nodes)


def _jobs_coming(
    snapshot: Snapshot, unmet: Mapping[str, UnmetDemand], now: int, settings: ReclaimSettings
) -> Counter[str]:
    """Return how many jobs of a kind, by its name, what has just come back may still serve, beside what is free."""
    recent, found = _recent(unmet, now, settings), Counter[str]()
    for kind in snapshot.kinds or ():
        if came := recent.get(kind.name):
            nodes = set(came.nodes)
            free = sum(one.free.cores + one.unseen.cores for one in snapshot.places if one.node in nodes)
            found[kind.name] = math.ceil(came.coming(free) / kind.cores)
    return found


def runs_beside(
    snapshot: Snapshot, unmet: Mapping[str, UnmetDemand], now: int, settings: ReclaimSettings
) -> frozenset[str]:
    """Return the runs with orders for jobs of a kind that cores which have just come back may still serve.

    They make room together. Between the end of a run and its node's next report no slot shows those cores.
    snapshot: with the demand that counts at `now` (UNIX s).
    """
    coming = _jobs_coming(snapshot, unmet, now, settings)
    return frozenset(
        run for kind in snapshot.kinds or () if kind.jobs and coming[kind.name] for run in unmet[kind.name].runs
    )


def intended_room(
    snapshot: Snapshot, unmet: Mapping[str, UnmetDemand], now: int, settings: ReclaimSettings
) -> dict[str, dict[str, int]]:
    """Return the jobs of each kind for which room was made on a place, by the names of kind and place.

    On places of runs with orders as many as these orders were for; where cores have just come back at `now` (UNIX s)
    as many as they may still serve. Kinds whose jobs need several places at once are left out.
    """
    kinds = [one for one in snapshot.kinds or () if one.name in unmet and one.places == 1]
    runs = {run for kind in kinds for run in unmet[kind.name].runs}
    place_of = {one.run: one.place for one in snapshot.pilots if one.run in runs and one.place} if runs else {}
    recent, found = _recent(unmet, now, settings), dict[str, "dict[str, int]"]()
    for kind in kinds:
        cores = defaultdict[str, float](float)
        for run, part in unmet[kind.name].runs.items():
            if run in place_of:
                cores[place_of[run]] += part.cores
        if came := recent.get(kind.name):
            nodes = set(came.nodes)
            for place in snapshot.places:
                if place.node in nodes:
                    cores[place.name] += came.coming(0.0)
        found[kind.name] = {name: math.ceil(some / kind.cores - _ROUNDING) for name, some in cores.items()}
    return found


def paused(snapshot: Snapshot, unmet: Mapping[str, UnmetDemand], now: int) -> tuple[Paused, ...]:
    """Return the paused demand at `now` (UNIX s), the most cores first."""
    found = []
    asks = {kind.name: kind for kind in snapshot.kinds or ()}
    for one in (*snapshot.accounts, *map(kind_as_account, asks.values())):
        known = unmet.get(one.name)
        cores, _ = _held(one, known, now)
        if known is not None and cores > 0:
            words = asks[one.name].in_words() if one.name in asks else ""
            found.append(Paused(known.account, cores, known.since, known.until, known.failed, known.vain, words))
    return tuple(sorted(found, key=lambda one: (-one.cores, one.account, one.asks)))


AGAIN = 86_400
"""Seconds after which room may be made again for jobs of an account that nobody can place."""
MOST_PLACES = 256
"""Places of one kind that are remembered."""


@dataclass(frozen=True)
class UntakenRoom:
    """What is remembered of a kind of jobs, by its name: `jobs` of it that waited when it was looked at last.

    since: when none of them had started since (UNIX s). places: the free cores of each place that should do, and since
    when they were just so many. made: when room was last made for one as a whole, 0 for never.
    """

    account: str
    kind: str
    jobs: int = 0
    since: int = 0
    places: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    made: int = 0

    def untaken(self, now: int, settings: ReclaimSettings) -> frozenset[str]:
        """Return the places that have been free for the time to start at `now` (UNIX s)."""
        return frozenset(name for name, (_, since) in self.places.items() if now - since >= settings.time_to_start)


@dataclass(frozen=True)
class Unplaced:
    """Waiting jobs of an account under its quota that do not start, since when (UNIX s), and what decided."""

    account: str
    jobs: int
    cores: int
    since: int
    why: str

    @property
    def sentence(self) -> str:
        """For the administrator."""
        jobs = "1 waiting job" if self.jobs == 1 else f"{self.jobs} waiting jobs"
        return f"{jobs} of {self.account}, since {clock(self.since)}: {self.why}"


def watched_room(
    known: Mapping[str, UntakenRoom], unmet: Mapping[str, UnmetDemand], snapshot: Snapshot, now: int
) -> dict[str, UntakenRoom]:
    """Return what is remembered of each kind after a look at `now` (UNIX s); unmet: whom orders were given for."""
    found = {one.kind: replace(one, jobs=0, places={}) for one in known.values() if now - AGAIN < one.made <= now}
    groups: dict[tuple[str, Amounts, bool], list[Place]] = defaultdict(list)
    for place in snapshot.places:
        if place.free.cores:
            groups[place.node_class, place.free, place.free.cores >= place.total.cores].append(place)
    for kind in snapshot.kinds or ():
        before, jobs = known.get(kind.name) or UntakenRoom(kind.account, kind.name), kind.jobs - kind.starting
        free = _free_places(kind, groups)
        if jobs <= 0 or (kind.classes and not free):
            continue
        waits_on, places = 0 < before.jobs <= jobs, dict[str, "tuple[int, int]"]()
        for name, cores in free.items():
            seen, since = before.places.get(name, (cores, now))
            places[name] = cores, min(since, now) if waits_on and seen == cores else now
        since = min(before.since, now) if waits_on else now
        is_ordered = not kind.classes and kind.name in known and kind.name in unmet
        made = max(before.made, min(unmet[kind.name].ordered, now) if is_ordered else 0)
        found[kind.name] = UntakenRoom(kind.account, kind.name, jobs, since, places, made)
    return found


def _free_places(kind: JobKind, groups: Mapping[tuple[str, Amounts, bool], Sequence[Place]]) -> dict[str, int]:
    """Return the free cores of each place that has room for a job of a kind; none where a job needs more places."""
    found = {
        place.name: place.free.cores
        for (node_class, free, is_whole), places in groups.items()
        if node_class in kind.classes and free.covers(kind.needs) and (is_whole or not kind.whole)
        for place in places[:MOST_PLACES]
    }
    return found if len(found) >= kind.places else {}


def with_untaken(
    snapshot: Snapshot,
    known: Mapping[str, UntakenRoom],
    unmet: Mapping[str, UnmetDemand],
    now: int,
    settings: ReclaimSettings,
) -> Snapshot:
    """Return the snapshot in which room that a kind did not take in time is none for it.

    Where a kind has waited long enough it asks for a whole place, of those where the batch system has planned it.
    """
    if not known or not snapshot.kinds:
        return snapshot
    made = {one.account for one in known.values() if now - AGAIN < one.made}
    kinds, accounts, barred = [], {one.name: one for one in snapshot.accounts}, frozenset[str]()
    for kind in snapshot.kinds:
        if memory := known.get(kind.name):
            kind = replace(kind, barred=memory.untaken(now, settings))  # noqa: PLW2901
            in_round = kind.name in unmet and bool(unmet[kind.name].runs or unmet[kind.name].round.back)
            is_due = now - memory.since >= 2 * settings.time_to_start and kind.account not in made
            place = next((one for one in snapshot.places if one.name in kind.planned), None)
            if not kind.classes and place is not None and (is_due or in_round):
                whole = amounts(place.total.cores)
                classes, at = frozenset({place.node_class}), frozenset({place.name})
                kind = replace(kind, jobs=1, needs=whole, classes=classes, places=1, whole=True, at=at)  # noqa: PLW2901
                accounts.update(_owed_in_addition(accounts, kind))
                made.add(kind.account)
        kinds.append(kind)
        barred |= kind.barred
    untaken = sum(place.free.cores for place in snapshot.places if place.name in barred)
    free = max(0.0, snapshot.free_cores - untaken)
    return replace(snapshot, kinds=tuple(kinds), accounts=tuple(accounts.values()), free_cores=free)


def _owed_in_addition(accounts: Mapping[str, Account], kind: JobKind) -> dict[str, Account]:
    """Return the accounts that change, by name, when a kind's demand is added to its account's.

    It is owed cores for it as far as its own share goes; others lend it no more.
    """
    account = accounts[kind.account]
    share = max(account.cores_owed, account.cores_share or 0.0)
    owed = max(account.cores_owed, min(share, account.cores_in_use + kind.cores))
    found = {kind.account: replace(account, cores_owed=owed, cores_wanted=account.cores_wanted + kind.cores)}
    lent = owed - account.cores_owed
    for one in sorted(accounts.values(), key=lambda one: (-one.priority, one.name)):
        held = min(one.cores_owed, one.cores_in_use)
        back = 0.0 if one.cores_share is None else min(lent, held - one.cores_share)
        if one.name != kind.account and back > 0:
            found[one.name], lent = replace(one, cores_owed=held - back), lent - back
    return found


def unplaced(
    snapshot: Snapshot, known: Mapping[str, UntakenRoom], now: int, settings: ReclaimSettings
) -> tuple[Unplaced, ...]:
    """Return the waiting jobs that fit nowhere, or that do not take the room which is free for them, in time."""
    accounts = {one.name: one for one in snapshot.accounts}
    found = []
    for kind in snapshot.kinds or ():
        memory, account = known.get(kind.name), accounts.get(kind.account)
        if memory is None or account is None or now - memory.since < settings.time_to_start:
            continue
        if account.cores_in_use >= max(account.cores_owed, account.cores_share or 0.0):
            continue
        places = sorted(memory.untaken(now, settings))
        if kind.classes and not places:
            continue
        where = f"room on {', '.join(places[:3])}{', …' if len(places) > 3 else ''} is free and it does not take it"
        why = f"{kind.in_words()}: {where if places else 'it fits no node'}"
        found.append(Unplaced(kind.account, kind.jobs, kind.jobs * kind.cores, memory.since, why))
    return tuple(found)
