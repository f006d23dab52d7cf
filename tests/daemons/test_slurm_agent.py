"""The node's agent on real clusters of both releases: what it tells the jobs and publishes, and what it survives."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import drainwise
from drainwise.siteconfig import FeaturesSection, SiteConfig, SlurmSection
from drainwise.slurm.jobs.admin_comment import Published, published_in
from drainwise.slurm.pool.pool import SlurmPool
from drainwise.slurm.pool.snapshot import NO_DIRECTORIES
from slurm_cluster import Job, SlurmCluster
from slurm_site import LIBRARY, SECONDS, SlurmSite

SITE = SiteConfig(features=FeaturesSection(hs06=Decimal(100)), slurm=SlurmSection(container_bind="yes"))
ROUND = 20.0  # seconds; rounds come each second, and slurmctld answers slowly on a busy machine


@pytest.fixture(scope="module")
def site(slurm_release: str) -> Iterator[SlurmSite]:
    """Three nodes of 8 cores, each with its agent."""
    with SlurmCluster(nodes=3, cpus=8, release=slurm_release) as cluster:
        made = SlurmSite(cluster, SITE)
        made.install()
        for node in cluster.node_names:
            made.start_agent(node)
        yield made


@pytest.fixture(autouse=True)
def _as_it_was(site: SlurmSite) -> Iterator[None]:
    """Each test leaves a cluster without jobs, with slurmctld, and with all its agents."""
    yield
    site.cluster.cancel_all()
    lines = site.cluster.run(["sinfo", "--noheader", "--Node", "--format=%N %T"]).stdout.splitlines()
    assert not [line for line in lines if line.split()[1].startswith(("drain", "down", "fail"))]


def published(site: SlurmSite, number: int, how: Callable[[Published], object] = lambda _: True) -> Published:
    """What is published of a job, once it is as wanted."""

    def found() -> Published | None:
        said = site.published(number)
        return said if said is not None and how(said) else None

    said = site.cluster.wait_for(found, ROUND, f"what job {number} publishes")
    assert said is not None
    return said


def doctor(site: SlurmSite, node: str | None) -> dict[str, Any]:
    """What `drainwise doctor` says of Slurm on a node, or on the controller (None), with Python alone."""
    program = f"import sys; sys.path.append({LIBRARY!r}); from drainwise.cli.main import main; sys.exit(main())"
    words = ["/usr/bin/python3", "-I", "-S", "-c", program, "doctor", "--json"]
    ran = site.cluster.run(words, check=False) if node is None else site.cluster.run(words, node=node, check=False)
    assert ran.returncode in {0, 1} and not ran.stderr, ran.stderr
    [found] = json.loads(ran.stdout)["facts"]["batch"]
    return dict(found)


def order(site: SlurmSite, number: int, end: int) -> None:
    """Have a run end at `end`."""
    site.cluster.run(["scontrol", "update", f"JobId={number}", f"EndTime=uts{end}"])


def channels(tree: Path) -> tuple[bool, ...]:
    """Whether the site's word stands in its three places."""
    places = (".jobstatus/.site.ad", ".machinefeatures/shutdowntime", ".jobfeatures/shutdowntime_job")
    return tuple((tree / place).exists() for place in places)


def told(site: SlurmSite, tree: Path) -> None:
    """Wait until an order stands in all channels of a job."""
    site.cluster.wait_for(lambda: channels(tree) == (True, True, True), SECONDS, "the order to be told")


def tells(site: SlurmSite, tree: Path, end: int) -> None:
    """Wait until `.site.ad` names this end."""
    path = tree / ".jobstatus/.site.ad"
    site.cluster.wait_for(lambda: path.exists() and f"= {end}\n" in path.read_text(), ROUND, "the order")


def test_the_limits_are_there_at_the_jobs_first_instruction(site: SlurmSite) -> None:
    """Memory, length, CPUs: by what a shell finds before it does anything else; of each node of an uneven job, too."""
    keys = "wall_limit_secs max_rss_bytes scratch_limit_bytes $MACHINEFEATURES/total_cpu"
    script = f"cd $JOBFEATURES; for key in {keys}; do read value <$key; echo $value; done"
    number = site.cluster.submit(
        script, "alice", ("--time=7", "--mem=300M", "--tmp=200M", "--output=/home/alice/limits")
    )
    assert site.end_of(number).state == "COMPLETED"
    found = site.cluster.run(["cat", "/home/alice/limits"]).stdout.split()
    assert found == ["420", str(300 << 20), str(200 << 20), "8"]
    whole = site.cluster.submit(
        "stat --file-system --format='%b %S' /tmp; cat $JOBFEATURES/scratch_limit_bytes",
        "alice",
        ("--output=/home/alice/area",),
    )
    assert site.end_of(whole).state == "COMPLETED"
    blocks, size, area = map(int, site.cluster.run(["cat", "/home/alice/area"]).stdout.split())
    assert area == blocks * size, "without --tmp the whole scratch area"
    step = "srun --label sh -c 'cat $JOBFEATURES/allocated_cpu $JOBFEATURES/max_rss_bytes $JOBFEATURES/wall_limit_secs'"
    options = ("--time=7", "--mem-per-cpu=100M", "--nodes=2", "--ntasks=3", "--cpus-per-task=4")
    number = site.cluster.submit(step, "alice", (*options, "--output=/home/alice/uneven"))
    assert site.end_of(number).state == "COMPLETED"
    lines = [line.split() for line in site.cluster.run(["cat", "/home/alice/uneven"]).stdout.splitlines()]
    tasks = {task: [value for who, value in lines if who == task] for task, _ in lines}
    assert sorted({tuple(values) for values in tasks.values()}) == [
        ("4", str(400 << 20), "420"),
        ("8", str(800 << 20), "420"),
    ]


def test_the_whole_way_of_an_order(site: SlurmSite) -> None:
    """A pilot reports; its lease is shortened: it is told and drains; it is withdrawn: it resumes; again: it goes."""
    number = site.pilot("4x600", "2x5", options=("--time=30", "--cpus-per-task=8"))
    job = site.running(number)
    tree = site.tree(job)
    said = published(site, number)
    assert (said.job, said.start, said.node, said.standing) == (number, job.start, job.nodes[0], "fresh")
    assert said.report.can_postpone_last_job is True and (said.report.used_cpu or 0) > 0
    assert said.version == drainwise.__version__
    node, central = doctor(site, job.nodes[0]), doctor(site, None)
    assert (node["roles"], node["in_force"], node["whole"], node["standings"]) == (["node"], True, False, {"fresh": 1})
    assert [(one["name"], one["version"]) for one in node["nodes"]] == [(job.nodes[0], drainwise.__version__)]
    assert (central["roles"], central["agent_here"], central["rights"]["allowed"]) == (["controller"], True, True)
    assert (central["nodes"], central["whole"]) != ([], False)
    assert channels(tree) == (False, False, False)
    end = int(time.time()) + 123
    order(site, number, end)
    told(site, tree)
    assert (tree / ".jobstatus/.site.ad").read_text() == f"VACATE_DESIRED = True\nPAYLOAD_DEADLINE = {end}\n"
    assert os.stat(tree / ".jobstatus/.site.ad").st_uid == site.cluster.uid("alice")
    published(site, number, lambda told: told.report.can_postpone_last_job is False)
    order(site, number, job.start + 1800)
    site.cluster.wait_for(lambda: channels(tree) == (False, False, False), ROUND, "the order to be withdrawn")
    published(site, number, lambda told: told.report.can_postpone_last_job is True)
    order(site, number, int(time.time()) + 21)
    assert site.end_of(number).state == "COMPLETED", "it left by itself, before slurmctld ended it"
    output = site.cluster.run(["cat", f"/home/alice/out.{number}"]).stdout
    assert ".site.ad" in output
    record = site.cluster.wait_for(
        lambda: published_in(site.cluster.accounting(number, "AdminComment")[0]["AdminComment"]), ROUND, "accounting"
    )
    assert record is not None
    assert (record.job, record.start) == (number, job.start)


def test_an_order_for_a_lease_without_end(site: SlurmSite) -> None:
    """What Slurm makes of its limit then is no time at all; the order is told and withdrawn."""
    number = site.cluster.submit("sleep 600", "alice", ("--time=UNLIMITED",))
    tree = site.tree(site.running(number))
    order(site, number, int(time.time()) + 300)
    told(site, tree)
    site.cluster.run(["scontrol", "update", f"JobId={number}", "TimeLimit=UNLIMITED"])
    site.cluster.wait_for(lambda: channels(tree) == (False, False, False), ROUND, "the order to be withdrawn")


def test_an_order_for_a_lease_that_was_made_longer(site: SlurmSite) -> None:
    """Also where it leaves the job more than it had at first."""
    number = site.cluster.submit("sleep 600", "alice", ("--time=10",))
    job = site.running(number)
    tree = site.tree(job)
    limit = tree / ".jobfeatures/wall_limit_secs"
    site.cluster.wait_for(lambda: limit.exists() and limit.read_text() == "600\n", ROUND, "the first length")
    site.cluster.run(["scontrol", "update", f"JobId={number}", "TimeLimit=60"])
    site.cluster.wait_for(lambda: limit.read_text() == "3600\n", ROUND, "the new length")
    assert channels(tree) == (False, False, False)
    order(site, number, job.start + 1201)
    told(site, tree)


def test_an_array_is_published_task_by_task(site: SlurmSite) -> None:
    """The last task has the array's own number: its report must not become all tasks'."""
    script = (
        "echo $SLURM_JOB_ID >$JOBSTATUS/last_exp_job_end; echo $SLURM_ARRAY_TASK_ID >$JOBSTATUS/used_CPU; sleep 600"
    )
    number = site.cluster.submit(script, "alice", ("--array=1-3", "--cpus-per-task=4", "--time=10"))

    def used() -> set[tuple[str, float | None]]:
        lines = site.cluster.run(["scontrol", "--oneliner", "show", "job", str(number)]).stdout.splitlines()
        found = set()
        for line in lines:
            said = published_in(line.partition(" AdminComment=")[2].split(" ")[0])
            if said is not None:
                found.add((line.partition("ArrayTaskId=")[2].split(" ")[0], said.report.used_cpu))
        return found

    site.cluster.wait_for(lambda: used() == {("1", 1.0), ("2", 2.0), ("3", 3.0)}, ROUND, "all three tasks' reports")


WHOLE_REPORT = """
say() { echo $2 >$JOBSTATUS/$1; }
now=$(date +%s); say last_job_start $now; say first_exp_job_end $((now + 600))
say last_exp_job_end $((now + 600 + 100 * SLURM_PROCID)); say last_max_job_end $((now + 900)); say add_uncom_time 0
say add_final_exp_waste $((150 * SLURM_PROCID)); say can_postpone_last_job True; say used_CPU 2; sleep 600
"""


def test_a_pilot_on_each_of_two_nodes_is_the_sum_of_both(site: SlurmSite) -> None:
    """Each node's agent publishes its report; while one says too little, nothing is known of the whole."""
    options = ("--nodes=2", "--ntasks-per-node=1", "--cpus-per-task=2", "--time=30")
    number = site.cluster.submit(f"srun sh -c '{WHOLE_REPORT}'", "alice", options)
    job = site.running(number)
    said = published(
        site, number, lambda said: said.standing == "fresh" and [one.standing for one in said.others] == ["fresh"]
    )
    assert said.node == job.nodes[0]
    assert [(one.node, one.report.used_cpu) for one in said.others] == [(job.nodes[1], 2.0)]
    tools = site.cluster.outside_env()["PATH"].split(os.pathsep)[0]
    pool = SlurmPool(SlurmSection(bin_dir=tools, command_timeout=10))
    (pilot,) = pool.snapshot(int(time.time())).pilots
    report, first, second = pilot.report, said.report, said.others[0].report
    assert report is not None and pilot.cannot == "" and report.used_cpu == 4.0
    assert report.last_exp_job_end == second.last_exp_job_end
    assert first.last_exp_job_end is not None and second.last_exp_job_end is not None
    idle = 150 + 2 * (second.last_exp_job_end - first.last_exp_job_end)
    assert report.add_final_exp_waste == pytest.approx(idle, abs=5), "the first node's cores wait for the second"
    status = site.cluster.seen_on(job.nodes[1], f"/run/drainwise/{job.nodes[1]}/{number}/.jobstatus")
    Path(status, "first_exp_job_end").unlink()
    published(site, number, lambda said: [one.standing for one in said.others] == ["incomplete"])
    (pilot,) = pool.snapshot(int(time.time())).pilots
    assert pilot.report is not None and pilot.report.used_cpu is None


def test_of_several_nodes_the_first_one_publishes_and_all_are_told(site: SlurmSite) -> None:
    """The others' reports stand behind its own; a deadline reaches all of the job's nodes."""
    script = "srun sh -c 'echo $((2 - SLURM_PROCID)) >$JOBSTATUS/used_CPU; sleep 600'"
    options = ("--nodes=2", "--ntasks-per-node=1", "--cpus-per-task=2", "--time=30")
    number = site.cluster.submit(script, "alice", options)
    job = site.running(number)
    trees = [Path(site.cluster.seen_on(node, f"/run/drainwise/{node}/{number}")) for node in job.nodes]
    for tree in trees:
        site.cluster.wait_for((tree / ".jobstatus/used_CPU").exists, ROUND, "a report")
    said = published(site, number)
    assert (said.node, said.report.used_cpu, said.standing) == (job.nodes[0], 2.0, "incomplete")
    order(site, number, int(time.time()) + 300)
    for tree in trees:
        told(site, tree)
    later = published_in(site.comment(number))
    assert later is not None and (later.node, later.report.used_cpu) == (job.nodes[0], 2.0)


PAPER_ONLY = """
while [ ! -e .site.ad ]; do sleep 0.2; done
cp .site.ad heard.$SLURM_JOB_ID; sleep 600
"""


def test_a_pilot_that_looks_in_its_work_dir_alone(site: SlurmSite) -> None:
    """It is told there by name of its run, until its job has ended. Two jobs in one directory are not."""
    cluster = site.cluster
    for name in ("alone", "together"):
        cluster.run(["install", "-d", "-o", "alice", f"/home/alice/{name}"])
    options = ("--time=30", "--cpus-per-task=2", "--output=/dev/null")
    together = [
        cluster.submit(PAPER_ONLY, "alice", (*options, "--chdir=/home/alice/together", f"--nodelist={node}"))
        for node in cluster.node_names[:2]
    ]
    alone = cluster.submit(PAPER_ONLY, "alice", (*options, "--chdir=/home/alice/alone"))
    end = int(time.time()) + 900
    jobs = {number: site.running(number) for number in (alone, *together)}
    for number in jobs:
        order(site, number, end)
    for job in jobs.values():
        told(site, site.tree(job))
    heard = ["cat", f"/home/alice/alone/heard.{alone}"]
    cluster.wait_for(lambda: cluster.run(heard, check=False).returncode == 0, ROUND, "it to hear")
    said = cluster.run(heard).stdout
    assert said == f'VACATE_DESIRED = True\nPAYLOAD_DEADLINE = {end}\nSITE_AD_RUN = "{alone}@{jobs[alone].start}"\n'
    assert cluster.run(["ls", "-A", "/home/alice/together"]).stdout == ""
    cluster.run(["scancel", *map(str, jobs)])
    left = ["ls", "-A", "/home/alice/alone"]
    gone = f"heard.{alone}\n"
    cluster.wait_for(lambda: cluster.run(left).stdout == gone, ROUND, "the notice to go with the job")


def test_two_pilots_in_one_directory_are_told_apart(site: SlurmSite) -> None:
    """Both write `.pilot.ad` there, on two nodes: it is believed of neither. $JOBSTATUS is each one's own."""
    cluster = site.cluster
    cluster.run(["install", "-d", "-o", "alice", "/home/alice/reports"])
    script = (
        "while :; do printf 'USED_FRACTION1k = 512\nLAST_EXP_JOB_END = 1795999999\n' >.pilot.ad.$SLURM_JOB_ID;"
        " mv .pilot.ad.$SLURM_JOB_ID .pilot.ad; sleep 1; done"
    )
    early = "echo 'USED_FRACTION1k = 512' >.pilot.ad; touch -d @$1 .pilot.ad"  # found at the first look already
    cluster.run(["sh", "-c", f"cd /home/alice/reports && {early}", "sh", str(int(time.time()) + 45)], user="alice")
    own = "echo 2 >$JOBSTATUS/used_CPU; echo $(($(date +%s) + 900)) >$JOBSTATUS/last_exp_job_end;"
    options = ("--time=30", "--cpus-per-task=2", "--output=/dev/null", "--chdir=/home/alice/reports", "--hold")
    first, second, other = (
        cluster.submit(text, "alice", (*options, f"--nodelist={node}"))
        for text, node in zip((script, script, own + script), cluster.node_names)
    )
    cluster.run(["scontrol", "release", f"{first},{second},{other}"])  # so that none is alone there for a round
    for number in (first, second, other):
        site.running(number)
    assert published(site, other).report.used_cpu == 2.0
    line = "WorkDir: .pilot.ad: another job has the same directory"
    for node in cluster.node_names[:2]:
        cluster.wait_for(lambda node=node: line in site.agent_log(node), ROUND, "the line")  # type: ignore[misc]
    assert site.comment(first) == site.comment(second) == ""


def test_a_container_is_told_what_to_bind(site: SlurmSite) -> None:
    """By the variable that Apptainer reads, in the batch script and in a step: one directory, which has all three."""
    script = "APPTAINER_BIND=/data; env | grep APPTAINER_BIND= | cut -d= -f2; srun sh -c 'ls -A ${APPTAINER_BIND##*,}'"
    number = site.cluster.submit(f"export {script}", "alice", ("--time=5", "--output=/home/alice/bound"))
    job = site.end_of(number)
    assert job.state == "COMPLETED"
    bound, *names = site.cluster.run(["cat", "/home/alice/bound"]).stdout.split()
    assert bound == "/data", "what a job sets itself stands in its script"
    assert {".machinefeatures", ".jobfeatures", ".jobstatus"} <= set(names), "a step's task prolog adds ours"
    plain = site.cluster.submit("echo $APPTAINER_BIND", "alice", ("--time=5", "--output=/home/alice/plain"))
    tree = f"/run/drainwise/{site.end_of(plain).nodes[0]}/{plain}"
    assert site.cluster.run(["cat", "/home/alice/plain"]).stdout.split() == [tree]


def test_a_comment_of_somebody_else_stays(site: SlurmSite) -> None:
    """Said once; the pilot's order is told all the same."""
    number = site.cluster.submit("sleep 8; echo 1 >$JOBSTATUS/used_CPU; sleep 600", "alice", ("--time=30",))
    job = site.running(number)
    site.cluster.run(["scontrol", "update", f"JobId={number}", "AdminComment=see ticket 4711"])
    node = job.nodes[0]
    line = f"job {number}: its AdminComment is somebody else's"
    site.cluster.wait_for(lambda: line in site.agent_log(node), ROUND, "the line")
    order(site, number, int(time.time()) + 300)
    told(site, site.tree(job))
    site.cluster.wait_for((site.tree(job) / ".jobstatus/used_CPU").exists, ROUND, "the report")
    reached(site, node)
    assert site.comment(number) == "see"
    assert site.agent_log(node).count(line) == 1


def reached(site: SlurmSite, node: str) -> None:
    """Wait until a round has begun and ended: another job on the node is published."""
    number = site.cluster.submit("echo 1 >$JOBSTATUS/used_CPU; sleep 600", "bob", (f"--nodelist={node}",))
    published(site, number)
    site.cluster.run(["scancel", str(number)])


def test_slurmctld_away_and_back(site: SlurmSite) -> None:
    """HOSTILE 54: one line when it goes and one when it is back, never more than one command; then all is made good."""
    number = site.pilot("4x600", options=("--time=30", "--cpus-per-task=4"))
    job = site.running(number)
    node, tree = job.nodes[0], site.tree(job)
    published(site, number)
    before = site.agent_log(node)
    site.cluster.kill_daemon("slurmctld", signal.SIGTERM)
    try:
        site.cluster.wait_for(lambda: "slurmctld: no answer" in site.agent_log(node)[len(before) :], SECONDS, "a line")
        (tree / ".jobstatus/used_CPU").write_text("1.5\n")
        for _ in range(40):
            found = site.cluster.run(["pgrep", "-c", "-x", "scontrol"], node=node, check=False).stdout.split()
            assert not found or int(found[0]) <= len(site.cluster.node_names)
    finally:
        site.cluster.start_daemon("slurmctld")
    site.cluster.wait_until_complete()
    published(site, number, lambda said: said.report.used_cpu == 1.5)
    order(site, number, int(time.time()) + 300)
    told(site, tree)
    lines = site.agent_log(node)[len(before) :].splitlines()
    assert [line.split(":")[1] for line in lines] == [" slurmctld", " slurmctld"]
    assert lines[-1].endswith("answers again")


def test_killed_in_the_middle_of_everything(site: SlurmSite) -> None:
    """HOSTILE 51: agents killed again and again while orders and reports change: nothing is half, the last one does
    it all."""
    numbers = [site.pilot("1x900", options=("--time=30", "--nodelist=node1", "--cpus-per-task=2")) for _ in range(3)]
    jobs = [site.running(number) for number in numbers]
    for number in numbers:  # an order that comes sooner would find a pilot that has nothing to wait for
        published(site, number, lambda said: said.report.used_cpu)
    for turn in range(6):
        end = int(time.time()) + 600 + turn
        for number in numbers:
            order(site, number, end)
        site.stop_agent("node1", "KILL")
        for job in jobs:
            ad = site.tree(job) / ".jobstatus/.site.ad"
            assert not ad.exists() or ad.read_text().startswith("VACATE_DESIRED = True\nPAYLOAD_DEADLINE = 1")
            assert all((file.read_text()) for file in (site.tree(job) / ".jobfeatures").iterdir())
        site.start_agent("node1")
    for number, job in zip(numbers, jobs):
        tells(site, site.tree(job), end)
        assert published(site, number).start == job.start


def test_a_hostile_job_costs_nobody_else_anything(site: SlurmSite) -> None:
    """HOSTILE 1, 5, 8, 26, 30, 41, 43: two hostile jobs of alice's beside her own pilot and bob's: nothing happens."""
    hostile = r"""
    cd $JOBSTATUS; mkfifo used_CPU; ln -s /etc/shadow .pilot.ad; mkdir .site.ad; seq 3000 | xargs touch
    printf 'USED_FRACTION1k = 1\nupdate JobId=1 AdminComment=x\n' >$HOME/.pilot.ad
    sleep 600
    """
    name = "x\nJobId=1 EndTime=1 AdminComment=y UserId=root(0) "
    options = ("--nodelist=node2", "--time=30", "--cpus-per-task=2")
    attacker = site.cluster.submit(hostile, "alice", (*options, f"--job-name={name}", f"--comment={name}"))
    plain = site.cluster.submit(hostile, "alice", options)
    pilots = {site.pilot("1x600", options=options, user=user): user for user in ("alice", "bob")}
    for number in (attacker, plain, *pilots):
        site.running(number)
    for number in pilots:
        assert published(site, number).standing == "fresh"
        order(site, number, int(time.time()) + 300)
        tree = site.tree(site.cluster.job(number))
        told(site, tree)
    order(site, plain, int(time.time()) + 300)
    tree = site.tree(site.cluster.job(plain))
    # It has filled its own directory, so that no .site.ad fits there any more.
    site.cluster.wait_for(lambda: channels(tree)[1:] == (True, True), SECONDS, "the order to be told")
    for number in (attacker, plain):
        assert site.published(number) is None
    lines = [
        line for line in site.agent_log("node2").splitlines() if f"job {attacker}:" in line or f"job {plain}:" in line
    ]
    # A line where what is wrong with a job changes: its name, its report, $JOBSTATUS, the space for .site.ad.
    assert 1 <= len(lines) <= 8 and all(line.isprintable() and len(line) <= 200 for line in lines)


FILL = r"""
cd $JOBSTATUS; i=0
while [ $i -lt 600 ]; do head -c 65536 /dev/zero >f$i || break; i=$((i+1)); done
exec 9>>f0; i=0
while [ $i -lt 1000 ]; do touch n$i || break; i=$((i+1)); done 2>/dev/null
i=0
while [ $i -lt 600 ]; do head -c 65536 /dev/zero >&9 || sleep 0.2; i=$((i+1)); done 2>/dev/null; sleep 600
"""


def test_a_job_that_fills_its_status_directory_harms_nobody(site: SlurmSite) -> None:
    """It writes until it is refused, and goes on for as long as it runs: a MiB and a few files, and nobody else's.

    (At most 38 MiB and 1,600 files, should nothing refuse, and then as much again into one of them.)
    """
    options = ("--nodelist=node2", "--time=30", "--cpus-per-task=2")
    before = site.pilot("1x600", options=options, user="bob")
    published(site, before)
    attacker = site.cluster.submit(FILL, "alice", options)
    site.running(attacker)
    taken = site.cluster.wait_for(
        lambda: filled(site, f"/run/drainwise/node2/{attacker}/.jobstatus"), ROUND, "the attack"
    )
    assert taken is not None and taken[0] < 2 << 20 and taken[1] < 256
    after = site.pilot("1x600", options=options, user="bob")
    published(site, after)
    for number in (before, after):
        order(site, number, int(time.time()) + 300)
        told(site, site.tree(site.cluster.job(number)))
    end = int(time.time()) + 300
    order(site, attacker, end)
    features = f"/run/drainwise/node2/{attacker}/.jobfeatures/shutdowntime_job"
    read = ["sh", "-c", f"cat {features} || :"]
    site.cluster.wait_for(lambda: str(end) in site.cluster.run(read, node="node2").stdout, SECONDS, "its own features")
    site.cluster.run(["scancel", str(attacker)])
    names = f"-name {attacker} -o -name .gone.{attacker}.*"
    left = f"find /run/drainwise/node2 -maxdepth 1 {names}; grep -c 'node2/[.a-z]*{attacker}[./]' /proc/mounts || :"
    gone = ["sh", "-fc", left]
    site.cluster.wait_for(lambda: site.cluster.run(gone, node="node2").stdout.split() == ["0"], SECONDS, "its epilog")


def filled(site: SlurmSite, directory: str) -> tuple[int, int] | None:
    """Bytes and files below a directory of node2, once they do not become more."""
    script = f"du -s -B1 {directory}; find {directory} | wc -l"

    def used() -> tuple[int, int]:
        size = site.cluster.run(["sh", "-c", script], node="node2").stdout.split()
        return int(size[0]), int(size[-1])

    first = used()
    time.sleep(0.5)
    return first if first == used() and first[0] > 1 << 19 else None


def test_a_run_without_directories_is_published_and_not_ordered(site: SlurmSite) -> None:
    """It was there before the installation. The plan names it; a silent one with directories can be asked."""
    site.stop_agent("node3")
    options = ("--nodelist=node3", "--time=30", "--cpus-per-task=2")
    numbers = [site.cluster.submit("sleep 600", "alice", options) for _ in range(2)]
    for number in numbers:
        site.running(number)
    both = f"cd /run/drainwise/node3 && mountpoint -q {numbers[1]}/.jobstatus && umount {numbers[0]}/.jobstatus"
    site.cluster.wait_for(  # a job is running while its prolog still makes them
        lambda: site.cluster.run(["sh", "-c", both], node="node3", check=False).returncode == 0, SECONDS, "directories"
    )
    site.cluster.run(["rm", "-r", f"/run/drainwise/node3/{numbers[0]}"], node="node3")
    site.start_agent("node3")
    site.cluster.wait_for(lambda: '"directories":false' in site.comment(numbers[0]), ROUND, "the node's word")
    tools = site.cluster.outside_env()["PATH"].split(os.pathsep)[0]
    pool = SlurmPool(SlurmSection(bin_dir=tools, command_timeout=10))
    cannot = {one.name: one.cannot for one in pool.snapshot(int(time.time())).pilots}
    assert cannot == {str(numbers[0]): NO_DIRECTORIES, str(numbers[1]): ""}
    assert site.comment(numbers[1]) == ""


def test_an_order_needs_one_question_for_a_node(site: SlurmSite) -> None:
    """However many jobs run there: rounds without news are one question; an order reaches a silent job in the next."""
    tools = site.cluster.outside_env()["PATH"].split(os.pathsep)[0]
    pool = SlurmPool(SlurmSection(bin_dir=tools, command_timeout=10))
    options = ("--array=1-8", "--nodelist=node1", "--time=30", "--cpus-per-task=1", "--mem=100")
    first = site.cluster.submit("sleep 600", "alice", options)
    site.cluster.wait_for(lambda: len(running(site, first)) == 8, SECONDS, "all to run")
    reached(site, "node2")
    before = questions(site)
    begin = time.monotonic()
    site.cluster.wait_for(lambda: time.monotonic() - begin > 6, 20, "some rounds")
    asked = {name: count - before.get(name, 0) for name, count in questions(site).items()}
    seconds = time.monotonic() - begin
    # Agents of three nodes, of which one has jobs, each second: the job with the mark, and now and then another one.
    assert asked["REQUEST_JOB_INFO_SINGLE"] <= seconds * 4 / 3 + 3
    assert asked.get("REQUEST_NODE_INFO", 0) + asked.get("REQUEST_FED_INFO", 0) == 0
    one = next(one for one in pool.snapshot(int(time.time())).pilots if one.name == f"{first}_5")
    pool.give_order(one, int(time.time()) + 601, "test")
    (job,) = (job for job in running(site, first) if job.label == f"{first}_5")
    tree = Path(site.cluster.seen_on("node1", f"/run/drainwise/node1/{job.id}"))
    before = questions(site)
    told(site, tree)
    rounds = questions(site)["REQUEST_JOB_INFO_SINGLE"] - before["REQUEST_JOB_INFO_SINGLE"]
    assert rounds <= 16, "some questions of each second; by turns it would take twenty rounds"


def running(site: SlurmSite, array: int) -> list[Job]:
    """The tasks of an array that run."""
    return [job for job in site.cluster.jobs() if job.label.startswith(f"{array}_") and job.state == "RUNNING"]


def questions(site: SlurmSite) -> dict[str, int]:
    """How many remote procedure calls of each type slurmctld has had."""
    found = re.findall(
        r"^\s*(REQUEST_\w+)\s*\(\s*\d+\)\s*count:(\d+)", site.cluster.run(["sdiag"]).stdout, re.MULTILINE
    )
    return {name: int(count) for name, count in found}
