"""Jobs out of what real pyslurms knew, beside what squeue printed of the same moment; and out of what none should.

Recorded with pyslurm 22.5.3 and 24.11.0 on Slurm 22.05.8 and 24.11.5: `pyslurm.json` is the reader's second line,
`squeue.json` has of each job what is read of it. Four nodes, the last one draining. Running: a pilot that reports (1),
one asked to leave (2), one without time limit (3), an array of three (4) with task 0 at priority 1, jobs of several
nodes (5, 10 and 11). Being cancelled: 7. Requeued: 8, and 6, which is still being ended on 24.11. Suspended: 9. Ended:
13. 14 has an AdminComment that is no UTF-8. The others wait, each for another reason; 28 has a name that is no text.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.errors import PoolUnreachable
from drainwise.slurm.jobs.admin_comment import is_ours, published_in
from drainwise.slurm.jobs.job import SlurmJob
from drainwise.slurm.jobs.squeue_json import jobs_in
from drainwise.slurm.jobs.values import COMPLETING
from drainwise.slurm.pool.node_line import nodes_in
from drainwise.slurm.pool.shares import shares_in
from drainwise.slurm.pool.snapshot import snapshot_of
from drainwise.slurm.pool.transport import jobs_of_pyslurm

from .recorded_cluster import VERSIONS

FOLDER = Path(__file__).parent / "recorded" / "pyslurm"
NOW = {"22.05": 1795279802, "24.11": 1795279782}


def recorded(version: str, name: str) -> bytes:
    return (FOLDER / version / name).read_bytes()


def by_number(version: str) -> dict[int, SlurmJob]:
    return {job.number: job for job in jobs_of_pyslurm(recorded(version, "pyslurm.json"))}


def comparable(job: SlurmJob) -> SlurmJob:
    """Without what pyslurm cannot say: the second word of a state, and which bytes of a comment are no text."""
    states = frozenset({COMPLETING}) if COMPLETING in job.states else job.states
    return replace(job, states=states, comments=("\ufffd",) if "\ufffd" in job.admin_comment else job.comments)


@pytest.mark.parametrize("version", VERSIONS)
def test_pyslurm_says_of_every_job_what_squeue_says(version: str) -> None:
    """Cores, nodes, comments, deadlines, arrays, heterogeneous jobs, priorities, reasons. Squeue hides ended ones."""
    squeue = {job.number: comparable(job) for job in jobs_in(recorded(version, "squeue.json"))}
    found = {number: comparable(job) for number, job in by_number(version).items()}
    assert {number: found[number] for number in squeue} == squeue
    assert len(squeue) >= 27
    assert {next(iter(found[number].states)) for number in set(found) - set(squeue)} <= {"COMPLETED"}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_snapshot_is_the_same(version: str) -> None:
    nodes = nodes_in(recorded(version, "sinfo.txt").decode())
    shares = shares_in(recorded(version, "sshare.txt").decode())
    one, other = (
        snapshot_of(jobs, nodes, shares, NOW[version], 7200, (1,))
        for jobs in (jobs_in(recorded(version, "squeue.json")), list(by_number(version).values()))
    )
    assert {pilot.name: pilot for pilot in one.pilots} == {pilot.name: pilot for pilot in other.pilots}
    assert replace(one, pilots=()) == replace(other, pilots=())
    assert {pilot.name for pilot in other.pilots if pilot.deadline} == {"2"}
    assert {pilot.name for pilot in other.pilots if pilot.leaving} == {
        "4_0",
        "6",
        "7",
    }
    assert {pilot.name for pilot in other.pilots if pilot.report} == {"1"}


@pytest.mark.parametrize("version", VERSIONS)
def test_what_pyslurm_leaves_out_is_known_all_the_same(version: str) -> None:
    """Task 0 of an array has no number there; the tasks that may wait together stand apart from the tasks."""
    found = by_number(version)
    tasks = {job.label for job in found.values() if job.array == 4}
    assert tasks == {"4_0", "4_1", "4_2"}
    assert (found[17].label, found[17].tasks, found[17].at_once, found[19].tasks) == ("17", 20, 3, 3)
    assert (found[3].limit, found[2].limit) == (None, 11)
    assert found[19].reason == found[26].reason == "Resources"
    assert not is_ours(found[14].admin_comment)
    assert published_in(found[14].admin_comment) is None


def line(**keys: object) -> bytes:
    """One more job in the recorded line of 24.11, with other values."""
    first = json.loads(recorded("24.11", "pyslurm.json"))["jobs"][0]
    return json.dumps({"jobs": [{**first, **keys}]}).encode()


@pytest.mark.parametrize(
    ("state", "reason", "states"),
    [
        ("SIGNALING", "None", {"SIGNALING", "RUNNING"}),
        ("CONFIGURING", "None", {"CONFIGURING", "RUNNING"}),
        ("REQUEUE_HOLD", "job_requeued_in_held_state", {"REQUEUE_HOLD", "PENDING"}),
        ("RUNNING", None, {"RUNNING"}),
    ],
)
def test_a_flag_in_the_place_of_a_state_hides_no_cores(state: str, reason: str | None, states: set[str]) -> None:
    """Since 23.02 squeue has both words."""
    (job,) = jobs_of_pyslurm(line(state=state, state_reason=reason))
    assert (set(job.states), job.reason) == (states, reason or "None")


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"[]",
        b"{}",
        b'{"jobs": null}',
        b'{"jobs": [3]}',
        b'{"jobs": [{}]}',
        line(id=None),
        line(cpus="UNLIMITED"),
        line(state=None),
        b"[" * 100_000,
        b"\xff",
        recorded("24.11", "pyslurm.json")[:-10],
    ],
)
def test_an_incomplete_answer_is_none(answer: bytes) -> None:
    """HOSTILE 54."""
    with pytest.raises(PoolUnreachable, match="incomplete answer"):
        jobs_of_pyslurm(answer)


values = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.lists(st.none(), max_size=2)
FIELDS = sorted(json.loads(recorded("24.11", "pyslurm.json"))["jobs"][0])


@given(st.dictionaries(st.sampled_from(FIELDS), values))
def test_values_of_any_type_are_a_job_or_no_answer(keys: dict[str, object]) -> None:
    """Never another error, and never a number below 0 or a text that is none."""
    try:
        (job,) = jobs_of_pyslurm(line(**keys))
    except PoolUnreachable:
        return
    assert job.number > 0
    assert job.tasks >= 1
    assert isinstance(job.account, str)
    numbers = (job.cores, job.start, job.end, job.limit, job.priority, job.task, job.array)
    assert all(number is None or (type(number) is int and number >= 0) for number in numbers)
