"""What the pool side asks the collector for, and how the values of an ad are taken: by type and range, else unknown.

An ad is a mapping of the attribute names below to evaluated values. Nodes are not trusted blindly: one may be old,
broken or hostile, so a value of the wrong type counts as one that is not there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from drainwise.pilotad.attributes import ATTRIBUTES, FLAG, HEARTBEAT, PRIORITY, TIME, Attribute
from drainwise.pilotad.report import CONTRADICTORY, PilotReport
from drainwise.pilotad.values import EARLIEST, LATEST, PRIORITY_LIMIT

Ad = Mapping[str, object]

STANDING = "PilotReportStanding"
DEADLINE = "PilotReclaimDeadline"
LEASE_END = "PilotLeaseEnd"
ORDERS = "PilotReclaimOrders"

# Deadline and lease are expressions: what they name must be asked for, or an order would not be seen.
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
    DEADLINE,
    LEASE_END,
    HEARTBEAT,
    STANDING,
    *(attribute.published for attribute in ATTRIBUTES),
)
ACCOUNTING_ATTRIBUTES = (
    "Name",
    "IsAccountingGroup",
    "EffectiveQuota",
    "Priority",
    "PriorityFactor",
    "ResourcesUsed",
    "WeightedResourcesUsed",
    "LastHeardFrom",
)
SUBMITTER_ATTRIBUTES = ("Name", "IdleJobs", "WeightedIdleJobs", "RunningJobs", "LastHeardFrom")

_LARGEST = 1e15  # core-seconds; a pool of a million cores makes them in thirty years


def text(ad: Ad, name: str) -> str | None:
    """A string that says something, else None."""
    value = ad.get(name)
    return value if isinstance(value, str) and value else None


def number(ad: Ad, name: str) -> float | None:
    """A finite number of 0 or more, else None."""
    value = ad.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
        return None
    return value


def whole(ad: Ad, name: str) -> int | None:
    """A number of 0 or more, cut to a whole one (`TotalCpus = 24.0`), else None."""
    value = number(ad, name)
    return None if value is None else int(value)


def moment(ad: Ad, name: str) -> int | None:
    """A UNIX time in s of this century, else None."""
    value = ad.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not EARLIEST <= value <= LATEST:
        return None
    return value


def report_of(ad: Ad) -> PilotReport | None:
    """The pilot's report that a node published on its slot; None when there is none."""
    heartbeat = moment(ad, HEARTBEAT)
    if heartbeat is None:
        return None
    values = {attribute.field: _value(ad, attribute) for attribute in ATTRIBUTES}
    return PilotReport.from_values(heartbeat, PilotReport(heartbeat).source, values)


def contradicts_itself(ad: Ad) -> bool:
    """Whether the node found so; it publishes none of the values then."""
    return text(ad, STANDING) == CONTRADICTORY


def _value(ad: Ad, attribute: Attribute) -> int | float | None:
    if attribute.kind == TIME:
        return moment(ad, attribute.published)
    value = ad.get(attribute.published)
    if attribute.kind == FLAG:
        return value if isinstance(value, bool) else None
    if attribute.kind == PRIORITY:
        if isinstance(value, bool) or not isinstance(value, int):
            return None
        return max(-PRIORITY_LIMIT, min(PRIORITY_LIMIT - 1, value))
    amount = number(ad, attribute.published)
    return amount if amount is not None and amount <= _LARGEST else None
