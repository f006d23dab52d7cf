"""Jobs in the queues of Grid Engine, out of `qstat -xml`, and how they ended, out of `qacct -j`.

A job that was started again (a machine went down, it asked for it) has a record for each run: the last one counts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from xml.etree import ElementTree

from drainwise.common.bounded_command import Answer
from drainwise.facts.errors import PoolUnreachable

LISTING = ("-pri", "-xml", "-u", "$user", "-s")
"""qstat's words for a list of the jobs of the user who asks (qstat itself reads `$user`), before those of `THERE`."""
THERE, ENDED_TOO = "prs", "prsz"
"""Jobs that have not ended; beside them those that ended lately, as far as qmaster remembers (`finished_jobs`)."""
DETAILS = ("-xml", "-j")
"""qstat's words for all it knows of jobs, before a number or a pattern of names. A file called sge_qstat, the user's or
the site's, may hide jobs from a list (`-l`, `-q`); from this it hides none."""

_NUMBER = re.compile(r"[0-9]{1,10}")
_LETTERS = re.compile(r"[A-Za-z]{1,10}")
_PRIORITY = re.compile(r"-?[0-9]{1,4}")


@dataclass(frozen=True)
class QueuedJob:
    """One job: its number, owner, name, Grid Engine's letters for its state, e.g. qw, hqw, t, r, dr, Eqw; `qsub -p`."""

    number: str
    owner: str
    name: str
    letters: str
    priority: int

    @property
    def waits(self) -> bool:
        """Tell whether it is in the queue still, or again."""
        return "q" in self.letters

    @property
    def in_error(self) -> bool:
        """Tell whether it will never start unless somebody clears its error (`qmod -cj`)."""
        return self.waits and "E" in self.letters

    @property
    def held(self) -> bool:
        """Tell whether somebody holds it back (`qhold`)."""
        return self.waits and "h" in self.letters


@dataclass(frozen=True)
class Details:
    """The details of one job: its owner, its name, why it is in error (empty: it is not)."""

    owner: str
    name: str
    error: str


def jobs_in(answer: str) -> dict[str, QueuedJob]:
    """Return the jobs in a list of qstat's, by number. Raises PoolUnreachable when it is not whole."""
    document = _document(answer)
    if document.tag != "job_info" or document.find("job_info") is None:
        raise PoolUnreachable(f"qstat printed a document of {document.tag[:40]!r}, not a list of jobs")
    jobs = {}
    for element in document.iter("job_list"):
        number, owner = element.findtext("JB_job_number", ""), element.findtext("JB_owner", "")
        letters, priority = element.findtext("state", ""), element.findtext("JB_priority", "")
        if not (_NUMBER.fullmatch(number) and _LETTERS.fullmatch(letters) and _PRIORITY.fullmatch(priority)):
            raise PoolUnreachable("incomplete answer: qstat printed a job without number, state or priority")
        jobs[number] = QueuedJob(number, owner, element.findtext("JB_name", ""), letters, int(priority))
    return jobs


def details_in(answer: str) -> dict[str, Details]:
    """Return the details of jobs in qstat's answer, by number. Raises PoolUnreachable when it is not whole."""
    document = _document(answer)
    if document.tag not in {"detailed_job_info", "unknown_jobs"}:
        raise PoolUnreachable(f"qstat printed a document of {document.tag[:40]!r}, not of a job's details")
    found = {}
    for element in document.findall("djob_info/element"):
        number, owner = element.findtext("JB_job_number", ""), element.findtext("JB_owner", "")
        if not _NUMBER.fullmatch(number) or not owner:
            raise PoolUnreachable("incomplete answer: qstat printed a job without number or owner")
        errors = [one.text or "" for one in element.iter("QIM_message")]
        found[number] = Details(owner, element.findtext("JB_job_name", ""), errors[-1].strip() if errors else "")
    return found


def _document(answer: str) -> ElementTree.Element:
    if "<!DOCTYPE" in answer or "<!ENTITY" in answer:
        raise PoolUnreachable("qstat printed a document that no qstat prints")
    try:
        return ElementTree.fromstring(answer)  # noqa: S314 - checked above: no entities
    except (ElementTree.ParseError, ValueError):
        raise PoolUnreachable("incomplete answer: qstat printed no whole XML document") from None


RUN_AGAIN = frozenset({*range(1, 12), 24, 25})
"""Values of `failed` for a run after which the job went back to the queue: before it began, as a machine or its prolog
was not in order; migrating; rescheduling. See sge_status(5)."""

LOST = frozenset({19, 21})
"""Values of `failed` where nobody saw how the job ended: its machine or the shepherd went down."""

_RULE = re.compile(r"^=+$", re.MULTILINE)
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
    """Return the records in qacct's answer, in its order. Raises PoolUnreachable when it is not whole."""
    groups = ([line.partition(" ") for line in group.splitlines()] for group in _RULE.split(answer))
    fields = ({key: value.strip() for key, _blank, value in group if key} for group in groups)
    return [_record(one) for one in fields if one]


def is_none(answer: Answer) -> bool:
    """Tell whether a qacct that failed says that no job has ended under a number or name, or none at all yet.

    It prints `no jobs running since startup` for a file that nobody may read as well: that says nothing of any job.
    """
    return _NONE_SAID.search(answer.whole) is not None or ("since startup" in answer.text and _NO_FILE in answer.whole)


def last_by_number(records: list[Record]) -> dict[str, Record]:
    """Return the last record of each job that has ended for good."""
    last = {record.number: record for record in records}
    return {number: record for number, record in last.items() if record.failed not in RUN_AGAIN}


def _record(fields: dict[str, str]) -> Record:
    number = _FIRST_NUMBER.match(fields.get("jobnumber", ""))
    failed = _FIRST_NUMBER.match(fields.get("failed", ""))
    status = _FIRST_NUMBER.match(fields.get("exit_status", ""))
    # What stands behind exit_status shows that its last digit is there.
    if number is None or failed is None or status is None or "ru_wallclock" not in fields:
        raise PoolUnreachable(
            "incomplete answer: qacct printed a record without number, failed, exit_status or wallclock"
        )
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
