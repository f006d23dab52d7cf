"""Notice waiting jobs that the batch system does not start where they should, by a rule that nobody has told.

A kind of jobs for which room lies free and that does not take it is served by nothing; one that fits no place may still
be one that the batch system means to start. Both are named. Room that was free for the time to start is no room for
that kind until something changes there. After twice that time, once a day for an account, room is made for one of its
jobs where the batch system has planned it: of a whole place, from accounts that hold more than their own share. Then
`unmet_demand` judges, as for every job.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from drainwise.facts.units import clock
from drainwise.pool.amounts import Amounts, amounts
from drainwise.pool.facts import Account, Snapshot
from drainwise.pool.job_kinds import JobKind, Place
from drainwise.reclaim.settings import ReclaimSettings
from drainwise.reclaim.unmet_demand import UnmetDemand

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
