"""Whether the collector's answer can be the whole pool: nothing may be decided on a part of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from drainwise.clocks import CLOCKS_DIFFER, wrong_clock
from drainwise.errors import PoolUnreachable
from drainwise.htcondor.left_out import named
from drainwise.htcondor.pool_ads import LARGEST_POOL, Ad, moment, number, text
from drainwise.htcondor.shares import Account
from drainwise.htcondor.slots import SILENT_AFTER, Slot, heard_lately
from drainwise.htcondor.startds import Startds

_MISSING_SLOTS = 10  # claimed slots that may be missing beside the accountant's word: jobs end between two cycles
# A startd loses its first update to a collector that has started anew: it goes into the connection of before.
_UPDATES, _SLACK = 2, 15


def collector_start(collectors: Iterable[Ad]) -> int | None:
    """When the collector started (UNIX s), of several the youngest; None when none tells."""
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
) -> None:
    """Raise PoolUnreachable while a collector that has just started cannot have heard of all nodes yet at `now`.

    Startds tell it of themselves one after the other, each within its UPDATE_INTERVAL. A pool that has started with its
    collector is whole as far as it is there: its startds tell of themselves when they start. before: the nodes of the
    last whole answer; when all of them are back, nothing is missing. A node that has gone is waited for no longer than
    all the others may take.
    """
    start = collector_start(collectors)
    if start is None:
        return
    left = start + _UPDATES * startds.longest_interval + _SLACK - now
    older = (moment(ad, "DaemonStartTime") or now for ad in masters)
    if left <= 0 or min((*startds.started.values(), *older), default=now) >= start - CLOCKS_DIFFER:
        return
    expected = set(before) or {node for ad in masters if "STARTD_StartTime" in ad and (node := text(ad, "Machine"))}
    missing = expected - startds.machines
    slots = startds.dynamic_slots() - set(slot_names)
    if before and not missing and not slots:
        return
    told = f"{len(missing)} nodes are missing ({named(missing)}); " if missing else ""
    told += f"{len(slots)} slots are missing ({named(slots)}); " if slots else ""
    raise PoolUnreachable(
        f"half an answer: the collector started {now - start} s ago, and not every startd has told it yet what it has:"
        f" {told}nothing is decided before all are back, or {left} s have passed"
    )


def require_whole(
    slots: Sequence[Slot],
    gone: Sequence[Slot],
    claimed: Sequence[Slot],
    account_ads: Sequence[Ad],
    accounts: Sequence[Account],
    now: int,
) -> None:
    """Raise PoolUnreachable for an answer that cannot be whole and of now (UNIX s).

    slots: those that are there, `claimed` of them in use; gone: those that the collector knows only from before.
    """
    if not slots and not gone:
        raise PoolUnreachable(
            "half an answer: the collector knows no slots; is this its pool, and has it just started?"
        )
    ahead = max(slot.heard or 0 for slot in (*slots, *gone)) - now
    if ahead > CLOCKS_DIFFER:
        raise wrong_clock(f"{ahead} s behind", "the collector's")
    if len(gone) > len(slots):
        known = len(gone) + len(slots)
        raise PoolUnreachable(f"a stale answer: {len(gone)} of {known} slots were not heard of for three updates")
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
