"""What a job may know, from its lease and the site's settings."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from drainwise.node.settings import NodeSettings
from drainwise.slurm.node.facts import RECORD, NodeRecord, host_side, job_side, read_record, write_record
from drainwise.slurm.node.lease import SlurmLease

NOW = 1_795_249_000


def lease(cores: int | None = 8, ends: int | None = None) -> SlurmLease:
    return SlurmLease(job="17", uid=1, gid=1, started=NOW, cores=cores, ends=ends)


@pytest.mark.parametrize(
    ("record", "cores", "total"),
    [
        (NodeRecord(60, 32, 64), 8, 60),
        (NodeRecord(None, 32, 64), 8, 64),
        (NodeRecord(None, 32, 0), 8, 32),
        (NodeRecord(None, 4, 0), 8, None),
        (NodeRecord(4, 32, 64), 8, None),
        (NodeRecord(None, 4, 0), None, 4),
        (NodeRecord(), 8, None),
    ],
)
def test_the_cpus_that_slurm_may_allocate(record: NodeRecord, cores: int | None, total: int | None) -> None:
    """Slurm's own count, else the kernel's; one that the job itself disproves is left out."""
    host = host_side(record, NodeSettings(), cores)
    assert (host.total_cpu, host.jobslots) == (total, total)
    assert (host.phys_cores, host.log_cores) == (record.phys_cores, record.log_cores)


def test_job_slots_are_no_cpus() -> None:
    """What the site says of slots does not change the count of CPUs."""
    host = host_side(NodeRecord(64, 32, 64), NodeSettings({"jobslots": "8"}), 8)
    assert (host.total_cpu, host.jobslots) == (64, 8)


@pytest.mark.parametrize(
    ("ends", "site", "wall"),
    [
        (NOW + 600, {}, 600),
        (NOW + 600, {"wall_limit_secs": "500"}, 500),
        (NOW + 600, {"wall_limit_secs": "700"}, 600),
        (None, {"wall_limit_secs": "700"}, 700),
        (None, {}, None),
        (NOW - 1, {}, None),
    ],
)
def test_the_tighter_limit_counts(ends: int | None, site: dict[str, str], wall: int | None) -> None:
    """The job's own and the site's; all its cores may compute for so long."""
    job = job_side(lease(ends=ends), NodeRecord(), NodeSettings(site))
    assert (job.wall_limit_secs, job.cpu_limit_secs) == (wall, wall and wall * 8)


def test_what_is_not_known_is_left_out() -> None:
    """Neither cores nor memory are guessed."""
    job = job_side(lease(cores=None, ends=NOW + 600), NodeRecord(), NodeSettings({"cpu_limit_secs_per_core": "9"}))
    assert (job.allocated_cpu, job.cpu_limit_secs, job.max_rss_bytes) == (None, None, None)
    assert job_side(lease(), NodeRecord(), NodeSettings(), 16 << 30).max_rss_bytes == 16 << 30


def test_scratch_is_the_whole_area_the_request_or_the_sites_limit() -> None:
    """Draft row 1.4: the whole area where there is no limit; `--tmp` and the site's limit only narrow it."""
    free, narrow = NodeSettings(), NodeSettings({"scratch_limit_bytes": "5000"})
    here, unknown = NodeRecord(scratch_bytes=1 << 30), NodeRecord()
    assert job_side(lease(), here, free).scratch_limit_bytes == 1 << 30
    assert job_side(lease(), here, free, None, 1 << 20).scratch_limit_bytes == 1 << 20
    assert job_side(lease(), here, narrow, None, 1 << 20).scratch_limit_bytes == 5000
    assert job_side(lease(), here, free, None, 1 << 31).scratch_limit_bytes == 1 << 30
    assert job_side(lease(), unknown, free).scratch_limit_bytes is None
    assert job_side(lease(), unknown, free, None, 4096).scratch_limit_bytes == 4096


# ---- what the agent records of its node for the prologs ----


@pytest.mark.parametrize(
    "record", [NodeRecord(60, 32, 64, 1 << 50, ("fast", "rack1")), NodeRecord(60), NodeRecord(None, 2, 0), NodeRecord()]
)
def test_what_is_written_is_read(tmp_path: Path, record: NodeRecord) -> None:
    """Also a second time, over the first."""
    node = os.open(tmp_path, os.O_RDONLY)
    try:
        write_record(node, NodeRecord(1, 1, 1))
        write_record(node, record)
        assert read_record(node) == record
    finally:
        os.close(node)


@pytest.mark.parametrize(
    "content", [b"", b"\0\xff", b"total_cpu = x\n", b"total_cpu = -4\nphys_cores = 1e9\n", b"=" * 9999]
)
def test_a_broken_record_says_nothing(tmp_path: Path, content: bytes) -> None:
    """A prolog goes on with what it can count itself."""
    (tmp_path / RECORD).write_bytes(content)
    node = os.open(tmp_path, os.O_RDONLY)
    try:
        assert read_record(node) == NodeRecord()
    finally:
        os.close(node)


def test_no_record(tmp_path: Path) -> None:
    """Before the agent's first round."""
    node = os.open(tmp_path, os.O_RDONLY)
    try:
        assert read_record(node) == NodeRecord()
    finally:
        os.close(node)
