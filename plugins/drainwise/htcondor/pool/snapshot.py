"""Turn the ads of a pool into the facts that the reclaim agent decides on. Pure: ads and a time in, a snapshot out.

Cores are `Cpus` sums of slots. Quotas, usage and idle demand come in slot weight; they count as cores × (Σ Cpus /
Σ SlotWeight) of the pool's slots, which is 1 where SLOT_WEIGHT is Cpus, as by default.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from drainwise.facts.client_rules import ClientRules
from drainwise.facts.errors import PoolUnreachable
from drainwise.htcondor.ads.values import LARGEST_POOL, LARGEST_SLOT, Ad, Others, named, odd_number, resources_of, shown
from drainwise.htcondor.demand.demand import DemandLimits, Told, demand_of
from drainwise.htcondor.pool.places import counted_once, no_more_lent_notices, places_of, with_parts
from drainwise.htcondor.pool.shares import Accountant, Use, accounting_record
from drainwise.htcondor.pool.slots import (
    SILENT_AFTER,
    Slot,
    at_floor,
    client_of,
    closed_notices,
    closed_pilots,
    given_back,
    heard_lately,
    pilot_of,
    slot_of,
)
from drainwise.htcondor.pool.startds import Startds, require_refilled
from drainwise.pool.amounts import Amounts
from drainwise.pool.clocks import CLOCKS_DIFFER, wrong_clock
from drainwise.pool.facts import Pilot, Snapshot
from drainwise.pool.free_cores import Hole, usable_cores, waiting_jobs
from drainwise.pool.identity import PilotIdentity
from drainwise.pool.job_kinds import JobKind
from drainwise.pool.notices import counted

_CLOSE = 100.0
"""A slot whose cores per weight differ by more than this from the pool's middle one does not weigh the pool."""
_MISSING_SLOTS = 10  # claimed slots that may be missing beside the accountant's count: jobs end between two cycles


def snapshot_of(
    slot_ads: Iterable[Ad],
    others: Others,
    now: int,
    before: Collection[str] = (),
    told: Callable[[], Told | str] | None = None,
    clients: ClientRules | None = None,
    sent: Mapping[str, PilotIdentity | None] = MappingProxyType({}),
    silent: Collection[str] = (),
) -> Snapshot:
    """Read the facts in the ads at `now` (UNIX s); before: the nodes of the last whole answer, see `require_refilled`.

    told: gives which jobs wait and where they could run, or why that was not told; called when the ads have been read.
    clients: which pilots are of which kind of client. sent: who sent jobs, by GlobalJobId. silent: nodes that did not
    answer when they were asked directly.

    What cannot be so (a slot of a node that has gone, a number that no pool has) is left out, and the notices say so.
    Raises PoolUnreachable when the ads cannot be a whole and recent answer: no slots, most of them long unheard of, a
    collector that has just started, no accounting although slots are in use, or far fewer slots in use than the
    accountant charges.
    """
    accountant = Accountant(filter(None, map(accounting_record, others.accounting)))
    startds = Startds(others.startds)
    seen = _seen(slot_ads, startds, accountant, now, resources_of(others.startds), clients, sent)
    slots = counted_once(seen.slots, startds, now)
    require_refilled(startds, {slot.name for slot in slots}, others.collectors, others.masters, before, now, silent)
    charged = [slot for slot in slots if slot.submitter is not None]
    _require_whole(slots, seen.gone, charged, others.accounting, accountant, now)
    slots, claimed = ([slot for slot in some if not slot.is_backfill] for some in (slots, charged))
    shared = set(startds.second.values())
    ratio, strange = _cores_per_weight([slot for slot in slots if startds.place_of(slot.name) not in shared])
    back = given_back(slots, now)
    held = [slot for slot in claimed if slot.name not in back]
    answer = told() if told is not None else None
    jobs = answer if isinstance(answer, Told) else None
    submitters = [ad for ad in others.submitters if heard_lately(ad, now)]
    largest = None if startds.cores is None or ratio != 1.0 else max(startds.cores, *(slot.cores for slot in slots))
    running = Counter(slot.submitter for slot in held if not slot.idle)
    claims: dict[str, list[Amounts]] = defaultdict(list)
    for slot in held:
        if slot.idle and slot.submitter is not None and slot.holds is not None:
            claims[slot.submitter].append(slot.holds)
    limits = DemandLimits(running, ratio, largest, accountant.rooms(ratio), claims)
    demand = demand_of(submitters, others.schedds, limits, jobs, accountant.account_of)
    in_use = [(slot.submitter or "", slot.cores - slot.unpaid) for slot in held]
    uses = accountant.uses(in_use, demand.waiting, ratio)
    free = [slot for slot in slots if slot.usable or slot.name in back]
    places = () if jobs is None else places_of(jobs.places, claimed, back, startds, now)
    cores = sum(slot.cores - slot.lent for slot in (*held, *free)) + sum(one.unseen.cores for one in places)
    accounts = accountant.accounts(uses, ratio, cores)
    holes = [Hole(slot.cores, slot.ad.get("PartitionableSlot") is True) for slot in free]
    pilots = tuple(closed_pilots(with_parts(seen.pilots(), slots, startds, now), slots, startds.unordered))
    if odd := {slot.name for slot in strange}:
        pilots = tuple(replace(one, billed=None) if one.name in odd else one for one in pilots)
    floors = {
        record.name: record.floor * ratio for record in accountant.records if record.floor and not record.is_group
    }
    return Snapshot(
        taken=now,
        pilots=at_floor(pilots, floors, {slot.name: slot.submitter or "" for slot in charged}) if floors else pilots,
        accounts=accounts,
        free_cores=float(usable_cores(holes, waiting_jobs(accounts))),
        user_priorities=accountant.user_priorities((slot.owner, slot.submitter) for slot in charged),
        notices=(
            *closed_notices(slots),
            *no_more_lent_notices(slots),
            *_notices_of(slots, seen, strange, accountant),
            *((f"demand counts by cores alone: {answer}",) if isinstance(answer, str) else ()),
            *demand.notices,
        ),
        kinds=None if demand.kinds is None else _in_turn(demand.kinds, uses),
        places=places,
        versions=counted(startds.versions.values()),
    )


def _in_turn(kinds: Iterable[JobKind], uses: Mapping[str, Use]) -> tuple[JobKind, ...]:
    """Sort the kinds by their accounts' priorities; of an account whose jobs can run nowhere, none is known."""
    turn = {name: use.priority for name, use in uses.items()}
    return tuple(sorted(kinds, key=lambda one: (turn.get(one.account, math.inf), one.account)))


@dataclass(frozen=True)
class _Seen:
    """Slots that are there, slots that the collector knows from before, ads with a number that cannot be; the runs."""

    slots: list[Slot]
    gone: list[Slot]
    odd: list[Ad]
    runs: dict[str, list[Pilot]]

    def pilots(self) -> Iterator[Pilot]:
        """Yield the runs, each once."""
        for pilots in self.runs.values():
            yield pilots[0] if len(pilots) == 1 else _in_several_slots(pilots)


def _seen(
    slot_ads: Iterable[Ad],
    startds: Startds,
    accountant: Accountant,
    now: int,
    resources: Sequence[str],
    clients: ClientRules | None,
    sent: Mapping[str, PilotIdentity | None],
) -> _Seen:
    """Sort the ads, as they come in, in one go."""
    seen = _Seen([], [], [], defaultdict(list))
    since = startds.hooks_since
    for ad in slot_ads:
        slot = slot_of(ad, resources)
        if slot is None:
            if odd_number(ad, {"Cpus": LARGEST_SLOT}):
                seen.odd.append(ad)
        elif not startds.has(slot, now):
            seen.gone.append(slot)
        else:
            seen.slots.append(slot)
            if slot.submitter is not None:
                hooks, place = since.get(slot.machine), startds.place_of(slot.name)
                pilot = pilot_of(slot, accountant.account_of(slot.submitter), now, hooks, place, sent)
                if pilot is not None:
                    client = client_of(slot, pilot.account, clients).name
                    pilot = pilot if client == pilot.client else replace(pilot, client=client)
                    seen.runs[pilot.run].append(pilot)
    return seen


def _in_several_slots(pilots: Sequence[Pilot]) -> Pilot:
    """Join the slots that show one run: of a job of several nodes, or a GlobalJobId that a user forged.

    An order for it would reach all of them, whose ever they are.
    """
    return replace(
        pilots[0],
        name=f"{pilots[0].name} and {len(pilots) - 1} more",
        cores=sum(pilot.cores for pilot in pilots),
        place="",
        holds=None,
        cannot="its run is in several slots: a job of the parallel universe, or a forged GlobalJobId",
    )


def _cores_per_weight(slots: Sequence[Slot]) -> tuple[float, list[Slot]]:
    """Return the cores for a slot weight of 1, and the slots with an impossible weight: one would move all shares."""
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


def _notices_of(slots: Sequence[Slot], seen: _Seen, strange: Sequence[Slot], accountant: Accountant) -> Iterator[str]:
    """Name the parts of the answer that were not believed, and why."""
    gone, odd = seen.gone, seen.odd
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
        lines = [record for record in accountant.records if record.odd and record.unsure is unsure]
        if lines:
            what = f"the accounting of {named(record.name for record in lines)} says a {lines[0].odd} that cannot be"
            yield f"{what}: neither they nor their groups' trees give back or get any cores" if unsure else what


def _require_whole(
    slots: Sequence[Slot],
    gone: Sequence[Slot],
    claimed: Sequence[Slot],
    account_ads: Sequence[Ad],
    accountant: Accountant,
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
    if not any(not record.is_group for record in accountant.records):
        raise PoolUnreachable(
            f"incomplete answer: {len(claimed)} slots in use and no accounting in the collector; is the negotiator up?"
        )
    if not any(heard_lately(ad, now) for ad in account_ads):
        raise PoolUnreachable(f"a stale answer: the accounting is older than {SILENT_AFTER} s; is the negotiator up?")
    charged = sum(record.slots for record in accountant.records if not record.is_group)
    if charged - len(claimed) > max(_MISSING_SLOTS, charged / 2):
        raise PoolUnreachable(
            f"incomplete answer: {len(claimed)} slots in use where the negotiator charges for {charged:.0f}"
        )
