"""A running pilot returns some of its cores: what the site asks, what the pilot states, what the site acknowledges.

Every number is a level and never a step, so that one that is read twice or not at all does no harm:

* the site asks (`.site.ad`) for a number of cores that are to be returned in all, 0 to all but one;
* the pilot states (`.pilot.ad`, `$JOBSTATUS`) how many it has returned, and the time of that statement;
* the site acknowledges (`.site.ad`) one statement by its time, and how many cores the pilot may use then.

A pilot that states more returned cores uses them no more from that moment on. One that states fewer goes on without
them until that very statement is acknowledged: others may run there still.
Pure: time is an argument.
"""

from __future__ import annotations

from drainwise.facts import fact
from drainwise.pilotad.report import CONTRADICTORY, FUTURE_ALLOWANCE, STALE, standing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from drainwise.pilotad.report import PilotReport


@fact
class PartialReturn:
    """What the site asks. cores: to be returned in all, those included that are; 0: the pilot may have all again.

    by: UNIX s, when the wish is over, None for never: what is returned then stays returned, and no more is asked.
    chunk: cores come back in multiples of it; the last multiple is cut where `cores` is none.
    """

    cores: int
    by: int | None = None
    chunk: int = 1


@fact
class Acknowledgement:
    """The site's answer to one statement. since: the statement's time, `ReturnedPart.since`, UNIX s.

    usable: the cores of the lease that the pilot may use. held: of those it had returned, how many others hold; None:
    the site does not say.
    """

    since: int
    usable: int
    held: int | None = None


@fact
class ReturnedPart:
    """What a pilot has returned: cores, memory in MiB. since: the time of the statement that says so, UNIX s."""

    cores: int = 0
    memory: int = 0
    since: int = 0


NOTHING_RETURNED = ReturnedPart()


def asked(wish: PartialReturn | None, cores: int, now: float, returned: int) -> PartialReturn:
    """Return the wish as a pilot of so many cores has it at `now`, UNIX s: 0 to all cores but one.

    wish: None for none, which asks for nothing back. returned: cores that the pilot has returned; once the wish is
    over, no more than those are asked for.
    """
    if wish is None:
        return PartialReturn(0)
    wanted = max(0, min(cores - 1, wish.cores))
    if wish.by is not None and now >= wish.by:
        wanted = min(wanted, returned)
    return PartialReturn(wanted, wish.by, max(1, min(wish.chunk, wanted)))


def returned_part(
    report: PilotReport,
    cores: int,
    memory: int | None,
    now: int,
    heartbeat_limit: int,
    job_start: int | None = None,
) -> ReturnedPart:
    """Return what a report is believed to have returned; `NOTHING_RETURNED` for one that is void.

    cores: of the lease. memory: of the lease, MiB, None when it is not known: then none is returned. now, job_start:
    UNIX s. heartbeat_limit: s a heartbeat may be old.
    Void is a report that is stale (also: left by an earlier run) or contradicts itself, one without the time of the
    statement, and one whose statement lies in the future or before the job. At least one core stays with the pilot, and
    of the memory at most the part of the returned cores is returned.
    """
    since = report.returned_since
    if report.returned_cores is None or since is None or cores < 1:
        return NOTHING_RETURNED
    if standing(report, now, heartbeat_limit, job_start, cores) in {STALE, CONTRADICTORY}:
        return NOTHING_RETURNED
    if since > now + FUTURE_ALLOWANCE or (job_start is not None and since < job_start - FUTURE_ALLOWANCE):
        return NOTHING_RETURNED
    returned = max(0, min(cores - 1, report.returned_cores))
    most = 0 if memory is None else memory * returned // cores
    return ReturnedPart(returned, max(0, min(most, report.returned_memory or 0)), since)


def acknowledgement(stated: ReturnedPart, cores: int, held: int) -> Acknowledgement:
    """Acknowledge a statement of a pilot of so many cores, `held` of whose cores others hold at this moment.

    The pilot may use what neither is returned nor held; one core stays its own whatever is said.
    """
    held = max(0, min(cores - 1, held))
    return Acknowledgement(stated.since, max(1, cores - max(stated.cores, held)), held)


def usable_cores(cores: int, stated: ReturnedPart, used_until_now: int, answer: Acknowledgement | None) -> int:
    """Return how many cores a pilot of so many may use: never a core that it states as returned.

    used_until_now: what this function returned before, all `cores` at first. answer: the acknowledgement that stands
    now, None for none; one of another statement says nothing.
    """
    most = cores - stated.cores
    known = min(used_until_now, most)
    return known if answer is None or answer.since != stated.since else max(known, min(answer.usable, most))
