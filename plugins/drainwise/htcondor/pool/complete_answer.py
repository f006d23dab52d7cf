"""Decide whether the collector's answer can be the whole pool, and name the parts that were not believed.

Nothing may be decided on a part of the pool.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from drainwise.facts.errors import PoolUnreachable
from drainwise.htcondor.ads.values import LARGEST_POOL, Ad, moment, named, number, shown, text
from drainwise.htcondor.pool.slots import SILENT_AFTER, Slot, heard_lately
from drainwise.htcondor.pool.startds import Startds
from drainwise.htcondor.shares.accounting import AccountingRecord
from drainwise.pool.clocks import CLOCKS_DIFFER, wrong_clock


def notices_of(
    slots: Sequence[Slot],
    gone: Sequence[Slot],
    odd: Sequence[Ad],
    strange: Sequence[Slot],
    records: Sequence[AccountingRecord],
) -> Iterator[str]:
    """Name the parts of the answer that were not believed, and why."""
    if gone:
        cores, nodes = sum(slot.cores for slot in gone), {slot.machine for slot in gone}
        yield (
            f"{len(gone)} slots ({cores} cores) on {named(nodes)} are not counted: not heard of for three updates, or"
            " their startd does not have them any more"
        )
    if odd:
        said = f"Cpus = {shown(odd[0]['Cpus'])}"
        yield f"{len(odd)} slots are left out ({named(shown(ad.get('Name')) for ad in odd)}): {said} cannot be"
    if strange:
        said = f"SlotWeight = {shown(strange[0].ad.get('SlotWeight'))}"
        yield f"the weight of {named(slot.name for slot in strange)} is not counted: {said} cannot be"
    asleep = [slot.name for slot in slots if slot.ad.get("Offline") is True]
    if asleep:
        yield f"{named(asleep)}: Offline = true is not believed of a slot in use; who may WRITE to its startd set it"
    for unsure in (False, True):
        lines = [record for record in records if record.odd and record.unsure is unsure]
        if lines:
            what = f"the accounting of {named(record.name for record in lines)} says a {lines[0].odd} that cannot be"
            yield f"{what}: neither they nor their groups' trees give back or get any cores" if unsure else what


_MISSING_SLOTS = 10  # claimed slots that may be missing beside the accountant's count: jobs end between two cycles
# A startd loses its first update to a collector that has started anew: it goes into the connection of before.
_UPDATES, _SLACK = 2, 15
_WAIT_FOR_SILENT = 120  # s


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


def require_whole(
    slots: Sequence[Slot],
    gone: Sequence[Slot],
    claimed: Sequence[Slot],
    account_ads: Sequence[Ad],
    records: Sequence[AccountingRecord],
    now: int,
) -> None:
    """Raise PoolUnreachable for an answer that cannot be whole and of now (UNIX s).

    slots: those that are there, `claimed` of them in use; gone: those that the collector knows only from before.
    """
    if not slots and not gone:
        raise PoolUnreachable(
            "incomplete answer: the collector knows no slots; is this its pool, and has it just started?"
        )
    ahead = max(slot.heard or 0 for slot in (*slots, *gone)) - now
    if ahead > CLOCKS_DIFFER:
        raise wrong_clock(f"{ahead} s behind", "the collector's")
    if len(gone) > len(slots):
        known = len(gone) + len(slots)
        raise PoolUnreachable(f"a stale answer: {len(gone)} of {known} slots were not heard of for three updates")
    if not claimed:
        return
    if not any(not record.is_group for record in records):
        raise PoolUnreachable(
            f"incomplete answer: {len(claimed)} slots in use and no accounting in the collector; is the negotiator up?"
        )
    if not any(heard_lately(ad, now) for ad in account_ads):
        raise PoolUnreachable(f"a stale answer: the accounting is older than {SILENT_AFTER} s; is the negotiator up?")
    charged = sum(record.slots for record in records if not record.is_group)
    if charged - len(claimed) > max(_MISSING_SLOTS, charged / 2):
        raise PoolUnreachable(
            f"incomplete answer: {len(claimed)} slots in use where the negotiator charges for {charged:.0f}"
        )
