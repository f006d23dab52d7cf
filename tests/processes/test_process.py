"""A process is known by its pid and its birth: no other process is ever taken for it, or signalled for it."""

from __future__ import annotations

import os
import posix
import signal
import subprocess
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from drainwise.processes.process import (
    Process,
    birth_of,
    children,
    descendants,
    each_bearer,
    has_argument,
    is_alive,
    kill_group,
    marks_of,
    read_proc,
    send,
    send_below,
)
from made_up_node import wait_for_command_line
from real_daemons.waiting import wait_for

VALUE = f"{os.getpid()}=1"  # other workers of the suite run these tests at the same time


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process that sleeps, with a mark in its environment."""
    process = subprocess.Popen(["sleep", "1000"], env={"MARK": VALUE, "PATH": "/usr/bin:/bin"})
    wait_for_command_line(process.pid)
    yield process
    process.kill()
    process.wait()


def identity(pid: int) -> Process:
    birth = birth_of(pid)
    assert birth is not None
    return Process(pid, birth)


def test_a_process_keeps_its_birth(bystander: subprocess.Popen[bytes]) -> None:
    assert is_alive(identity(bystander.pid))
    assert identity(bystander.pid) == identity(bystander.pid)


def test_another_process_with_the_same_pid_is_not_the_same(bystander: subprocess.Popen[bytes]) -> None:
    """Attack 48: the pid was given to a stranger. It is not taken for the one we knew, and gets no signal."""
    known = identity(bystander.pid)
    earlier = Process(known.pid, known.birth - 1)
    assert not is_alive(earlier)
    assert not send(earlier, signal.SIGKILL)
    assert bystander.poll() is None


def test_a_signal_reaches_the_very_process(bystander: subprocess.Popen[bytes]) -> None:
    assert send(identity(bystander.pid), signal.SIGTERM)
    assert bystander.wait(5) == -signal.SIGTERM


def test_without_descriptors_of_processes_the_birth_is_asked_all_the_same(
    bystander: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An old kernel has no pidfd_open."""
    monkeypatch.delattr("posix.pidfd_open")
    known = identity(bystander.pid)
    assert not send(Process(known.pid, known.birth + 1), signal.SIGKILL)
    assert bystander.poll() is None
    assert send(known, signal.SIGTERM)
    assert bystander.wait(5) == -signal.SIGTERM


def test_a_dead_process_that_nobody_reaped_is_not_alive(bystander: subprocess.Popen[bytes]) -> None:
    """In a container whose first process reaps nothing, the dead stay listed for ever."""
    known = identity(bystander.pid)
    bystander.kill()
    os.waitid(os.P_PID, bystander.pid, os.WEXITED | os.WNOWAIT)
    assert Path(f"/proc/{bystander.pid}").exists()
    assert not is_alive(known)
    assert birth_of(bystander.pid) is None


def test_no_process_is_no_process() -> None:
    assert birth_of(2**22 + 1) is None
    assert not send(Process(2**22 + 1, 1), signal.SIGKILL)


def test_a_name_made_to_look_like_figures_does_not_matter(tmp_path: Path) -> None:
    """Attack 15: a program may call itself `) Z 1 (`, which stands in the middle of the kernel's line."""
    program = tmp_path / ") Z 1 (\n)"
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([str(program), "1000"]) as process:
        try:
            birth = birth_of(process.pid)
            me = birth_of(os.getpid())
            assert birth is not None
            assert me is not None
            assert birth >= me
            assert identity(process.pid) in descendants(os.getpid())
        finally:
            process.kill()


def test_children_are_listed_until_they_are_reaped(bystander: subprocess.Popen[bytes]) -> None:
    """The list that makes killing safe names the dead as well: their pids are still theirs."""
    assert bystander.pid in children()
    bystander.kill()
    os.waitid(os.P_PID, bystander.pid, os.WEXITED | os.WNOWAIT)
    assert bystander.pid in children()
    bystander.wait()
    assert bystander.pid not in children()


def test_children_are_found_without_the_kernels_list(
    bystander: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some kernels are built without it; then every process is asked for its parent."""

    def no_list(path: str) -> bytes:
        if path.endswith("/children"):
            raise FileNotFoundError(path)
        return read_proc(path)

    monkeypatch.setattr("drainwise.processes.process.read_proc", no_list)
    assert bystander.pid in children()
    bystander.kill()
    os.waitid(os.P_PID, bystander.pid, os.WEXITED | os.WNOWAIT)
    assert bystander.pid in children()


def test_descendants_are_found_below_their_ancestors(bystander: subprocess.Popen[bytes]) -> None:
    with subprocess.Popen(["sh", "-c", "sleep 1000 & echo $!; wait"], stdout=subprocess.PIPE) as shell:
        assert shell.stdout is not None
        grandchild = identity(int(shell.stdout.readline()))
        try:
            found = descendants(shell.pid)
            assert found == [grandchild]
            assert {identity(shell.pid), grandchild, identity(bystander.pid)} <= set(descendants(os.getpid()))
        finally:
            send(grandchild, signal.SIGKILL)


def test_a_signal_goes_to_all_below_and_to_nobody_beside(bystander: subprocess.Popen[bytes]) -> None:
    """Each once; one whose parent only has the pid of somebody we knew is a stranger."""
    script = "(sleep 1000 & echo $!; wait) & echo $!; wait"
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE) as shell:
        assert shell.stdout is not None
        below = {identity(int(shell.stdout.readline())), identity(int(shell.stdout.readline()))}
        try:
            strangers = {shell.pid: (birth_of(shell.pid) or 0) - 1}
            assert send_below(bystander.pid, signal.SIGKILL, strangers) == []
            known: dict[int, int] = {}
            assert set(send_below(shell.pid, signal.SIGSTOP, known)) == below
            assert known == {member.pid: member.birth for member in below}
            assert send_below(shell.pid, signal.SIGSTOP, known) == []
        finally:
            for member in below:
                send(member, signal.SIGKILL)
            shell.kill()


def test_a_mark_is_found_as_a_whole_and_nowhere_else(bystander: subprocess.Popen[bytes]) -> None:
    """A value that only begins like the mark belongs to somebody else."""
    value = VALUE.encode()
    assert list(each_bearer("MARK", value.__eq__)) == [identity(bystander.pid)]
    assert marks_of(bystander.pid, "MARK") == [value] and marks_of(bystander.pid, "ARK") == []
    assert list(each_bearer("MARK", value[:-1].__eq__)) == list(each_bearer("ARK", value.__eq__)) == []


def test_one_that_is_gone_has_no_marks_and_no_group() -> None:
    """Neither can be asked or signalled."""
    child = subprocess.Popen(["sleep", "60"], env={"MARK": "x=y"}, start_new_session=True)
    wait_for(lambda: marks_of(child.pid, "MARK") == [b"x=y"])  # in the middle of exec a process has no environment
    assert kill_group(child.pid, signal.SIGKILL)
    assert child.wait(5) == -signal.SIGKILL
    assert marks_of(child.pid, "MARK") == []
    assert not kill_group(child.pid, 0)


def test_what_a_process_shows_of_itself_fills_nobodys_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It can make its environment and its arguments as large as its memory; a part of a mark is none."""
    large = tmp_path / "environ"
    large.write_bytes(b"MARK=" + VALUE.encode())
    os.truncate(large, 1 << 28)
    opened = posix.open
    monkeypatch.setattr(posix, "open", lambda _path, flags: opened(str(large), flags))
    tracemalloc.start()
    assert marks_of(os.getpid(), "MARK") == []
    assert not has_argument(os.getpid(), b"MARK=" + VALUE.encode())
    assert tracemalloc.get_traced_memory()[1] < 1 << 25
    tracemalloc.stop()


def test_an_argument_is_found_as_a_whole(bystander: subprocess.Popen[bytes]) -> None:
    assert has_argument(bystander.pid, b"1000")
    assert not has_argument(bystander.pid, b"100")
    assert not has_argument(2**22 + 1, b"1000")
