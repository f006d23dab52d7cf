"""Glideins in jobs of Slurm: found by their startds, read as their user, never another's or another job's figures."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from drainwise.node.payloads.observer import ObservedRun, Observer, SeenJob
from drainwise.pilotad.observation import Observation
from drainwise.slurm.node_agent.user_tasks import GLIDEIN_PERIOD
from made_up_node import make_directory, public_directory, write
from real_daemons.waiting import wait_for

from .agent_host import AgentHost

pytestmark = [
    pytest.mark.daemons,  # processes of other users, and rounds of the agent
    pytest.mark.skipif(os.geteuid() != 0, reason="needs other users"),
]

ALICE, BOB = 1_000_000 + 2 * os.getpid(), 1_000_001 + 2 * os.getpid()
"""Users that no other test process has: an agent looks through the processes of the whole machine, and would take the
startds of a test beside it for those of its own job 17 of the same user."""


class Glideins:
    """A host with alice's jobs 17 and 18 and bob's 19, and what runs in them."""

    def __init__(self, base: str) -> None:
        self.base, self.host = base, AgentHost(base)
        for number, uid in ((17, ALICE), (18, ALICE), (19, BOB)):
            self.host.start(number, uid)
        self.startd = f"{base}/condor_startd"
        shutil.copy("/bin/sleep", self.startd)
        self.processes: list[subprocess.Popen[bytes]] = []

    def glidein(self, job: int, uid: int, cores: int, place: str = "") -> str:
        """A glidein with a payload that has just begun and may run an hour, and its startd; its local directory."""
        place = place or f"{self.base}/glide_{len(self.processes)}"
        for name in ("", "/log", "/execute", "/execute/dir_1"):
            make_directory(place + name, 0o700, uid)
        write(f"{place}/log/StartdLog", "", uid)
        write(f"{place}/execute/dir_1/.machine.ad", f"Cpus = {cores}\n", uid)
        ad = f"JobCurrentStartDate = {int(time.time())}\nMaxWallTimeMins = 60\n"
        write(f"{place}/execute/dir_1/.job.ad", ad, uid)
        self.run(job, uid, f"{place}/log")
        return place

    def run(self, job: int, uid: int, log: str) -> None:
        """A process named like a startd, in that directory."""
        environment = {"SLURM_JOB_ID": str(job)}
        process = subprocess.Popen(
            [self.startd, "1000"], user=uid, group=uid, extra_groups=[], cwd=log, env=environment
        )
        self.processes.append(process)
        name = Path(f"/proc/{process.pid}/comm")
        wait_for(lambda: name.read_text() == "condor_startd\n")

    def used(self, number: int) -> tuple[str, float | None] | None:
        """What is published of a job after a round: its standing and its cores in use."""
        said = self.host.published(number)
        return None if said is None else (said.standing, said.report.used_cpu)

    def later(self, seconds: int) -> None:
        """Time passes, and the agent does its round."""
        self.host.now += seconds
        self.host.round()

    def close(self) -> None:
        """End the processes."""
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture
def glideins() -> Iterator[Glideins]:
    with public_directory() as base:
        made = Glideins(base)
        try:
            yield made
        finally:
            made.close()


def test_each_job_has_the_figures_of_its_own_glidein(glideins: Glideins) -> None:
    """Wherever their directories are; one that says something itself is not looked at."""
    glideins.glidein(17, ALICE, 3)
    glideins.glidein(18, ALICE, 5)
    glideins.glidein(19, BOB, 2)
    glideins.host.report(19, BOB)
    glideins.host.round()
    assert [glideins.used(number) for number in (17, 18, 19)] == [("glidein", 3), ("glidein", 5), ("fresh", 6)]


def test_two_glideins_of_a_job_count_together(glideins: Glideins) -> None:
    """As on a whole node."""
    glideins.glidein(17, ALICE, 3)
    glideins.glidein(17, ALICE, 4)
    glideins.host.round()
    assert glideins.used(17) == ("glidein", 7)
    assert glideins.used(18) is None


def test_a_new_glidein_is_found_within_its_period(glideins: Glideins) -> None:
    """Processes are not looked through in each round; what changes in a glidein is seen a period later."""
    glideins.host.round()
    place = glideins.glidein(17, ALICE, 3)
    glideins.later(GLIDEIN_PERIOD // 2)
    assert glideins.used(17) is None
    glideins.later(GLIDEIN_PERIOD // 2)
    assert glideins.used(17) == ("glidein", 3)
    write(f"{place}/execute/dir_1/.machine.ad", "Cpus = 4\n", ALICE)
    glideins.later(GLIDEIN_PERIOD)
    assert glideins.used(17) == ("glidein", 4)


def test_what_is_seen_from_outside_stands_back_between_two_looks(
    glideins: Glideins, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A glidein whose payloads work is one in each round, until its own report comes or its startd has gone."""

    def look(observer: Observer, runs: Mapping[str, ObservedRun], *_: object) -> None:
        now = glideins.host.now
        told = Observation("glideinwms", now, 1, 2.0, 60, 0, (now - 30,))
        observer.seen = {run: SeenJob(1, told=told, has_worked=True) for run in runs}

    monkeypatch.setattr(Observer, "look", look)
    glideins.glidein(17, ALICE, 3)
    glideins.host.round()
    found = []
    for _ in range(2):
        found.append(glideins.used(17))
        glideins.later(GLIDEIN_PERIOD // 4)
    assert found == [("glidein", 3)] * 2 and glideins.used(18) == ("observed", 2)
    glideins.close()
    glideins.later(GLIDEIN_PERIOD)
    assert glideins.used(17) == ("observed", 2)


def test_no_user_states_figures_for_another_ones_job(glideins: Glideins) -> None:
    """Bob's process says that it is alice's job; hers is where his files are."""
    his = glideins.glidein(17, BOB, 7)
    os.chmod(his, 0o755)
    for name in ("log", "execute", "execute/dir_1"):
        os.chmod(f"{his}/{name}", 0o755)
    glideins.run(18, ALICE, f"{his}/log")
    glideins.host.round()
    assert [glideins.used(number) for number in (17, 18, 19)] == [None, None, None]


@pytest.mark.parametrize("kind", ["fifo", "link", "a thousand payloads", "no files", "a hundred startds"])
def test_what_no_glidein_has_costs_its_own_report_alone(glideins: Glideins, kind: str) -> None:
    """HOSTILE 1, 5, 26: the round ends in time, and the others are published."""
    place = glideins.glidein(17, ALICE, 3)
    glideins.glidein(18, ALICE, 5)
    ad = f"{place}/execute/dir_1/.job.ad"
    if kind in {"fifo", "link"}:
        os.unlink(ad)
    if kind == "fifo":
        os.mkfifo(ad)
    elif kind == "link":
        os.symlink("/etc/shadow", ad)
    elif kind == "a thousand payloads":
        for number in range(2, 1000):
            shutil.copytree(f"{place}/execute/dir_1", f"{place}/execute/dir_{number}")
            for path in ("", "/.machine.ad", "/.job.ad"):
                os.chown(f"{place}/execute/dir_{number}{path}", ALICE, ALICE)
    elif kind == "no files":
        shutil.rmtree(f"{place}/log")
    else:
        for _ in range(100):
            glideins.run(17, ALICE, f"{place}/log")
    glideins.host.round()
    assert glideins.used(18) == ("glidein", 5)
    assert glideins.used(17) == (("glidein", 3) if kind == "a hundred startds" else None)
    assert len(glideins.host.said) <= 1


def test_a_glidein_reads_a_later_end_where_no_row_says_what_it_is(glideins: Glideins) -> None:
    """It ends its payloads 1800 s before what it reads, so they run until the deadline."""
    host = glideins.host
    glideins.glidein(17, ALICE, 3)
    host.round()
    end = host.now + 601
    for number in (17, 19):
        host.slurm.set(number, EndTime=end, TimeLimit="00:12:00")
    host.round()
    assert [host.features(number).get("shutdowntime_job") for number in (17, 19)] == [str(end + 1800), str(end)]
    assert host.site_ad(17) == host.site_ad(19) == f"VACATE_DESIRED = True\nPAYLOAD_DEADLINE = {end}\n"
