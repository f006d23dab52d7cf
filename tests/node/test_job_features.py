"""Promises of the directories that every batch system's job gets."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from drainwise.features.facts import HostFacts, JobFacts
from drainwise.node import CONTAINER_PREFIXES
from drainwise.node.job_features import host_facts, job_facts, make_features
from drainwise.node.settings import NodeSettings

NOW = 1_795_249_000
HOST = HostFacts(total_cpu=64, hs06=640)
JOB = JobFacts(allocated_cpu=8, jobstart_secs=NOW, job_id="17", wall_limit_secs=3600)


def test_three_directories_and_nine_variables(tmp_path: Path) -> None:
    """Each directory is there, and named by its variable and by both containers' twins."""
    variables = make_features(str(tmp_path), HOST, JOB, None, NOW)
    names = {"MACHINEFEATURES": ".machinefeatures", "JOBFEATURES": ".jobfeatures", "JOBSTATUS": ".jobstatus"}
    assert variables == {
        prefix + name: f"{tmp_path}/{directory}" for prefix in CONTAINER_PREFIXES for name, directory in names.items()
    }
    assert all(Path(path).is_dir() for path in variables.values())
    assert (tmp_path / ".jobfeatures" / "allocated_cpu").read_text() == "8\n"
    assert not list((tmp_path / ".jobstatus").iterdir())


def test_a_planned_shutdown_is_told_from_the_start(tmp_path: Path) -> None:
    """The machine's planned shutdown stands in both shutdown files."""
    make_features(str(tmp_path), HOST, JOB, NOW + 900, NOW)
    for path in (".machinefeatures/shutdowntime", ".jobfeatures/shutdowntime_job"):
        assert (tmp_path / path).read_text() == f"{NOW + 900}\n"


def test_what_cannot_be_made_is_said_and_left_out(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A file in the place of one directory costs that directory and one line, not the others (HOSTILE 47)."""
    (tmp_path / ".jobfeatures").write_text("squatted")
    variables = make_features(str(tmp_path), HOST, JOB, None, NOW)
    assert set(variables) & {"MACHINEFEATURES", "JOBFEATURES", "JOBSTATUS"} == {"MACHINEFEATURES", "JOBSTATUS"}
    said = capfd.readouterr().err.splitlines()
    assert len(said) == 1
    assert ".jobfeatures" in said[0]
    assert (tmp_path / ".jobfeatures").read_text() == "squatted"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to give a directory away")
def test_jobstatus_is_given_to_the_jobs_user_alone(tmp_path: Path) -> None:
    """For a caller with root's rights: the other two directories stay root's."""
    variables = make_features(str(tmp_path), HOST, JOB, None, NOW, (54321, 54322))
    owners = {name: os.stat(path) for name, path in variables.items()}
    assert {(status.st_uid, status.st_gid) for name, status in owners.items() if "STATUS" in name} == {(54321, 54322)}
    assert {(status.st_uid, status.st_gid) for name, status in owners.items() if "FEATURES" in name} == {(0, 0)}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to become another user")
def test_a_jobstatus_that_cannot_be_given_away_is_left_out(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """HOSTILE 55: it would belong to the wrong user; one line says why it is missing."""
    os.chown(tmp_path, 54321, 54321)
    monkeypatch.chdir(tmp_path)  # above it only root may pass
    os.seteuid(54321)
    try:
        variables = make_features(".", HOST, JOB, None, NOW, (0, 0))
    finally:
        os.seteuid(0)
    assert set(variables) & {"MACHINEFEATURES", "JOBFEATURES", "JOBSTATUS"} == {"MACHINEFEATURES", "JOBFEATURES"}
    assert not (tmp_path / ".jobstatus").exists()
    assert "cannot be given to uid 0" in capfd.readouterr().err


def test_facts_of_host_and_job_are_those_of_the_caller_and_the_site() -> None:
    """A total that the job contradicts is left out; the site's limits come before what the caller found."""
    assert host_facts(NodeSettings({"hs06": "380.5"}), 64, 32, 0, 8) == HostFacts(
        total_cpu=64, jobslots=64, phys_cores=32, log_cores=0, hs06=380.5
    )
    assert host_facts(NodeSettings(), 4, 4, 0, 8) == HostFacts(phys_cores=4, log_cores=0)
    site = NodeSettings({"wall_limit_secs": "500", "scratch_limit_bytes": "9"})
    assert job_facts(site, "17", 8, NOW, (600, None), 1 << 30, (1 << 40,)) == JobFacts(
        allocated_cpu=8,
        jobstart_secs=NOW,
        job_id="17",
        wall_limit_secs=500,
        cpu_limit_secs=4000,
        max_rss_bytes=1 << 30,
        scratch_limit_bytes=9,
    )


@pytest.mark.parametrize(
    ("site", "disks", "limit"),
    [
        ({}, (1 << 40,), 1 << 40),
        ({"scratch_limit_bytes": "20000000000"}, (2_095_582 * 1024,), 2_095_582 * 1024),
        ({"scratch_limit_bytes": "20000000000"}, (1 << 40,), 20_000_000_000),
        ({"scratch_limit_bytes": "20000000000"}, (None, 1 << 40), 20_000_000_000),
        ({"scratch_limit_bytes": "20000000000"}, (1 << 30, 1 << 40), 1 << 30),
        ({}, (1 << 30, None, 1 << 40), 1 << 30),
        ({}, (None,), None),
    ],
)
def test_the_smallest_scratch_counts(site: dict[str, str], disks: tuple[int | None, ...], limit: int | None) -> None:
    """Draft row 1.4: what the site allows, what the job was given and the whole area; nobody is promised more."""
    assert job_facts(NodeSettings(site), "17", 8, NOW, (), None, disks).scratch_limit_bytes == limit
