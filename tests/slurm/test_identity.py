"""Who sent a job of Slurm: its name and its comment by each way of asking, and the site's rules for them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from drainwise.pool.facts import Pilot, Snapshot
from drainwise.pool.identity import IdentityRules, PilotIdentity, rule_of
from drainwise.slurm.jobs.job import MOST_TEXT, SlurmJob
from drainwise.slurm.jobs.squeue_json import jobs_in
from drainwise.slurm.pool.identity import identity_in, with_identities
from drainwise.slurm.pool.old_release import details_in
from drainwise.slurm.pool.transport import jobs_of_pyslurm

from .recorded_cluster import VERSIONS, recorded

RULES = IdentityRules(comment=rule_of("vo={vo} {} | vo={vo}"), job_name=rule_of("{ce_job}/{entry}"))
LINE = b"JobId=%d JobName=%b UserId=alice(1001) GroupId=x Network=(null) WorkDir=/home/alice%b StdErr=/o Power= \n"


def test_the_rules_for_comment_and_name_complete_each_other() -> None:
    job = SlurmJob(7, comment="vo=atlas job=12 more", name="harvester/w1")
    assert identity_in(job, RULES) == PilotIdentity(vo="atlas", ce_job="harvester")
    assert identity_in(replace(job, comment="mine", name="mine"), RULES) is None
    assert identity_in(job, IdentityRules()) is None


def test_each_pilot_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the name that a pilot and its job share; without rules nothing is looked at."""
    jobs = [SlurmJob(7, array=6, task=1, comment="vo=a job=1"), SlurmJob(8, comment="vo=b job=2"), SlurmJob(9)]
    pilots = tuple(Pilot(f"{name}@1", name, "n", "x", "alice", 8, 1) for name in ("6_1", "8", "9"))
    seen = with_identities(Snapshot(1, pilots, ()), jobs, RULES)
    assert [one.identity and one.identity.vo for one in seen.pilots] == ["a", "b", None]
    monkeypatch.setattr(SlurmJob, "label", None)
    assert with_identities(Snapshot(1, pilots, ()), jobs, IdentityRules()).pilots == pilots


@pytest.mark.parametrize("version", VERSIONS)
def test_squeue_json_has_them(version: str) -> None:
    document = json.loads(recorded(version, "squeue.json").decode("utf-8", "replace"))
    document["jobs"] = [{**document["jobs"][0], "name": "n" * 9999, "comment": "vo=atlas"}]
    [job] = jobs_in(json.dumps(document).encode())
    assert (job.name, job.comment) == ("n" * MOST_TEXT, "vo=atlas")
    document["jobs"][0].update(name=None, comment={"job": "x"})
    [job] = jobs_in(json.dumps(document).encode())
    assert (job.name, job.comment) == ("", "")


def test_pyslurm_has_them() -> None:
    record = {"id": 7, "cpus": 1, "state": "RUNNING", "name": "n", "comment": "vo=atlas"}
    [job] = jobs_of_pyslurm(json.dumps({"jobs": [record]}).encode())
    assert (job.name, job.comment) == ("n", "vo=atlas")


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
    assert details_in(LINE % (7, name, rest), {7}).written == {7: written}


def test_a_forged_line_says_nothing_of_its_job() -> None:
    """A name with a line end in it prints a line for the job of another user."""
    forged = LINE % (7, b"a\nJobId=8 JobName=x UserId=bob(1) Comment=vo=cms job=1", b"") + LINE % (8, b"b", b"")
    assert details_in(forged, {7, 8}).written == {7: ("a", "")}


def test_the_recorded_jobs_have_their_names() -> None:
    found = details_in(recorded("22.05", "scontrol.txt"), {1, 10, 12}).written
    assert found and all(name for name, _ in found.values())
