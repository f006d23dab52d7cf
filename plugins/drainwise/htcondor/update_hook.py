"""The starter's update hook: turns what the batch system decided about a slot into what its pilot can read.

Runs as the job's user every STARTER_UPDATE_INTERVAL. The slot's refreshed ad says whether the slot is retiring and
until when; the pilot learns it by `.site.ad` (the paper's channel) and by both shutdown files (Machine/Job Features).
"""

from __future__ import annotations

import posix
import time

from drainwise.features import planned_shutdown
from drainwise.htcondor import sandbox
from drainwise.htcondor.ad_text import literals, string, whole
from drainwise.htcondor.next_hook import run_before
from drainwise.htcondor.retirement import TAKEN_BACK, is_endless
from drainwise.node.hook import read_bounded, run_to_end, say, settings_or_defaults, variable
from drainwise.node.tell import tell
from drainwise.pilotad.site_ad import read_site_ad

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from drainwise.htcondor.ad_text import Literal
    from drainwise.pilotad.site_ad import SiteAd

SLOT_ATTRIBUTES = (
    "Activity",
    "State",
    "RetirementTimeRemaining",
    "MyCurrentTime",
    "PilotReclaimOrders",
    "GlobalJobId",
    "JobStart",
)
JITTER = 5  # seconds; a deadline derived from a countdown moves by the age of the ad
ORDER_JITTER = 30  # seconds; so old may the countdown be when it is read with an order


def ordered_deadline(slot: dict[str, Literal]) -> int | None:
    """The deadline that the node's list of orders (`<GlobalJobId>@<JobStart>=<deadline> …`) gives to this run.

    TAKEN_BACK for one whose order was taken back, None for one without; of several the last, as the startd takes it.
    """
    orders, job, start = string(slot, "PilotReclaimOrders"), string(slot, "GlobalJobId"), whole(slot, "JobStart")
    found = None
    for order in orders.split(" ") if orders else ():
        run, _, deadline = order.rpartition("=")
        if run == f"{job}@{start}" and deadline.isascii() and deadline.isdigit() and len(deadline) <= 12:
            found = int(deadline)
    return found


def slot_deadline(slot: dict[str, Literal], now: int) -> int | None:
    """When this slot must be empty, UNIX seconds; None while nobody asked for it.

    A slot that retires (ordered by the reclaim agent, drained by the admin, preempted by the negotiator) has what is
    left of its retirement; one that is being vacated has no time left. One that retires only because of an order that
    was taken back is left alone. The list of orders only says the deadline to the second: it is an attribute, which
    whoever has WRITE at the startd can set, while Activity and RetirementTimeRemaining are always the startd's own.
    """
    if string(slot, "State") == "Preempting":
        return now
    if string(slot, "Activity") != "Retiring":
        return None
    ordered, left = ordered_deadline(slot), whole(slot, "RetirementTimeRemaining")
    if ordered == TAKEN_BACK and is_endless(left):
        return None
    seen = whole(slot, "MyCurrentTime")
    end = now if left is None else min(seen or now, now) + left
    return ordered if ordered and abs(ordered - end) <= ORDER_JITTER else end


def job_deadline(slot: dict[str, Literal], told: SiteAd | None, now: int) -> int | None:
    """When the job must be gone: what the slot says, in the words used before where only the ad's age differs.

    While the slot's ad is missing (not written yet) or broken, what was said before stands.
    """
    said = told.payload_deadline if told else None
    if not string(slot, "State") or not string(slot, "Activity"):
        return said if told and told.vacate_desired else None
    deadline = slot_deadline(slot, now)
    if deadline is not None and said is not None and abs(deadline - said) <= JITTER:
        return said
    return deadline


def slot_ad(scratch: str) -> dict[str, Literal]:
    """The slot's refreshed ad; empty when there is none (yet)."""
    try:
        return literals(read_bounded(sandbox.update_ad(scratch), sandbox.AD_LIMIT), SLOT_ATTRIBUTES)
    except OSError:
        return {}


def update(settings_path: str) -> None:
    """One round for the job whose directory the environment names."""
    settings, now = settings_or_defaults(settings_path), int(time.time())
    scratch = variable("_CONDOR_SCRATCH_DIR").rstrip("/")
    planned, remark = planned_shutdown.read(settings.shutdown_file, now)
    if remark:
        say(remark)
    told, _ = read_site_ad(scratch, posix.geteuid())
    tell(scratch, job_deadline(slot_ad(scratch), told, now), planned, now)


def main(settings_path: str, site_hook: Sequence[str] = ()) -> NoReturn:
    """The hook; ends this process, or becomes the site's own hook, a path and its arguments."""
    if site_hook:
        run_before(site_hook, lambda: update(settings_path))
    run_to_end(lambda: update(settings_path))
