"""Jobs in the queues of Grid Engine, out of `qstat -xml`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from xml.etree import ElementTree

from drainwise.errors import PoolUnreachable

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
        """Whether it is in the queue still, or again."""
        return "q" in self.letters

    @property
    def in_error(self) -> bool:
        """Whether it will never start unless somebody clears its error (`qmod -cj`)."""
        return self.waits and "E" in self.letters

    @property
    def held(self) -> bool:
        """Whether somebody holds it back (`qhold`)."""
        return self.waits and "h" in self.letters


@dataclass(frozen=True)
class Details:
    """What is asked of one job: its owner, its name, why it is in error (empty: it is not)."""

    owner: str
    name: str
    error: str


def jobs_in(answer: str) -> dict[str, QueuedJob]:
    """The jobs in a list of qstat's, by number. Raises PoolUnreachable when it is not whole."""
    document = _document(answer)
    if document.tag != "job_info" or document.find("job_info") is None:
        raise PoolUnreachable(f"qstat printed a document of {document.tag[:40]!r}, not a list of jobs")
    jobs = {}
    for element in document.iter("job_list"):
        number, owner = element.findtext("JB_job_number", ""), element.findtext("JB_owner", "")
        letters, priority = element.findtext("state", ""), element.findtext("JB_priority", "")
        if not (_NUMBER.fullmatch(number) and _LETTERS.fullmatch(letters) and _PRIORITY.fullmatch(priority)):
            raise PoolUnreachable("half an answer: qstat printed a job without number, state or priority")
        jobs[number] = QueuedJob(number, owner, element.findtext("JB_name", ""), letters, int(priority))
    return jobs


def details_in(answer: str) -> dict[str, Details]:
    """The jobs that qstat tells all about, by number. Raises PoolUnreachable when that is not whole."""
    document = _document(answer)
    if document.tag not in {"detailed_job_info", "unknown_jobs"}:
        raise PoolUnreachable(f"qstat printed a document of {document.tag[:40]!r}, not of a job's details")
    found = {}
    for element in document.findall("djob_info/element"):
        number, owner = element.findtext("JB_job_number", ""), element.findtext("JB_owner", "")
        if not _NUMBER.fullmatch(number) or not owner:
            raise PoolUnreachable("half an answer: qstat printed a job without number or owner")
        errors = [one.text or "" for one in element.iter("QIM_message")]
        found[number] = Details(owner, element.findtext("JB_job_name", ""), errors[-1].strip() if errors else "")
    return found


def _document(answer: str) -> ElementTree.Element:
    if "<!DOCTYPE" in answer or "<!ENTITY" in answer:
        raise PoolUnreachable("qstat printed a document that no qstat prints")
    try:
        return ElementTree.fromstring(answer)  # noqa: S314 - checked above: no entities
    except (ElementTree.ParseError, ValueError):
        raise PoolUnreachable("half an answer: qstat printed no whole XML document") from None
