"""Whether orders can be given on a cluster: the caller's rights, and nodes whose agents are silent."""

from __future__ import annotations

from dataclasses import replace

import pytest

from drainwise.pilotad.report import PilotReport
from drainwise.pool.finding import MISSING, OK, Finding
from drainwise.siteconfig import SiteConfig
from drainwise.slurm.jobs.admin_comment import Published, comment_text
from drainwise.slurm.jobs.commands import settings_in
from drainwise.slurm.jobs.job import SlurmJob
from drainwise.slurm.jobs.values import RUNNING
from drainwise.slurm.setup.check import Caller, is_controller, judge_orders
from drainwise.slurm.setup.check_facts import ClusterFacts

from .recorded_cluster import NOW, VERSIONS, jobs, recorded

AT = NOW["22.05"]
ROOT = Caller(0, "root")
JOB = replace(
    next(job for job in jobs("22.05") if job.states == {RUNNING} and job.node_count == 1 and job.het is None),
    node="n1",
    start=AT - 1000,
    comments=(),
)


def cluster(*running: SlurmJob) -> ClusterFacts:
    return ClusterFacts(settings_in(recorded("22.05", "config.txt").decode()), {}, (), running)


def found(facts: ClusterFacts, caller: Caller = ROOT) -> dict[str, Finding]:
    return {one.what: one for one in judge_orders(facts, caller, SiteConfig(), AT)}


def reporting(job: SlurmJob, age: int = 60) -> SlurmJob:
    report = PilotReport(AT - age, used_cpu=1.0)
    return replace(job, comments=(comment_text(Published(job.number, AT - 1000, job.node, report)),))


@pytest.mark.parametrize(
    ("caller", "severity"),
    [
        (ROOT, OK),
        (Caller(64030, "slurm"), OK),
        (Caller(1001, "bob", "Operator"), OK),
        (Caller(1001, "bob", "Administrator"), OK),
        (Caller(1001, "bob", "None"), MISSING),
        (Caller(1001, "bob"), MISSING),
    ],
)
def test_who_may_not_shorten_a_job_is_told_so(caller: Caller, severity: str) -> None:
    assert found(cluster(), caller)["orders"].severity == severity


def test_a_node_whose_jobs_are_silent_where_others_of_their_kind_report_is_named() -> None:
    """One that has just begun, and a kind of job that reports nowhere, say nothing of a node."""
    there = replace(JOB, node="n2")
    assert "nodes' agents" not in found(cluster(reporting(JOB), reporting(there)))
    assert found(cluster(reporting(JOB), there))["nodes' agents"].value == "n2"
    assert found(cluster(reporting(JOB), reporting(there, 7200)))["nodes' agents"].value == "n2"
    assert "nodes' agents" not in found(cluster(reporting(JOB), replace(there, start=AT - 100)))
    assert "nodes' agents" not in found(cluster(reporting(JOB), replace(there, user="other")))
    assert "nodes' agents" not in found(cluster(reporting(JOB), there, reporting(replace(there, number=9))))
    assert "nodes' agents" not in found(cluster(JOB, there))


@pytest.mark.parametrize("version", VERSIONS)
def test_the_controllers_are_known_by_their_names(version: str) -> None:
    """With and without a domain."""
    facts = ClusterFacts(settings_in(recorded(version, "config.txt").decode()), {}, (), ())
    assert is_controller(facts, "central") and is_controller(facts, "central.site.example")
    assert not is_controller(facts, "node1")
