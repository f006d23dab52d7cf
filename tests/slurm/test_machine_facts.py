"""What the jobs' comments tell a doctor of the nodes."""

from __future__ import annotations

from drainwise.doctor.facts import SeenNode
from drainwise.pilotad.report import FRESH, PilotReport
from drainwise.slurm.jobs.admin_comment import Published, comment_text
from drainwise.slurm.jobs.job import SlurmJob
from drainwise.slurm.setup.machine_facts import nodes_in, standings_in

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


def test_a_node_is_as_its_newest_report_and_one_without_tells_nothing() -> None:
    assert list(nodes_in(JOBS, NOW)) == [SeenNode("n1", "0.2.0", 30), SeenNode("n2", "", 60)]


def test_jobs_count_by_the_standing_of_their_report() -> None:
    assert standings_in(JOBS) == {"fresh": 3, "silent": 1}
