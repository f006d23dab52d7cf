"""Somebody with level WRITE at a startd sets attributes of its slots: each that what decides reads, on real daemons.

Many pools give that level to all users. No job ends by it, none goes on by it, none starts on cores that others hold.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from condor_jobs import scripted
from condor_pool import CondorPool
from drainwise.htcondor.setup.render import ROLES, render
from drainwise.install.rendered_tree import RenderedFile, write_tree
from drainwise.siteconfig import HTCondorSection, SiteConfig

pytestmark = [pytest.mark.play, pytest.mark.in_turn("installing", "pushed attributes")]
PLUGINS, DOCS = Path(__file__).parents[2] / "plugins", Path(__file__).parents[2] / "docs"
SITE = SiteConfig(
    htcondor=HTCondorSection(
        cron_period=2,
        update_interval=4,
        initial_update_interval=1,
        max_vacate_time=2,
        negotiator_policy="least-waste",
        defrag="yes",
        partial_return="yes",
    )
)
SITE = replace(SITE, reclaim=replace(SITE.reclaim, grace=600))
QUICK = "POLLING_INTERVAL = 1\nSTARTD_JOB_ATTRS = $(STARTD_JOB_ATTRS) SomethingOfTheSites\n"
CORES, WAIT_SECS = 8, 60.0
DECIDING = ("PREEMPT", "MAXJOBRETIREMENTTIME", "START", "CLAIM_WORKLIFE")
REPORT = """\
LAST_JOB_START = {now}
FIRST_EXP_JOB_END = {end}
LAST_EXP_JOB_END = {end}
LAST_MAX_JOB_END = {end}
USED_FRACTION1k = 512
ADD_UNCOM_TIME1k = 0
ADD_FINAL_EXP_WASTE1k = 0
PRIORITY_FACTOR = 3
CAN_POSTPONE_LAST_JOB = True
RETURNED_CORES = 0
RETURNED_MEMORY = 0
RETURNED_SINCE = {now}
"""
# What a user would set: with a value that would matter. Beside these each attribute that is read is set to 777.
HOSTILE = {
    "Draining": "true",
    "PreemptingUser": '"x"',
    "Activity": '"Retiring"',
    "Name": '"slot1@elsewhere"',
    "GlobalJobId": '"x#1.0#1795250000"',
    "PilotReclaimOrders": '"{silent}={soon}"',
    "PilotReclaimDeadline": "{soon}",
    "PilotReclaimWithdrawn": "false",
    "PilotReportedBy": '"{silent}"',
    "PilotHeartbeat": "{soon}",
    "PilotReportStanding": '"fresh"',
    "PilotReturnedBy": '"{silent}"',
    "PilotReturnedAt": "{soon}",
    "PilotReturnedCpus": "2",
    "PilotReturnedMemory": "100",
    "PilotReturnedSince": "{soon}",
    "PilotLentCpus": "2",
    "PilotLentMemory": "100",
    "PilotFreeCpus": "99",
    "PilotFreeMemory": "99999",
    "PilotBorrowedCpus": "0",
    "PilotReturnedAge": "999999",
    "DynamicSlot": "true",
    "MaxJobRetirementTime": "777",
    "Start": "true",
    "slot1_ChildPilotLentCpus": "{{ 8 }}",
    "slot2_ChildPilotLentCpus": "{{ 8 }}",
    "slot1_ChildCpus": "{{ 0 }}",
    "slot2_ChildCpus": "{{ 0 }}",
}
FORGED = """\
MyType = "Machine"
Name = "slot9@node1.pool.test"
Machine = "node1.pool.test"
StartdIpAddr = "<127.0.0.11:9>"
MyAddress = "<127.0.0.11:9>"
State = "Unclaimed"
Activity = "Idle"
Cpus = 8
PilotReportStanding = "forged"
"""
HTCONDORS_OWN = {"Cpus", "Memory", "GPUs", "LastDrainStartTime"}
"""What a push sets over the startd's own: documented."""


@pytest.fixture(scope="module")
def pool(release: str) -> Iterator[CondorPool]:
    """A node of 8 cores with all that reads attributes of slots."""
    config = {role: render(SITE, role)[-1].text for role in ROLES}
    config["execute"] = QUICK + config["execute"]
    with CondorPool(nodes=1, cpus=CORES, release=release, config=config) as running:
        running.copy_in(str(PLUGINS / "drainwise"), "/usr/share/drainwise/drainwise")
        write_tree([file for role in ROLES for file in render(SITE, role)[:-1]], running.root)
        running.reconfigure("execute")
        running.wait_for(lambda: running.slots("PilotCronHeartbeat isnt undefined", ["Name"]), WAIT_SECS, "the cron")
        yield running


def push(pool: CondorPool, text: str) -> str:
    """alice sets attributes of the node's slots; what she is told."""
    write_tree([RenderedFile("/tmp/pushed", text)], pool.root)
    ran = pool.run(["condor_update_machine_ad", "-name", "node1.pool.test", "/tmp/pushed"], user="alice", check=False)
    return ran.stdout + ran.stderr


def run_of(pool: CondorPool, cluster: int) -> str:
    """The run of a job, "" while it has none."""
    ads = pool.slots(f'regexp("#{cluster}[.]0#", GlobalJobId ?: "")', ["GlobalJobId", "JobStart"])
    return f"{ads[0].text('GlobalJobId')}@{ads[0].integer('JobStart')}" if ads and "JobStart" in ads[0] else ""


def order(pool: CondorPool, text: str) -> None:
    """Set the node's orders as an administrator."""
    pool.run(["condor_config_val", "-startd", "-rset", f"PILOT_RECLAIM = {text}"], node="node1")
    pool.reconfigure("node1")


def what_runs(pool: CondorPool) -> dict[str, tuple[str, bool]]:
    """Of each run its activity, and whether it may go on for years, as the startd says now."""
    query = ["condor_status", "-direct", "node1.pool.test", "-constraint", 'State == "Claimed"', "-af"]
    lines = pool.run([*query, "GlobalJobId", "JobStart", "Activity", "RetirementTimeRemaining"]).stdout.splitlines()
    rows = [line.split() for line in lines]
    return {f"{job}@{start}": (activity, int(left) > 1 << 24) for job, start, activity, left in rows}


def left_of(pool: CondorPool, run: str) -> int:
    """Seconds for which a run would go on if it were preempted now."""
    query = ["condor_status", "-direct", "node1.pool.test", "-constraint", f'GlobalJobId == "{run.rpartition("@")[0]}"']
    return int(pool.run([*query, "-af", "RetirementTimeRemaining"]).stdout)


def what_decides_reads(pool: CondorPool) -> list[str]:
    """The attributes of slots in what decides, as the startd has it; what a push wins over comes last."""
    texts = [pool.run(["condor_config_val", "-startd", knob], node="node1").stdout for knob in DECIDING]
    names = {name for text in texts for name in re.findall(r"\bMY\.(\w+)", text)}
    assert {"GlobalJobId", "JobStart", "Name", "PilotRemaining", "PilotReturnedBy", "slot1_ChildPilotLentCpus"} <= names
    return sorted(names | set(HOSTILE), key=lambda name: (name in HTCONDORS_OWN, name))


def test_nothing_that_a_user_sets_ends_prolongs_or_starts_a_job(pool: CondorPool) -> None:
    """A job that says nothing, one whose order was withdrawn, a pilot that reports; others wait for cores."""
    now = int(time.time())
    Path(f"{pool.root}/home/alice/report").write_text(REPORT.format(now=now, end=now + 5000))
    own = ["+PilotRemaining = 777", "+PilotReturnedBy = 7", "+PilotLentCpus = 2", "+PilotReclaimDeadline = 1"]
    own += ["+Draining = true", "+WantIOProxy = true"]
    chirp = "condor_chirp set_job_attr_delayed ChirpPilotRemaining 777; condor_chirp set_job_attr PilotRemaining 777; "
    path = "PATH=$PATH:/usr/libexec/condor; "
    silent = pool.submit(scripted(f"{path}{chirp}exec sleep 3000", "node1", *own, cores=3), user="bob")
    pardoned = pool.submit(scripted("trap : TERM; while :; do sleep 1; done", "node1", cores=3), user="alice")
    report = "cat report > .new; mv .new .pilot.ad; exec sleep 3000"
    pilot = pool.submit(scripted(report, "node1", "transfer_input_files = report", cores=2), user="alice")
    pool.wait_for(lambda: all(run_of(pool, one) for one in (silent, pardoned, pilot)), WAIT_SECS, "three runs")
    waiting = pool.submit(scripted("exec sleep 3000", "node1", cores=1, count=2), user="bob")
    runs = {one: run_of(pool, one) for one in (silent, pardoned, pilot)}
    order(pool, f"{runs[pardoned]}={now + 3000}")
    retires = {runs[pardoned]: ("Retiring", False), runs[silent]: ("Busy", False), runs[pilot]: ("Busy", False)}
    pool.wait_for(lambda: what_runs(pool) == retires, WAIT_SECS, "the order")
    order(pool, f"{runs[pardoned]}=0")
    before = {**retires, runs[pardoned]: ("Retiring", True)}
    pool.wait_for(lambda: what_runs(pool) == before, WAIT_SECS, "its withdrawal")
    pool.wait_for(lambda: pool.slots('PilotReportStanding == "fresh"', ["Name"]), WAIT_SECS, "the report")
    pool.wait_for(lambda: left_of(pool, runs[pilot]) > 600, WAIT_SECS, "the pilot's end in its retirement")

    assert "DENIED" in push(pool, "PilotRemaining = 777\n"), "the drop-in keeps WRITE from users"
    pool.configure("node1", "40-open.conf", "ALLOW_WRITE_STARTD = *@pool.test\n")
    pool.reconfigure("node1")
    for number, name in enumerate(what_decides_reads(pool)):
        value = HOSTILE.get(name, "777").format(silent=runs[silent], soon=now + 2)
        assert push(pool, f"{name} = {value}\nPushed = {number}\n") == ""
        pool.wait_for(partial(pool.slots, f"Pushed == {number}", ["Name"]), WAIT_SECS, "what was pushed")
        for _ in range(3):
            assert what_runs(pool) == before, name
            assert left_of(pool, runs[silent]) == 0, name
    rounds = time.time() + 6  # a negotiation and two rounds of the cron
    pool.wait_for(lambda: time.time() > rounds, WAIT_SECS, "another negotiation")
    assert what_runs(pool) == before
    queue = pool.queue("True", ["ClusterId", "JobStatus"])
    assert {one.integer("ClusterId") for one in queue if one.integer("JobStatus") == 1} == {waiting}
    assert len(queue) == 5

    # Into the collector no user puts a slot.
    for user, shown in (("alice", []), ("root", ["forged"])):
        write_tree([RenderedFile("/tmp/forged", FORGED)], pool.root)
        pool.run(["condor_advertise", "-tcp", "UPDATE_STARTD_AD", "/tmp/forged"], user=user, check=False)
        forged = pool.slots('Name == "slot9@node1.pool.test"', ["PilotReportStanding"])
        assert [ad.text("PilotReportStanding") for ad in forged] == shown

    # What wins over the startd's own is HTCondor's: the page names it.
    page = (DOCS / "htcondor.md").read_text()
    assert all(f"`{name}`" in page for name in (*HTCONDORS_OWN - {"LastDrainStartTime"}, "PREEMPT"))
    push(pool, "PREEMPT = true\n")
    pool.wait_for(lambda: what_runs(pool) != before, WAIT_SECS, "HTCondor obeys a PREEMPT that is set with WRITE")


def test_a_release_that_sends_less_at_once_sends_all_more_often(pool: CondorPool, release: str) -> None:
    """As the site leaves it: by the daemons' own reading of the drop-in."""
    pool.configure("node1", "60-plain.conf", render(SiteConfig(), "execute")[-1].text)
    try:
        said = pool.run(["condor_config_val", "UPDATE_INTERVAL"], node="node1").stdout.strip()
    finally:
        pool.configure("node1", "60-plain.conf", "")
    assert said == {"trixie": "150", "sid": "300"}[release]
