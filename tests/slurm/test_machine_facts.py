"""What the jobs' comments tell a doctor of the nodes."""

from __future__ import annotations

from drainwise import __version__
from drainwise.doctor.facts import SeenNode
from drainwise.pilotad.report import FRESH, PilotReport
from drainwise.slurm.jobs.admin_comment import Published, comment_text
from drainwise.slurm.jobs.job import SlurmJob
from drainwise.slurm.jobs.node_sign import sign_text
from drainwise.slurm.setup.check_facts import ClusterFacts, NodeFacts
from drainwise.slurm.setup.machine_facts import seen_nodes, standings_in

NOW = 1_795_250_000


def job(number: int, node: str, comment: str) -> SlurmJob:
    return SlurmJob(
        number=number,
        user="alice",
        account="atlas",
        partitions=("main",),
        states=frozenset({"RUNNING"}),
        reason="None",
        cores=8,
        node_count=1,
        node=node,
        start=NOW - 5000,
        end=NOW + 5000,
        limit=1440,
        priority=100,
        comments=(comment,),
    )


def reporting(number: int, node: str, age: int, version: str) -> SlurmJob:
    report = PilotReport(NOW - age, used_cpu=3.0)
    return job(number, node, comment_text(Published(number, NOW - 5000, node, report, FRESH, version=version)))


JOBS = [reporting(1, "n1", 900, "0.1.0"), reporting(2, "n1", 30, "0.2.0"), reporting(3, "n2", 60, ""), job(4, "n3", "")]


def test_a_node_is_as_its_newest_sign_and_one_that_gave_none_never_published() -> None:
    """A sign is a report of a job's there, or what stands in the node's Extra."""
    sign = sign_text(NOW - 7)
    nodes = (NodeFacts("w1", "n1"), NodeFacts("w2.site", "n2", "idle", sign), NodeFacts("w3", "n3", "idle", "rack=7"))
    facts = ClusterFacts({}, {}, (), tuple(JOBS), nodes=nodes)
    second = SeenNode("n2", __version__, 7)
    assert list(seen_nodes(facts, None, NOW)) == [SeenNode("n1", "0.2.0", 30), second, SeenNode("n3")]
    assert list(seen_nodes(facts, "w2", NOW)) == [second]


def test_jobs_count_by_the_standing_of_their_report() -> None:
    assert standings_in(JOBS) == {"fresh": 3, "silent": 1}
