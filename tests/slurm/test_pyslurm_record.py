"""What real pyslurms knew of jobs, beside what squeue printed of the same moment.

Recorded with pyslurm 22.5.3 and 24.11.0 on Slurm 22.05.8 and 24.11.5: `pyslurm.json` has the attributes of each job,
`squeue.json` has of each job what is read of it. Four nodes, the last one draining. Running: a pilot that reports (1),
one asked to leave (2), one without time limit (3), an array of three (4) with task 0 at priority 1, jobs of several
nodes (5, 10 and 11). Being cancelled: 7. Requeued: 8, and 6, which is still being ended on 24.11. Suspended: 9. Ended:
13. 14 has an AdminComment that is no UTF-8. The others wait, each for another reason; 28 has a name that is no text.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from drainwise.slurm.jobs.admin_comment import is_ours, published_in
from drainwise.slurm.jobs.written import Written, written_in
from drainwise.slurm.pool import pyslurm_reader

from .recorded_cluster import VERSIONS

FOLDER = Path(__file__).parent / "recorded" / "pyslurm"
NOW = {"22.05": 1795279802, "24.11": 1795279782}


def recorded(version: str, name: str) -> bytes:
    return (FOLDER / version / name).read_bytes()


def told(version: str) -> dict[int, Written]:
    """What the reader's line says of the recorded jobs."""
    records = json.loads(recorded(version, "pyslurm.json"))["jobs"]
    line = [{key: record.get(name) for key, name in pyslurm_reader._FIELDS.items()} for record in records]
    return written_in(json.dumps({"jobs": line}).encode(), "pyslurm gave")


def comparable(texts: Written) -> Written:
    """Without which bytes of a text are none."""
    return texts._replace(comments=tuple("\ufffd" if "\ufffd" in one else one for one in texts.comments))


@pytest.mark.parametrize("version", VERSIONS)
def test_pyslurm_says_of_every_job_what_squeue_says(version: str) -> None:
    squeue = written_in(recorded(version, "squeue.json"), "squeue --json printed")
    found = told(version)
    assert {number: comparable(found[number]) for number in squeue} == {
        number: comparable(texts) for number, texts in squeue.items()
    }
    assert len(squeue) >= 27
    (comment,) = found[14].comments
    assert not is_ours(comment)
    assert published_in(comment) is None
