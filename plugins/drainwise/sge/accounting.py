"""How jobs have ended, out of `qacct -j`.

A job that was started again (a machine went down, it asked for it) has a record for each run: the last one counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from drainwise.errors import PoolUnreachable

RUN_AGAIN = frozenset({24, 25})
"""Values of `failed` for a run after which the job went back to the queue: migrating, rescheduling."""
DIED = 100
"""`failed` of a job that ran and died by a signal."""

_RULE = re.compile(r"=+")
_FIRST_NUMBER = re.compile(r"([0-9]{1,10})\b")
_SECONDS = re.compile(r"([0-9]+(?:\.[0-9]+)?)s?")
NONE_SAID = ("not found", "no jobs running since startup")
"""What qacct says when no job has ended under a number or name, or none at all."""


@dataclass(frozen=True)
class Record:
    """One run of a job. failed: 0, or Grid Engine's number for what went wrong, in words in `reason`."""

    number: str
    name: str
    failed: int
    reason: str
    exit_status: int
    wall: float | None
    cpu: float | None


def records_in(answer: str) -> list[Record]:
    """The records in qacct's answer, in its order. Raises PoolUnreachable when it is not whole."""
    return [_record(fields) for fields in _groups(answer)]


def last_by_number(records: list[Record]) -> dict[str, Record]:
    """The last record of each job that has ended for good."""
    last = {record.number: record for record in records}
    return {number: record for number, record in last.items() if record.failed not in RUN_AGAIN}


def _groups(answer: str) -> Iterator[dict[str, str]]:
    fields: dict[str, str] = {}
    for line in answer.splitlines():
        if _RULE.fullmatch(line):
            if fields:
                yield fields
            fields = {}
            continue
        key, _blank, value = line.partition(" ")
        if key:
            fields[key] = value.strip()
    if fields:
        yield fields


def _record(fields: dict[str, str]) -> Record:
    number = _FIRST_NUMBER.match(fields.get("jobnumber", ""))
    failed = _FIRST_NUMBER.match(fields.get("failed", ""))
    status = _FIRST_NUMBER.match(fields.get("exit_status", ""))
    if number is None or failed is None or status is None:
        raise PoolUnreachable("half an answer: qacct printed a record without number, failed or exit_status")
    return Record(
        number=number[1],
        name=fields.get("jobname", ""),
        failed=int(failed[1]),
        reason=fields["failed"].partition(":")[2].strip(),
        exit_status=int(status[1]),
        wall=_seconds(fields.get("ru_wallclock", "")),
        cpu=_seconds(fields.get("cpu", "")),
    )


def _seconds(text: str) -> float | None:
    match = _SECONDS.fullmatch(text)
    return float(match[1]) if match else None
