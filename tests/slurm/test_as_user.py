"""Root's rights are given up for good before anything of a user's is touched, and nobody's child holds up the agent."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from pathlib import Path

import pytest

from drainwise.slurm.node_agent.as_user import Identity, NotDroppedError, Send, Users, become
from made_up_node import public_directory
from real_daemons.waiting import wait_for

pytestmark = [
    pytest.mark.daemons,  # it runs real processes
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root's rights to give them up"),
]

ALICE, BOB = Identity(54321, 54321), Identity(54322, 54322)
LIMIT = 5.0
CAP_SETUID = 7
libc = ctypes.CDLL(None, use_errno=True)


def test_the_work_is_done_with_the_users_rights_and_no_others() -> None:
    """All three ids, groups and capabilities; a root-only file cannot be read, root's rights do not come back."""

    def work(send: Send) -> None:
        with pytest.raises(PermissionError):
            os.setresuid(0, 0, 0)
        with pytest.raises(PermissionError):
            os.open("/etc/shadow", os.O_RDONLY)
        status = Path("/proc/self/status").read_text().splitlines()
        rights = [line.split()[1] for line in status if line.startswith("CapEff")]
        send(f"{os.getresuid()} {os.getresgid()} {os.getgroups()} {rights}\n".encode())

    outcome = Users().run({ALICE: work}, LIMIT)[ALICE]
    assert outcome.fault == ""
    ids = (54321,) * 3
    assert outcome.lines == (f"{ids} {ids} [54321] ['{'0' * 16}']".encode(),)
    assert os.getuid() == 0


@pytest.mark.parametrize("lost", ["CAP_SETUID", "CAP_SETGID"])
def test_a_drop_that_fails_means_that_nothing_is_done(lost: str) -> None:
    """HOSTILE 55: a root that may not change its ids (CVE-2019-19728 went on as root)."""
    with public_directory() as base:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                without_capability(CAP_SETUID if lost == "CAP_SETUID" else 6)
                outcome = Users().run({ALICE: lambda send: Path(base, "done").touch()}, LIMIT)[ALICE]
                code = 0 if "could not be given up" in outcome.fault and not outcome.lines else 2
            finally:
                os._exit(code)
        assert os.waitpid(pid, 0)[1] == 0
        assert os.listdir(base) == []


def without_capability(number: int) -> None:
    """Take a capability away from this process."""

    class Header(ctypes.Structure):
        _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]

    class Sets(ctypes.Structure):
        _fields_ = [("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32)]

    header, sets = Header(0x20080522, 0), (Sets * 2)()
    assert libc.capget(ctypes.byref(header), sets) == 0
    for kind in ("effective", "permitted"):
        setattr(sets[0], kind, getattr(sets[0], kind) & ~(1 << number))
    assert libc.capset(ctypes.byref(header), sets) == 0


def test_rights_that_are_kept_are_noticed() -> None:
    """A process that keeps its capabilities over the change of its user counts as not dropped."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            libc.prctl(8, 1, 0, 0, 0)  # PR_SET_KEEPCAPS
            become(ALICE)
        except NotDroppedError:
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0


def test_users_do_not_wait_for_each_other() -> None:
    """All at the same time; what was sent before the end counts; who is too late is killed."""

    def slow(send: Send) -> None:
        send(b"first\nhalf")
        signal.pause()

    users = Users()
    outcomes = users.run({ALICE: slow, BOB: lambda send: send(b"all\n")}, LIMIT)
    assert outcomes[BOB].lines == (b"all",) and outcomes[BOB].fault == ""
    assert outcomes[ALICE].lines == (b"first",) and "in time" in outcomes[ALICE].fault
    wait_for(lambda: users.lost(ALICE.uid) == 0, LIMIT, "it is reaped, on a busy machine a moment later")


def test_a_child_that_its_user_stops_is_lost_alone() -> None:
    """The child is the user's: SIGSTOP and SIGKILL are his rights."""

    def stopped(send: Send) -> None:
        os.kill(os.getpid(), signal.SIGSTOP)

    def killed(send: Send) -> None:
        send(b"x\n")
        os.kill(os.getpid(), signal.SIGKILL)

    outcomes = Users().run({ALICE: stopped, BOB: killed}, LIMIT)
    assert "in time" in outcomes[ALICE].fault
    assert outcomes[BOB].lines == (b"x",) and "code -9" in outcomes[BOB].fault


def test_an_exception_in_the_work_ends_the_child() -> None:
    """It never goes on as a second agent, and prints nothing."""

    def broken(send: Send) -> None:
        raise ValueError("x")

    mine = os.getpid()
    assert "code 1" in Users().run({ALICE: broken}, LIMIT)[ALICE].fault
    assert os.getpid() == mine


def test_a_child_that_cannot_close_a_descriptor_ends() -> None:
    """Whatever goes wrong before the work does: it never goes on as a second agent, with root's rights."""
    gone = os.open("/dev/null", os.O_RDONLY)
    os.close(gone)
    mine = os.getpid()
    try:
        assert "code 1" in Users((gone,)).run({ALICE: lambda send: None}, LIMIT)[ALICE].fault
    finally:
        if os.getpid() != mine:
            os._exit(2)


def test_more_than_a_pipe_holds_comes_through() -> None:
    """Many jobs of one user."""

    def work(send: Send) -> None:
        for number in range(2000):
            send(b"%d %s\n" % (number, b"x" * 200))

    outcome = Users().run({ALICE: work}, LIMIT)[ALICE]
    assert len(outcome.lines) == 2000 and outcome.fault == ""


def test_the_child_holds_none_of_the_agents_descriptors() -> None:
    """A lock that a lost child kept would keep the next agent out."""
    read_end, write_end = os.pipe()
    users = Users((write_end,))
    thread = threading.Thread(target=lambda: users.run({ALICE: lambda _: signal.pause()}, 0.5))
    thread.start()
    os.close(write_end)
    assert os.read(read_end, 1) == b""
    thread.join()
    os.close(read_end)


def test_roots_own_job_needs_no_drop() -> None:
    """Who is the user already has nothing to give up."""
    root = Identity(0, 0)
    assert Users().run({root: lambda send: send(b"x\n")}, LIMIT)[root].lines == (b"x",)
