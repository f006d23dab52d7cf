"""Texts of jobs out of what real Slurms printed, and out of what none should."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.errors import PoolUnreachable
from drainwise.slurm.jobs.admin_comment import published_in
from drainwise.slurm.jobs.job import MOST_TEXT, SlurmJob
from drainwise.slurm.jobs.written import Written, with_written, written_in

from .recorded_cluster import START, VERSIONS, jobs, recorded

SAID = "squeue --json printed"


@pytest.mark.parametrize("version", VERSIONS)
def test_both_shapes_say_the_same(version: str) -> None:
    found, known = written_in(recorded(version, "squeue.json"), SAID), {job.number: job for job in jobs(version)}
    assert set(found) == set(known) == set(range(1, 17))
    (comment,) = found[1].comments
    said = published_in(comment)
    assert said is not None and (said.job, said.start) == (1, START[version])
    assert {number: (one.comments, one.name, one.excluded) for number, one in found.items()} == {
        number: (job.comments, job.name, job.excluded) for number, job in known.items()
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_a_name_that_is_no_text_hides_no_job(version: str) -> None:
    """HOSTILE 15: job 16 has the byte 0xff, a newline and an AdminComment of its own in its name."""
    answer = recorded(version, "squeue.json")
    with pytest.raises(UnicodeDecodeError):
        answer.decode("utf-8")
    assert written_in(answer, SAID)[16].comments == ()


def test_what_is_known_of_a_job_is_added_to_its_line() -> None:
    one, other = SlurmJob(1, excluded="n3", cores=2), SlurmJob(2)
    found = with_written([one, other], {1: Written(("c",), "n", "vo=atlas")})
    assert found == [SlurmJob(1, excluded="n3", cores=2, comments=("c",), name="n", comment="vo=atlas"), other]
    assert with_written([one], {1: Written(excluded="n1")})[0].excluded == "n1"


def document(**keys: object) -> bytes:
    """One job of the recorded document of 24.11, with other values."""
    whole = json.loads(recorded("24.11", "squeue.json").decode("utf-8", "replace"))
    whole["jobs"] = [{**whole["jobs"][0], **keys}]
    return json.dumps(whole).encode()


def test_texts_have_a_length_and_are_texts() -> None:
    found = written_in(document(job_id=7, name="n" * 9999, comment="vo=atlas"), SAID)[7]
    assert (found.name, found.comment) == ("n" * MOST_TEXT, "vo=atlas")
    found = written_in(document(job_id=7, name=None, comment={"job": "x"}, admin_comment=3), SAID)[7]
    assert (found.name, found.comment, found.comments) == ("", "", ())


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"slurm_load_jobs error: Unable to contact slurm controller (connect failure)",
        b"\xff",
        b"[]",
        b"null",
        b"{}",
        b'{"jobs": 3}',
        b'{"jobs": null}',
        b'{"jobs": [3]}',
        b'{"jobs": [{}]}',
        b'{"jobs": [{"job_id": null}]}',
        b'{"jobs": [{"job_id": 0}]}',
        b'{"jobs": [{"job_id": true, "cpus": 1, "job_state": "RUNNING"}]}',
        b"[" * 100_000,
        recorded("24.11", "squeue.json")[:-100],
    ],
)
def test_an_incomplete_answer_is_none(answer: bytes) -> None:
    """HOSTILE 54: nothing may be decided on it."""
    with pytest.raises(PoolUnreachable, match="incomplete answer: squeue --json printed"):
        written_in(answer, SAID)


def test_an_error_in_the_document_is_no_answer_although_squeue_ends_with_0() -> None:
    """What squeue of 22.05 prints, with code 0, when slurmctld is gone."""
    answer = b"""{"meta": {"plugin": {"type": "openapi/v0.0.38"}}, "jobs": [],
        "errors": [{"description": "Failed while looking for jobs", "error_number": -1}]}"""
    with pytest.raises(PoolUnreachable, match="Failed while looking for jobs"):
        written_in(answer, SAID)


values = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=9)
    | st.lists(st.text(max_size=9), max_size=2)
)
KEYS = ["job_id", "name", "comment", "admin_comment", "excluded_nodes"]


@given(st.dictionaries(st.sampled_from(KEYS), values))
def test_values_of_any_type_are_a_job_or_no_answer(keys: dict[str, object]) -> None:
    """Never another error, and never a number below 1 or a text that is none."""
    try:
        ((number, found),) = written_in(document(**keys), SAID).items()
    except PoolUnreachable:
        return
    assert number > 0
    assert all(isinstance(text, str) for text in (*found.comments, found.name, found.comment, found.excluded))
