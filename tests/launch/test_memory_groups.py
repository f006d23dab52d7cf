"""Control groups: found in texts; on the kernel's own hierarchy, with a controller that it has there.

Memory is counted by version 2 only where version 1 does not. What concerns the tree (who may be where, what is made,
left and taken away) is tried with `hugetlb`, a controller with the same rules, and what concerns memory on files as the
kernel's documentation has them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from drainwise.processes.control_groups import Hierarchy, hierarchy_in, number_of
from drainwise_launch.backend import RUNNING, Start
from drainwise_launch.choice.resources import Resources
from drainwise_launch.this_machine import memory_groups
from drainwise_launch.this_machine.backend import LocalBackend
from drainwise_launch.this_machine.memory_groups import MemoryGroup, MemoryGroups
from real_daemons.waiting import wait_for

V1 = "30 29 0:26 / /sys/fs/cgroup/memory rw,nosuid shared:9 - cgroup cgroup rw,memory\n"
V2 = "35 30 0:30 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
CONTROLLER = "hugetlb"


def mounted() -> str:
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        if " - cgroup2 " in line:
            return line.split(" ")[4]
    return ""


def is_usable() -> bool:
    top = mounted()
    words = Path(top, "cgroup.controllers").read_text().split() if top else []
    return CONTROLLER in words and os.access(f"{top}/cgroup.subtree_control", os.W_OK) and os.geteuid() == 0


@pytest.mark.parametrize(
    ("cgroup", "mountinfo", "found"),
    [
        ("4:memory:/a/b\n0::/c\n", V1 + V2, None),
        ("0::/a\n", V1, None),
        ("0::/no/such/group\n", V2, None),
        ("4:memory:/a\n", V2, None),
        ("", "", None),
    ],
)
def test_where_memory_is_counted(cgroup: str, mountinfo: str, found: Hierarchy | None) -> None:
    assert hierarchy_in(cgroup, mountinfo, "memory") == found


@pytest.mark.parametrize(
    ("group", "root", "there"),
    [
        ("/user.slice/run-1.scope", "/", True),
        # A container sees a part of the tree; a group outside of that part it cannot name.
        ("/box/1/user.slice/run-1.scope", "/box/1", True),
        ("/box/11/user.slice/run-1.scope", "/box/1", False),
        ("/../user.slice/run-1.scope", "/", False),
    ],
)
def test_where_the_controller_counts(tmp_path: Path, group: str, root: str, there: bool) -> None:
    own = tmp_path / "user.slice" / "run-1.scope"
    own.mkdir(parents=True)
    mountinfo = V2.replace("/sys/fs/cgroup", str(tmp_path)).replace(" / ", f" {root} ")
    (own / "cgroup.controllers").write_text("cpu pids\n")
    assert hierarchy_in(f"0::{group}\n", mountinfo, "memory") is None
    (own / "cgroup.controllers").write_text("cpu memory pids\n")
    assert hierarchy_in(f"0::{group}\n", mountinfo, "memory") == (Hierarchy(str(tmp_path), str(own)) if there else None)


def test_the_limit_of_version_2_is_for_memory_and_swap_and_for_all_at_once(tmp_path: Path) -> None:
    for name in ("memory.max", "memory.swap.max", "memory.oom.group"):
        (tmp_path / name).write_text("max\n")
    MemoryGroup(str(tmp_path)).limit(100 << 20)
    assert [(tmp_path / name).read_text().strip("max\n") for name, _ in memory_groups.LIMITS] == ["104857600", "0", "1"]
    (tmp_path / "memory.swap.max").unlink()  # a kernel without swap
    MemoryGroup(str(tmp_path)).limit(1 << 80)
    assert not (tmp_path / "memory.swap.max").exists()
    assert number_of(str(tmp_path), "memory.max") == 1 << 62


def test_kills_of_version_2_count_where_the_limit_was_reached(tmp_path: Path) -> None:
    """Not those in groups below, or for want of memory of the whole machine."""
    group = MemoryGroup(str(tmp_path))
    assert group.kills() is None
    (tmp_path / "memory.events").write_text("low 0\nhigh 0\nmax 7\noom 2\noom_kill 5\n")
    assert group.kills() == 2
    (tmp_path / "memory.events.local").write_text("low 0\nhigh 0\nmax 0\noom 0\noom_kill 3\n")
    assert group.kills() == 0


real = pytest.mark.skipif(not is_usable(), reason=f"no hierarchy of version 2 with {CONTROLLER} may be written here")


@pytest.fixture
def delegated(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A group that was handed over to whoever is in it, as `systemd-run --scope -p Delegate=yes` does."""
    top = mounted()
    monkeypatch.setattr(memory_groups, "CONTROLLER", CONTROLLER)
    monkeypatch.setattr(memory_groups, "LIMITS", (("hugetlb.2MB.max", None),))
    monkeypatch.setattr(memory_groups, "KILLS", (("hugetlb.2MB.events.local", "max"),))
    control, place = Path(top, "cgroup.subtree_control"), Path(top, f"delegated-{os.getpid()}")
    before = CONTROLLER in control.read_text().split()
    control.write_text(f"+{CONTROLLER}")
    place.mkdir()
    yield place
    for directory, _, _ in os.walk(place, topdown=False):
        os.rmdir(directory)
    if not before and not list(Path(top).glob("delegated-*")):  # another suite may run on this machine
        control.write_text(f"-{CONTROLLER}")


def inside(group: Path, step: Callable[[], object]) -> None:
    """Do this as a process of its own in that group; when it has gone, nobody is in the group."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            Path(group, "cgroup.procs").write_text("0")
            step()
            code = 0
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def below(path: Path) -> set[str]:
    return {os.path.relpath(directory, path) for directory, _, _ in os.walk(path)} - {"."}


def opened(directory: Path, own: Path, said: list[str]) -> MemoryGroups:
    return MemoryGroups(str(directory), "s", said.append, Hierarchy(mounted(), str(own)))


@real
@pytest.mark.daemons  # the kernel's own groups
def test_who_is_alone_in_its_group_leaves_it_so_that_it_may_count(delegated: Path, tmp_path: Path) -> None:
    """No process may be in a group that counts; afterwards all is as it was."""

    def step() -> None:
        said: list[str] = []
        groups = opened(tmp_path, delegated, said)
        group = groups.make("s-1", 100)
        assert group is not None and not said
        assert below(delegated) == {"drainwise-s", "drainwise-s/s-1", "drainwise-s.launcher"}
        assert Path("/proc/self/cgroup").read_text().splitlines()[-1].endswith("/drainwise-s.launcher")
        assert number_of(group.directory, "hugetlb.2MB.max") == 100 << 20
        process = subprocess.Popen(["/bin/sh", "-c", f"echo 0 > {group.entry}; setsid sleep 61 & exec sleep 62"])
        while len(Path(group.entry).read_text().split()) < 2:
            continue
        groups.remove(group)
        assert process.wait(10) == -9
        while Path(group.directory).exists():
            groups.tidy()
        groups.close()
        assert below(delegated) == set() and Path(delegated, "cgroup.subtree_control").read_text().strip() == ""
        assert str(os.getpid()) in Path(delegated, "cgroup.procs").read_text().split()
        assert os.listdir(tmp_path) == []

    inside(delegated, step)


@real
@pytest.mark.daemons
def test_beside_others_in_a_group_it_makes_its_own_next_to_that_group(delegated: Path, tmp_path: Path) -> None:
    """A shell is in the same group: it cannot count. The parent counts: ours stands beside."""
    session = delegated / "session.scope"
    Path(delegated, "cgroup.subtree_control").write_text(f"+{CONTROLLER}")
    session.mkdir()
    shell = subprocess.Popen(["/bin/sh", "-c", f"echo 0 > {session}/cgroup.procs; exec sleep 60"])
    while not Path(session, "cgroup.procs").read_text():
        continue

    def step() -> None:
        said: list[str] = []
        groups = opened(tmp_path, session, said)
        assert groups.make("s-1", 100) is not None and not said
        assert below(delegated) == {"session.scope", "drainwise-s", "drainwise-s/s-1"}
        groups.remove(MemoryGroup(f"{delegated}/drainwise-s/s-1"))
        groups.close()
        assert below(delegated) == {"session.scope"}

    try:
        inside(session, step)
    finally:
        shell.kill()
        shell.wait()


@real
@pytest.mark.daemons
def test_a_job_of_another_launch_does_not_step_beside_its_own_limit(delegated: Path, tmp_path: Path) -> None:
    """It is not alone in its group, whose parent is the other launch's: then each process is limited alone."""
    outer = delegated / "drainwise-outer"
    job = outer / "outer-1"
    Path(delegated, "cgroup.subtree_control").write_text(f"+{CONTROLLER}")
    outer.mkdir()
    Path(outer, "cgroup.subtree_control").write_text(f"+{CONTROLLER}")
    job.mkdir()
    shell = subprocess.Popen(["/bin/sh", "-c", f"echo 0 > {job}/cgroup.procs; exec sleep 60"])
    while not Path(job, "cgroup.procs").read_text():
        continue

    def step() -> None:
        said: list[str] = []
        groups = opened(tmp_path, job, said)
        assert groups.make("s-1", 100) is None and "Device or resource busy" in said[0]
        groups.close()
        assert below(delegated) == {"drainwise-outer", "drainwise-outer/outer-1"}

    try:
        inside(job, step)
    finally:
        shell.kill()
        shell.wait()


@real
@pytest.mark.daemons
def test_what_a_killed_launcher_left_is_ended_by_the_next_one_wherever_that_runs(
    delegated: Path, tmp_path: Path
) -> None:
    """Its jobs, its group, and the one that it went into itself."""
    first, second = delegated / "first.scope", delegated / "second.scope"
    Path(delegated, "cgroup.subtree_control").write_text(f"+{CONTROLLER}")
    first.mkdir()
    second.mkdir()
    mark = tmp_path / "pid"

    def left() -> None:
        group = opened(tmp_path, first, []).make("s-1", 100)
        assert group is not None
        job = subprocess.Popen(["/bin/sh", "-c", f"echo 0 > {group.entry}; echo $$ > {mark}; exec sleep 60"])
        while not (mark.exists() and mark.read_text()):
            continue
        assert job.pid == int(mark.read_text())

    def step() -> None:
        groups = opened(tmp_path, second, [])
        groups.tidy()
        groups.close()
        assert below(delegated) == {"first.scope", "second.scope"}

    inside(first, left)
    assert "first.scope/drainwise-s/s-1" in below(delegated)
    inside(second, step)


def test_where_nothing_is_counted_each_process_is_limited_alone_and_that_is_said_once(tmp_path: Path) -> None:
    said: list[str] = []
    groups = MemoryGroups(str(tmp_path), "u", said.append, None)
    assert groups.make("u-1", 100) is None and groups.make("u-2", 100) is None
    (line,) = said
    assert line.startswith("memory is limited for each process of a job, not for all of them together: ")
    groups.close()
    assert os.listdir(tmp_path) == []


@real
@pytest.mark.daemons
def test_a_supervisor_that_is_killed_leaves_no_group(delegated: Path, tmp_path: Path) -> None:
    """Also what fled from its job and has thrown away its environment goes with the group."""

    def step() -> None:
        pool = {"cpu": 1, "mem": 1000, "tmp": 0}
        backend = LocalBackend(pool, str(tmp_path / "scratch"), "s", "", opened(tmp_path, delegated, []))
        parent, environment = tmp_path / "parent", {"PATH": os.environ["PATH"]}
        line = "setsid env -i sleep 63 & echo $PPID > parent; exec sleep 62"
        job = backend.start(
            Start("a", "s-a", ("sh", "-c", line), str(tmp_path), Resources(1, 50), f"{tmp_path}/out", environment)
        )
        wait_for(lambda: parent.exists() and parent.read_text())
        os.kill(int(parent.read_text()), signal.SIGKILL)
        while (state := backend.poll([job])[job]).state == RUNNING:
            backend.wait(0.1)
        assert "was killed" in state.why
        wait_for(lambda: backend.poll([]) or not (delegated / "drainwise-s" / job).exists())
        backend.close()
        assert below(delegated) == set()

    inside(delegated, step)
