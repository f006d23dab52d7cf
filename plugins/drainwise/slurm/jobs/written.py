"""What the lines of plain squeue cannot say of a job: its AdminComment, and what its submitter called it.

`squeue --json` prints it, pyslurm knows it (both are read here), `scontrol show job` prints it, too. A user may put any
bytes into a name, so no line can hold one. All else of a job stands in the lines. Only root may set the AdminComment.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from drainwise.common.garbage import without_collection
from drainwise.facts.errors import PoolUnreachable
from drainwise.slurm.jobs.job import MOST_TEXT, SlurmJob


class Written(NamedTuple):
    """Texts of one job: as in `SlurmJob`. excluded: 22.05 has no such column."""

    comments: tuple[str, ...] = ()
    name: str = ""
    comment: str = ""
    excluded: str = ""


def with_written(jobs: Sequence[SlurmJob], written: Mapping[int, Written]) -> list[SlurmJob]:
    """Return the jobs with what is known of their texts, by the jobs' numbers."""
    found = ((job, written.get(job.number)) for job in jobs)
    return [
        job if texts is None else replace(job, **texts._replace(excluded=texts.excluded or job.excluded)._asdict())
        for job, texts in found
    ]


def written_in(answer: bytes, who: str) -> dict[int, Written]:
    """Read the texts of jobs by number in what `who` (`squeue --json printed`) has answered.

    Raises PoolUnreachable when it is not whole: up to 22.05 squeue ends well also when slurmctld did not answer.
    """
    try:
        with without_collection():  # half of the time
            document = json.loads(answer.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        raise PoolUnreachable(f"incomplete answer: {who} no JSON; has this Slurm its JSON plugin?") from None
    records = document.get("jobs") if isinstance(document, dict) else None
    if not isinstance(records, list):
        raise PoolUnreachable(f"incomplete answer: {who} no list of jobs")
    errors = document.get("errors")
    if errors:
        first = errors[0] if isinstance(errors, list) and isinstance(errors[0], dict) else {}
        text = str(first.get("description") or first.get("error") or "no reason given")
        raise PoolUnreachable(f"squeue failed: {text[:200]}")
    found = {}
    for record in records:
        number = record.get("job_id") if isinstance(record, dict) else None
        if type(number) is not int or number < 1:
            raise PoolUnreachable(f"incomplete answer: {who} a job without number")
        texts = (record.get(key) for key in ("admin_comment", "name", "comment", "excluded_nodes"))
        admin, name, comment, excluded = (text if isinstance(text, str) else "" for text in texts)
        found[number] = Written((admin,) if admin else (), name[:MOST_TEXT], comment[:MOST_TEXT], excluded)
    return found
