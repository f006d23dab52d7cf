"""What of the demand counts: not what is paused, nor for a moment what cores that have just come back may serve."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from drainwise.pool import Principal, Snapshot
from drainwise.reclaim.quota import Balance, require_whole, weigh
from drainwise.reclaim.settings import Settings
from drainwise.reclaim.unmet_demand import Unmet, jobs_of
from drainwise.reclaim.words import clock


@dataclass(frozen=True)
class Paused:
    """Demand of one account that does not count from `since` to `until` (UNIX s): `cores` of those that it waits for.

    failed: rounds in a row that did not help; vain: cores that came back in them and were not used.
    """

    principal: str
    cores: float
    since: int
    until: int
    failed: int
    vain: float

    @property
    def sentence(self) -> str:
        """For the administrator."""
        return (
            f"{self.principal} waits for {self.cores:g} cores that do not count from {clock(self.since)} to"
            f" {clock(self.until)}: {self.vain:.0f} cores came back for it in {self.failed} rounds and its jobs did not"
            " start; do they need memory, a GPU, a feature or a node that pilots do not have?"
        )


def weighed(
    snapshot: Snapshot, unmet: Mapping[str, Unmet], now: int, settings: Settings
) -> tuple[Snapshot, Snapshot, Balance]:
    """The snapshot with the demand that counts at `now` (UNIX s), the part of it to ask pilots for, and the balance.

    Cores that have come back for an account within the time to start may still serve it: so much nobody is asked for
    once more, and yet no request is taken back for that. Raises PoolUnreachable as `weigh` does.
    """
    if not unmet:
        return snapshot, snapshot, weigh(snapshot, now, settings.horizon)
    require_whole(snapshot)
    counts = _changed(snapshot, unmet, lambda account, known: _without_paused(account, known, now))
    asks = _changed(
        counts, unmet, lambda account, known: _without_coming(account, known, now, settings, snapshot.free_cores)
    )
    balance, to_ask = weigh(counts, now, settings.horizon), weigh(asks, now, settings.horizon)
    deficit, below = min(balance.deficit, to_ask.deficit), min(balance.below_share, to_ask.below_share)
    return counts, asks, replace(balance, deficit=deficit, below_share=below, over=to_ask.over)


def _changed(
    snapshot: Snapshot, unmet: Mapping[str, Unmet], change: Callable[[Principal, Unmet], Principal]
) -> Snapshot:
    accounts = (change(one, unmet[one.name]) if one.name in unmet else one for one in snapshot.principals)
    return replace(snapshot, principals=tuple(accounts))


def _without_paused(account: Principal, known: Unmet, now: int) -> Principal:
    held, held_jobs = _held(account, known, now)
    wanted, jobs = account.cores_wanted - held, jobs_of(account) - held_jobs
    per_job = wanted / jobs if held and jobs > 0.5 else account.cores_per_job
    return replace(account, cores_wanted=max(0.0, wanted), cores_per_job=max(1.0, per_job))


def _without_coming(account: Principal, known: Unmet, now: int, settings: Settings, free: float) -> Principal:
    if not known.back or now >= known.last + settings.time_to_start:
        return account
    coming = max(0.0, known.back - known.gained - free)  # what is free is counted already
    in_use = account.cores_in_use + min(coming, max(0.0, account.cores_owed - account.cores_in_use))
    return replace(account, cores_wanted=max(0.0, account.cores_wanted - coming), cores_in_use=in_use)


def _held(account: Principal, known: Unmet, now: int) -> tuple[float, float]:
    """Cores and jobs of the account's demand that are paused."""
    if now >= known.until:
        return 0.0, 0.0
    if known.closed:
        return account.cores_wanted, jobs_of(account)
    return min(known.held, account.cores_wanted), known.held_jobs


def paused(snapshot: Snapshot, unmet: Mapping[str, Unmet], now: int) -> tuple[Paused, ...]:
    """What of the demand is paused at `now` (UNIX s), the most cores first."""
    found = []
    for account in snapshot.principals:
        known = unmet.get(account.name)
        cores = 0.0 if known is None else _held(account, known, now)[0]
        if known is not None and cores > 0:
            found.append(Paused(account.name, cores, known.since, known.until, known.failed, known.vain))
    return tuple(sorted(found, key=lambda one: (-one.cores, one.principal)))
