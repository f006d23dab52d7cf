"""Jobs in the queues of Grid Engine, out of `qstat -xml`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from xml.etree import ElementTree

from drainwise.errors import PoolUnreachable

COMMAND = ("qstat", "-r", "-xml", "-s", "prs", "-u", "$user")
"""All jobs of the user who asks (qstat itself reads `$user`) that have not ended."""

_NUMBER = re.compile(r"[0-9]{1,10}")
_LETTERS = re.compile(r"[A-Za-z]{1,10}")


@dataclass(frozen=True)
class QueuedJob:
    """One job: its number, its name, and Grid Engine's letters for its state, e.g. qw, hqw, t, r, dr, Eqw."""

    number: str
    name: str
    letters: str

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


def jobs_in(answer: str) -> dict[str, QueuedJob]:
    """The jobs in qstat's answer, by number. Raises PoolUnreachable when it is not whole."""
    if "<!DOCTYPE" in answer or "<!ENTITY" in answer:
        raise PoolUnreachable("qstat printed a document that no qstat prints")
    try:
        document = ElementTree.fromstring(answer)  # noqa: S314 - checked above: no entities
    except (ElementTree.ParseError, ValueError):
        raise PoolUnreachable("half an answer: qstat printed no whole XML document") from None
    if document.tag != "job_info":
        raise PoolUnreachable(f"qstat printed a document of {document.tag[:40]!r}, not of jobs")
    jobs = {}
    for element in document.iter("job_list"):
        number, letters = element.findtext("JB_job_number", ""), element.findtext("state", "")
        if not _NUMBER.fullmatch(number) or not _LETTERS.fullmatch(letters):
            raise PoolUnreachable("half an answer: qstat printed a job without number or state")
        name = element.findtext("full_job_name", "") or element.findtext("JB_name", "")
        jobs[number] = QueuedJob(number, name, letters)
    return jobs
