"""Who sent a job of Slurm: its name and its comment by each way of asking, and the site's rules for them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from drainwise.pool.identity import IdentityRules, PilotIdentity, rule_of
from drainwise.slurm.jobs.job import SlurmJob
from drainwise.slurm.jobs.written import Written
from drainwise.slurm.pool.node_line import SlurmNode
from drainwise.slurm.pool.old_release import texts_in
from drainwise.slurm.pool.shares import shares_in
from drainwise.slurm.pool.snapshot import SiteRules, snapshot_of
from drainwise.slurm.pool.transport import Answers

from .recorded_cluster import recorded

RULES = IdentityRules(comment=rule_of("vo={vo} {} | vo={vo}"), job_name=rule_of("{ce_job}/{entry}"))
LINE = b"JobId=%d JobName=%b UserId=alice(1001) GroupId=x Network=(null) WorkDir=/home/alice%b StdErr=/o Power= \n"


NODE = SlurmNode("n", 24, 24, 0, draining=False, partitions=frozenset({"main"}), cpus=24)
TREE = shares_in("root|||0\n atlas||1|0\n  atlas|alice|1|0\n")


def sent(*jobs: SlurmJob, rules: IdentityRules = RULES) -> list[PilotIdentity | None]:
    """Who sent each of these jobs as they run."""
    runs = frozenset({"RUNNING"})
    running = [
        replace(job, account="atlas", cores=8, node="n", node_count=1, start=1795270000, states=runs) for job in jobs
    ]
    found = snapshot_of(Answers(running, [NODE], TREE), SiteRules(60, identity=rules), 1795270100)
    return [one.identity for one in found.pilots]


def test_the_rules_for_comment_and_name_complete_each_other() -> None:
    job = SlurmJob(7, comment="vo=atlas job=12 more", name="harvester/w1")
    assert sent(job) == [PilotIdentity(vo="atlas", ce_job="harvester")]
    assert sent(replace(job, comment="mine", name="mine")) == [None]
    assert sent(job, rules=IdentityRules()) == [None]


def test_each_pilot_has_its_own() -> None:
    jobs = [SlurmJob(7, array=6, task=1, comment="vo=a job=1"), SlurmJob(8, comment="vo=b job=2"), SlurmJob(9)]
    assert [one and one.vo for one in sent(*jobs)] == ["a", "b", None]


@pytest.mark.parametrize(
    ("name", "rest", "written"),
    [
        (b"a b", b"", ("a b", "")),
        (b"a", b" Comment=vo=atlas job=1 ", ("a", "vo=atlas job=1")),
        (b"a", b' Comment=x AdminComment={"drainwise":1} ', ("a", "x")),
        (b"a", b' AdminComment={"drainwise":1} Comment=x ', ("a", "x")),
        (b"a UserId=root(0)", b" Comment=y StdErr=/z", ("a", "y")),
        (b"\xff", b" Comment=\xff", ("\ufffd", "\ufffd")),
    ],
)
def test_scontrol_has_them(name: bytes, rest: bytes, written: tuple[str, str]) -> None:
    """Before 23.02. What a user spells in them reaches no further than they do."""
    (found,) = texts_in(LINE % (7, name, rest), {7})[0].values()
    assert (found.name, found.comment) == written


def test_a_forged_line_says_nothing_of_its_job() -> None:
    """A name with a line end in it prints a line for the job of another user."""
    forged = LINE % (7, b"a\nJobId=8 JobName=x UserId=bob(1) Comment=vo=cms job=1", b"") + LINE % (8, b"b", b"")
    assert texts_in(forged, {7, 8})[0] == {7: Written(name="a")}


def test_the_recorded_jobs_have_their_names() -> None:
    found, _ = texts_in(recorded("22.05", "scontrol.txt"), {1, 10, 12})
    assert found and all(one.name for one in found.values())
