"""How jobs have ended, out of `qacct -j`.

A job that was started again (a machine went down, it asked for it) has a record for each run: the last one counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from drainwise.errors import PoolUnreachable
from drainwise.launch.bounded_command import Answer

RUN_AGAIN = frozenset({*range(1, 12), 24, 25})
"""Values of `failed` for a run after which the job went back to the queue: before it began, as a machine or its prolog
was not in order; migrating; rescheduling. See sge_status(5)."""

LOST = frozenset({19, 21})
"""Values of `failed` where nobody saw how the job ended: its machine or the shepherd went down."""

_RULE = re.compile(r"=+")
_FIRST_NUMBER = re.compile(r"([0-9]{1,10})\b")
_SECONDS = re.compile(r"([0-9]+(?:\.[0-9]+)?)s?")
_NONE_SAID = re.compile(r"error: job (id|name) .* not found")
_NO_FILE = "No such file or directory"


@dataclass(frozen=True)
class Record:
    """One run of a job. failed: 0, or Grid Engine's number for what went wrong, in words in `reason`."""

    number: str
    name: str
    owner: str
    failed: int
    reason: str
    exit_status: int
    wall: float | None
    cpu: float | None


def records_in(answer: str) -> list[Record]:
    """The records in qacct's answer, in its order. Raises PoolUnreachable when it is not whole."""
    return [_record(fields) for fields in _groups(answer)]


def is_none(answer: Answer) -> bool:
    """Whether a qacct that failed says that no job has ended under a number or name, or none at all yet.

    It prints `no jobs running since startup` for a file that nobody may read as well: that says nothing of any job.
    """
    return _NONE_SAID.search(answer.whole) is not None or ("since startup" in answer.out and _NO_FILE in answer.whole)


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
    # What stands behind exit_status shows that its last digit is there.
    if number is None or failed is None or status is None or "ru_wallclock" not in fields:
        raise PoolUnreachable("half an answer: qacct printed a record without number, failed, exit_status or wallclock")
    return Record(
        number=number[1],
        name=fields.get("jobname", ""),
        owner=fields.get("owner", ""),
        failed=int(failed[1]),
        reason=fields["failed"].partition(":")[2].strip(),
        exit_status=int(status[1]),
        wall=_seconds(fields.get("ru_wallclock", "")),
        cpu=_seconds(fields.get("cpu", "")),
    )


def _seconds(text: str) -> float | None:
    match = _SECONDS.fullmatch(text)
    return float(match[1]) if match else None
