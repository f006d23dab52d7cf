"""The payload slots that glideins advertise in the collector of an HTCondor-CE, by the batch job in which each runs.

A glidein of glideinWMS states its batch system, its job's id and, on HTCondor, its access point in each of its slots
(its glidein_sitewms_setup.sh). Users write these ads: what they say is bounded, shown, and decides nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import partial

from drainwise.common.bounded_call import within
from drainwise.facts.clients import PAPER
from drainwise.htcondor.ads.query import htcondor2, literals, queried
from drainwise.htcondor.ads.values import LARGEST_SLOT, Ad, moment, text, whole
from drainwise.pilotad.observation import Observation, observed_report
from drainwise.pilotad.report import PilotReport

CE_PORT = 9619
"""The port of a CE's collector, where its address names none."""
_SYSTEM, _JOB, _ACCESS_POINT = "GLIDEIN_SiteWMS", "GLIDEIN_SiteWMS_JobId", "GLIDEIN_SiteWMS_Queue"
_ATTRIBUTES = (_SYSTEM, _JOB, _ACCESS_POINT, "Cpus", "State", "JobStart")
_SECONDS = 30.0


def payload_reports(address: str, now: int) -> Mapping[str, PilotReport]:
    """Return what the payloads of each glidein use and would lose, at `now` (UNIX s), as a node sees payloads.

    By the job's id, on HTCondor by `<access point>#<cluster>.<proc>`. address: HOST or HOST:PORT of the CE's collector.
    Raises PoolUnreachable.
    """
    host = address if ":" in address else f"{address}:{CE_PORT}"
    ads: list[Ad] = within(_SECONDS, partial(_slots, host), f"the CE's collector {host}")
    return reports_of(ads, now)


def _slots(host: str) -> list[Ad]:
    htcondor2.param["SEC_CLIENT_AUTHENTICATION"] = "OPTIONAL"  # in this child: a CE lets anybody read, as it is shipped
    kind, constraint = htcondor2.AdType.Startd, f"isString({_JOB})"
    found = queried(htcondor2.Collector(host), f"the CE's collector {host}", kind, constraint, _ATTRIBUTES)
    return [literals(ad, _ATTRIBUTES) for ad in found]


def reports_of(ads: Iterable[Ad], now: int) -> dict[str, PilotReport]:
    """Return the reports as `payload_reports` has them; a glidein of which no slot is claimed has no payload."""
    payloads = defaultdict[str, list[tuple[int, int]]](list)
    for ad in ads:
        job, queue = text(ad, _JOB), text(ad, _ACCESS_POINT)
        if job is None:
            continue
        running = payloads[f"{queue}#{job}" if text(ad, _SYSTEM) == "HTCondor" and queue else job]
        cores, start = whole(ad, "Cpus") or 0, moment(ad, "JobStart")
        if text(ad, "State") == "Claimed" and start is not None and start <= now and 0 < cores <= LARGEST_SLOT:
            running.append((cores, start))
    found = {}
    for name, running in payloads.items():
        busy, begins = sum(cores for cores, _ in running), tuple(sorted(start for _, start in running))
        done = sum(cores * (now - start) for cores, start in running)
        found[name] = observed_report(Observation(PAPER.name, now, len(running), float(busy), done, begins=begins))
    return found
