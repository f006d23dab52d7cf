"""What truly ran and when, from the records that pilots keep of their payloads; the pilots' own claims do not enter."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from drainwise.pilot.queues.records import DONE, FAILED, REQUEUED, STARTED

_ENDS = (DONE, FAILED, REQUEUED)


@dataclass(frozen=True)
class Ran:
    """One payload in one pilot: since `start`, until `end` (None: it runs still), UNIX s; `how` it ended."""

    pilot: str
    payload: str
    cores: int
    start: float
    end: float | None
    how: str = ""

    def renamed(self, pilot: str) -> Ran:
        """The same, of a pilot by another name."""
        return replace(self, pilot=pilot)


def read_records(text: str) -> list[Ran]:
    """Payloads of a file of records, in the order of their starts; a last line that is not whole yet is left out."""
    ran: list[Ran] = []
    open_at: dict[tuple[str, str], int] = {}
    for line in text.splitlines(keepends=True):
        if not line.endswith("\n"):
            break
        record = json.loads(line)
        key = (str(record["pilot"]), str(record["payload"]))
        if record["event"] == STARTED:
            open_at[key] = len(ran)
            ran.append(Ran(*key, int(record["cores"]), float(record["time"]), None))
        elif record["event"] in _ENDS and key in open_at:
            place = open_at.pop(key)
            ran[place] = replace(ran[place], end=float(record["time"]), how=str(record["event"]))
    return ran


def kill_waste(ran: Iterable[Ran], pilot: str, now: float) -> float:
    """Core-seconds that running payloads of `pilot` have run at `now` (UNIX s): what is lost when it is killed then."""
    return sum(one.cores * (now - one.start) for one in ran if one.pilot == pilot and _runs(one, now))


def busy(ran: Iterable[Ran], pilot: str, begin: float, end: float) -> float:
    """Core-seconds in which payloads of `pilot` ran between two times (UNIX s)."""
    total = 0.0
    for one in ran:
        if one.pilot == pilot:
            until = end if one.end is None else min(end, one.end)
            total += one.cores * max(0.0, until - max(begin, one.start))
    return total


@dataclass(frozen=True)
class Unforeseen:
    """Payloads of a pilot that a report does not know, since they began after it: nothing that rests on it counts them.

    lost: core-seconds of those that were stopped. until: when the last one was over, UNIX s; None for none.
    """

    lost: float = 0.0
    until: float | None = None


def begun_after(ran: Iterable[Ran], pilot: str, report: float, end: float) -> Unforeseen:
    """Return what began in `pilot` after a report of that time, until the pilot's `end`; UNIX s."""
    later = [one for one in ran if one.pilot == pilot and one.start > report]
    stopped = [one for one in later if one.how not in {DONE, FAILED}]
    lost = sum(one.cores * ((end if one.end is None else one.end) - one.start) for one in stopped)
    return Unforeseen(lost, max((end if one.end is None else one.end for one in later), default=None))


def ended_between(ran: Iterable[Ran], pilot: str, begin: float, end: float) -> float:
    """Return the core-seconds of what ran in `pilot` at the first time and was over by the second one, UNIX s."""
    mine = [one for one in ran if one.pilot == pilot and one.start <= begin]
    return sum(one.cores * (one.end - one.start) for one in mine if one.end is not None and begin < one.end <= end)


def lateness(ran: Iterable[Ran], seconds: Mapping[str, float], start_up: float) -> float:
    """Return by how many seconds the machine was too slow for any payload: it ran longer than it should and start up.

    seconds: that each payload should run, by its name. start_up: s that it may take beside.
    """
    done = [one for one in ran if one.how == DONE and one.end is not None]
    return max((one.end - one.start - seconds[one.payload] - start_up for one in done if one.end), default=0.0)


def _runs(one: Ran, now: float) -> bool:
    return one.start <= now and (one.end is None or one.end > now)
