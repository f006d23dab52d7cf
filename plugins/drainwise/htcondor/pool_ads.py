"""What the pool side asks the collector for, and how the values of an ad are taken: by type and range, else unknown.

An ad is a mapping of the attribute names below to evaluated values. Nodes are not trusted blindly: one may be old,
broken or hostile, so a value of the wrong type counts as one that is not there. A number that no pool has must not be
calculated with either: see `odd_number`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from drainwise.pilotad.attributes import ATTRIBUTES, CORE_SECONDS, CORES, FLAG, HEARTBEAT, PILOT_AD, PRIORITY, TIME
from drainwise.pilotad.report import CONTRADICTORY, PilotReport
from drainwise.pilotad.values import EARLIEST, LATEST, PRIORITY_LIMIT

Ad = Mapping[str, object]

STANDING = "PilotReportStanding"
WALL_LIMIT = "PilotWallLimit"
ORDERS = "PilotReclaimOrders"
UPDATE_INTERVAL = "PilotUpdateInterval"
HOOKS_SINCE = "PilotHooksSince"
HOOK_RAN = "PilotHookRan"
ORDERS_SINCE = "PilotOrdersSince"
CLAIM_VACATE = "PilotVacateTime"
STARTD_START = "DaemonStartTime"

SLOTS = "Cpus > 0"
"""Which slots are asked for: most nodes are full, and nothing is left of their partitionable slots."""

# Deadline and lease as a node publishes them are long expressions: told and evaluated for each slot, they would double
# the time of a snapshot. They are made of the orders, the start and the wall limit instead.
SLOT_ATTRIBUTES = (
    "MyType",
    "Name",
    "Machine",
    "State",
    "Activity",
    "Cpus",
    "Memory",
    "SlotWeight",
    "PartitionableSlot",
    "Offline",
    "LastHeardFrom",
    "GlobalJobId",
    "JobStart",
    "AccountingGroup",
    "RemoteUser",
    "RemoteOwner",
    "RetirementTimeRemaining",
    ORDERS,
    STARTD_START,
    ORDERS_SINCE,
    CLAIM_VACATE,
    WALL_LIMIT,
    HEARTBEAT,
    STANDING,
    HOOK_RAN,
    *(attribute.published for attribute in ATTRIBUTES),
)
# Most slots are dynamic: the collector evaluates no more than the first term for them.
MACHINES = "DynamicSlot =!= true && (PartitionableSlot =?= true || SlotID =?= 1)"
"""The slots that say what concerns all slots of their startd: the partitionable ones, and of static ones the first."""

MACHINE_ATTRIBUTES = (
    "MyType",  # which is told in any case
    "Name",
    "Machine",
    "TotalSlotCpus",
    "DaemonStartTime",
    "LastHeardFrom",
    "NumDynamicSlots",
    "ChildDSlotId",
    UPDATE_INTERVAL,
    HOOKS_SINCE,
)
ACCOUNTING_ATTRIBUTES = (
    "Name",
    "IsAccountingGroup",
    "EffectiveQuota",
    "SubtreeQuota",
    "Priority",
    "PriorityFactor",
    "ResourcesUsed",
    "WeightedResourcesUsed",
    "Ceiling",
    "SurplusPolicy",
    "LastHeardFrom",
)
SUBMITTER_ATTRIBUTES = ("Name", "ScheddName", "IdleJobs", "WeightedIdleJobs", "RunningJobs", "LastHeardFrom")
SCHEDD_ATTRIBUTES = ("Name", "MaxJobsRunning", "ShadowsRunning", "LastHeardFrom")
COLLECTOR_ATTRIBUTES = ("Name", "StatsLifetime", "StatsLastUpdateTime")
MASTER_ATTRIBUTES = ("Machine", "DaemonStartTime", "STARTD_StartTime")

LARGEST_SLOT = 16_384
"""Cores of one slot that are believed: four times the largest machine that was ever sold."""

LARGEST_POOL = 1e9
"""Cores, jobs or weights of a whole pool that are believed."""

_SHOWN, _BITS = 80, 128  # characters of a foreign text, bits of a whole number that is shown
_LARGEST = 1e15  # core-seconds; a pool of a million cores makes them in thirty years


@dataclass(frozen=True)
class Others:
    """The answer beside the slots: the accountant's lines, who submits, and what tells whether all is there.

    masters: of a collector that started not long ago; nobody else needs them.
    """

    accounting: Sequence[Ad] = ()
    submitters: Sequence[Ad] = ()
    schedds: Sequence[Ad] = ()
    startds: Sequence[Ad] = ()
    collectors: Sequence[Ad] = ()
    masters: Sequence[Ad] = ()


# Kinds are compared exactly: a bool is no number here, nor is the bindings' Undefined, which is a kind of int.


def shown(value: object) -> str:
    """A value of an ad for a sentence to the administrator: printable, and not too long."""
    if isinstance(value, str):
        found = value
    else:
        found = "a huge number" if isinstance(value, int) and value.bit_length() > _BITS else repr(value)
    found = found[:_SHOWN].encode("ascii", "backslashreplace").decode("ascii")
    return "".join(sign if sign.isprintable() else "?" for sign in found)


def text(ad: Ad, name: str) -> str | None:
    """A string that says something, else None."""
    value = ad.get(name)
    return value if type(value) is str and value else None


def number(ad: Ad, name: str) -> float | None:
    """A finite number of 0 or more, else None."""
    return _amount(ad.get(name))


def whole(ad: Ad, name: str) -> int | None:
    """A number of 0 or more, cut to a whole one (`TotalCpus = 24.0`), else None."""
    value = _amount(ad.get(name))
    return None if value is None else int(value)


def odd_number(ad: Ad, largest: Mapping[str, float]) -> str:
    """Which of these attributes is there and no number from 0 to the `largest` one that is believed; "" for none.

    Such a value, in one ad of thousands, would end every cycle or change everybody's share of the pool.
    """
    for name, most in largest.items():
        value = ad.get(name)
        if value is not None and ((amount := _amount(value)) is None or amount > most):
            return name
    return ""


def moment(ad: Ad, name: str) -> int | None:
    """A UNIX time in s of this century, else None."""
    return _time(ad.get(name))


def report_of(ad: Ad) -> PilotReport | None:
    """The pilot's report that a node published on its slot; None when there is none."""
    told = ad.get
    heartbeat = _time(told(HEARTBEAT))
    if heartbeat is None:
        return None
    return PilotReport.from_values(
        heartbeat, PILOT_AD, {field: value_of(told(published)) for field, published, value_of in _REPORT}
    )


def contradicts_itself(ad: Ad) -> bool:
    """Whether the node found so; it publishes none of the values then."""
    return text(ad, STANDING) == CONTRADICTORY


def _time(value: object) -> int | None:
    return value if type(value) is int and EARLIEST <= value <= LATEST else None


def _amount(value: object) -> float | None:
    if type(value) is int or type(value) is float:
        return value if 0 <= value < math.inf else None
    return None


def _bounded_amount(value: object) -> float | None:
    amount = _amount(value)
    return amount if amount is not None and amount <= _LARGEST else None


def _flag(value: object) -> bool | None:
    return value if type(value) is bool else None


def _priority(value: object) -> int | None:
    if type(value) is not int:
        return None
    return max(-PRIORITY_LIMIT, min(PRIORITY_LIMIT - 1, value))


_KINDS: dict[str, Callable[[object], int | float | None]] = {
    TIME: _time,
    CORES: _bounded_amount,
    CORE_SECONDS: _bounded_amount,
    FLAG: _flag,
    PRIORITY: _priority,
}
_REPORT = tuple((one.field, one.published, _KINDS[one.kind]) for one in ATTRIBUTES)
