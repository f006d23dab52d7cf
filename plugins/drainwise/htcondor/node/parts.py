"""Partial return on a node: what the cron says of returned cores, what the update hook tells the pilot.

A claim that is used again keeps inside the startd what was published of the run before, and a value that is merely not
printed any more stays. So what the cron says names its run and ages, and nothing returned is printed as such.

The hook tells what the site asks, and which cores the pilot may use again. The slot's refreshed ad has expressions
where a figure depends on others, so what is really free is worked out here, out of the lists that the startd made:
START looks at the same ones. A list of the times of all statements tells whether the startd had this pilot's last one
when it made them; before, nothing is acknowledged.
"""

from __future__ import annotations

from drainwise.htcondor.node import RETURN_ASKED, RETURNED_AT, RETURNED_BY
from drainwise.node.ad_text import literals, raw_values, string, whole
from drainwise.pilotad.attributes import REPORTED_BY
from drainwise.pilotad.partial_return import (
    Acknowledgement,
    PartialReturn,
    ReturnedPart,
    acknowledgement,
    returned_part,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from drainwise.htcondor.node.job_directories import JobSandbox
    from drainwise.pilotad.report import PilotReport

_SLOTS = ("slot1", "slot2")
_CLAIMED, _LENT, _SINCE = "ChildCpus", "ChildPilotLentCpus", "ChildPilotReturnedSince"
_LISTS = tuple(f"{slot}_{name}" for slot in _SLOTS for name in (_CLAIMED, _LENT, _SINCE))
_OWN = ("GlobalJobId", "JobStart", "Cpus", "TotalCpus", "PilotReturnedCpus", "PilotReturnedSince")
_SECOND = "slot2_ChildCpus"
_MOST_DIGITS = 10


def returned_by(report: PilotReport | None, job: JobSandbox, now: int, heartbeat_limit: int) -> str:
    """Return the line that names the run whose report is believed to have returned cores, at `now` (UNIX s).

    report: None where none is believed. heartbeat_limit: s a heartbeat may be old. How much it is, the startd bounds by
    what it knows of the slot itself.
    """
    part = None if report is None else returned_part(report, job.cores, None, now, heartbeat_limit, job.started)
    if part is None or part.cores == 0:
        return f"{RETURNED_BY} = undefined"
    return f'{RETURNED_BY} = "{job.job}@{job.started}"'


def with_time(ad: str, now: int) -> str:
    """Return a slot's ad with the time of this round (UNIX s) where it names such a run.

    It stands apart from the ad: by itself it is no change that would be sent at once.
    """
    return f"{ad}\n{RETURNED_AT} = {now}" if f'\n{RETURNED_BY} = "' in ad else ad


def real_cores(ad: bytes, total: int | None) -> int | None:
    """Return the node's cores where its startd has `total`: half of them where it has the second slot over the first.

    ad: of one of its slots, as the startd wrote it. None where they are not known.
    """
    return total // 2 if total is not None and raw_values(ad, (_SECOND,)) else total


def wish(ad: bytes) -> PartialReturn | None:
    """Return what the site asks of the run in a slot; None for nothing. ad: the slot's, as the startd wrote it."""
    slot = literals(ad, ("GlobalJobId", "JobStart", RETURN_ASKED))
    run = f"{string(slot, 'GlobalJobId')}@{whole(slot, 'JobStart')}"
    for word in reversed((string(slot, RETURN_ASKED) or "").split()):
        name, _, figures = word.rpartition("=")
        numbers = [int(one) for one in figures.split(":") if _is_number(one)]
        if name == run and len(numbers) == 3:
            cores, by, chunk = numbers
            return PartialReturn(cores, by or None, max(1, chunk))
    return None


def answer(ad: bytes) -> Acknowledgement | None:
    """Return the acknowledgement of the pilot's last statement; None while the startd does not show it in its lists.

    ad: of the pilot's slot, as the startd wrote it.
    """
    slot = literals(ad, (*_OWN, REPORTED_BY))
    lists = {name: [*_numbers(raw)] for name, raw in raw_values(ad, _LISTS).items()}
    since, cores = whole(slot, "PilotReturnedSince"), whole(slot, "Cpus")
    total = real_cores(ad, whole(slot, "TotalCpus"))
    run = f"{string(slot, 'GlobalJobId')}@{whole(slot, 'JobStart')}"
    if _SECOND not in lists or not since or not cores or not total or string(slot, REPORTED_BY) != run:
        return None
    sums = {name: sum(sum(lists.get(f"{one}_{name}", ())) for one in _SLOTS) for name in (_CLAIMED, _LENT)}
    known = {moment for one in _SLOTS for moment in lists.get(f"{one}_{_SINCE}", ())}
    if since not in known or sums[_CLAIMED] < cores:
        return None
    returned = min(whole(slot, "PilotReturnedCpus") or 0, cores - 1)
    borrowed = max(0, sums[_CLAIMED] - total)
    missing = max(0, borrowed - sums[_LENT])
    return acknowledgement(ReturnedPart(returned, 0, since), cores, missing + min(returned, borrowed))


def _numbers(raw: str) -> Iterator[int]:
    """Yield the whole numbers of a list as ClassAds write it; what is none (a job that states nothing) counts as 0."""
    for word in raw.strip("{} \t").split(","):
        yield int(word) if _is_number(word.strip()) else 0


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) <= _MOST_DIGITS
