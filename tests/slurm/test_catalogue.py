"""The catalogue of recorded answers is what its README says: whole, in both versions, of no particular machine."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from slurm_cluster.record import REPORT, SINCE_24_11, TEXTS, scrubbed

CATALOGUE = Path(__file__).parent / "recorded" / "catalogue"
VERSIONS = ("22.05", "24.11")
WAITING = (
    *("Resources", "Priority", "BeginTime", "Dependency", "DependencyNeverSatisfied", "JobHeldUser", "JobHeldAdmin"),
    *("PartitionTimeLimit", "PartitionDown", "AssocGrpCpuLimit", "QOSMaxJobsPerUserLimit", "Licenses", "Reservation"),
    "ReqNodeNotAvail",
)


def jobs(version: str) -> dict[str, dict[str, object]]:
    """The job that each name of jobs.json stands for, as `squeue --json` has it (24.11 leaves out those that ended)."""
    found = {job["job_id"]: job for job in json.loads((CATALOGUE / version / "squeue.json").read_text())["jobs"]}
    names = json.loads((CATALOGUE / version / "jobs.json").read_text())
    return {name: found[number] for name, number in names.items() if number in found}


@pytest.mark.parametrize("version", VERSIONS)
def test_every_answer_is_there(version: str) -> None:
    wanted = {*TEXTS, *(SINCE_24_11 if version == "24.11" else {}), "hooks.json", "jobs.json", "refusals.json"}
    wanted |= {"squeue-running-epoch.txt", "scontrol-show-job-epoch.txt", "scontrol-listpids.txt"}
    assert {path.name for path in (CATALOGUE / version).iterdir()} == wanted
    for path in (CATALOGUE / version).glob("*.json"):
        json.loads(path.read_text())


@pytest.mark.parametrize("version", VERSIONS)
def test_jobs_wait_for_the_reason_they_are_called_after(version: str) -> None:
    reasons = {name: str(jobs(version)[name]["state_reason"]).split(",")[0] for name in WAITING}
    assert reasons == {name: name for name in WAITING}


@pytest.mark.parametrize("version", VERSIONS)
def test_reports_outlive_a_requeue(version: str) -> None:
    """The run after a requeue shows its predecessor's report, and inherits its shortened time limit."""
    comments = {name: jobs(version)[name]["admin_comment"] for name in ("pilot", "requeued", "started again")}
    assert set(comments.values()) == {REPORT}
    limit = jobs(version)["requeued"]["time_limit"]
    minutes = limit["number"] if isinstance(limit, dict) else limit
    assert isinstance(minutes, int)
    assert minutes < 60


def test_nothing_tells_of_the_machine_that_recorded() -> None:
    machine = os.uname()
    text = f"Linux {machine.release} {machine.version} on {machine.nodename}, {machine.nodename}x"
    assert scrubbed(text) == f"Linux 6.1.0 #1 SMP on host, {machine.nodename}x"
    for version in VERSIONS:
        said = (CATALOGUE / version / "scontrol-show-node.txt").read_text()
        assert set(re.findall(r"OS=(.*?) RealMemory", said)) == {"Linux 6.1.0 #1 SMP "}
