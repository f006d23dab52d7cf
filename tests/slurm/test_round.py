"""Whole rounds of the agent: real trees, real users, real processes; slurmctld's words are recorded ones."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import drainwise
from drainwise.facts.errors import PoolUnreachable
from drainwise.features import planned_shutdown
from drainwise.features.host import scratch_bytes
from drainwise.slurm.jobs.admin_comment import lacks_directories
from drainwise.slurm.jobs.node_sign import sign_in
from drainwise.slurm.node.lease import SlurmLease, write_lease
from drainwise.slurm.node_agent.round import OTHERS_EXTRA, RECORD_PERIOD
from made_up_node import public_directory

from .agent_host import ALICE, BOB, NODE, AgentHost, as_user

pytestmark = [
    pytest.mark.daemons,  # rounds of a real agent take their time
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: the agent becomes each job's user"),
]


both_releases = pytest.mark.parametrize("host", ["22.05", "24.11"], indirect=True)


@pytest.fixture
def host(request: pytest.FixtureRequest) -> Iterator[AgentHost]:
    """An empty host; slurmctld speaks as in the release that a test asks for."""
    with public_directory() as base:
        yield AgentHost(base, getattr(request, "param", "24.11"))


# ---- limits ----


@both_releases
def test_a_new_jobs_limits_are_complete_at_the_first_call(host: AgentHost) -> None:
    """Memory, length and the node's CPUs come from slurmctld, in one question; the tasks need not wait any more."""
    os.makedirs(host.runtime)
    resources = "cpu=8,mem=1500M,node=1"
    host.start(17, MinMemoryNode="1500M", MinTmpDiskNode="16M", TRES=resources, AllocTRES=resources)
    assert host.features(17)["scratch_limit_bytes"] == str(scratch_bytes("/tmp")), "the whole area until more is known"
    assert host.agent.greet(host.now)
    features = host.features(17)
    assert features["max_rss_bytes"] == str(1500 << 20)
    assert features["scratch_limit_bytes"] == str(16 << 20), "what --tmp asked for"
    assert features["wall_limit_secs"] == "3600"
    assert features["jobstart_secs"] == str(host.now - 100)
    assert features["total_cpu"] == "64"
    assert (host.tree(17) / "complete").exists()
    assert len(host.slurm.calls()) == 1
    assert not host.agent.greet(host.now), "nothing is new"
    assert len(host.slurm.calls()) == 1


def test_a_call_asks_for_new_jobs_only(host: AgentHost) -> None:
    """What is known already waits for its round."""
    host.start(17)
    host.round()
    host.start(18)
    host.agent.greet(host.now)
    assert [line for line in host.slurm.calls()[-1] if "show job" in line] == ["show job 18"]


def test_the_nodes_record_is_written_once_an_hour(host: AgentHost) -> None:
    """For the prologs to come: slurmctld's count of CPUs, and the kernel's of cores."""
    host.start(17)
    host.round()
    record = host.tree(17).parent / ".node"
    record.unlink()
    host.agent.round(host.now + 30)
    assert not record.exists()
    host.agent.round(host.now + RECORD_PERIOD)
    assert "total_cpu = 64\n" in (host.tree(17).parent / ".node").read_text()


def test_an_idle_host_asks_nothing(host: AgentHost) -> None:
    """Slurmctld hears nothing of a host without jobs."""
    assert not host.round()
    assert host.slurm.calls() == []


def test_a_node_gives_a_sign_of_life_each_hour(host: AgentHost) -> None:
    """One that runs no jobs, too; after a restart of the agent at once."""
    host.restart(NODE)
    assert host.round() and not host.round()
    assert sign_in(host.slurm.extra()) == (host.now, drainwise.__version__)
    host.start(17)
    host.round()  # its record is due, and so is a sign
    later = host.now + RECORD_PERIOD
    host.agent.round(later - 1)
    assert len(host.slurm.calls(signs=True)) == 2
    host.agent.round(later)
    assert sign_in(host.slurm.extra()) == (later, drainwise.__version__)
    host.restart(NODE)
    host.agent.round(later + 7)
    assert sign_in(host.slurm.extra()) == (later + 7, drainwise.__version__)


def test_another_ones_extra_is_left_alone(host: AgentHost) -> None:
    host.slurm.extra("rack=7")
    host.start(17)
    host.round()
    assert (host.slurm.extra(), host.slurm.calls(signs=True)) == ("rack=7", [])
    assert host.said == [f"Extra of node1: {OTHERS_EXTRA}"]


# ---- publishing ----


@both_releases
def test_a_report_is_published_once(host: AgentHost) -> None:
    """One run of scontrol sets all that changed; what stands there already is not set again, by a new agent neither."""
    for number in (17, 18, 19):
        host.start(number)
        if number != 19:
            host.report(number)
    host.round()
    published = host.published(17)
    assert published is not None
    assert (published.job, published.start, published.node) == (17, host.now - 100, NODE)
    assert (published.report.used_cpu, published.standing) == (6.0, "fresh")
    assert host.published(19) is None
    assert [len(call) for call in host.slurm.calls()] == [9, 2], (
        "four marks, three jobs, a node and its mark; two updates"
    )
    host.round()
    host.restart()
    host.round()
    assert len([call for call in host.slurm.calls() if "update" in call[0]]) == 1
    host.report(18, used=3)
    host.round()
    assert [line.split(" ")[1] for line in host.slurm.calls()[-1]] == ["JobId=18"]
    assert host.said == []


def asked_in(host: AgentHost, rounds: int) -> list[list[str]]:
    """What each of so many rounds asked for: jobs by their numbers."""
    found = []
    for _ in range(rounds):
        before = len(host.slurm.calls())
        host.round()
        lines = [line for call in host.slurm.calls()[before:] for line in call]
        found.append(sorted(line.split()[-1] for line in lines if line.startswith(("show job", "show node"))))
    return found


def test_a_round_asks_for_one_job_and_now_and_then_for_another(host: AgentHost) -> None:
    """However many jobs there are, and whether they report or not; each has its turn."""
    for number in (17, 18, 19):
        host.start(number)
    host.report(18)
    host.round()
    rounds = asked_in(host, 9)
    assert [asked[0] for asked in rounds] == ["17"] * 9, "the first one carries the mark"
    assert [len(asked) for asked in rounds] == [1, 2, 1, 1, 2, 1, 1, 2, 1]
    assert {job for asked in rounds for job in asked} == {"17", "18", "19"}


def test_the_mark_is_found_where_its_carrier_has_ended_or_cannot_carry_it(host: AgentHost) -> None:
    """The next job carries it: in the round in which the first one has gone, or has somebody else's comment."""
    for number in (17, 18, 19, 20):
        host.start(number)
    text = Path(host.slurm.bin_dir, "jobs", "17")
    text.write_text(text.read_text().replace(" StdErr=", " AdminComment=see  StdErr=", 1))
    host.round()
    host.slurm.end(18)
    host.slurm.set(20, EndTime=host.now + 601, TimeLimit="00:12:00")
    assert '"orders":"20:' in host.slurm.comment(19)
    host.round()
    assert "True" in host.site_ad(20)


def test_who_spells_a_comment_in_its_name_hides_no_mark(host: AgentHost) -> None:
    """HOSTILE 43: the first job of the node, with a mark of its own making in its name."""
    for number in (17, 18, 19):
        host.start(number)
    text = Path(host.slurm.bin_dir, "jobs", "17")
    forged = ' JobName=x AdminComment={"drainwise":1,"orders":"19:1"}  UserId='
    text.write_text(re.sub(r" JobName=.*? UserId=", lambda _: forged, text.read_text(), count=1))
    host.round()
    mark = Path(host.slurm.bin_dir, "jobs", "18")
    host.slurm.set(19, TimeLimit="00:12:00")
    late = Path(host.slurm.bin_dir, "jobs", "19")
    late.write_text(re.sub(r" EndTime=\S+", f" EndTime={host.now + 601}", late.read_text()))
    orders = f' AdminComment={{"drainwise":1,"orders":"19:{host.now + 601}"}}  StdErr='
    mark.write_text(mark.read_text().replace(" StdErr=", orders, 1))
    text.write_text(text.read_text().replace(" StdErr=", orders, 1))  # the first try of whoever gave the order
    host.round()
    assert "True" in host.site_ad(19)


def test_a_carrier_keeps_the_mark_when_its_own_report_changes(host: AgentHost) -> None:
    """And the mark makes no report news."""
    for number in (17, 18):
        host.start(number)
    host.report(17)
    host.round()
    host.slurm.set(18, EndTime=host.now + 601, TimeLimit="00:12:00")
    before = len([call for call in host.slurm.calls() if "update" in call[0]])
    host.round()
    assert len([call for call in host.slurm.calls() if "update" in call[0]]) == before
    host.report(17, used=3)
    host.round()
    published = host.published(17)
    assert published is not None and published.report.used_cpu == 3
    assert f'"orders":"18:{host.now + 601}"' in host.slurm.comment(17)


def test_an_order_is_told_in_the_next_round_to_whoever_reports_nothing(host: AgentHost) -> None:
    """The mark on the node names the job, and no other one is asked for."""
    for number in (17, 18, 19):
        host.start(number)
    host.round()
    host.slurm.set(18, EndTime=host.now + 601, TimeLimit="00:12:00")
    assert asked_in(host, 1) == [["17", "18"]]
    assert f"PAYLOAD_DEADLINE = {host.now + 601}\n" in host.site_ad(18)
    host.slurm.set(19, EndTime=host.now + 602, TimeLimit="00:12:00")
    host.slurm.set(18, EndTime=host.now + 3500, TimeLimit="01:00:00")
    host.round()
    assert host.site_ad(18) == ""
    assert f"PAYLOAD_DEADLINE = {host.now + 602}\n" in host.site_ad(19)


def test_a_lease_that_was_changed_without_a_mark_is_found(host: AgentHost) -> None:
    """By an administrator, say: when the job has its turn."""
    for number in (17, 18, 19):
        host.start(number)
    host.round()
    text = Path(host.slurm.bin_dir, "jobs", "18")
    text.write_text(re.sub(r" EndTime=\S+", f" EndTime={host.now + 601}", text.read_text()))
    for _ in range(9):
        host.round()
    assert f"PAYLOAD_DEADLINE = {host.now + 601}\n" in host.site_ad(18)


def test_where_no_job_can_carry_a_mark_all_are_asked_for(host: AgentHost) -> None:
    """As before there were marks: pilots in each round, others each fourth; said once."""
    for number in (17, 18):
        host.start(number)
        text = Path(host.slurm.bin_dir, "jobs", str(number))
        text.write_text(text.read_text().replace(" StdErr=", " AdminComment=see  StdErr=", 1))
    host.round()
    host.said.clear()
    host.slurm.set(17, EndTime=host.now + 601, TimeLimit="00:12:00")
    rounds = asked_in(host, 8)
    assert sum(len(asked) for asked in rounds) >= 4
    assert "True" in host.site_ad(17)
    host.said.clear()
    host.round()
    assert host.said == []


def test_a_job_that_does_not_run_yet_is_asked_for_until_it_does(host: AgentHost) -> None:
    """A node that is being configured: its end is computed anew then."""
    host.start(17, JobState="CONFIGURING")
    host.report(17)
    for _ in range(2):
        host.round()
    assert host.published(17) is None
    host.slurm.set(17, JobState="RUNNING")
    host.round()
    assert host.published(17) is not None


def test_a_heartbeat_alone_is_published_seldom(host: AgentHost) -> None:
    """A pilot that writes the same every minute; before the published one is too old the next one comes."""
    host.start(17)
    for minute in range(0, 61, 5):
        host.now += 300 if minute else 0
        host.report(17)
        for name in os.listdir(host.status(17)):
            os.utime(f"{host.status(17)}/{name}", (host.now, host.now))
        host.round()
        published = host.published(17)
        assert published is not None and host.now - published.report.heartbeat < host.settings.heartbeat_limit / 2
    # The times of its payloads are new each time, so each is news; the same values are not.
    before = len([call for call in host.slurm.calls() if "update" in call[0]])
    for _ in range(5):
        host.now += 60
        for name in os.listdir(host.status(17)):
            os.utime(f"{host.status(17)}/{name}", (host.now, host.now))
        host.round()
    assert len([call for call in host.slurm.calls() if "update" in call[0]]) == before


def test_a_run_without_a_tree_is_published_as_such(host: AgentHost) -> None:
    """It ran before the installation, or its prolog failed: it cannot be told. Those with a tree can, silent or not."""
    host.start(17)
    host.start(18)
    host.slurm.job(20, ALICE, host.now - 500, host.now + 3500, {"NodeList": NODE})
    host.slurm.job(21, ALICE, host.now - 500, host.now + 3500, {"NodeList": NODE}, comment="see ticket")
    lines = ["PID      JOBID    STEPID   LOCALID GLOBALID"]
    lines += [f"{pid:<8} {job:<8} batch    0       0" for pid, job in ((91, 17), (-1, 18), (92, 20), (93, 21))]
    Path(host.slurm.bin_dir, "pids").write_text("\n".join(lines))
    for _ in range(45):
        host.round()
    assert lacks_directories(host.slurm.comment(20), 20, host.now - 500)
    assert host.slurm.comment(17) == host.slurm.comment(18) == ""
    assert host.slurm.comment(21) == "see"
    updates = [line for call in host.slurm.calls() for line in call if line.startswith("update")]
    assert len(updates) == 1
    assert len(host.said) == 1 and host.said[0].startswith("job 21: ")


def test_a_comment_that_somebody_set_meanwhile_is_seen_first(host: AgentHost) -> None:
    """A job that reports late is not published on an old answer."""
    host.start(17)
    for _ in range(4):
        host.round()
    text = Path(host.slurm.bin_dir, "jobs", "17")
    text.write_text(text.read_text().replace(" StdErr=", " AdminComment=note  StdErr=", 1))
    host.report(17)
    for _ in range(2):
        host.round()
    assert host.slurm.comment(17) == "note"


def test_a_lost_update_is_made_good(host: AgentHost) -> None:
    """What slurmctld has counts, not what was sent: it may have been restarted from an older state."""
    host.start(17)
    host.report(17)
    host.round()
    host.slurm.job(17, ALICE, host.now - 100, host.now + 3500, {})
    for _ in range(3):
        host.round()
    assert host.published(17) is not None


@both_releases
def test_somebody_elses_comment_stays(host: AgentHost) -> None:
    """An administrator's note is not overwritten, said once; the neighbour is published."""
    for number in (17, 18):
        host.start(number)
        host.report(number)
    text = Path(host.slurm.bin_dir, "jobs", "17")
    text.write_text(text.read_text().replace(" StdErr=", " AdminComment=see ticket 4711  StdErr=", 1))
    for _ in range(9):
        host.round()
    assert host.slurm.comment(17) == "see"
    assert host.published(18) is not None
    assert len(host.said) == 1 and host.said[0].startswith("job 17: its AdminComment is somebody else's")


@pytest.mark.parametrize(
    "facts",
    [
        {"NumNodes": 2, "NodeList": "node[0-1]"},
        {"NumNodes": 2, "NodeList": "node[1"},
        {"HetJobId": 17, "HetJobOffset": 0},
        {"JobState": "COMPLETING"},
        {"JobState": "PENDING"},
    ],
)
def test_what_cannot_stand_for_a_run_is_not_published(host: AgentHost, facts: dict[str, str | int]) -> None:
    """A node that is not the first of several, a heterogeneous job, a job that is ending or waits again."""
    host.start(17)
    for name in ("17", "17+0"):
        host.slurm.job(17, ALICE, host.now - 100, host.now + 3500, facts, name)
    host.report(17)
    host.round()
    assert host.slurm.comment(17) == ""


def test_of_several_nodes_the_first_one_speaks_for_all(host: AgentHost) -> None:
    """Its report is about all cores of the run, not about those that the run has on this node."""
    host.start(17, NumNodes=2, NodeList="node[1-2]", NumCPUs=16)
    host.report(17, used=12.0)
    host.round()
    published = host.published(17)
    assert published is not None and (published.node, published.standing) == ("node1", "fresh")
    assert published.report.used_cpu == 12.0


def test_a_task_of_an_array_is_named_as_such(host: AgentHost) -> None:
    """The number of an array's last task is the array's own: by it all tasks would get the comment."""
    host.start(17, ArrayJobId=17, ArrayTaskId=3)
    one = Path(host.slurm.bin_dir, "jobs", "17")
    Path(host.slurm.bin_dir, "jobs", "17_3").write_text(one.read_text())
    one.write_text(one.read_text() + one.read_text().replace("JobId=17", "JobId=16", 1).replace("Id=3", "Id=2", 1))
    host.report(17)
    host.round()
    assert host.published("17_3") is not None
    assert host.slurm.comment(17) == ""
    assert asked_in(host, 3) == [["17_3"]] * 3


@pytest.mark.parametrize("change", [{"UserId": f"bob({BOB})"}, {"Restarts": 1}])
def test_a_tree_of_another_run_is_left_alone(host: AgentHost, change: dict[str, object]) -> None:
    """HOSTILE 48: a number that came back, a tree that its epilog has not removed yet."""
    host.start(17, TimeLimit="00:10:00")
    host.report(17)
    host.slurm.set(17, **change)
    host.round()
    assert host.slurm.comment(17) == ""
    assert "wall_limit_secs" not in host.features(17)


def test_a_new_tree_that_got_the_inode_of_the_old_one_is_a_new_run(host: AgentHost) -> None:
    """HOSTILE 48: file systems give the number of a removed directory to the next one."""
    host.start(17)
    host.round()
    tree = os.open(host.tree(17), os.O_RDONLY)
    for name in ("lease", "granted", "complete"):
        os.unlink(name, dir_fd=tree)
    write_lease(tree, SlurmLease(job="17", uid=ALICE, gid=ALICE, started=host.now, restarts=1, cores=4))
    os.close(tree)
    host.slurm.set(17, Restarts=1, TimeLimit="00:10:00", EndTime=host.now + 500)
    host.report(17)
    host.round()
    assert host.published(17) is not None
    assert host.features(17)["allocated_cpu"] == "4"
    assert host.site_ad(17) == ""


def test_a_report_that_has_gone_stays_published(host: AgentHost) -> None:
    """Its heartbeat ages; accounting keeps the last word."""
    host.start(17)
    host.report(17)
    host.round()
    before = host.slurm.comment(17)
    for name in os.listdir(host.status(17)):
        os.unlink(f"{host.status(17)}/{name}")
    host.round()
    assert host.slurm.comment(17) == before != ""


def test_an_old_report_is_published_as_stale(host: AgentHost) -> None:
    """One more update, when its time and the slack are over, and none after that."""
    host.start(17)
    host.report(17)
    for later in (0, 3500, 4300, 4400):
        host.agent.round(host.now + later)
    published = host.published(17)
    assert published is not None and published.standing == "stale"
    assert len([call for call in host.slurm.calls() if "update" in call[0]]) == 2


def test_no_right_to_publish_is_said_once(host: AgentHost) -> None:
    """And everything else goes on."""
    host.start(17)
    host.report(17)
    host.slurm.mode("refuse")
    host.round()
    host.round()
    assert len(host.said) == 2 and all("denied" in one for one in host.said)  # of the node's sign, and of reports
    host.slurm.mode("refuse", on=False)
    host.round()
    assert host.published(17) is not None
    assert host.said[2:] == ["publishing: all right again"]


# ---- the shared WorkDir ----


def ad_in(directory: str, uid: int, used: int, when: int) -> None:
    """A `.pilot.ad` of a user's."""
    os.makedirs(directory, exist_ok=True)
    os.chown(directory, uid, uid)

    def write() -> None:
        Path(directory, ".pilot.ad").write_text(f"USED_FRACTION1k = {used}\nLAST_EXP_JOB_END = {when + 500}\n")
        os.utime(f"{directory}/.pilot.ad", (when, when))

    as_user(uid, write)


def test_a_pilot_that_knows_only_the_paper_is_read_from_its_work_dir(host: AgentHost) -> None:
    """Where it is the job's alone, and the file is not from before the job."""
    home, old = f"{host.base}/home", f"{host.base}/old"
    ad_in(home, ALICE, 512, host.now)
    ad_in(old, ALICE, 512, host.now - 500)
    host.start(17, work_dir=home.encode())
    host.start(18, work_dir=old.encode())
    host.round()
    published = host.published(17)
    assert published is not None and published.report.used_cpu == 4.0
    assert host.slurm.comment(18) == ""
    assert host.said == []


def test_jobstatus_is_believed_before_the_work_dir(host: AgentHost) -> None:
    """Another node's pilot may write to the same directory: what is this job's alone counts, whatever is newer."""
    home = f"{host.base}/home"
    ad_in(home, ALICE, 512, host.now + 50)
    host.start(17, work_dir=home.encode())
    host.report(17)
    host.round()
    published = host.published(17)
    assert published is not None and published.report.used_cpu == 6.0


def test_a_work_dir_of_two_jobs_says_nothing(host: AgentHost) -> None:
    """Nobody can tell whose it is; said once for each."""
    home = f"{host.base}/home"
    ad_in(home, ALICE, 512, host.now)
    for number in (17, 18):
        host.start(number, work_dir=home.encode())
    host.agent.round(host.now)
    host.agent.round(host.now + 1000)
    assert host.slurm.comment(17) == host.slurm.comment(18) == ""
    assert [line.split(": ", 1)[1] for line in host.said] == [
        "WorkDir: .pilot.ad: another job has the same directory"
    ] * 2


# ---- orders ----


@both_releases
def test_a_shortened_lease_is_told_in_all_channels_and_withdrawn(host: AgentHost) -> None:
    """EndTime before what was granted: `.site.ad` as the user, both shutdown files; and all vanish with the order."""
    host.start(17)
    host.round()
    assert host.site_ad(17) == ""
    end = host.now + 601
    host.slurm.set(17, EndTime=end, TimeLimit="00:12:00")
    host.round()
    assert host.site_ad(17) == f"VACATE_DESIRED = True\nPAYLOAD_DEADLINE = {end}\n"
    assert os.stat(f"{host.status(17)}/.site.ad").st_uid == ALICE
    features = host.features(17)
    assert features["shutdowntime"] == features["shutdowntime_job"] == str(end)
    host.slurm.set(17, EndTime=host.now + 3500, TimeLimit="01:00:00")
    host.round()
    assert host.site_ad(17) == ""
    assert not {"shutdowntime", "shutdowntime_job"} & host.features(17).keys()


def test_an_order_older_than_the_agent_is_told(host: AgentHost) -> None:
    """What was granted stands in the tree; and where nobody wrote it, the time limit still tells."""
    host.start(17)
    host.start(18, limit=660)
    host.slurm.set(18, EndTime=host.now + 540)
    host.agent.greet(host.now)
    host.slurm.set(17, EndTime=host.now + 541, TimeLimit="00:11:00")
    host.restart()
    host.round()
    for number, end in ((17, host.now + 541), (18, host.now + 540)):
        assert host.site_ad(number) == f"VACATE_DESIRED = True\nPAYLOAD_DEADLINE = {end}\n"


def test_a_longer_lease_is_no_order_and_can_be_shortened(host: AgentHost) -> None:
    """The job hears of its new length; and of an order, though that may leave it more than it had at first."""
    host.start(17)
    host.round()
    host.slurm.set(17, EndTime=host.now + 9000, TimeLimit="02:31:40")
    host.round()
    assert host.site_ad(17) == ""
    assert host.features(17)["wall_limit_secs"] == "9100"
    host.restart()
    host.slurm.set(17, EndTime=host.now + 3601, TimeLimit="01:02:00")
    host.round()
    assert f"PAYLOAD_DEADLINE = {host.now + 3601}\n" in host.site_ad(17)
    assert host.features(17)["wall_limit_secs"] == "9100"


def test_a_lease_without_end_can_be_shortened(host: AgentHost) -> None:
    """Slurm prints thousands of years as its limit then."""
    host.start(17, TimeLimit="UNLIMITED", EndTime="Unknown")
    host.round()
    assert "wall_limit_secs" not in host.features(17)
    host.slurm.set(17, TimeLimit="2982251-04:26:00", EndTime=host.now + 600)
    host.round()
    assert f"PAYLOAD_DEADLINE = {host.now + 600}\n" in host.site_ad(17)
    host.slurm.set(17, TimeLimit="UNLIMITED", EndTime="Unknown")
    host.round()
    assert host.site_ad(17) == ""


def test_the_machines_shutdown_is_told_without_a_wish_to_vacate(host: AgentHost) -> None:
    """And goes when it is cancelled."""
    host.start(17)
    host.round()
    planned_shutdown.plan(host.settings.shutdown_file, host.now + 1000, host.now, 0)
    host.round()
    assert host.site_ad(17) == f"VACATE_DESIRED = False\nPAYLOAD_DEADLINE = {host.now + 1000}\n"
    assert host.features(17)["shutdowntime"] == str(host.now + 1000)
    planned_shutdown.cancel(host.settings.shutdown_file)
    host.round()
    assert host.site_ad(17) == ""


def test_a_shutdown_behind_the_leases_end_is_told_as_that_end(host: AgentHost) -> None:
    """A pilot that counted on the later time would start what is killed with its lease."""
    end = host.start(17).started + 3600
    host.round()
    planned_shutdown.plan(host.settings.shutdown_file, host.now + 86_400, host.now, 0)
    host.round()
    assert host.site_ad(17) == f"VACATE_DESIRED = False\nPAYLOAD_DEADLINE = {end}\n"
    assert host.features(17)["shutdowntime_job"] == str(end)


def test_what_the_user_did_to_the_order_is_mended(host: AgentHost) -> None:
    """HOSTILE 49: deleted, forged, or something else in its place."""
    host.start(17)
    host.agent.greet(host.now)
    host.slurm.set(17, EndTime=host.now + 601, TimeLimit="00:12:00")
    host.round()
    path = f"{host.status(17)}/.site.ad"
    wanted = f"VACATE_DESIRED = True\nPAYLOAD_DEADLINE = {host.now + 601}\n"
    attacks: dict[str, Callable[[], object]] = {
        "deleted": lambda: None,
        "a link": lambda: os.symlink("/etc/passwd", path),
        "a FIFO": lambda: os.mkfifo(path),
        "forged": lambda: Path(path).write_text("VACATE_DESIRED = False\n"),
        "a directory": lambda: os.mkdir(path),
    }
    for attack in attacks.values():
        os.unlink(path)
        as_user(ALICE, attack)
        host.round()
        assert host.site_ad(17) == wanted


# ---- slurmctld is away ----


@pytest.mark.parametrize("how", ["down", "half", "hang"])
def test_without_slurmctld_what_was_told_stands(host: AgentHost, how: str) -> None:
    """HOSTILE 54: no answer, an incomplete one, none in time: nothing is withdrawn, published or decided."""
    host.start(17)
    host.slurm.set(17, EndTime=host.now + 601, TimeLimit="00:12:00")
    host.start(18)
    host.agent.greet(host.now)
    host.slurm.set(18, EndTime=host.now + 601, TimeLimit="00:12:00")
    host.round()
    told = host.site_ad(18)
    assert "True" in told
    host.report(17)
    host.slurm.mode(how)
    host.start(19)
    host.commands.seconds = 1.0
    with pytest.raises(PoolUnreachable):
        host.round()
    assert host.site_ad(18) == told
    assert (host.tree(19) / "complete").exists(), "its tasks need not wait for what does not come"
    host.slurm.mode(how, on=False)
    host.commands.seconds = 10.0
    host.round()
    assert host.published(17) is not None
    assert "wall_limit_secs" in host.features(19)


def test_a_new_agent_without_slurmctld_touches_no_order(host: AgentHost) -> None:
    """It does not know what was granted nor what holds: what stands there stands."""
    host.start(17)
    host.agent.greet(host.now)
    host.slurm.set(17, EndTime=host.now + 601, TimeLimit="00:12:00")
    host.round()
    told = host.site_ad(17)
    host.restart()
    host.slurm.mode("down")
    with pytest.raises(PoolUnreachable):
        host.round()
    assert host.site_ad(17) == told != ""
