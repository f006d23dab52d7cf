"""Whether orders can be given on a cluster: the caller's rights, and nodes whose agents are silent."""

from __future__ import annotations

from dataclasses import replace

import pytest

from drainwise.facts.signs import SIGN_PERIOD
from drainwise.pilotad.report import PilotReport
from drainwise.pool.finding import MISSING, OK, Finding
from drainwise.siteconfig import SiteConfig
from drainwise.slurm.jobs.admin_comment import Published, comment_text
from drainwise.slurm.jobs.commands import settings_in
from drainwise.slurm.jobs.job import SlurmJob
from drainwise.slurm.jobs.node_sign import sign_text
from drainwise.slurm.jobs.values import RUNNING
from drainwise.slurm.setup.check import Caller, is_controller, judge, judge_orders
from drainwise.slurm.setup.check_facts import ClusterFacts, NodeFacts, nodes_in

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
    return {one.what: one for one in judge_orders(facts, caller)}


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


def silent(*running: SlurmJob, nodes: tuple[NodeFacts, ...] = ()) -> list[str]:
    """The nodes that are named as silent."""
    facts = replace(cluster(*running), nodes=nodes)
    return [one.value for one in judge(facts, SiteConfig(), AT) if one.what == "nodes' agents"]


def test_a_node_whose_jobs_are_silent_where_others_of_their_kind_report_is_named() -> None:
    """One that has just begun, and a kind of job that reports nowhere, say nothing of a node."""
    there = replace(JOB, node="n2")
    assert silent(reporting(JOB), reporting(there)) == []
    assert silent(reporting(JOB), there) == ["n2"]
    assert silent(reporting(JOB), reporting(there, 7200)) == ["n2"]
    assert silent(reporting(JOB), replace(there, start=AT - 100)) == []
    assert silent(reporting(JOB), replace(there, user="other")) == []
    assert silent(reporting(JOB), there, reporting(replace(there, number=9))) == []
    assert silent(JOB, there) == []


def test_a_node_without_signs_of_life_is_named_where_nodes_give_them() -> None:
    """One that is down, or asleep, gives none; nor do those of an earlier drainwise."""

    def node(name: str, age: int | None, state: str = "idle") -> NodeFacts:
        return NodeFacts(name, name, state, "" if age is None else sign_text(AT - age))

    sound, never, old = node("n1", 60), node("n2", None), node("n3", 3 * SIGN_PERIOD)
    assert silent(nodes=(sound, node("n4", 2 * SIGN_PERIOD))) == []
    assert silent(nodes=(sound, never, old)) == ["n2, n3"]
    assert silent(nodes=(never,)) == []
    assert silent(nodes=(old,)) == ["n3"]
    away = [node("n5", None, state) for state in ("down", "idle~", "mixed*", "future")]
    assert silent(nodes=(sound, *away)) == []
    assert silent(reporting(JOB), nodes=(sound, NodeFacts(JOB.node, JOB.node, "mixed", "rack=7"))) == []
    found = next(one for one in judge(replace(cluster(), nodes=(sound, never)), SiteConfig(), AT) if one.value == "n2")
    assert found.line.endswith("systemctl enable --now drainwise-node-agent   # on n2")


def test_nodes_are_read_as_sinfo_prints_them() -> None:
    """A node of several partitions has several lines."""
    text = (
        'w1|n1|idle|{"drainwise":1,"version":"0.1.0","at":17}|\nw1|n1|idle|{"drainwise":1,"version":"0.1.0","at":17}|\n'
    )
    assert nodes_in(text + "w2|n2|mixed*|(null)|\nhalf\n") == (
        NodeFacts("w1", "n1", "idle", '{"drainwise":1,"version":"0.1.0","at":17}'),
        NodeFacts("w2", "n2", "mixed*"),
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_the_controllers_are_known_by_their_names(version: str) -> None:
    """With and without a domain."""
    facts = ClusterFacts(settings_in(recorded(version, "config.txt").decode()), {}, (), ())
    assert is_controller(facts, "central") and is_controller(facts, "central.site.example")
    assert not is_controller(facts, "node1")
