"""Jobs out of what real Slurms printed, and out of what none should."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.errors import PoolUnreachable
from drainwise.slurm.jobs.job import SlurmJob
from drainwise.slurm.jobs.squeue_json import jobs_in

from .recorded_cluster import START, VERSIONS, jobs, recorded


def by_number(version: str) -> dict[int, SlurmJob]:
    return {job.number: job for job in jobs(version)}


@pytest.mark.parametrize("version", VERSIONS)
def test_both_shapes_say_the_same(version: str) -> None:
    """All that is used of a job, for each kind of job."""
    found, start = by_number(version), START[version]
    assert set(found) == set(range(1, 17))
    pilot = found[1]
    assert (pilot.label, pilot.user, pilot.account, pilot.cores, pilot.node) == ("1", "alice", "atlas", 4, "node1")
    assert (pilot.start, pilot.end, pilot.limit, pilot.states) == (start, start + 3600, 60, frozenset({"RUNNING"}))
    assert pilot.admin_comment.startswith('{"drainwise":1,"job":1,')
    asked, endless = found[2], found[3]
    assert (asked.end, asked.limit) == (start + 732, 13)
    assert (endless.end, endless.limit) == (start + 365 * 86400, None)
    assert {found[4].label, found[11].label} == {"4_1", "4_2"}
    assert (found[5].node_count, found[8].het, found[9].het) == (2, 8, 8)
    assert "COMPLETING" in found[6].states
    assert (found[6].restarts, found[7].restarts) == (1, 0)
    assert (found[12].tasks, found[12].at_once, found[12].cores, found[12].label) == (20, 3, 8, "12")
    assert found[12].reason == "Resources"
    assert (found[13].reason, found[14].reason, found[15].reason) == ("Priority", "Dependency", "JobHeldUser")
    assert found[14].start is None


@pytest.mark.parametrize("version", VERSIONS)
def test_a_name_that_is_no_text_hides_no_job(version: str) -> None:
    """HOSTILE 15: job 16 has the byte 0xff, a newline and an AdminComment of its own in its name."""
    answer = recorded(version, "squeue.json")
    with pytest.raises(UnicodeDecodeError):
        answer.decode("utf-8")
    assert by_number(version)[16].admin_comment == ""


def document(**keys: object) -> bytes:
    """One more job in the recorded document of 24.11, with other values."""
    whole = json.loads(recorded("24.11", "squeue.json").decode("utf-8", "replace"))
    whole["jobs"] = [{**whole["jobs"][0], **keys}]
    return json.dumps(whole).encode()


@pytest.mark.parametrize(
    ("tasks", "count", "at_once"),
    [
        ("7", 1, None),
        ("1-20", 20, None),
        ("1-20%3", 20, 3),
        ("1-20%0", 20, None),
        ("1-20%²", 20, None),
        ("1-9:2", 5, None),
        ("1,3,10-12", 5, None),
        ("?", 1, None),
        ("1-2,...", 2, None),
    ],
)
def test_tasks_that_wait_together(tasks: str, count: int, at_once: int | None) -> None:
    array = {"set": True, "infinite": False, "number": 12}
    (job,) = jobs_in(document(array_job_id=array, array_task_string=tasks))
    assert (job.tasks, job.at_once) == (count, at_once)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"slurm_load_jobs error: Unable to contact slurm controller (connect failure)",
        b"[]",
        b"null",
        b"{}",
        b'{"jobs": 3}',
        b'{"jobs": [3]}',
        b'{"jobs": [{}]}',
        b'{"jobs": [{"job_id": 1, "cpus": 1}]}',
        b'{"jobs": [{"job_id": true, "cpus": 1, "job_state": "RUNNING"}]}',
        b"[" * 100_000,
        recorded("24.11", "squeue.json")[:-100],
    ],
)
def test_an_incomplete_answer_is_none(answer: bytes) -> None:
    """HOSTILE 54: nothing may be decided on it."""
    with pytest.raises(PoolUnreachable):
        jobs_in(answer)


def test_a_held_job_without_cores_hides_no_other() -> None:
    """As 22.05 prints it before it has looked at a job: any user can have such a job."""
    (job,) = jobs_in(document(cpus=None, job_state="PENDING", nodes=""))
    assert job.cores == 1


def test_an_error_in_the_document_is_no_answer_although_squeue_ends_with_0() -> None:
    """What squeue of 22.05 prints, with code 0, when slurmctld is gone."""
    answer = b"""{"meta": {"plugin": {"type": "openapi/v0.0.38"}}, "jobs": [],
        "errors": [{"description": "Failed while looking for jobs", "error_number": -1}]}"""
    with pytest.raises(PoolUnreachable, match="Failed while looking for jobs"):
        jobs_in(answer)


values = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=9)
    | st.lists(st.text(max_size=9), max_size=2)
)
numbers = st.fixed_dictionaries({"set": values, "infinite": values, "number": values})


@given(
    st.dictionaries(
        st.sampled_from(
            [
                "job_id",
                "cpus",
                "job_state",
                "start_time",
                "time_limit",
                "nodes",
                "array_task_string",
                "array_job_id",
                "account",
                "admin_comment",
                "priority",
            ]
        ),
        values | numbers,
    )
)
def test_values_of_any_type_are_a_job_or_no_answer(keys: dict[str, object]) -> None:
    """Never another error, and never a number below 0 or a text that is none."""
    try:
        (job,) = jobs_in(document(**keys))
    except PoolUnreachable:
        return
    assert job.number > 0
    assert job.cores >= 0
    assert job.tasks >= 1
    assert isinstance(job.account, str)
    assert all(number is None or number >= 0 for number in (job.start, job.end, job.limit, job.priority))
