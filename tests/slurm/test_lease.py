"""The lease: read from a prolog's environment, kept in a file that gives it back unchanged."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.errors import FeatureError, UsageError
from drainwise.slurm import LEASE
from drainwise.slurm.node.lease import SlurmLease, cores_on, cores_per_node, lease_of, read_lease, write_lease
from made_up_node import public_directory
from made_up_slurm_node import MadeUpJob

if TYPE_CHECKING:
    from drainwise.slurm.node.environment import Environment

NOW = 1_795_249_000


def environment(job: MadeUpJob, **more: str) -> Environment:
    """The variables of a job, as a process has them."""
    return {name.encode(): os.fsencode(value) for name, value in {**job.environment(), **more}.items()}


def test_since_24_11_slurm_says_start_and_end() -> None:
    """Both are taken over, to the second."""
    job = MadeUpJob(17, 1001, started=NOW - 2, ends=NOW + 598, restarts=3)
    assert lease_of(environment(job), NOW) == SlurmLease(
        job="17",
        uid=1001,
        gid=1001,
        restarts=3,
        cores=4,
        started=NOW - 2,
        start_known=True,
        ends=NOW + 598,
        work_dir=b"/home/alice",
    )


def test_before_24_11_the_prolog_itself_is_the_start() -> None:
    """The end is not known."""
    lease = lease_of(environment(MadeUpJob(17, 1001)), NOW)
    assert (lease.started, lease.start_known, lease.ends) == (NOW, False, None)


@pytest.mark.parametrize(("ends", "known"), [(NOW + 365 * 86400, False), (NOW + 365 * 86400 - 1, True), (NOW, False)])
def test_a_year_is_slurms_word_for_no_end(ends: int, known: bool) -> None:
    """A job without a time limit ends a year after its start."""
    lease = lease_of(environment(MadeUpJob(17, 1001, started=NOW, ends=ends)), NOW)
    assert lease.ends == (ends if known else None)


def test_the_name_of_the_list_of_nodes_that_newer_releases_have() -> None:
    """SLURM_JOB_NODELIST is as good as SLURM_NODELIST."""
    found = lease_of(environment(MadeUpJob(17, 1001, node_list=""), SLURM_JOB_NODELIST="node[2-4]"), NOW)
    assert found.cores == 4


@pytest.mark.parametrize("name", ["SLURM_JOB_ID", "SLURM_JOB_UID", "SLURM_JOB_GID", "SLURMD_NODENAME"])
@pytest.mark.parametrize("value", ["", "nobody;id"])
def test_without_job_or_user_there_is_no_lease(name: str, value: str) -> None:
    """HOSTILE 44: a directory of nobody's is not made."""
    with pytest.raises(UsageError, match=name):
        lease_of(environment(MadeUpJob(17, 1001), **{name: value}), NOW)


paths = st.binary(max_size=60).filter(lambda path: b"\0" not in path)
numbers = st.integers(0, 2**32)


@given(numbers, numbers, st.none() | numbers, st.none() | numbers, st.booleans(), paths)
def test_the_file_gives_back_what_was_written(
    uid: int, started: int, cores: int | None, ends: int | None, known: bool, work_dir: bytes
) -> None:
    """HOSTILE 15, 41: whatever bytes the working directory's name has."""
    lease = SlurmLease(
        job="17", uid=uid, gid=uid, started=started, cores=cores, ends=ends, start_known=known, work_dir=work_dir
    )
    with public_directory() as place:
        tree = os.open(place, os.O_RDONLY)
        try:
            write_lease(tree, lease)
            assert read_lease(tree) == lease
            with open(f"{place}/{LEASE}", "rb") as stream:
                content = stream.read()
        finally:
            os.close(tree)
    assert content.isascii()
    assert content.count(b"\n") == 7 + (cores is not None) + (ends is not None)
    assert content.replace(b"\n", b"").decode().isprintable()


def test_the_file_is_for_root_alone(tmp_path: Path) -> None:
    """Sites may hide the facts of a job from other users."""
    tree = os.open(tmp_path, os.O_RDONLY)
    write_lease(tree, SlurmLease(job="17", uid=1, gid=1, started=NOW))
    os.close(tree)
    assert os.stat(tmp_path / LEASE).st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", ["", "x", "job = 17\n", "job = x\nuid = 1\n", "\0" * 100])
def test_a_broken_file_is_none(tmp_path: Path, content: str) -> None:
    """HOSTILE 23, 24: an error that names it; no file at all is no lease."""
    tree = os.open(tmp_path, os.O_RDONLY)
    try:
        assert read_lease(tree) is None
        (tmp_path / LEASE).write_text(content)
        with pytest.raises(FeatureError, match="lease"):
            read_lease(tree)
    finally:
        os.close(tree)


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ({}, True),
        ({"ends": NOW + 7}, True),
        ({"restarts": 1}, False),
        ({"started": NOW + 1}, False),
        ({"uid": 2}, False),
        ({"job": "18"}, False),
        ({"start_known": False}, False),
    ],
)
def test_the_number_alone_does_not_make_a_run(other: dict[str, object], same: bool) -> None:
    """HOSTILE 48: job numbers come back; a requeued job is another run; in doubt it is another."""
    known = {"job": "17", "uid": 1, "gid": 1, "started": NOW, "restarts": 0, "start_known": True, "ends": NOW + 9}
    first, second = SlurmLease(**known), SlurmLease(**{**known, **other})  # type: ignore[arg-type]
    assert first.is_same_run(second) is same
    assert second.is_same_run(first) is same


@given(st.lists(st.tuples(st.integers(0, 4096), st.integers(1, 9)), min_size=1, max_size=6), st.data())
def test_each_node_has_the_cores_at_its_place(groups: list[tuple[int, int]], data: st.DataObject) -> None:
    """Whatever Slurm has put together as cores(xnodes)."""
    text = ",".join(f"{cores}(x{times})" if times > 1 else str(cores) for cores, times in groups)
    each = [cores for cores, times in groups for _ in range(times)]
    assert cores_per_node(text) == each
    place = data.draw(st.integers(0, len(each) - 1))
    node_list = f"n[1-{len(each)}]"
    assert cores_on(f"n{place + 1}", node_list, text) == (each[place] or None)


@pytest.mark.parametrize(
    ("node", "node_list", "cpus", "cores"),
    [
        ("n2", "n[1-3]", "4(x2),2", 4),
        ("n3", "n[1-3]", "4(x2),2", 2),
        ("gpu-07", "n[1-3],gpu-[06-07]", "8(x3),64,32", 32),
        ("n1", "n1", "16", 16),
        ("one.host.with-dots_", "one.host.with-dots_", "16", 16),
        ("n4", "n[1-3]", "4(x2),2", None),
        ("n1", "n[1-3]", "4(x2)", None),
        ("n1", "n[1-3]", "4(x4)", None),
        ("n1", "n1,n1", "4(x2)", None),
        ("n1", "n[1-3", "4(x3)", None),
        ("n1", "n1", "0", None),
        ("n1", "n1", "", None),
        ("n1", "", "4", None),
    ],
)
def test_in_doubt_the_cores_are_not_known(node: str, node_list: str, cpus: str, cores: int | None) -> None:
    """A node that is not in the list, or lists of different lengths: nothing is guessed."""
    assert cores_on(node, node_list, cpus) == cores


@pytest.mark.parametrize(
    "text", ["", "x", "4(2)", "4(x)", "4(x2", "4(x2)3", "4x2", "-4", "4,", "4(x99999999)", "4 ", "٤"]
)
def test_what_is_no_list_of_cores_is_refused(text: str) -> None:
    """HOSTILE 36: signs, other digits, numbers without end."""
    with pytest.raises(ValueError, match=r"not|too many"):
        cores_per_node(text)
