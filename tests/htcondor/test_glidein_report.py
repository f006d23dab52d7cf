"""A glidein that says nothing, on a node: the update hook reads its files as its user, the cron publishes figures."""

from __future__ import annotations

import os
import time

import pytest

from made_up_node import Job, Node, Programs, make_directory, pilot_ad, write

pytestmark = pytest.mark.daemons  # it runs real hooks as a job's user

USER, OTHER = 54321, 54322


def silent_job(node: Node, programs: Programs, slot: str = "slot1_1") -> Job:
    """A job of 8 cores that has begun 1000 s ago, with its features."""
    job = node.start(slot, USER, int(time.time()) - 1000)
    assert programs.prepare(job).returncode == 0
    return job


def glidein(job: Job, uid: int = USER) -> str:
    """The local directory of a glidein in the job's directory, that leaves at once."""
    place = f"{job.scratch}/glide_Ab12Cd"
    for name in ("", "/log", "/execute"):
        make_directory(place + name, 0o700, uid)
    write(f"{place}/log/StartdLog", "", uid)
    write(f"{place}/condor_config", "GLIDEIN_Max_Tail=0\nUPDATE_INTERVAL = 1\n", uid)
    return place


def payload(place: str, number: int, cores: int, started: int, minutes: int, uid: int = USER) -> str:
    """A payload below the glidein."""
    directory = f"{place}/execute/dir_{number}"
    make_directory(directory, 0o700, uid)
    write(f"{directory}/.machine.ad", f"Cpus = {cores}\n", uid)
    write(f"{directory}/.job.ad", f"JobCurrentStartDate = {started}\nMaxWallTimeMins = {minutes}\n", uid)
    return directory


def published(node: Node, programs: Programs, slot: str = "slot1_1") -> dict[str, str]:
    """What a round of the cron prints for the slot."""
    ran = programs.cron(node)
    assert (ran.returncode, ran.stderr) == (0, b"")
    for ad in ran.stdout.decode().split("\n- ")[:-1]:
        lines = dict(line.partition(" = ")[::2] for line in ad.splitlines() if " = " in line)
        if f'"{slot}@' in lines.get("SlotMergeConstraint", ""):
            return lines
    return {}


def test_a_silent_glidein_has_live_figures(node: Node, programs: Programs) -> None:
    """By hand: 2 cores since 100 s for 15 min and 4 since 20 s for 12 min, of 8."""
    job = silent_job(node, programs)
    place, now = glidein(job), int(time.time())
    payload(place, 1, 2, now - 100, 15)
    payload(place, 2, 4, now - 20, 12)
    ran = programs.update(job)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")
    found = published(node, programs)
    assert found["PilotReportStanding"] == '"glidein"'
    assert (found["PilotUsedCpu"], found["PilotLastJobStart"]) == ("6.0", str(now - 20))
    assert (found["PilotFirstExpJobEnd"], found["PilotLastExpJobEnd"]) == (str(now + 700), str(now + 800))
    assert (found["PilotAddUncomTime"], found["PilotAddFinalExpWaste"]) == ("160.0", "600.0")
    assert "PilotDrainingWaste" in found and "PilotKillWaste" in found


def test_the_pilots_own_report_comes_first(node: Node, programs: Programs) -> None:
    """As long as it is fresh; afterwards its files speak for it again."""
    job = silent_job(node, programs)
    place, now = glidein(job), int(time.time())
    payload(place, 1, 2, now, 15)
    programs.update(job)
    write(f"{job.scratch}/.pilot.ad", pilot_ad(now), USER)
    assert published(node, programs)["PilotReportStanding"] == '"fresh"'
    old = now - 4000
    os.utime(f"{job.scratch}/.pilot.ad", (old, old))
    assert published(node, programs)["PilotReportStanding"] == '"glidein"'


def test_a_glidein_that_has_ended_is_silent_again(node: Node, programs: Programs) -> None:
    """With the first update after its startd has gone."""
    job = silent_job(node, programs)
    place = glidein(job)
    programs.update(job)
    assert published(node, programs)["PilotReportStanding"] == '"glidein"'
    old = time.time() - 4000
    os.utime(f"{place}/log/StartdLog", (old, old))
    programs.update(job)
    assert "PilotReportStanding" not in published(node, programs)


@pytest.mark.parametrize("kind", ["link", "fifo", "hard link", "another user's"])
def test_what_no_glidein_has_is_refused_in_one_line(node: Node, programs: Programs, kind: str) -> None:
    """HOSTILE 1, 4, 5, 11: nothing of it is published, the hook ends at once, and the site notice is brought."""
    victim = silent_job(node, programs, "slot1_2")
    secret = payload(glidein(victim, OTHER), 1, 1, int(time.time()), 77, OTHER)
    job = silent_job(node, programs)
    directory = payload(glidein(job), 1, 2, int(time.time()), 15)
    os.unlink(f"{directory}/.job.ad")
    if kind == "link":
        os.symlink(f"{secret}/.job.ad", f"{directory}/.job.ad")
    elif kind == "fifo":
        os.mkfifo(f"{directory}/.job.ad", 0o666)
        os.chown(f"{directory}/.job.ad", USER, USER)
    elif kind == "hard link":
        os.link(f"{secret}/.job.ad", f"{directory}/.job.ad")
    else:
        write(f"{directory}/.job.ad", "MaxWallTimeMins = 77\n", OTHER)
    node.refresh(job, Activity="Retiring", RetirementTimeRemaining=600, MyCurrentTime=int(time.time()))
    ran = programs.update(job)
    assert (ran.returncode, ran.stdout, ran.stderr.count(b"\n")) == (0, b"", 1) and len(ran.stderr) < 200
    assert os.path.exists(f"{job.scratch}/.site.ad")
    assert "PilotReportStanding" not in published(node, programs)


def test_a_forged_report_is_bounded_as_any_other(node: Node, programs: Programs) -> None:
    """Whoever writes the file himself, or ads of a thousand cores, states no more than his slot has."""
    job = silent_job(node, programs)
    payload(glidein(job), 1, 10**6, 1, 10**8)
    programs.update(job)
    found = published(node, programs)
    assert found["PilotUsedCpu"] == "8.0"
    assert int(found["PilotLastJobStart"]) >= job.started
    forged = "USED_FRACTION1k = 99999999\nADD_UNCOM_TIME1k = 999999999999\nLAST_JOB_START = 1\n"
    write(f"{job.scratch}/.jobstatus/.glidein.ad", forged, USER)
    found = published(node, programs)
    assert (found["PilotUsedCpu"], found["PilotReportStanding"]) == ("8.0", '"incomplete"')
