"""The starter's update hook: write the site notice to a pilot by what the batch system decided about its slot.

For a glidein that reports nothing it also writes the report that its files make.

Runs as the job's user every STARTER_UPDATE_INTERVAL. The slot's refreshed ad says whether the slot is retiring and
until when; the pilot learns it by `.site.ad` (the paper's channel) and by both shutdown files (Machine/Job Features).
"""

from __future__ import annotations

import fcntl
import posix
import time

from drainwise.facts.clients import PAPER
from drainwise.features.facts import planned_in_lease
from drainwise.htcondor.node import ORDERS, sandbox
from drainwise.htcondor.node.order_list import deadline_of, is_endless
from drainwise.node import JOB_FEATURES
from drainwise.node.ad_text import literals, string, whole
from drainwise.node.glidein_places import has_glidein
from drainwise.node.hook import planned_shutdown, run_to_end, say, settings_or_defaults, variable
from drainwise.node.site_notice import SiteNotice, give_notice, is_far, write_job_slots
from drainwise.pilotad.site_ad import read_site_ad

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from drainwise.facts.clients import ClientProfile
    from drainwise.node.ad_text import Literal
    from drainwise.node.settings import NodeSettings
    from drainwise.pilotad.site_ad import SiteAd

SLOT_ATTRIBUTES = (
    *("Activity", "State", "RetirementTimeRemaining", "MyCurrentTime", ORDERS, "GlobalJobId", "JobStart"),
    *("TotalCpus", "Cpus"),
)
_LIMITS = ("AllowedExecuteDuration", "AllowedJobDuration")
_DIRECTORY = posix.O_RDONLY | posix.O_DIRECTORY | posix.O_NOFOLLOW | posix.O_CLOEXEC
JITTER = 5  # seconds; a deadline derived from a countdown moves by the age of the ad
ORDER_JITTER = 30  # seconds; so old may the countdown be when it is read with an order


def ordered_deadline(slot: dict[str, Literal]) -> int | None:
    """Return this run's deadline by the node's list of orders; WITHDRAWN, or None for one without an order."""
    orders, job, start = string(slot, ORDERS), string(slot, "GlobalJobId"), whole(slot, "JobStart")
    return deadline_of(f"{job}@{start}", orders) if orders else None


def slot_deadline(slot: dict[str, Literal], now: int) -> int | None:
    """Return when this slot must be empty, UNIX seconds; None without an order, drain or preemption.

    A slot that retires (ordered by the reclaim agent, drained by the admin, preempted by the negotiator) has what is
    left of its retirement; one that is being vacated has no time left. One that retires without an end is left alone:
    its order was withdrawn, or its startd waits for its last job (condor_restart -peaceful). The list of orders only
    says the deadline to the second: it is an attribute, which whoever has WRITE at the startd can set, while Activity
    and RetirementTimeRemaining are always the startd's own.
    """
    if string(slot, "State") == "Preempting":
        return now
    if string(slot, "Activity") != "Retiring":
        return None
    ordered, left = ordered_deadline(slot), whole(slot, "RetirementTimeRemaining")
    if is_endless(left):
        return None
    seen = whole(slot, "MyCurrentTime")
    end = now if left is None else min(seen or now, now) + left
    return ordered if ordered and abs(ordered - end) <= ORDER_JITTER else end


def job_deadline(slot: dict[str, Literal], notice: SiteAd | None, now: int) -> int | None:
    """Return the job's deadline by the slot's ad; the one published before where only the ad's age differs.

    While the slot's ad is missing (not written yet) or broken, the notice stands; so it does as long as its order.
    """
    said = notice.payload_deadline if notice else None
    if not string(slot, "State") or not string(slot, "Activity"):
        return said if notice and notice.vacate_desired else None
    deadline = slot_deadline(slot, now)
    if deadline is None and notice and notice.vacate_desired and said == ordered_deadline(slot):
        return said
    if deadline is not None and said is not None and abs(deadline - said) <= JITTER:
        return said
    return deadline


def lease_end(scratch: str, slot: dict[str, Literal], settings: NodeSettings) -> int | None:
    """Return when the job's limits and the site's end it, UNIX s; None without a limit."""
    job = literals(sandbox.ad_at(f"{scratch}/{sandbox.JOB_AD}"), _LIMITS)
    limits = [limit for limit in (*(whole(job, name) for name in _LIMITS), settings.whole("wall_limit_secs")) if limit]
    start = whole(slot, "JobStart")
    return start + min(limits) if limits and start is not None else None


def is_alone(scratch: str) -> bool:
    """Decide whether no other hook of this job is at work; from now on none will be until this process ends.

    Who stops its hooks has one of them, and not one more each period. The lock is on the job's features directory, or
    on its own where that is gone: it leaves no file behind.
    """
    try:
        try:
            place = posix.open(f"{scratch}/{JOB_FEATURES}", _DIRECTORY)
        except OSError:
            place = posix.open(scratch, _DIRECTORY)
        fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks
    return True


def client_of(settings: NodeSettings, scratch: str, is_glidein: bool = False) -> ClientProfile | None:
    """Return what the job's client may see; None while nobody knows which it is: then nothing is written."""
    client: ClientProfile | None = PAPER
    if settings.clients is not None:
        client = sandbox.client_in(sandbox.ad_at(f"{scratch}/{sandbox.JOB_AD}"), settings.clients)
    if client is not None and is_glidein:
        from drainwise.facts.client_rules import of_glidein  # noqa: PLC0415 - only who has one pays for it

        client = of_glidein(client, settings.clients)
    return client


def update(settings_path: str) -> None:
    """Run one round for the job whose directory the environment names."""
    settings, now = settings_or_defaults(settings_path), int(time.time())
    scratch = variable("_CONDOR_SCRATCH_DIR").rstrip("/")
    if not is_alone(scratch):
        say("an update hook of this job is still at work, or stopped: this one does nothing")
        return
    planned = planned_shutdown(settings, now)
    notice, _ = read_site_ad(scratch, posix.geteuid())
    ad = sandbox.ad_at(sandbox.update_ad(scratch))
    slot = literals(ad, SLOT_ATTRIBUTES + sandbox.kind_attributes(settings))
    settings = sandbox.of_slot(settings, slot)
    cores, part, answer = whole(slot, "TotalCpus"), None, None
    if settings.is_returning_parts:
        from drainwise.htcondor.node import parts  # noqa: PLC0415 - only where pilots may return some of their cores

        cores, (part, answer) = parts.real_cores(ad, cores), parts.wish_and_answer(ad)
    is_glidein = has_glidein(scratch)
    client = client_of(settings, scratch, is_glidein)
    if client is not None:
        deadline = job_deadline(slot, notice, now)
        near = None if is_far(deadline, now) else deadline
        if planned is not None or near is not None:
            planned = planned_in_lease(planned, near, lease_end(scratch, slot, settings), now)
        give_notice(scratch, SiteNotice(deadline, planned, client, part, answer), now)
    write_job_slots(scratch, settings.job_slots(cores))
    if is_glidein:
        from drainwise.node.glidein import report_glidein  # noqa: PLC0415 - only who has one pays for it

        report_glidein(scratch, whole(slot, "Cpus"), whole(slot, "JobStart"), settings.heartbeat_limit, now)


def main(settings_path: str, site_hook: Sequence[str] = ()) -> NoReturn:
    """Run the hook; it ends this process, or becomes the site's own hook, a path and its arguments."""
    if site_hook:
        from drainwise.htcondor.node.next_hook import run_before  # noqa: PLC0415 - few sites have one

        run_before(site_hook, lambda: update(settings_path))
    run_to_end(lambda: update(settings_path))
