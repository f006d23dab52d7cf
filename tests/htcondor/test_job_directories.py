"""Which job lies in which directory, and in which slot: only from what a user cannot forge."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import classad2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_mock import MockerFixture

from all_but_one import all_but_one
from drainwise.facts.errors import RefusedFile
from drainwise.htcondor.node.job_directories import (
    children_of,
    identity,
    job_directory_names,
    open_job_directory,
    starter_slot,
)
from drainwise.pilotad import safe_open
from made_up_node import (
    HOST,
    Node,
    ad_text,
    machine_attributes,
    make_directory,
    public_directory,
    wait_for_command_line,
    write,
)

USER = 54321
STARTED = 1795249000
JOB_ID = "central.pool.test#7.0#1795248000"

# The daemon that runs these tests in its own uid: reading needs no other.
Found = tuple[str, str, int, int, "int | None"]


@pytest.fixture
def made() -> Iterator[Node]:
    """An older node whose daemon is this process's own user."""
    if os.geteuid() != 0:
        pytest.skip("needs root to give directories to other users")
    with public_directory() as base:
        node = Node(base, False, os.geteuid())
        try:
            yield node
        finally:
            node.close()


@contextmanager
def opened(node: Node) -> Iterator[int]:
    """The open $(EXECUTE)."""
    descriptor = os.open(node.execute, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def look(node: Node, name: str) -> Found | None:
    """What is found in one directory, without its descriptor; every other descriptor is closed again."""
    before = len(os.listdir("/proc/self/fd"))
    try:
        with opened(node) as execute:
            job = open_job_directory(execute, name, os.getpid(), children_of(os.getpid()))
            if job is None:
                return None
            os.close(job.descriptor)
            return job.slot, job.job, job.uid, job.cores, job.started
    finally:
        assert len(os.listdir("/proc/self/fd")) <= before  # the garbage collector may close some of other tests


def top(path: str) -> str:
    """The name `dir_<pid>` in a path."""
    return next(part for part in path.split("/") if part.startswith("dir_"))


# ---- the older layout ----


def test_a_job_of_the_older_layout(made: Node) -> None:
    """All of it by the slot's ad, and the slot as its starter says."""
    job = made.start("slot1_1", USER, STARTED, cores=4)
    assert look(made, top(job.scratch)) == (f"slot1_1@{HOST}", job.job_id, USER, 4, STARTED)


def test_static_and_renamed_slots(made: Node) -> None:
    """`slot2@node`, and `slot1_1@name@node` of a startd with a name of its own."""
    job = made.start("slot2", USER, STARTED)
    found = look(made, top(job.scratch))
    assert found is not None
    assert found[0] == f"slot2@{HOST}"
    job = made.start("slot1_1", USER, STARTED)
    made.refresh(job, Name=f"slot1_1@second@{HOST}")
    found = look(made, top(job.scratch))
    assert found is not None
    assert found[0] == f"slot1_1@second@{HOST}"


@pytest.mark.parametrize("served", ["slot1_1", "slot1_2", "slot1", "slot11", "slot1_10"])
def test_the_slot_is_the_starters(made: Node, served: str) -> None:
    """HOSTILE 31: an ad that names another slot, also one that begins alike, is of no slot."""
    job = made.start(served, USER, STARTED)
    made.refresh(job, Name=f"slot1_1@{HOST}")
    found = look(made, top(job.scratch))
    assert (found is not None) == (served == "slot1_1")


def test_the_jobs_ad_in_the_place_of_the_slots(made: Node) -> None:
    """The forgery: `+Name` in the submit file names another's slot, and the job's ad is renamed over the slot's."""
    job = made.start("slot1_1", USER, STARTED, Name=f"slot1_2@{HOST}", Cpus=8, JobStart=STARTED)
    os.rename(f"{job.scratch}/.job.ad", job.update_ad)
    assert look(made, top(job.scratch)) is None


def test_a_job_that_forges_its_own_id(made: Node) -> None:
    """It stays in its own slot: what it says reaches nobody, because no such job is there."""
    job = made.start("slot1_1", USER, STARTED)
    made.refresh(job, GlobalJobId=JOB_ID)
    assert look(made, top(job.scratch)) == (f"slot1_1@{HOST}", JOB_ID, USER, 8, STARTED)


def test_before_the_slots_ad_is_written(made: Node) -> None:
    """A directory that is being made or taken down is refused, as absent."""
    job = made.start("slot1_1", USER, STARTED)
    os.unlink(job.update_ad)
    with pytest.raises(RefusedFile, match="absent"):
        look(made, top(job.scratch))


@pytest.mark.parametrize("kind", ["link", "FIFO", "directory", "huge", "garbage"])
def test_ads_that_are_none(made: Node, kind: str) -> None:
    """HOSTILE 1, 5, 8, 19, 24: what a user puts in the ad's place is refused or says nothing, without a wait."""
    job = made.start("slot1_1", USER, STARTED)
    os.unlink(job.update_ad)
    if kind == "link":
        write(f"{made.base}/ad", ad_text(job.slot_attributes()), 0)
        os.symlink(f"{made.base}/ad", job.update_ad)
    elif kind == "FIFO":
        os.mkfifo(job.update_ad)
    elif kind == "directory":
        make_directory(job.update_ad, 0o755, USER)
    elif kind == "huge":
        with open(job.update_ad, "wb") as stream:
            stream.truncate(1 << 40)
    else:
        write(job.update_ad, "\0\xff\n" * 10_000, USER)
    try:
        assert look(made, top(job.scratch)) is None
    except RefusedFile as refused:
        assert refused.reason in {"symlink", "EISDIR", "EFBIG"}


# ---- whose process a starter is ----

NONE: frozenset[str] = frozenset()


@pytest.fixture(params=["listed by the kernel", "asked"])
def children(request: pytest.FixtureRequest) -> Callable[[int], frozenset[str]]:
    """Both ways of finding the processes of a startd."""
    return children_of if request.param == "listed by the kernel" else lambda _: NONE


def test_a_starter_of_our_startd(made: Node, children: Callable[[int], frozenset[str]]) -> None:
    """Its command line says which slot it serves."""
    pid = str(made.pose_starter("slot1_1"))
    assert starter_slot(pid, os.getpid(), 0, children(os.getpid())) == "slot1_1"


def test_no_starter_of_ours(made: Node, children: Callable[[int], frozenset[str]]) -> None:
    """HOSTILE 48: a process of another startd, without a slot, or with a strange one; a pid that is free."""
    for slot in ("slot1_1\nName", 'slot1" || true || "', "", "x" * 256):
        assert starter_slot(str(made.pose_starter(slot)), os.getpid(), 0, children(os.getpid())) is None
    pid = str(made.pose_starter("slot1_1"))
    assert starter_slot(pid, os.getppid(), 0, children(os.getppid())) is None
    made.close()
    assert starter_slot(pid, os.getpid(), 0, children(os.getpid())) is None


def test_a_process_without_the_option_is_no_starter(children: Callable[[int], frozenset[str]]) -> None:
    """The cron itself is a child of the startd, too."""
    with subprocess.Popen(["/bin/cat", "-"], stdin=subprocess.PIPE) as other:
        wait_for_command_line(other.pid)
        assert starter_slot(str(other.pid), os.getpid(), 0, children(os.getpid())) is None


def test_the_kernels_list_is_of_children_alone(made: Node) -> None:
    """It has our starters and neither their children nor strangers; a startd that is PID 1 inherits anybody's."""
    pid = str(made.pose_starter("slot1_1"))
    listed = children_of(os.getpid())
    assert pid in listed
    assert not {str(os.getpid()), str(os.getppid()), "1"} & listed
    assert children_of(1) == NONE
    assert children_of(2**22 + 1) == NONE


def test_a_users_process_is_no_starter() -> None:
    """HOSTILE 48: a process that PID 1 inherited, with a reused pid and a starter's command line."""
    if os.geteuid() != 0:
        pytest.skip("needs root to become another user")
    line = ["condor_starter", "-c", "read wait", "sh", "-a", "slot1_2"]
    posed = subprocess.Popen(line, executable="/bin/sh", stdin=subprocess.PIPE, user=USER, group=USER, extra_groups=[])
    try:
        wait_for_command_line(posed.pid)
        assert starter_slot(str(posed.pid), os.getpid(), 1, NONE) is None
        assert starter_slot(str(posed.pid), os.getpid(), USER, NONE) == "slot1_2"  # a pool without root is one user's
    finally:
        posed.communicate()


def test_a_directory_left_by_a_starter_that_has_gone(made: Node) -> None:
    """HOSTILE 48: its pid is free or somebody else's now: no slot."""
    job = made.start("slot1_1", USER, STARTED)
    made.close()
    assert look(made, top(job.scratch)) is None


# ---- since 25.4 ----


def test_a_job_of_the_newer_layout(made: Node) -> None:
    """All of it by the daemon's own refreshed ad; the ads in the user's directory do not count."""
    made.since_25_4 = True
    job = made.start("slot1_1", USER, STARTED, pid=1, cores=4)
    write(job.machine_ad, ad_text(machine_attributes("slot1_2", 400)), USER)
    assert look(made, "dir_1") == (f"slot1_1@{HOST}", job.job_id, USER, 4, STARTED)


def test_a_user_cannot_make_its_directory_a_newer_one(made: Node) -> None:
    """`htcondor/.update.ad` in a job's own directory is not believed: the directory above is not the daemon's."""
    job = made.start("slot1_1", USER, STARTED)
    make_directory(f"{job.scratch}/htcondor", 0o755, USER)
    make_directory(f"{job.scratch}/scratch", 0o755, USER)
    write(f"{job.scratch}/htcondor/.update.ad", ad_text(job.slot_attributes(Name=f"slot1_2@{HOST}")), USER)
    assert look(made, top(job.scratch)) == (f"slot1_1@{HOST}", job.job_id, USER, 8, STARTED)
    made.close()
    assert look(made, top(job.scratch)) is None


def test_an_ad_that_is_no_file_of_the_daemons_is_refused(made: Node) -> None:
    """Only an absent one means the older layout: what else is there is said."""
    made.since_25_4 = True
    job = made.start("slot1_1", USER, STARTED, pid=1)
    os.rename(job.update_ad, f"{job.update_ad}.moved")
    os.symlink(f"{job.update_ad}.moved", job.update_ad)
    with pytest.raises(RefusedFile, match="symlink"):
        look(made, "dir_1")


@pytest.mark.parametrize("since_25_4", [True, False])
def test_a_directory_that_leads_elsewhere_is_refused(made: Node, mocker: MockerFixture, since_25_4: bool) -> None:
    """By a link, or to a file system of the user's: nothing of it is asked."""
    made.since_25_4 = since_25_4
    job = made.start("slot1_1", USER, STARTED, pid=1)
    name = "dir_1" if since_25_4 else top(job.scratch)
    os.symlink(name, f"{made.execute}/dir_99")
    with pytest.raises(RefusedFile, match="not a directory"):
        look(made, "dir_99")
    mocker.patch.object(safe_open, "is_on_other_fuse", autospec=True, return_value=True)
    with pytest.raises(RefusedFile, match="other file system"):
        look(made, name)


def test_between_two_jobs(made: Node) -> None:
    """The slot's ad names no job yet: nothing is found."""
    made.since_25_4 = True
    job = made.start("slot1_1", USER, STARTED, pid=1)
    text = ad_text({**machine_attributes("slot1_1", 8)}) + "GlobalJobId = undefined\nJobStart = undefined\n"
    write(job.update_ad, text, 0)
    assert look(made, "dir_1") is None


def test_a_pool_without_root(made: Node) -> None:
    """In the older layout the job's directory is then the daemon's own, and is still found."""
    job = made.start("slot1_1", made.daemon, STARTED)
    assert look(made, top(job.scratch)) == (f"slot1_1@{HOST}", job.job_id, made.daemon, 8, STARTED)


# ---- all of them ----


def test_only_directories_of_starters_are_looked_at(made: Node) -> None:
    """Whatever else lies in $(EXECUTE) is passed over."""
    for name in ("dir_12", "dir_7", "dir_", "dir_x", "dir_1.old", "dir_\u0661", "htcondor", ".new"):
        make_directory(f"{made.execute}/{name}", 0o700, USER)
    with opened(made) as execute:
        assert list(job_directory_names(execute)) == ["dir_12", "dir_7"]


@pytest.mark.parametrize(
    ("name", "job", "cores", "start", "expected"),
    [
        ("s" * 255, "j" * 255, 4096, 10**12 - 1, (4096, 10**12 - 1)),
        ("s" * 256, "j", 8, 5, None),
        ("s", "j" * 256, 8, 5, None),
        ("s", "j", 4097, 0, (4096, 0)),
        ("s", "j", 8, 10**12, (8, None)),
        ("s", "j", 8, -1, (8, None)),
        ("s", "j", 10**12 - 1, 5, (4096, 5)),
        ("s", "j", 10**12, 5, None),
        ("s", "j", 0, 5, None),
    ],
)
def test_an_identity_has_bounds(
    name: str, job: str, cores: int, start: int, expected: tuple[int, int | None] | None
) -> None:
    found = identity(f'Name = "{name}"\nGlobalJobId = "{job}"\nCpus = {cores}\nJobStart = {start}\n'.encode())
    assert found == (None if expected is None else (name, job, *expected))


words = st.text("abz019_-.@#:+/ \"'\\;|&()\u0661\xff", max_size=12)
slot_names = st.text("abz019_-.", min_size=1, max_size=12).map(lambda name: f"slot1_1@{name}")
job_names = st.text("abz019_-.", min_size=1, max_size=12).map(lambda name: f"{name}#7.0#1795248000")


@given(
    all_but_one(
        {"name": slot_names, "job": job_names, "cores": st.integers(1, 2**63 - 1)},
        {"name": words, "job": words, "cores": st.integers(-1, 0) | st.floats(allow_nan=False) | words},
    )
)
def test_an_identity_can_stand_in_a_constraint(ad_of: dict[str, Any]) -> None:
    """HOSTILE 31, 32: no quotes, blanks or anything else that would end a string; cores are a number from 1 to 4,096.

    No ad can hold an integer of 2**63 or more; text that looks like one is in the test of any bytes.
    """
    name, job, cores = ad_of.values()
    ad = classad2.ClassAd({"Name": name, "GlobalJobId": job, "Cpus": cores, "Other": 'x Name = "y"'})
    found = identity(ad.printOld().encode())
    if found is not None:
        assert found[:2] == (name, job)
        assert isinstance(cores, int)
        assert found[2] == min(cores, 4096)
        assert not set(name + job) & set(" \"'\\;|&()\u0661\xff")
        assert name
        assert job
        assert found[2] >= 1


@given(st.binary(max_size=300))
def test_any_bytes_are_an_identity_or_none(data: bytes) -> None:
    """HOSTILE 24: garbage costs its own report and nothing else."""
    for garbage in (data, b'Name = "slot1@x"\n' + data, data + b'\nName = "slot1@x"\nGlobalJobId = "j#1"\nCpus = '):
        found = identity(garbage)
        assert found is None or (found[0] and found[1] and found[2] >= 1)


@pytest.mark.parametrize(
    "change",
    [
        {"Name": "x" * 256},
        {"Name": 7},
        {"Name": ""},
        {"Cpus": 0},
        {"Cpus": -8},
        {"Cpus": 8.0},
        {"Cpus": "8"},
        {"Cpus": True},
        {"Cpus": 10**12},
        {"GlobalJobId": ""},
        {"GlobalJobId": "a b"},
    ],
)
def test_an_unsound_slot_is_none(change: dict[str, object]) -> None:
    """HOSTILE 15, 36: too long, of another type, without cores or a job."""
    slot: dict[str, object] = {"Name": f"slot1@{HOST}", "Cpus": 8, "GlobalJobId": JOB_ID, "JobStart": STARTED}
    assert identity(ad_text(slot).encode()) == (f"slot1@{HOST}", JOB_ID, 8, STARTED)
    assert identity(ad_text({**slot, **change}).encode()) is None


def test_the_first_and_the_last_line_count_too() -> None:
    """An ad need not be sorted, nor end with a newline."""
    assert identity(b'Name = "slot1@x"\nCpus = 2\nGlobalJobId = "j#1"') == ("slot1@x", "j#1", 2, None)
    assert identity(b'GlobalJobId = "j#1"\nName = "slot1@x"\nCpus = 2') == ("slot1@x", "j#1", 2, None)
