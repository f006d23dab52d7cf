"""What truly ran and when, from the records that pilots keep of their payloads; the pilots' own claims do not enter."""

from __future__ import annotations

import json
from collections.abc import Iterable
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


def _runs(one: Ran, now: float) -> bool:
    return one.start <= now and (one.end is None or one.end > now)
