"""The cron: one ad per pilot that reports, aimed at exactly its slot and job, and withdrawn when it has gone."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from typing import NamedTuple

import classad2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise import __version__
from drainwise.facts.waste import classad_expressions
from drainwise.htcondor.node import UNUSABLE
from drainwise.htcondor.node.cron_state import marks_of, remembered
from drainwise.htcondor.node.job_directories import JobSandbox
from drainwise.htcondor.node.startd_cron import literal, node_ad, output, report_ad, slot_ad
from drainwise.pilotad.attributes import ATTRIBUTES
from drainwise.pilotad.report import PilotReport
from made_up_node import (
    HOST,
    Job,
    Node,
    Programs,
    Ran,
    ad_text,
    machine_attributes,
    pilot_ad,
    public_directory,
    run_as,
    write,
)
from real_daemons.waiting import wait_for

pytestmark = pytest.mark.daemons  # it runs real hooks as a job's user

# What does not depend on the layout of the directories is tried in one of them.
ONE_LAYOUT = pytest.mark.parametrize("node", ["since 25.4"], indirect=True)
USER, OTHER = 54321, 54322
NOW = 1795249000
METRICS = list(classad_expressions(3600))
Remembered = dict[str, tuple[str, str, str]]
OURS = ["PilotHeartbeat", "PilotReportedBy", "PilotReportStanding", *(row.published for row in ATTRIBUTES), *METRICS]


class Piece(NamedTuple):
    """One ad of the cron's output: its tag, whether it asks to be sent at once, its constraint, its attributes."""

    tag: str
    push: bool
    constraint: str | None
    ad: dict[str, object]


def pieces(out: bytes) -> list[Piece]:
    """The output as the startd takes it apart: a line that begins with `-` closes an ad."""
    found, lines = [], list[str]()
    text = out.decode("ascii")
    assert text.endswith("\n")
    for line in text[:-1].split("\n"):
        if not line.startswith("-"):
            lines.append(line)
            continue
        closing = re.fullmatch(r"- (\S+)( update:true)?", line)
        assert closing, line
        ad = classad2.parseOne("\n".join(lines))
        assert len(ad) == len(lines), lines  # every line is one attribute
        constraint = next((line.partition(" = ")[2] for line in lines if line.startswith("SlotMergeConstraint")), None)
        found.append(Piece(closing[1], bool(closing[2]), constraint, {name: ad[name] for name in ad}))
        lines = []
    assert not lines, "the last ad is not closed"
    return found


def reports(ran: Ran) -> dict[str, Piece]:
    """The pieces of the slots, by slot; the node's own heartbeat is there and first."""
    assert (ran.returncode, ran.stderr) == (0, b"")
    first, *others = pieces(ran.stdout)
    assert (first.tag, first.constraint) == ("drainwise", None)
    assert set(first.ad) - {"PilotHooksSince"} == {"PilotCronHeartbeat", "PilotCronVersion", UNUSABLE}
    assert (first.ad[UNUSABLE], first.ad["PilotCronVersion"]) == ("", __version__)
    return {piece.tag: piece for piece in others}


def aimed_at(job: Job) -> str:
    """The constraint that fits this job in its slot and nothing else."""
    return f'Name == "{job.slot}@{HOST}" && GlobalJobId =?= "{job.job_id}"'


@pytest.fixture
def pilot(node: Node, programs: Programs) -> Job:
    """A prepared job whose pilot reports."""
    return start_pilot(node, programs, "slot1_1")


def start_pilot(node: Node, programs: Programs, slot: str, uid: int = USER) -> Job:
    """A job that has run for ten minutes and reports."""
    job = node.start(slot, uid, int(time.time()) - 600)
    assert programs.prepare(job).returncode == 0
    write(f"{job.scratch}/.pilot.ad", pilot_ad(int(time.time()) - 300), uid)
    return job


def has_hooks_since(node: Node, since: int) -> None:
    """As if the cron had run here since then (UNIX s)."""
    write(f"{node.state}.since", str(since), node.daemon)


# ---- what is published ----


def test_a_report_reaches_its_slot(node: Node, programs: Programs, pilot: Job) -> None:
    """Nine attributes in absolute units, heartbeat, standing and the three live metrics; nothing else."""
    [piece] = reports(programs.cron(node)).values()
    assert (piece.tag, piece.push, piece.constraint) == (f"slot1_1@{HOST}", True, aimed_at(pilot))
    assert sorted(piece.ad) == sorted(["SlotMergeConstraint", *OURS])
    assert piece.ad["PilotUsedCpu"] == 6.0
    assert piece.ad["PilotAddUncomTime"] == 360.0
    assert piece.ad["PilotAddFinalExpWaste"] == 60000.0
    assert piece.ad["PilotReportStanding"] == "fresh"
    assert piece.ad["PilotCanPostponeLastJob"] is True
    assert piece.ad["PilotPriorityFactor"] == 3


@ONE_LAYOUT
def test_the_published_metrics_are_the_formulas(node: Node, programs: Programs, pilot: Job) -> None:
    """Evaluated in the slot's ad they are what SPEC's formulas give."""
    [piece] = reports(programs.cron(node)).values()
    slot = classad2.ClassAd({**piece.ad, "Cpus": 8, "GlobalJobId": pilot.job_id, "JobStart": pilot.started})
    del slot["SlotMergeConstraint"]
    start, added = piece.ad["PilotLastJobStart"], piece.ad["PilotAddUncomTime"]
    assert isinstance(start, int) and isinstance(added, float)
    before = int(time.time()) - 1  # ClassAds read a clock that is up to a tick behind this one
    left, drain, kill = (slot.eval(f"Pilot{name}") for name in ("Remaining", "DrainingWaste", "KillWaste"))
    after = time.time()
    assert start + 13000 - after <= left <= start + 13000 - before
    assert (8 - 6) * (start + 7000 - after) + 60000 <= drain <= (8 - 6) * (start + 7000 - before) + 60000
    least, most = (min(added + 6 * (now - start), 8 * (now - pilot.started)) for now in (before, after))
    assert least <= kill <= most


def test_two_jobs_of_one_user(node: Node, programs: Programs) -> None:
    """Each report goes to its own slot, and a job that says nothing is not mentioned."""
    first, second = (start_pilot(node, programs, slot) for slot in ("slot1_1", "slot1_2"))
    programs.prepare(node.start("slot1_3", USER, int(time.time())))
    write(f"{second.scratch}/.pilot.ad", "PRIORITY_FACTOR = 7\n", USER)
    found = reports(programs.cron(node))
    assert {tag: piece.constraint for tag, piece in found.items()} == {
        f"{job.slot}@{HOST}": aimed_at(job) for job in (first, second)
    }
    assert found[f"slot1_1@{HOST}"].ad["PilotPriorityFactor"] == 3
    assert found[f"slot1_2@{HOST}"].ad["PilotPriorityFactor"] == 7
    assert found[f"slot1_2@{HOST}"].ad["PilotReportStanding"] == "incomplete"


def test_a_report_in_the_drafts_way(node: Node, programs: Programs) -> None:
    """`$JOBSTATUS`, filled by the job in the directory that the hook made."""
    job = node.start("slot1_1", USER, int(time.time()) - 600)
    programs.prepare(job)
    write(f"{job.scratch}/.jobstatus/priority_factor", "9\n", USER)
    write(f"{job.scratch}/.jobstatus/used_CPU", "2.5\n", USER)
    [piece] = reports(programs.cron(node)).values()
    assert (piece.ad["PilotUsedCpu"], piece.ad["PilotPriorityFactor"]) == (2.5, 9)


@ONE_LAYOUT
def test_a_heartbeat_from_before_the_job_is_stale(node: Node, programs: Programs, pilot: Job) -> None:
    """HOSTILE 48: a report that an earlier run left behind does not count as this one's."""
    before = pilot.started - 1000
    os.utime(f"{pilot.scratch}/.pilot.ad", (before, before))
    [piece] = reports(programs.cron(node)).values()
    assert piece.ad["PilotReportStanding"] == "stale"


@ONE_LAYOUT
def test_the_sites_limit_stands_in_the_metrics(node: Node, programs: Programs, pilot: Job) -> None:
    """`heartbeat_limit_secs` of the settings."""
    settings = f"{node.base}/node.conf"
    write(settings, "heartbeat_limit_secs = 77\n", 0)
    ran = programs.run("pilot-cron", node.cron_arguments(settings), node.daemon, {}, b"", "/")
    assert b"PilotHeartbeat <= 77)" in ran.stdout


# ---- pushing and taking back ----


@ONE_LAYOUT
def test_only_a_change_is_pushed(node: Node, programs: Programs, pilot: Job) -> None:
    """A report that stands goes with the startd's next update; one that changed is sent at once."""
    assert reports(programs.cron(node))[f"slot1_1@{HOST}"].push
    assert not reports(programs.cron(node))[f"slot1_1@{HOST}"].push
    write(f"{pilot.scratch}/.pilot.ad", pilot_ad(int(time.time()) - 200), USER)
    assert not reports(programs.cron(node))[f"slot1_1@{HOST}"].push, "it was sent just now"


AD, OTHERS_AD = 'SlotMergeConstraint = Name == "s" && GlobalJobId =?= "a"', 'SlotMergeConstraint = Name == "s"'


@pytest.mark.parametrize(
    ("ads", "sent"),
    [
        ([(0, "A = 1"), (10, "A = 1"), (9000, "A = 1")], [0]),
        ([(0, "A = 1"), (10, "A = 2"), (150, "A = 2"), (160, "A = 2")], [0, 150]),
        ([(0, "A = 1"), (10, "A = 2"), (20, "A = 1"), (150, "A = 1")], [0]),
        ([(0, "PilotHeartbeat = 1"), (9000, "PilotHeartbeat = 2")], [0]),
        ([(0, "PilotReturnedCpus = 1"), (1, "PilotReturnedCpus = 2"), (2, "PilotReturnedCpus = 2\nA = 2")], [0, 1]),
        ([(0, "A = 1"), (10, ""), (20, "A = 1")], [0, 20]),
        ([(20, "A = 1"), (10, "A = 2")], [20, 10]),  # the clock was set back
    ],
)
def test_what_is_new_is_sent_once_within_the_startds_own_interval(ads: list[tuple[int, str]], sent: list[int]) -> None:
    """A time alone is nothing new; what is returned is sent at once, and so is another run's report."""
    before: Remembered = {}
    found = []
    for moment, text in ads:
        published = {"s": (f"{AD}\n{text}" if text else "", "")}
        marks = marks_of(published, before, NOW + moment, 150)
        if any(
            piece.push and piece.constraint != "false"
            for piece in pieces(output(published, marks, before, NOW).encode())
        ):
            found.append(moment)
        before = marks
    assert found == sent
    other = {"s": (f"{OTHERS_AD}\n{ads[-1][1]}", "")}
    assert marks_of(other, before, NOW + ads[-1][0] + 1, 150)["s"][2] == str(NOW + ads[-1][0] + 1)


def test_a_node_sends_what_is_new_of_itself() -> None:
    """Its version, say, or files that have gone: not with each heartbeat."""
    assert node_ad(5, ["/x"], 7, 60, ["A", "B=0"]).splitlines() == [
        *("PilotOrdersSince = 5", "PilotHooksSince = 7", "PilotWallLimit = 60", "A = undefined", "B = 0"),
        *(f'PilotCronVersion = "{__version__}"', 'PilotNodeUnusable = "/x"'),
    ]
    assert [pieces(output({}, {}, {}, NOW, "A = 1\n", is_news).encode())[0].push for is_news in (True, False)] == [
        True,
        False,
    ]


@ONE_LAYOUT
def test_a_node_says_once_what_it_is(node: Node, programs: Programs) -> None:
    """The first round is sent, and none that says the same, whatever the time."""
    arguments = [*node.cron_arguments(programs.settings), *KNOBS, "--guarded", "PilotRemaining", "PilotReturnedBy"]

    def first() -> Piece:
        return pieces(programs.run("pilot-cron", arguments, node.daemon, {}, b"", "/").stdout)[0]

    assert [first().push for _ in range(3)] == [True, False, False]
    assert {first().ad[name] for name in ("PilotRemaining", "PilotReturnedBy")} == {classad2.Value.Undefined}


def test_what_has_gone_is_withdrawn_once(node: Node, programs: Programs, pilot: Job) -> None:
    """A tag that is no longer printed would keep its values for ever."""
    programs.cron(node)
    os.unlink(f"{pilot.scratch}/.pilot.ad")
    assert reports(programs.cron(node)) == {
        f"slot1_1@{HOST}": Piece(f"slot1_1@{HOST}", True, "false", {"SlotMergeConstraint": False})
    }
    assert reports(programs.cron(node)) == {}


def test_a_job_that_has_ended_is_withdrawn(node: Node, programs: Programs, pilot: Job) -> None:
    """And the next job in its slot inherits nothing."""
    programs.cron(node)
    top = f"{node.execute}/{next(part for part in pilot.scratch.split('/') if part.startswith('dir_'))}"
    subprocess.run(["rm", "-r", top], check=True)
    assert reports(programs.cron(node))[f"slot1_1@{HOST}"].constraint == "false"
    following = node.start("slot1_1", OTHER, int(time.time()))
    programs.prepare(following)
    assert reports(programs.cron(node)) == {}
    write(f"{following.scratch}/.pilot.ad", pilot_ad(int(time.time())), OTHER)
    assert reports(programs.cron(node))[f"slot1_1@{HOST}"].constraint == aimed_at(following)


@pytest.mark.parametrize("node", ["since 25.4"], indirect=True)  # before, a starter that has gone gives no slot
def test_of_two_directories_the_later_run_counts(node: Node, programs: Programs) -> None:
    """HOSTILE 48: one that a killed starter left behind does not hide the slot's job, whatever their numbers."""
    now = int(time.time())
    for old, new in ((999999, 1000000), (1000001, 999998)):
        for pid, started in ((old, now - 5000), (new, now - 600)):
            job = node.start("slot1_1", USER, started, pid=pid)
            programs.prepare(job)
            write(f"{job.scratch}/.pilot.ad", pilot_ad(now), USER)
        assert reports(programs.cron(node))[f"slot1_1@{HOST}"].constraint == aimed_at(job)
        for pid in (old, new):
            subprocess.run(["rm", "-r", f"{node.execute}/dir_{pid}"], check=True)


@ONE_LAYOUT
def test_what_was_refused_is_said_once(node: Node, programs: Programs, pilot: Job) -> None:
    """One line per change, with names that are ours; the report that was there before is taken back."""
    programs.cron(node)
    os.rename(f"{pilot.scratch}/.pilot.ad", f"{pilot.scratch}/real")
    os.symlink("real", f"{pilot.scratch}/.pilot.ad")
    ran = programs.cron(node)
    assert ran.stderr.decode() == f"drainwise: slot1_1@{HOST}: .pilot.ad: symlink\n"
    assert pieces(ran.stdout)[1].constraint == "false"
    assert programs.cron(node).stderr == b""
    os.rename(f"{pilot.scratch}/real", f"{pilot.scratch}/.pilot.ad")
    assert list(reports(programs.cron(node))) == [f"slot1_1@{HOST}"]


# ---- since when jobs find the hooks ----


def since_of(ran: Ran) -> object:
    """Since when the node says that it has hooks."""
    return pieces(ran.stdout)[0].ad.get("PilotHooksSince")


def cron_each_minute(node: Node, programs: Programs) -> Ran:
    arguments = [*node.cron_arguments(programs.settings), "--period", "60"]
    return programs.run("pilot-cron", arguments, node.daemon, {}, b"", "/")


def test_since_its_first_round_a_node_has_hooks(node: Node, programs: Programs) -> None:
    os.unlink(note := f"{node.state}.since")
    first = since_of(cron_each_minute(node, programs))
    assert first == pytest.approx(time.time(), abs=30)
    os.utime(note, (0, time.time() - 200))  # late, but no round is missing yet
    assert since_of(cron_each_minute(node, programs)) == first
    assert os.stat(note).st_mtime == pytest.approx(time.time(), abs=30)


@ONE_LAYOUT
def test_since_its_first_round_after_a_gap(node: Node, programs: Programs) -> None:
    """The cron comes and goes with the hooks' files: whatever started meanwhile has none."""
    has_hooks_since(node, NOW - 86_400)
    os.utime(f"{node.state}.since", (0, time.time() - 300))
    assert since_of(cron_each_minute(node, programs)) == pytest.approx(time.time(), abs=30)


@ONE_LAYOUT
def test_since_its_first_round_with_all_files(node: Node, programs: Programs) -> None:
    """The cron may be there while a hook is not: whatever starts meanwhile has none."""
    has_hooks_since(node, NOW - 86_400)
    assert since_of(cron_each_minute(node, programs)) == NOW - 86_400
    settings = f"{programs.settings}.gone"
    arguments = [*node.cron_arguments(settings), "--period", "60"]
    ran = programs.run("pilot-cron", arguments, node.daemon, {}, b"", "/")
    assert pieces(ran.stdout)[0].ad["PilotNodeUnusable"] == settings
    assert since_of(cron_each_minute(node, programs)) == pytest.approx(time.time(), abs=30)


@ONE_LAYOUT
@pytest.mark.parametrize("note", [None, "", "soon", "-5"])
def test_a_node_of_an_earlier_drainwise_does_not_say_since_when(
    node: Node, programs: Programs, note: str | None
) -> None:
    """It has had them for long, and nobody noted since when: no pilot of it is taken to have none."""
    os.unlink(f"{node.state}.since")
    if note is not None:
        write(f"{node.state}.since", note, node.daemon)
    write(node.state, "", node.daemon)
    for _ in range(2):
        assert since_of(cron_each_minute(node, programs)) is None


def test_a_silent_job_of_before_shows_whether_it_has_hooks(node: Node, programs: Programs) -> None:
    """Started while the files were there already and the cron was not: it can be told. One without features cannot."""
    told = node.start("slot1_1", USER, int(time.time()) - 600)
    programs.prepare(told)
    node.start("slot1_2", OTHER, int(time.time()) - 600)
    has_hooks_since(node, int(time.time()) - 300)
    [_, piece] = pieces(programs.cron(node).stdout)
    assert (piece.tag, piece.constraint) == (f"slot1_1@{HOST}", aimed_at(told))
    assert (set(piece.ad), piece.ad["PilotHookRan"]) == ({"SlotMergeConstraint", "PilotHookRan"}, True)


# ---- cores that a pilot returned ----


def cron_with_parts(node: Node, programs: Programs) -> Ran:
    """A round of a node where pilots may return some of their cores."""
    settings = f"{node.base}/parts.conf"
    write(settings, "partial_return = 1\n", 0)
    return programs.run("pilot-cron", node.cron_arguments(settings), node.daemon, {}, b"", "/")


def test_returned_cores_name_their_run_and_the_time(node: Node, programs: Programs, pilot: Job) -> None:
    """Only where the site says so; the time alone is no change that is sent at once."""
    own = pilot_ad(int(time.time()) - 300)
    write(f"{pilot.scratch}/.pilot.ad", own + f"RETURNED_CORES = 2\nRETURNED_SINCE = {int(time.time()) - 9}\n", USER)
    [piece] = reports(programs.cron(node)).values()
    assert not {"PilotReturnedBy", "PilotReturnedAt"} & set(piece.ad)
    for push in (True, False):
        [piece] = reports(cron_with_parts(node, programs)).values()
        assert (piece.ad["PilotReturnedCpus"], piece.push) == (2, push)
        assert piece.ad["PilotReturnedBy"] == piece.ad["PilotReportedBy"] == f"{pilot.job_id}@{pilot.started}"
        assert piece.ad["PilotLendsNoMore"] == classad2.Value.Undefined
        assert piece.ad["PilotReturnedAt"] == pytest.approx(time.time(), abs=30)
        told = int(time.time())
        wait_for(lambda: int(time.time()) > told, what="another time to tell")  # noqa: B023 - called at once


@pytest.mark.parametrize(
    "lines",
    [
        "RETURNED_CORES = 0\nRETURNED_SINCE = {now}\n",
        "RETURNED_CORES = 2\n",
        "RETURNED_CORES = 7\nRETURNED_SINCE = {now}\n",
    ],
    ids=["nothing", "without its time", "more than is idle"],
)
@ONE_LAYOUT
def test_what_is_not_believed_is_not_returned(node: Node, programs: Programs, pilot: Job, lines: str) -> None:
    """Said in so many words: what is not printed any more the startd would keep."""
    own = pilot_ad(int(time.time()) - 300)
    write(f"{pilot.scratch}/.pilot.ad", own + lines.format(now=int(time.time()) - 9), USER)
    [piece] = reports(cron_with_parts(node, programs)).values()
    assert piece.ad["PilotReturnedBy"] == classad2.Value.Undefined
    assert "PilotReturnedAt" not in piece.ad


@ONE_LAYOUT
def test_nothing_is_returned_of_an_owner_whose_pilot_broke_its_word(node: Node, programs: Programs, pilot: Job) -> None:
    """The node remembers it; who cannot return parts is not named."""
    own = pilot_ad(int(time.time()) - 300)
    write(f"{node.state}-owners", f"{USER} {NOW}\n", node.daemon)
    [piece] = reports(cron_with_parts(node, programs)).values()
    assert "PilotLendsNoMore" not in piece.ad
    write(f"{pilot.scratch}/.pilot.ad", own + f"RETURNED_CORES = 2\nRETURNED_SINCE = {int(time.time()) - 9}\n", USER)
    [piece] = reports(cron_with_parts(node, programs)).values()
    assert (piece.ad["PilotReturnedBy"], piece.ad["PilotLendsNoMore"]) == (classad2.Value.Undefined, NOW)


# ---- what is not as it should be ----


def test_a_node_without_jobs(node: Node, programs: Programs) -> None:
    """Its own heartbeat is published all the same."""
    assert reports(programs.cron(node)) == {}


# ---- what the node itself is ----


KNOBS = ["--keyword", "DRAINWISE", "--hooks", "DRAINWISE", "--runtime", "True", "--drop-in", "drop-in"]


def node_word(node: Node, programs: Programs, *knobs: str) -> tuple[int | None, dict[str, int]]:
    """PilotOrdersSince after a round with these knobs, and the slots' PilotVacateTime."""
    arguments = [*node.cron_arguments(programs.settings), *knobs]
    ran = programs.run("pilot-cron", arguments, node.daemon, {}, b"", "/")
    assert (ran.returncode, ran.stderr) == (0, b"")
    first, *others = pieces(ran.stdout)
    since = first.ad.get("PilotOrdersSince")
    assert since is None or isinstance(since, int)
    found = {}
    for piece in others:
        if "PilotVacateTime" in piece.ad:
            assert sorted(piece.ad) == ["PilotVacateTime", "SlotMergeConstraint"]
            value = piece.ad["PilotVacateTime"]
            assert isinstance(value, int) and piece.constraint is not None
            found[piece.constraint] = value
    return since, found


@ONE_LAYOUT
def test_a_node_says_since_when_it_takes_orders(node: Node, programs: Programs) -> None:
    """From the drop-in's own time; kept when it is rendered again; 0 where another's hooks are in force."""
    drop_in = f"{node.base}/drop-in"
    write(drop_in, "", 0)
    placed = int(os.stat(drop_in).st_ctime)
    knobs = [*KNOBS, "--config-dirs", f"/nowhere, {node.base}"]
    assert node_word(node, programs, *knobs) == (placed, {})
    wait_for(lambda: time.time() >= placed + 1, what="the next second, which is what a file's time has")
    write(drop_in, "again", 0)
    assert node_word(node, programs, *knobs) == (placed, {})
    assert node_word(node, programs, *knobs, "--hooks", "SITE")[0] == 0
    assert node_word(node, programs)[0] is None, "an older drop-in does not say"


@ONE_LAYOUT
def test_after_an_upgrade_nobody_knows_and_the_node_is_asked(node: Node, programs: Programs, pilot: Job) -> None:
    """A record of the version before is there: that startd may well take orders."""
    assert node_word(node, programs)[0] is None
    assert list(remembered(node.state).marks) == [f"{pilot.slot}@{HOST}"]
    assert node_word(node, programs, *KNOBS, "--config-dirs", node.base)[0] == 1


def test_a_claim_with_another_vacate_time_shows_it(node: Node, programs: Programs, pilot: Job) -> None:
    """Only while it differs from what a new claim would be given, and only on its own slot."""
    ad = ad_text(machine_attributes(pilot.slot, 8)) + "MachineMaxVacateTime = 10 * 60\n"
    write(pilot.machine_ad, ad, USER if node.since_25_4 else node.daemon)
    assert node_word(node, programs, *KNOBS, "--vacate", "10", "*", "60")[1] == {}
    assert node_word(node, programs, *KNOBS, "--vacate", "30")[1] == {aimed_at(pilot): 600}
    arguments = [*node.cron_arguments(programs.settings), *KNOBS, "--vacate", "600"]
    gone = programs.run("pilot-cron", arguments, node.daemon, {}, b"", "/")
    assert f"- vacate-slot1_1@{HOST} update:true" in gone.stdout.decode(), "withdrawn"


@ONE_LAYOUT
@pytest.mark.parametrize(("forged", "shown"), [("999999999", 3600), ("7", 7), ("10 * evil", None), ("-1", None)])
def test_a_claim_is_not_believed_beyond_what_the_node_ever_had(
    node: Node, programs: Programs, pilot: Job, forged: str, shown: int | None
) -> None:
    """The sandbox's ad can be replaced by its user, who could else make its pilots impossible to ask."""
    assert node_word(node, programs, *KNOBS, "--vacate", "3600")[1] == {}
    write(pilot.machine_ad, f"MachineMaxVacateTime = {forged}\n", USER)
    found = node_word(node, programs, *KNOBS, "--vacate", "30")[1]
    assert found == ({} if shown is None else {aimed_at(pilot): shown})


@ONE_LAYOUT
@pytest.mark.parametrize("garbage", [b"", b"\0\xff" * 5000, b"a b c\n" * 3, b"one two\n\n", b"x" * 3_000_000])
def test_a_state_that_is_garbage(node: Node, programs: Programs, pilot: Job, garbage: bytes) -> None:
    """HOSTILE 51: it is as if nothing had been printed before; the round is whole and leaves a sound state."""
    with open(node.state, "wb") as stream:
        stream.write(garbage)
    os.chown(node.state, node.daemon, node.daemon)
    found = reports(programs.cron(node))
    assert found[f"slot1_1@{HOST}"].constraint == aimed_at(pilot)
    assert set(remembered(node.state).marks) == {f"slot1_1@{HOST}"}


@ONE_LAYOUT
@pytest.mark.parametrize("kind", ["directory", "closed directory above"])
def test_a_state_that_cannot_be_written(node: Node, programs: Programs, pilot: Job, kind: str) -> None:
    """HOSTILE 8, 10: the reports are published, one line says what is wrong."""
    if kind == "directory":
        os.mkdir(node.state)
    else:
        os.chmod(os.path.dirname(node.state), 0o500)
        os.chown(os.path.dirname(node.state), 0, 0)
    ran = programs.cron(node)
    assert ran.returncode == 0
    assert pieces(ran.stdout)[1].constraint == aimed_at(pilot)
    assert ran.stderr.count(b"\n") == 1


def test_a_directory_of_jobs_that_cannot_be_read(node: Node, programs: Programs, pilot: Job) -> None:
    """HOSTILE 10: no heartbeat either, so that every reader sees that nothing is known here."""
    os.chmod(node.execute, 0o000)
    os.chown(node.execute, 0, 0)
    ran = programs.cron(node)
    assert (ran.returncode, ran.stdout) == (0, b"")
    assert b"PermissionError" in ran.stderr
    assert ran.stderr.count(b"\n") == 1


@ONE_LAYOUT
def test_wrong_arguments(node: Node, programs: Programs) -> None:
    """One line, no output."""
    ran = programs.run("pilot-cron", ["--execute", node.execute, "--state"], node.daemon, {}, b"", "/")
    assert (ran.returncode, ran.stdout) == (0, b"")
    assert ran.stderr.count(b"\n") == 1


@ONE_LAYOUT
@pytest.mark.parametrize("closed", [">&-", ">/dev/full", "| head -c 1 >/dev/null"])
def test_output_that_nobody_reads(node: Node, programs: Programs, pilot: Job, closed: str) -> None:
    """HOSTILE 27, 54: it ends at once and with 0, and a later round publishes everything."""
    line = f'sh -c \'"$@" {closed}; test $? = 0\' sh "$0" "$@"'
    command = ["/bin/sh", "-c", line, f"{programs.directory}/pilot-cron", *node.cron_arguments(programs.settings)]
    ran = run_as(node.daemon, command)
    assert ran.returncode == 0
    assert list(reports(programs.cron(node))) == [f"slot1_1@{HOST}"]


# ---- the pure parts ----

numbers = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**31), 2**40),
    st.floats(0, 1e20, allow_nan=False),
)


@given(numbers)
def test_a_literal_is_read_back(value: float | bool | None) -> None:
    """HTCondor reads the same value and type, and unknown as undefined."""
    found = classad2.parseOne(f"A = {literal(value)}").eval("A")
    assert found == (classad2.Value.Undefined if value is None else value)
    assert isinstance(found, bool) == isinstance(value, bool)


sums = st.one_of(st.none(), st.floats(-(10**19), 10**19), st.floats(0, 10**5))
NOW_HERE = int(time.time())  # the expressions read the real clock
moments = st.one_of(st.none(), st.integers(0, 2**32), st.integers(NOW_HERE - 2000, NOW_HERE + 2000))


@given(
    st.builds(
        PilotReport,
        heartbeat=st.one_of(st.integers(NOW_HERE - 900, NOW_HERE), st.integers(NOW_HERE - 10**5, NOW_HERE + 10**3)),
        used_cpu=sums,
        last_job_start=moments,
        first_exp_job_end=moments,
        last_exp_job_end=moments,
        last_max_job_end=moments,
        add_uncom_time=sums,
        add_final_exp_waste=sums,
        priority_factor=st.one_of(st.none(), st.integers(-(2**31), 2**31 - 1)),
        can_postpone_last_job=st.one_of(st.none(), st.booleans()),
    )
)
def test_any_report_becomes_one_sound_ad(report: PilotReport) -> None:
    """HOSTILE 29, 36–39: our attributes, each once, metrics within SPEC's bounds; what lost its protection is empty.

    An unprotected pilot's kill waste is cores × elapsed, its other metrics are unknown.
    """
    job = JobSandbox(-1, USER, f"slot1_1@{HOST}", "central#1.0#1", 8, NOW_HERE - 1000, 0)
    slot = {"Cpus": 8, "GlobalJobId": job.job, "JobStart": job.started, "PilotLeaseEnd": NOW_HERE + 9000}
    text = slot_ad(report_ad(report, job, NOW_HERE, 3600), job)
    ad = classad2.parseOne(text + "".join(f"{name} = {live}\n" for name, live in classad_expressions(3600).items()))
    assert set(ad) == {"SlotMergeConstraint", *OURS}
    for name, value in slot.items():
        ad[name] = value
    undefined = classad2.Value.Undefined
    least = int(time.time()) - 1 - (NOW_HERE - 1000)  # the library's whole seconds may be a tick of the clock behind
    used, kill, drain = (ad.eval(name) for name in ("PilotUsedCpu", "PilotKillWaste", "PilotDrainingWaste"))
    most = time.time() - (NOW_HERE - 1000)
    assert used == undefined or 0 <= used <= 8
    assert 0 <= kill <= 8 * most
    assert drain == undefined or 0 <= drain <= 8 * 9000
    if ad["PilotReportStanding"] in {"stale", "contradictory"}:
        assert {ad.eval(row.published) for row in ATTRIBUTES} == {undefined}
        assert 8 * least <= kill <= 8 * most
        assert {ad.eval("PilotRemaining"), drain} == {undefined}


slots = st.sampled_from([f"slot1_{number}@{HOST}" for number in range(6)])
rounds = st.lists(st.dictionaries(slots, st.sampled_from(["", "A = 1", "A = 2"]), max_size=6), min_size=1, max_size=6)


@given(rounds)
def test_the_startd_ends_up_with_what_the_last_round_saw(history: list[dict[str, str]]) -> None:
    """Played through a startd that keeps every tag for ever, nothing that has gone is left."""
    kept: dict[str, str] = {}
    before: Remembered = {}
    for seen in history:
        published = {slot: (f"SlotMergeConstraint = true\n{ad}" if ad else "", "") for slot, ad in seen.items()}
        marks = marks_of(published, before, NOW, 60)
        text = output(published, marks, before, NOW).encode()
        for piece in pieces(text)[1:]:
            if piece.constraint == "false":
                assert piece.tag in kept
                del kept[piece.tag]
            else:
                kept[piece.tag] = f"A = {piece.ad['A']}"
        before = marks
        assert kept == {slot: ad for slot, ad in seen.items() if ad}


@pytest.fixture
def state() -> Iterator[str]:
    """A place for a state file."""
    with public_directory() as base:
        yield f"{base}/state"


def test_no_state_yet(state: str) -> None:
    """The first round of a node has nothing to take back."""
    found = remembered(state)
    assert (found.marks, found.since, found.found) == ({}, None, False)
