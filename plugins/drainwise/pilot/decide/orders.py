"""The site's orders to this pilot, combined from all site notices: to leave or not, and by when."""

from __future__ import annotations

from dataclasses import dataclass

from drainwise.pilot.decide.lease import Lease
from drainwise.pilot.decide.settings import PilotSettings
from drainwise.pilotad.attributes import SITE_AD
from drainwise.pilotad.partial_return import Acknowledgement, PartialReturn
from drainwise.pilotad.site_ad import SiteAd

SIGTERM = "SIGTERM"
SHUTDOWN_JOB = "shutdowntime_job"
SHUTDOWN = "shutdowntime"
LEASE = "lease"


@dataclass(frozen=True)
class SiteOrders:
    """The orders that hold now.

    leave: give the cores back as soon as the running payloads have ended. deadline: when everything must have ended,
    UNIX s; None: never. draining: the end of this pilot is ordered, so it does not postpone it. source: of them.
    part, answer: what the site asks and acknowledges of a partial return, whatever the orders are.
    """

    leave: bool
    deadline: float | None
    draining: bool
    source: str
    part: PartialReturn | None = None
    answer: Acknowledgement | None = None


def orders_from(
    site_ad: SiteAd | None,
    shutdowntime_job: int | None,
    shutdowntime: int | None,
    terminated: float | None,
    lease: Lease,
    settings: PilotSettings,
    now: float,
) -> SiteOrders:
    """Combine site notices; all times UNIX s, None for none (garbage is none). Pure.

    terminated: when SIGTERM came first. The earliest deadline holds, the lease's end among them; one in the past counts
    as now.
    * `.site.ad` with VACATE_DESIRED, or SIGTERM: leave. SIGTERM's own deadline is `term_grace` after it, unless the
      site has set when it ends this job: it ends it then and not before.
    * a shutdown file without a `.site.ad` that says VACATE_DESIRED = False: drain, the lease is shorter.
    * VACATE_DESIRED = False with a deadline (the machine's planned shutdown): the lease is shorter, nothing else.
    A machine's shutdown before this lease began was survived and says nothing.
    Source: the paper's table 2; HSF-TN-2016-02 `shutdowntime`, `shutdowntime_job`.
    """
    if shutdowntime is not None and shutdowntime < lease.start:
        shutdowntime = None
    ad_deadline = None if site_ad is None else site_ad.payload_deadline
    vacate = site_ad is not None and site_ad.vacate_desired
    planned = site_ad is not None and not vacate
    shut = shutdowntime_job is not None or shutdowntime is not None
    # What ends this job, unlike what only ends its machine some day.
    order = None if planned else _earliest(ad_deadline, shutdowntime_job)
    term = None if terminated is None or order is not None else terminated + settings.term_grace
    deadline = _earliest(ad_deadline, shutdowntime_job, shutdowntime, term, lease.end)
    leave = vacate or terminated is not None
    sources = (
        (vacate or ad_deadline is not None, SITE_AD),
        (terminated is not None, SIGTERM),
        (shutdowntime_job is not None, SHUTDOWN_JOB),
        (shutdowntime is not None, SHUTDOWN),
    )
    return SiteOrders(
        leave=leave,
        deadline=None if deadline is None else max(now, deadline),
        draining=leave or (shut and not planned),
        source=", ".join(name for holds, name in sources if holds) or LEASE,
        part=None if site_ad is None else site_ad.part,
        answer=None if site_ad is None else site_ad.answer,
    )


def _earliest(*moments: float | None) -> float | None:
    return min((moment for moment in moments if moment is not None), default=None)
