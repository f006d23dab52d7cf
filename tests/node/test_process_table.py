"""The processes of this machine as they are read, with real ones that hide, rename and free themselves."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from drainwise.node.payloads import process_table
from drainwise.node.payloads.payload_trees import job_processes
from drainwise.node.payloads.process_table import TICKS, read_processes
from made_up_processes import MadeUpTable, Row
from real_daemons.waiting import wait_for


@contextmanager
def running(work: Callable[[], object]) -> Iterator[int]:
    """Run a child in a session of its own, a supervisor's, which does `work` and then sleeps; ends all it started."""
    ready, said = os.pipe()
    pid = os.fork()
    if pid == 0:
        with suppress(BaseException):
            os.setsid()
            child = os.fork()
            if child == 0:
                os.setsid()
                work()
                os.write(said, b".")
                signal.pause()
            signal.pause()
        os._exit(0)
    os.close(said)
    os.read(ready, 1)
    os.close(ready)
    try:
        yield pid
    finally:
        table = read_processes()
        found = table and job_processes(table, (pid,))
        for one in (*(found.members if found else ()), pid):
            with suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)
        os.waitpid(pid, 0)


def forked(work: Callable[[], object]) -> int:
    """Start a child that does `work` and sleeps."""
    pid = os.fork()
    if pid == 0:
        work()
        signal.pause()
    return pid


def test_this_process_is_in_the_table() -> None:
    table = read_processes()
    assert table is not None
    me, parent = table.process(os.getpid()), os.getppid()
    assert me is not None and (me.parent, me.session) == (parent, os.getsid(0))
    assert os.getpid() in table.children(parent)
    spent = sum(os.times()[:4])
    assert me.cpu / TICKS == pytest.approx(spent, abs=0.5) and 0 < (table.now - me.start) / TICKS < 86400 * 30
    assert "pytest" in table.command_line(os.getpid()) or "python" in table.command_line(os.getpid())


def test_who_renames_itself_stays_where_it_is() -> None:
    """A name with brackets and numbers is a name."""

    def rename() -> None:
        Path("/proc/self/comm").write_text(") R 1 1 1 (\n")

    with running(rename) as supervisor:
        table = read_processes()
        assert table is not None
        [pid] = table.children(supervisor)
        found = table.process(pid)
        assert found is not None and (found.parent, found.name) == (supervisor, b") R 1 1 1 (\n")


def test_who_loses_its_parents_stays_in_its_job() -> None:
    """It is in the session of its job still."""

    def orphan() -> None:
        middle = forked(lambda: (forked(lambda: None), os._exit(0)))
        os.waitpid(middle, 0)

    with running(orphan) as supervisor:
        table = read_processes()
        found = table and job_processes(table, (supervisor,))
        assert found is not None and found
        assert (len(found.roots), len(found.escaped), len(found.members)) == (1, 1, 2)


def test_who_frees_itself_is_nobody_elses(request: pytest.FixtureRequest) -> None:
    """A session of its own and no parents: without control groups it is not seen, and counts for no other job."""
    ready, said = os.pipe()
    request.addfinalizer(lambda: os.close(ready))

    def free() -> None:
        def alone(parent: int) -> None:
            os.setsid()
            wait_for(lambda: os.getppid() != parent)
            os.write(said, str(os.getpid()).encode())

        def between() -> None:
            itself = os.getpid()
            forked(lambda: alone(itself))
            os._exit(0)

        os.waitpid(forked(between), 0)

    with running(free) as supervisor, running(lambda: None) as neighbour:
        freed = int(os.read(ready, 20))
        os.close(said)
        try:
            table = read_processes()
            assert table is not None
            both = [job_processes(table, (pid,)) for pid in (supervisor, neighbour)]
            assert [len(one.members) for one in both if one is not None] == [1, 1]
            assert table.process(freed) is not None
        finally:
            os.kill(freed, signal.SIGKILL)


def test_no_file_stays_open() -> None:
    """Neither of processes that were read nor of the directory."""
    before = len(os.listdir("/proc/self/fd"))
    table = read_processes()
    assert table is not None
    assert table.group(os.getpid()) is not None and table.command_line(os.getpid())
    assert len(os.listdir("/proc/self/fd")) <= before  # the garbage collector may close some of other tests


def test_where_nothing_can_be_read_nothing_is_seen(tmp_path: Path) -> None:
    """Hidden processes (hidepid) are as good as none."""
    assert read_processes(str(tmp_path / "none")) is None
    table = read_processes(str(tmp_path))
    assert table is not None and job_processes(table, (1,)) is None


def test_more_processes_than_the_bound_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_table, "MOST_PROCESSES", -1)
    assert read_processes() is None


def test_a_read_that_takes_too_long_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_table, "SECONDS", -1.0)
    assert read_processes() is None


def test_command_lines_and_groups_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_table, "MOST_COMMAND_LINES", 1)
    monkeypatch.setattr(process_table, "MOST_GROUPS", 1)
    table = read_processes()
    assert table is not None
    assert table.command_line(os.getpid()) and not table.command_line(os.getpid())
    table.group(os.getpid())
    assert table.group(os.getpid()) == ""


def test_a_process_is_found_by_its_name_and_says_its_words_and_its_group(tmp_path: Path) -> None:
    """The longest path of its group; a process that has gone says nothing."""
    table = MadeUpTable(Row(7, 1, name="condor_starter"), Row(8, 7, name="condor_starter_x"), Row(9, 7, name="sh"))
    assert (table.named(b"condor_starter"), table.named(b"sh"), table.named(b"none")) == ([7], [9], [])
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "cgroup").write_bytes(b"2:cpu,cpuacct:/a\n1:name=systemd:/a:b/c/\n0::/a/b\n")
    (tmp_path / "7" / "cmdline").write_bytes(b"sh\0-c\0\xff" + b"x" * 3000)
    there = process_table.ProcessTable({}, 0, str(tmp_path))
    assert (there.group(7), there.group(8), there.command_line(8)) == ("/a:b/c", "", "")
    assert there.command_line(7).startswith("sh -c \ufffdxxx") and len(there.command_line(7)) == 2048
    (tmp_path / "7" / "cgroup").write_bytes(b"0::/\n")
    assert there.group(7) == ""
