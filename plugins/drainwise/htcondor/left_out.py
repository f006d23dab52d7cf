"""What of the collector's answer was not believed, in sentences for the administrator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from drainwise.htcondor.pool_ads import Ad, shown
from drainwise.htcondor.shares import Account
from drainwise.htcondor.slots import Slot

_SHOWN = 3


def named(names: Iterable[str]) -> str:
    """Some names for a sentence, the first few of them and how many more there are."""
    found = sorted(names)
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return ", ".join(map(shown, found[:_SHOWN])) + more


def notices_of(
    slots: Sequence[Slot], gone: Sequence[Slot], odd: Sequence[Ad], strange: Sequence[Slot], accounts: Sequence[Account]
) -> Iterator[str]:
    """What the answer had that was not believed, and why."""
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
        lines = [account for account in accounts if account.odd and account.unsure is unsure]
        if lines:
            what = f"the accounting of {named(account.name for account in lines)} says a {lines[0].odd} that cannot be"
            yield f"{what}: neither they nor their groups' trees give back or get any cores" if unsure else what
