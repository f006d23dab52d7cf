"""Control groups of version 2: found in texts; on the kernel's own hierarchy, with a controller that it has there.

Memory is counted by version 2 only where version 1 does not. What concerns the tree (who may be where, what is made,
left and taken away) is tried with `hugetlb`, a controller with the same rules, and what concerns memory on files as the
kernel's documentation has them.
"""

from __future__ import annotations

import os
import subprocess
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from drainwise.launch.this_machine import memory_groups
from drainwise.launch.this_machine.memory_groups import MemoryGroup, MemoryGroups
from drainwise.processes.control_groups import FILES, GroupFiles, Hierarchy, memory_hierarchy, number_of

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
        ("4:memory:/a/b\n0::/c\n", V1 + V2, Hierarchy(1, "/sys/fs/cgroup/memory", "/sys/fs/cgroup/memory/a/b")),
        ("4:cpu,memory:/\n", V1.replace("rw,memory", "rw,cpu,memory"), Hierarchy(1, *["/sys/fs/cgroup/memory"] * 2)),
        # A container sees a part of the tree; a group outside of that part it cannot name.
        (
            "4:memory:/box/1/x\n",
            V1.replace(" / ", " /box/1 "),
            Hierarchy(1, "/sys/fs/cgroup/memory", "/sys/fs/cgroup/memory/x"),
        ),
        ("4:memory:/box/11\n", V1.replace(" / ", " /box/1 "), None),
        ("4:memory:/../x\n", V1, None),
        ("4:memory:/a\n", V2, None),
        ("3:memory2:/a\n", V1, None),
        ("0::/a\n", V1, None),
        ("0::/no/such/group\n", V2, None),
        ("", "", None),
    ],
)
def test_where_memory_is_counted(cgroup: str, mountinfo: str, found: Hierarchy | None) -> None:
    assert memory_hierarchy(cgroup, mountinfo, "memory") == found


def test_version_2_where_it_has_the_controller(tmp_path: Path) -> None:
    own = tmp_path / "user.slice" / "run-1.scope"
    own.mkdir(parents=True)
    mountinfo = V2.replace("/sys/fs/cgroup", str(tmp_path))
    (own / "cgroup.controllers").write_text("cpu pids\n")
    text = "0::/user.slice/run-1.scope\n"
    assert memory_hierarchy(text, mountinfo, "memory") is None
    (own / "cgroup.controllers").write_text("cpu memory pids\n")
    assert memory_hierarchy(text, mountinfo, "memory") == Hierarchy(2, str(tmp_path), str(own))


def test_the_limit_of_version_2_is_for_memory_and_swap_and_for_all_at_once(tmp_path: Path) -> None:
    for name in ("memory.max", "memory.swap.max", "memory.oom.group"):
        (tmp_path / name).write_text("max\n")
    MemoryGroup(str(tmp_path), 2).limit(100 << 20)
    assert [(tmp_path / name).read_text().strip("max\n") for name, _ in FILES[2].limits] == ["104857600", "0", "1"]
    (tmp_path / "memory.swap.max").unlink()  # a kernel without swap
    MemoryGroup(str(tmp_path), 2).limit(1 << 80)
    assert not (tmp_path / "memory.swap.max").exists()
    assert number_of(str(tmp_path), "memory.max") == 1 << 62


def test_kills_of_version_2_count_where_the_limit_was_reached(tmp_path: Path) -> None:
    """Not those in groups below, or for want of memory of the whole machine."""
    group = MemoryGroup(str(tmp_path), 2)
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
    monkeypatch.setitem(FILES, 2, GroupFiles((("hugetlb.2MB.max", None),), (("hugetlb.2MB.events.local", "max"),)))
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
    return MemoryGroups(str(directory), "s", said.append, Hierarchy(2, mounted(), str(own)))


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
        groups.remove(MemoryGroup(f"{delegated}/drainwise-s/s-1", 2))
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
