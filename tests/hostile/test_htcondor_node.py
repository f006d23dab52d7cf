"""Attacks on hooks and cron of an HTCondor node, with real users, files and processes.

Every number is that of the attack in the list of hostile cases. After each attack on a job the same holds: the round
ends in time and with 0, it says one short line at most per job, nothing of the user's stands in its output, and the
neighbour's report is published as before.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import classad2
import pytest

import drainwise
from drainwise.facts.waste import classad_expressions
from drainwise.htcondor.node.cron_state import remembered
from drainwise.node.settings import DEFAULT_HEARTBEAT_LIMIT
from drainwise.pilotad.attributes import ATTRIBUTES
from made_up_node import (
    HOST,
    PYTHON,
    Job,
    Node,
    Programs,
    ad_text,
    make_directory,
    pilot_ad,
    run_as,
    wait_for_command_line,
    write,
)

pytestmark = [
    pytest.mark.daemons,  # attacks take their time
    pytest.mark.skipif(os.geteuid() != 0, reason="needs other users, devices and mounts"),
]

# What does not depend on the layout of the directories is tried in one of them.
ONE_LAYOUT = pytest.mark.parametrize("node", ["before 25.4"], indirect=True)
ALICE, BOB = 54321, 54322
OURS = {"SlotMergeConstraint", "PilotHeartbeat", "PilotReportedBy", "PilotReportStanding"}
OURS |= {row.published for row in ATTRIBUTES}
OURS |= set(classad_expressions(DEFAULT_HEARTBEAT_LIMIT))
TOKEN = "PHANTOM"  # what the attacker wants to see in our output
# Words of our own lines, numbers, and the names and ids that the node itself made.
SOUND_VALUE = re.compile(r"-?[0-9][0-9.e+]*|undefined|true|false|\"(fresh|stale|contradictory|incomplete)\"")


class Round(NamedTuple):
    """What one round of the cron printed for the slots, by tag, and what it said."""

    slots: dict[str, dict[str, str]]
    said: list[str]


def start(node: Node, programs: Programs, slot: str, uid: int) -> Job:
    """A prepared job that has run for ten minutes and reports."""
    job = node.start(slot, uid, int(time.time()) - 600)
    assert programs.prepare(job).returncode == 0
    write(f"{job.scratch}/.pilot.ad", pilot_ad(int(time.time()) - 300), uid)
    return job


@pytest.fixture
def alice(node: Node, programs: Programs) -> Job:
    """The attacker's job."""
    return start(node, programs, "slot1_1", ALICE)


@pytest.fixture
def bob(node: Node, programs: Programs) -> Job:
    """The neighbour's job."""
    return start(node, programs, "slot1_2", BOB)


def tag(job: Job) -> str:
    """The full name of the slot in which a job runs."""
    return f"{job.slot}@{HOST}"


def taken_apart(out: bytes) -> dict[str, dict[str, str]]:
    """The output as the startd sees it, each line checked: one ad per tag, our attributes, literals and constraints."""
    found: dict[str, dict[str, str]] = {}
    lines: dict[str, str] = {}
    first = True
    for line in out.decode("ascii").splitlines():
        closing = re.fullmatch(r"- (\S+)( update:true)?", line)
        if closing is None:
            name, equals, value = line.partition(" = ")
            assert equals
            assert name not in lines
            lines[name] = value
            continue
        if first:
            assert closing[0] == "- drainwise"
            assert set(lines) - {"PilotHooksSince"} == {"PilotCronHeartbeat", "PilotCronVersion", "PilotNodeUnusable"}
        else:
            assert closing[1] not in found
            assert set(lines) <= OURS
            found[closing[1]] = lines
        lines, first = {}, False
    assert lines == {}
    return found


def one_round(node: Node, programs: Programs) -> Round:
    """A round that must end and print nothing that is not ours."""
    ran = programs.cron(node)
    assert ran.returncode == 0
    said = ran.stderr.decode("ascii").splitlines()
    assert len(said) <= len(os.listdir(node.execute))
    for line in said:
        assert line.isprintable()
        assert len(line) <= 200
    assert TOKEN not in ran.stdout.decode("ascii") + ran.stderr.decode("ascii")
    slots = taken_apart(ran.stdout)
    live = classad_expressions(DEFAULT_HEARTBEAT_LIMIT)
    for lines in slots.values():
        for name, value in lines.items():
            if name in live:
                assert value == live[name]
            elif name == "PilotReportedBy":
                job, _, started = value[1:-1].rpartition("@")
                assert lines["SlotMergeConstraint"].endswith(f'GlobalJobId =?= "{job}"') and started.isdigit()
            elif name != "SlotMergeConstraint":
                assert SOUND_VALUE.fullmatch(value), (name, value)
    return Round(slots, said)


def aimed_at(job: Job) -> str:
    """The one constraint under which a job's report may be published."""
    return f'Name == "{tag(job)}" && GlobalJobId =?= "{job.job_id}"'


def published(seen: Round, job: Job) -> bool:
    """Whether a job's whole report is there, aimed at its slot and at it alone."""
    lines = seen.slots.get(tag(job))
    return lines is not None and set(lines) == OURS and lines["SlotMergeConstraint"] == aimed_at(job)


@contextmanager
def attacking(uid: int, step: Callable[[int], None]) -> Iterator[None]:
    """Call `step(0)`, `step(1)` … as `uid` in a process of its own until the block ends."""
    begun, ready = os.pipe()
    parent, pid = os.getpid(), os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            count = 0
            while os.getppid() == parent:
                with suppress(OSError):
                    step(count)
                if count == 0:
                    os.write(ready, b"x")
                count += 1
        finally:
            os._exit(0)
    os.close(ready)
    try:
        assert os.read(begun, 1) == b"x"
        yield
    finally:
        os.close(begun)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


# ---- 1–14: what stands in the place of a report ----


def _replace(job: Job, make: Callable[[str], object]) -> None:
    path = f"{job.scratch}/.pilot.ad"
    os.unlink(path)
    make(path)
    if not os.path.islink(path):
        os.chown(path, job.uid, job.uid)


def _socket(path: str) -> None:
    here = os.getcwd()
    os.chdir(os.path.dirname(path))
    try:
        with socket.socket(socket.AF_UNIX) as place:
            place.bind(os.path.basename(path))  # a socket's path may be 107 bytes long
    finally:
        os.chdir(here)


def _sparse(path: str) -> None:
    with open(path, "wb") as stream:
        stream.truncate(1 << 40)


def _closed(path: str) -> None:
    write(path, TOKEN, ALICE)
    os.chmod(path, 0o000)


KINDS: dict[str, tuple[Callable[[str], object], str]] = {
    "1 a link to a secret": (lambda path: os.symlink("/etc/shadow", path), "symlink"),
    "9 a magic link": (lambda path: os.symlink("/proc/self/environ", path), "symlink"),
    "5 a FIFO": (os.mkfifo, "not a regular file"),
    "6 a socket": (_socket, "not a regular file"),
    "7 a device": (lambda path: os.mknod(path, 0o020666, os.makedev(5, 0)), "not a regular file"),
    "8 a directory": (os.mkdir, "not a regular file"),
    "10 a closed file": (_closed, "permission denied"),
    "19 a sparse TiB": (_sparse, "too large"),
}


@ONE_LAYOUT
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_report(node: Node, programs: Programs, alice: Job, bob: Job, kind: str) -> None:
    """HOSTILE 1, 5–10, 19: refused with a reason of ours, said once; the neighbour is published as before."""
    make, reason = KINDS[kind]
    _replace(alice, make)
    seen = one_round(node, programs)
    assert published(seen, bob)
    assert tag(alice) not in seen.slots
    assert seen.said == [f"drainwise: {tag(alice)}: .pilot.ad: {reason}"]
    assert one_round(node, programs).said == []


@ONE_LAYOUT
def test_a_hard_link_to_the_neighbours_report(node: Node, programs: Programs, alice: Job, bob: Job) -> None:
    """HOSTILE 4, 11: a file of another user's, or with a second name, is nobody's report."""
    path = f"{alice.scratch}/.pilot.ad"
    os.unlink(path)
    os.link(f"{bob.scratch}/.pilot.ad", path)
    seen = one_round(node, programs)
    assert tag(alice) not in seen.slots
    os.unlink(path)
    write(path, pilot_ad(int(time.time())), BOB)
    seen = one_round(node, programs)
    assert tag(alice) not in seen.slots
    assert published(seen, bob)


def test_a_link_swapped_in_a_loop(node: Node, programs: Programs, alice: Job, bob: Job) -> None:
    """HOSTILE 2, 16: a report, a link to a file of the daemon's own and nothing take turns; the file never gets out."""
    secret = f"{node.base}/log/secret"
    write(secret, f"PRIORITY_FACTOR = 666\n{TOKEN}\n", node.daemon)
    os.chmod(secret, 0o600)
    report = pilot_ad(int(time.time()))

    def swap(count: int) -> None:
        fresh, path = f"{alice.scratch}/.next", f"{alice.scratch}/.pilot.ad"
        if count % 3 == 0:
            os.symlink(secret, fresh)
        elif count % 3 == 1:
            with open(fresh, "wb") as stream:
                stream.write(report.encode())
        else:
            os.unlink(path)
            return
        os.rename(fresh, path)

    with attacking(ALICE, swap):
        for _ in range(20):
            seen = one_round(node, programs)
            assert published(seen, bob)
            assert seen.slots.get(tag(alice), {}).get("PilotPriorityFactor") != "666"


@ONE_LAYOUT
def test_directories_swapped_for_links(node: Node, programs: Programs, alice: Job, bob: Job) -> None:
    """HOSTILE 3: `.jobstatus` becomes a link to the neighbour's or to a directory of the daemon's, and back."""
    os.unlink(f"{alice.scratch}/.pilot.ad")
    own = f"{node.base}/log/status"
    make_directory(own, 0o755, node.daemon)
    for name in ("used_CPU", "priority_factor"):
        write(f"{own}/{name}", "666\n", node.daemon)
        write(f"{bob.scratch}/.jobstatus/{name}", "5\n", BOB)

    def swap(count: int) -> None:
        path, fresh = f"{alice.scratch}/.jobstatus", f"{alice.scratch}/.next"
        os.symlink((own, f"{bob.scratch}/.jobstatus")[count % 2], fresh)
        if not os.path.islink(path):
            os.rename(path, f"{alice.scratch}/.aside")
        os.rename(fresh, path)

    with attacking(ALICE, swap):
        for _ in range(10):
            seen = one_round(node, programs)
            assert tag(alice) not in seen.slots
            assert published(seen, bob)


def test_a_file_system_over_the_job(node: Node, programs: Programs, alice: Job, bob: Job) -> None:
    """HOSTILE 12: what lies on another file system than the job's directory is refused."""
    _replace(alice, lambda path: write(path, pilot_ad(int(time.time())), ALICE))
    other = f"{node.base}/other"
    write(other, f"{pilot_ad(int(time.time()))}{TOKEN} = 1\n", ALICE)
    script = (
        f"mount -t tmpfs none {alice.scratch}/.jobstatus && cp {other} {alice.scratch}/.jobstatus/.pilot.ad"
        f" && chown {ALICE} {alice.scratch}/.jobstatus/.pilot.ad && : > {alice.scratch}/.jobstatus/used_CPU"
        f" && chown {ALICE} {alice.scratch}/.jobstatus {alice.scratch}/.jobstatus/used_CPU"
        f" && exec setpriv --reuid {node.daemon} --regid {node.daemon} --clear-groups {programs.directory}/pilot-cron "
        + " ".join(node.cron_arguments(programs.settings))
    )
    ran = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script],
        capture_output=True,
        check=False,
        timeout=30,
        env={"PATH": "/usr/bin:/bin"},
    )
    assert ran.returncode == 0, ran.stderr
    assert published(Round(taken_apart(ran.stdout), []), bob)


# One round as HTCondor's own user (the first argument), of which a job mounts a FUSE file system whose server never
# answers over its directory (the second) after the round has looked for such mounts; options of it: the third.
_MOUNTED_MEANWHILE = """
import ctypes, os, sys
from drainwise.htcondor.node import startd_cron
daemon, target, options, *arguments = sys.argv[1:]
fd = os.open("/dev/fuse", os.O_RDWR)
given = f"fd={fd},rootmode=40755,user_id=54321,group_id=54321{options}"
seen = startd_cron.fuse_mounts_below
def look(base):
    found = seen(base)
    assert not ctypes.CDLL(None).mount(b"never", target.encode(), b"fuse", 6, given.encode())
    os.setresgid(*[int(daemon)] * 3)
    os.setresuid(*[int(daemon)] * 3)
    return found
startd_cron.fuse_mounts_below = look
startd_cron.main(arguments)
"""


@pytest.mark.skipif(not os.path.exists("/dev/fuse"), reason="no FUSE in this kernel")
@pytest.mark.parametrize("options", ["", ",allow_other"])
def test_a_file_system_over_the_job_while_a_round_looks(
    node: Node, programs: Programs, alice: Job, bob: Job, options: str
) -> None:
    """HOSTILE 12: refused by the kernel, or never answered: the neighbour's report is published all the same."""
    given = (str(node.daemon), alice.scratch, options)
    ran = subprocess.run(
        [
            *("unshare", "--mount", sys.executable, "-c", _MOUNTED_MEANWHILE),
            *(*given, *node.cron_arguments(programs.settings)),
        ],
        capture_output=True,
        check=False,
        timeout=60,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path(drainwise.__file__).parents[1])},
    )
    assert ran.returncode == 0, ran.stderr
    seen = taken_apart(ran.stdout)
    assert published(Round(seen, []), bob)
    assert tag(alice) not in seen


@ONE_LAYOUT
@pytest.mark.parametrize("mode", [0o000, 0o1777, 0o2755, 0o777])
def test_odd_modes_of_the_jobs_directory(node: Node, programs: Programs, alice: Job, bob: Job, mode: int) -> None:
    """HOSTILE 10, 14: a job that shuts the door loses its own report; sticky and setgid change nothing."""
    os.chmod(alice.scratch, mode)
    seen = one_round(node, programs)
    assert published(seen, bob)
    assert published(seen, alice) == (mode != 0o000)


@ONE_LAYOUT
def test_odd_names(node: Node, programs: Programs, alice: Job, bob: Job) -> None:
    """HOSTILE 15, 26: newline, ESC, 255 bytes, bytes that are no text, and 20,000 files: nothing is ever listed."""
    for name in (b"a\nb", b"\x1b[2J", b"x" * 255, b"\xff\xfe", b"- x update:true", TOKEN.encode()):
        write_bytes(os.path.join(alice.scratch.encode(), name))
    make_many(alice.scratch, 20_000)
    seen = one_round(node, programs)
    assert published(seen, alice)
    assert published(seen, bob)
    assert seen.said == []


def write_bytes(path: bytes) -> None:
    """An empty file with a name of bytes."""
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))


def make_many(directory: str, count: int) -> None:
    """Many links to one file: as many names as files, and sooner made."""
    for part in range(count // 20_000 or 1):
        first = f"{directory}/many{part}"
        write_bytes(first.encode())
        for number in range(min(count, 20_000)):
            os.link(first, f"{first}.{number}")


# ---- 17–25: files that change, are large or locked ----


def test_a_report_rewritten_all_the_time(node: Node, programs: Programs, alice: Job, bob: Job) -> None:
    """HOSTILE 17, 25: a mix of two reports is never published, whatever the moment of reading."""
    reports = [pilot_ad(int(time.time()) - back).replace("FACTOR = 3", f"FACTOR = {back}") for back in (10, 200)]

    def rewrite(count: int) -> None:
        with open(f"{alice.scratch}/.pilot.ad", "r+b") as stream:
            stream.write(reports[count % 2].encode())
            stream.truncate()

    with attacking(ALICE, rewrite):
        for _ in range(15):
            seen = one_round(node, programs)
            assert published(seen, bob)
            lines = seen.slots.get(tag(alice))
            if lines is not None and lines["SlotMergeConstraint"] != "false":
                back = int(lines["PilotPriorityFactor"])
                assert f"LAST_JOB_START = {lines['PilotLastJobStart']}\n" in reports[(10, 200).index(back)]


@ONE_LAYOUT
def test_a_report_changed_under_a_mapping(node: Node, programs: Programs, alice: Job, bob: Job) -> None:
    """HOSTILE 17: written through memory, so that no time of the file tells; the round ends and stays sound."""

    def scribble(count: int) -> None:
        with open(f"{alice.scratch}/.pilot.ad", "r+b") as stream, mmap.mmap(stream.fileno(), 0) as memory:
            for value in range(2000):
                memory[17:27] = b"%010d" % (1795247000 + (count + value) % 900)

    with attacking(ALICE, scribble):
        for _ in range(5):
            assert published(one_round(node, programs), bob)


_PATIENT = """
import sys
from drainwise.htcondor.node import startd_cron
from drainwise.pilotad import jobstatus
jobstatus.LOCK_TIMEOUT = 1e6
del sys.argv[0]  # the hooks are beside the program
startd_cron.main(sys.argv[1:])
"""


@ONE_LAYOUT
def test_sixty_four_locks_held_for_ever(node: Node, programs: Programs) -> None:
    """HOSTILE 18: every job holds its lock on `used_CPU`; they are waited for so long together, not one by one.

    Here each alone could be waited for for ever.
    """
    jobs = [node.start(f"slot1_{number}", ALICE, int(time.time()) - 600) for number in range(1, 65)]
    held = []
    try:
        for job in jobs:
            programs.prepare(job)
            path = f"{job.scratch}/.jobstatus/used_CPU"
            write(path, "4\n", ALICE)
            held.append(os.open(path, os.O_RDWR))
            fcntl.flock(held[-1], fcntl.LOCK_EX)
        write(f"{jobs[-1].scratch}/.pilot.ad", pilot_ad(int(time.time())), ALICE)
        library = {"PYTHONPATH": f"{os.path.dirname(programs.directory)}/library"}
        ran = run_as(
            node.daemon,
            [PYTHON, "-c", _PATIENT, f"{programs.directory}/pilot-cron", *node.cron_arguments(programs.settings)],
            library,
        )
        assert ran.returncode == 0
        seen = Round(taken_apart(ran.stdout), ran.stderr.decode("ascii").splitlines())
        assert published(seen, jobs[-1])
        assert seen.said == [f"drainwise: {tag(job)}: $JOBSTATUS: locked" for job in sorted(jobs, key=directory_of)]
    finally:
        for descriptor in held:
            os.close(descriptor)


def directory_of(job: Job) -> str:
    """The name `dir_<pid>` of a job."""
    return next(part for part in job.scratch.split("/") if part.startswith("dir_"))


@ONE_LAYOUT
def test_no_descriptors_left(node: Node, programs: Programs, alice: Job, bob: Job) -> None:
    """HOSTILE 28: the round ends, says so in one line per job at most, and the next one is whole again."""
    limited = [
        "/usr/bin/prlimit",
        "--nofile=5",
        f"{programs.directory}/pilot-cron",
        *node.cron_arguments(programs.settings),
    ]
    ran = run_as(node.daemon, limited)
    assert ran.returncode == 0
    assert ran.stderr.count(b"\n") <= 3
    seen = one_round(node, programs)
    assert published(seen, alice)
    assert published(seen, bob)


# ---- 29–41: what stands in a report ----

CONTENTS = {
    "29 attributes of the slot": 'Start = False\nState = "Owner"\nRemoteOwner = "root"\nCpus = 1000\nSTART = 1\n',
    "30 a separator": "- tag update:true\n-\n- \n- slot1_2@node1.pool.test update:true\n",
    "31 a constraint": 'SlotMergeConstraint = true\nSlotName = "slot1"\nName = "slot1_2@node1.pool.test"\nSlotId = 2\n',
    "32 broken strings": '"]; X = 1; [\n\\\nA = "\\"\nPRIORITY_FACTOR = "]; X = 1; [\n',
    "33 expressions": "LAST_JOB_START = time()\nUSED_FRACTION1k = 1024 - 1\nADD_UNCOM_TIME1k = ADD_UNCOM_TIME1k\n",
    "34 parentheses": "PRIORITY_FACTOR = " + "(" * 15000 + "\n",
    "35 twice, another case": "PRIORITY_FACTOR = 1\npriority_factor = 2\nUsed_Fraction1K = 1\nUSED_FRACTION1k = 2\n",
    "36 numbers": "USED_FRACTION1k = 1e309\nADD_UNCOM_TIME1k = nan\nPRIORITY_FACTOR = "
    + "9" * 5000
    + "\nLAST_JOB_START = 0x10\n",
    "36 more numbers": "USED_FRACTION1k = -1\nADD_UNCOM_TIME1k = 9223372036854775808\nPRIORITY_FACTOR = +5\n",
    "36 digits": "LAST_JOB_START = 1_0\nUSED_FRACTION1k = \u0661\nPRIORITY_FACTOR = 1.\nADD_UNCOM_TIME1k = 0x7f\n",
    "37 times": "LAST_JOB_START = 4294967296\nFIRST_EXP_JOB_END = 86400\nLAST_EXP_JOB_END = 1\n",
    "37 cores": "USED_FRACTION1k = 99999999\nADD_UNCOM_TIME1k = 9223372036854775807\n",
    "41 control characters": "PRIORITY_FACTOR = \x1b[31m7\r\n\x0b\x0cUSED_FRACTION1k = 5\x00\x85\u2028\n",
    "21 a long line": "A" * 16000 + "\n",
    "22 many lines": "A=1\n" * 4000,
    "24 only NULs": "\0" * 16384,
    "20 one byte too many": "#" * 16385,
    "the node's own names": 'PilotCronHeartbeat = 1\nPilotKillWaste = 0\nPilotReportStanding = "fresh"\n',
}


@ONE_LAYOUT
@pytest.mark.parametrize("content", CONTENTS)
def test_what_a_report_says_stays_a_value(node: Node, programs: Programs, alice: Job, bob: Job, content: str) -> None:
    """HOSTILE 20–22, 24, 29–37, 41: known attributes as literals of ours, in its own slot; nothing else gets out."""
    text = CONTENTS[content] + f"{TOKEN} = {TOKEN}\n" * (len(CONTENTS[content]) < 16000)
    with open(f"{alice.scratch}/.pilot.ad", "wb") as stream:
        stream.write(text.encode("utf-8"))
    seen = one_round(node, programs)
    assert published(seen, bob)
    lines = seen.slots.get(tag(alice))
    if lines is not None:
        assert lines["SlotMergeConstraint"] == aimed_at(alice)
        used = lines["PilotUsedCpu"]
        assert used == "undefined" or 0 <= float(used) <= 8


@ONE_LAYOUT
@pytest.mark.parametrize("slot", ["slot1_10", "slot1_1", "slot11"])
def test_slots_whose_names_begin_alike(node: Node, programs: Programs, slot: str) -> None:
    """HOSTILE 31: a report for slot1_1 is in force on slot1_1 and not on slot1_10, by HTCondor's own reading."""
    job = start(node, programs, "slot1_1", ALICE)
    [lines] = one_round(node, programs).slots.values()
    ad = classad2.ClassAd({"Name": f"{slot}@{HOST}", "GlobalJobId": job.job_id})
    ad["Hit"] = classad2.ExprTree(lines["SlotMergeConstraint"])
    assert ad.eval("Hit") is (slot == "slot1_1")


@ONE_LAYOUT
def test_the_next_job_in_a_slot_is_not_hit(node: Node, programs: Programs, alice: Job) -> None:
    """HOSTILE 48, 50: the constraint fits one job; between jobs, when the slot has none, it fits nobody."""
    constraint = one_round(node, programs).slots[tag(alice)]["SlotMergeConstraint"]
    for job, hit in ((alice.job_id, True), ("central.pool.test#8.0#1", False), (None, False)):
        ad = classad2.ClassAd({"Name": tag(alice), **({} if job is None else {"GlobalJobId": job})})
        ad["Hit"] = classad2.ExprTree(constraint)
        assert ad.eval("Hit") is hit


# ---- whose report ----


def test_a_report_forged_for_the_neighbours_slot(node: Node, programs: Programs, alice: Job, bob: Job) -> None:
    """HOSTILE 31, 48: alice names bob's slot and job in every ad that she can write: nothing of hers reaches bob."""
    wrong = ad_text(bob.slot_attributes())
    os.unlink(f"{bob.scratch}/.pilot.ad")
    for name in (".machine.ad", ".job.ad", ".update.ad"):
        write(f"{alice.scratch}/{name}", wrong, ALICE)
    make_directory(f"{alice.scratch}/htcondor", 0o755, ALICE)
    make_directory(f"{alice.scratch}/scratch", 0o755, ALICE)
    for place in ("htcondor", "scratch"):
        write(f"{alice.scratch}/{place}/.update.ad", wrong, ALICE)
        write(f"{alice.scratch}/{place}/.pilot.ad", pilot_ad(int(time.time())), ALICE)
    seen = one_round(node, programs)
    assert tag(bob) not in seen.slots


def test_a_job_ad_renamed_over_the_slots(node: Node, programs: Programs, bob: Job) -> None:
    """HOSTILE 31: `+Name` and `+GlobalJobId` of the submit file in a file that the daemon itself wrote."""
    alice = start(node, programs, "slot1_1", ALICE)
    os.unlink(f"{bob.scratch}/.pilot.ad")
    write(f"{alice.scratch}/.job.ad", ad_text({**bob.slot_attributes(), "MyType": "Machine"}), node.daemon)
    os.rename(f"{alice.scratch}/.job.ad", f"{alice.scratch}/.update.ad")
    assert tag(bob) not in one_round(node, programs).slots


@contextmanager
def posing_orphan(line: list[str]) -> Iterator[int]:
    """A process of alice's with this command line that is no child of ours; gives its pid."""
    begun, ready = os.pipe()
    parent = os.fork()
    if parent == 0:
        with suppress(BaseException):
            posed = subprocess.Popen(
                line, executable="/bin/sh", stdin=subprocess.PIPE, user=ALICE, group=ALICE, extra_groups=[]
            )
            wait_for_command_line(posed.pid)
            os.write(ready, str(posed.pid).encode())
            signal.pause()
        os._exit(0)
    try:
        yield int(os.read(begun, 20))
    finally:
        os.kill(parent, signal.SIGKILL)  # its end closes the standard input for which the posing one waits
        os.waitpid(parent, 0)
        os.close(begun)
        os.close(ready)


def test_a_stale_directory_whose_pid_is_alices_process(node: Node, programs: Programs, bob: Job) -> None:
    """HOSTILE 48: a sandbox left behind, its pid reused by a process of its owner that looks like bob's starter."""
    os.unlink(f"{bob.scratch}/.pilot.ad")
    with posing_orphan(["condor_starter", "-c", "read wait", "sh", "-f", "-a", bob.slot, "central"]) as pid:
        stale = node.start(bob.slot, ALICE, bob.started - 5000, pid=pid)
        programs.prepare(stale)
        write(f"{stale.scratch}/.pilot.ad", pilot_ad(int(time.time())), ALICE)
        if not node.since_25_4:  # else the ad is not hers to write
            node.refresh(stale, GlobalJobId=bob.job_id, JobStart=bob.started + 5)
        seen = one_round(node, programs)
        assert seen.slots.get(tag(bob), {}).get("SlotMergeConstraint") != aimed_at(bob)
        write(f"{bob.scratch}/.pilot.ad", pilot_ad(int(time.time())), BOB)
        assert published(one_round(node, programs), bob)


# ---- 41, 46, 47, 49: through the hooks ----


@ONE_LAYOUT
def test_nothing_of_the_users_in_a_hooks_line(node: Node, programs: Programs) -> None:
    """HOSTILE 41, 44: a job id with newline, ESC and shell letters reaches neither the log nor a key's file."""
    job = node.start("slot1_1", ALICE, int(time.time()), GlobalJobId=f"x\x1b[2J$(touch {node.base}/ran);`id`\u00e9 y")
    ran = programs.prepare(job)
    assert ran.returncode == 0
    [line] = ran.stderr.decode("ascii").splitlines()
    assert line.isprintable()
    assert len(line) <= 200
    assert not os.path.exists(f"{job.scratch}/.jobfeatures/job_id")
    assert not os.path.exists(f"{node.base}/ran")


@ONE_LAYOUT
def test_squatted_places_under_attack(node: Node, programs: Programs) -> None:
    """HOSTILE 2, 3, 47: links to a victim take turns with directories while the hooks write; the victim stays whole."""
    victim = f"{node.base}/victim"
    make_directory(victim, 0o777, ALICE)
    write(f"{victim}/allocated_cpu", "precious\n", ALICE)
    job = node.start("slot1_1", ALICE, int(time.time()))
    path, aside, fresh = (f"{job.scratch}/{name}" for name in (".jobfeatures", ".aside", ".fresh"))

    def swap(count: int) -> None:
        if count % 2:
            os.symlink(victim, fresh)
            if os.path.isdir(path) and not os.path.islink(path):
                os.rename(path, f"{aside}{count}")
            os.rename(fresh, path)
        elif os.path.islink(path):
            os.unlink(path)

    with attacking(ALICE, swap):
        for _ in range(15):
            assert programs.prepare(job).returncode == 0
            assert programs.update(job).returncode == 0
    with open(f"{victim}/allocated_cpu", encoding="ascii") as stream:
        assert stream.read() == "precious\n"
    assert os.listdir(victim) == ["allocated_cpu"]


@ONE_LAYOUT
def test_orders_cannot_be_kept_away(node: Node, programs: Programs, alice: Job) -> None:
    """HOSTILE 49: `.site.ad` deleted, replaced and linked in a loop; once the loop stops, the order stands there."""
    deadline, victim = int(time.time()) + 600, f"{node.base}/victim"
    write(victim, "precious\n", ALICE)
    orders, left = f"{alice.job_id}@{alice.started}={deadline}", {"RetirementTimeRemaining": 600}
    node.refresh(alice, PilotReclaimOrders=orders, Activity="Retiring", MyCurrentTime=deadline - 600, **left)
    place = f"{alice.scratch}/.site.ad"

    def spoil(count: int) -> None:
        if count % 3 == 0:
            os.unlink(place)
        elif count % 3 == 1:
            os.symlink(victim, place)
        else:
            os.rename(f"{alice.scratch}/.fresh", place)

    with attacking(ALICE, spoil):
        for _ in range(15):
            assert programs.update(alice).returncode == 0
    assert programs.update(alice).returncode == 0
    with open(place, encoding="ascii") as stream:
        assert stream.read() == f"VACATE_DESIRED = True\nPAYLOAD_DEADLINE = {deadline}\n"
    with open(victim, encoding="ascii") as stream:
        assert stream.read() == "precious\n"


# ---- 51, 53: the cron itself ----


@ONE_LAYOUT
def test_killed_at_any_moment(node: Node, programs: Programs, alice: Job, bob: Job) -> None:
    """HOSTILE 51: after each SIGKILL the state is the old one or the new one, and the next round is whole."""
    path = f"{alice.scratch}/.pilot.ad"
    command = [f"{programs.directory}/pilot-cron", *node.cron_arguments(programs.settings), "--updates", "0"]
    marks = "[0-9a-f]{16} [0-9a-f]{8} [0-9]{10}"
    one_round(node, programs)
    states = set()
    for turn in range(25):
        write(path, pilot_ad(int(time.time()) - turn).replace("FACTOR = 3", f"FACTOR = {turn}"), ALICE)
        cron = subprocess.Popen(
            command, user=node.daemon, group=node.daemon, extra_groups=[], stdout=subprocess.DEVNULL, env={}
        )
        try:
            cron.wait(10 if turn % 8 == 7 else 0.004 + turn * 0.0012)  # some come to their end
        except subprocess.TimeoutExpired:
            cron.kill()
            cron.wait()
        with open(node.state, encoding="ascii") as stream:
            text = stream.read()
        states.add(text)
        assert re.fullmatch(rf"({re.escape(tag(alice))}|{re.escape(tag(bob))}) {marks}\n" * 2, text)
        assert set(remembered(node.state).marks) == {tag(alice), tag(bob)}
    seen = one_round(node, programs)
    assert published(seen, alice)
    assert published(seen, bob)
    assert len(states) > 1


@ONE_LAYOUT
@pytest.mark.parametrize("step", [-7200, 7200])
def test_a_clock_that_steps(node: Node, programs: Programs, alice: Job, bob: Job, step: int) -> None:
    """HOSTILE 53: a report that seems to come from the future, or to be old, loses its protection and no more."""
    now = time.time() + step
    os.utime(f"{alice.scratch}/.pilot.ad", (now, now))
    seen = one_round(node, programs)
    assert published(seen, bob)
    lines = seen.slots[tag(alice)]
    assert lines["PilotReportStanding"] == ('"contradictory"' if step > 0 else '"stale"')
    slot = classad2.parseOne(
        "\n".join(f"{name} = {value}" for name, value in lines.items() if name != "SlotMergeConstraint")
    )
    slot["Cpus"], slot["GlobalJobId"], slot["JobStart"] = 8, alice.job_id, alice.started
    before = int(time.time()) - 1  # ClassAds read a clock that is up to a tick behind this one
    waste = slot.eval("PilotKillWaste")
    assert step > 0 or 8 * (before - alice.started) <= waste <= 8 * (time.time() - alice.started)
    assert slot.eval("PilotDrainingWaste") == classad2.Value.Undefined
