"""Control groups of version 1, the real ones of this machine: a job is held to its memory, nothing stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from as_user import in_child
from drainwise.launch.backend import DONE, RUNNING, JobState, LaunchPlace, Start
from drainwise.launch.choice.resources import Resources
from drainwise.launch.this_machine.backend import LocalBackend, open_backend
from drainwise.launch.this_machine.memory_groups import CONTROLLER, memory_groups
from drainwise.processes.control_groups import hierarchy_here
from made_up_node import public_directory
from real_daemons.waiting import wait_for

PATIENCE, USER = 30.0, 54321
HERE = hierarchy_here(CONTROLLER)
OWN = HERE.own if HERE is not None and HERE.version == 1 and os.access(HERE.own, os.W_OK) else ""
PLUGINS = str(Path(__file__).parents[2] / "plugins")

pytestmark = [
    pytest.mark.daemons,  # it runs real processes
    pytest.mark.skipif(not OWN, reason="no memory hierarchy of version 1 may be written here"),
]

TAKES = "import sys, time; held = b'x' * (int(sys.argv[1]) << 20); open(sys.argv[2], 'w').close(); time.sleep(60)"


class Machine:
    """A backend with control groups."""

    def __init__(self, directory: Path, state: str) -> None:
        self.directory, self.state, self.said = directory, state, list[str]()
        self.place = LaunchPlace("f", "k", str(directory), state, self.said.append)
        self.backend: LocalBackend = open_backend({"cpu": 4, "mem": 4000}, "", self.place)

    @property
    def group(self) -> Path:
        return Path(OWN, f"drainwise-{self.state}")

    def start(self, name: str, line: str, mem: int) -> str:
        tag, environment = f"{self.state}-{name}", {"PATH": os.environ["PATH"]}
        resources, output = Resources(1, mem), f"{self.directory}/{name}.out"
        return self.backend.start(
            Start(name, tag, ("sh", "-c", line), str(self.directory), resources, output, environment)
        )

    def end_of(self, job: str) -> JobState:
        while (state := self.backend.poll([job])[job]).state == RUNNING:
            self.backend.wait(0.1)
        return state


def is_there(pid: str) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid.strip()}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def takes(megabytes: int, mark: str) -> str:
    return f'{sys.executable} -S -c "{TAKES}" {megabytes} {mark}'


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path, f"t{os.getpid()}")
    yield made
    made.backend.close()
    assert not made.group.exists() and not made.said and not (tmp_path / "memory-group").exists()


def test_processes_are_summed_and_the_whole_job_is_ended_and_said_so(machine: Machine) -> None:
    """Two of 70 MB each are more than 100, though none of them is; what has fled into another session counts."""
    line = (
        f"{takes(70, 'one')} & until test -e one; do sleep 0.01; done; setsid {takes(70, 'two')} & wait; wait; sleep 60"
    )
    state = machine.end_of(machine.start("sum", line, 100))
    assert (state.state, state.why) == (DONE, "used more than its memory of 100 MB") and state.code > 0
    assert (machine.directory / "one").exists()


def test_one_whose_child_was_killed_for_its_memory_has_not_succeeded(machine: Machine) -> None:
    line = f"{takes(70, 'one')} & until test -e one; do sleep 0.01; done; {takes(70, 'two')}; kill %1; exit 0"
    state = machine.end_of(machine.start("sum", line, 100))
    assert state.code > 0 and state.why == "used more than its memory of 100 MB"


def test_a_job_below_its_memory_ends_as_it_does(machine: Machine) -> None:
    """The same two with enough; and files that it has read or written are no memory of its own."""
    line = (
        f"{takes(70, 'one')} & {takes(70, 'two')} & until test -e one -a -e two; do sleep 0.01; done; kill %1 %2; "
        "head -c 400000000 /dev/zero > large; cat large > /dev/null; rm large; exit 3"
    )
    state = machine.end_of(machine.start("sum", line, 250))
    assert (state.code, state.why) == (3, "")


def test_what_fled_goes_with_its_job_and_so_does_the_group(machine: Machine) -> None:
    """It has thrown away its environment, so by its tag nobody finds it."""
    line = "setsid env -i sleep 61 & echo $! > fled; until test -s fled; do :; done"
    job = machine.start("flees", line, 50)
    assert (machine.group / job).is_dir()
    assert machine.end_of(job).code == 0
    wait_for(lambda: machine.backend.poll([]) or not (machine.group / job).exists())
    assert not is_there((machine.directory / "fled").read_text())


def test_a_job_that_is_killed_by_somebody_used_no_memory(machine: Machine) -> None:
    state = machine.end_of(machine.start("dies", "kill -9 $$", 50))
    assert (state.code, state.why) == (137, "signal 9")


def test_whoever_asks_for_no_memory_is_in_no_group(machine: Machine) -> None:
    assert machine.end_of(machine.start("free", "cat /proc/self/cgroup > where", 0)).code == 0
    assert "drainwise-" not in (machine.directory / "where").read_text()


LAUNCHES = """
import sys
from pathlib import Path
sys.path[:0] = [{tests!r}, {tests!r} + "/support", {tests!r} + "/../scripts"]
from launch.test_memory_groups import Machine
import time
machine = Machine(Path(sys.argv[1]), sys.argv[2])
machine.start("a", "setsid env -i sleep 63 & touch up; exec sleep 62", 50)
time.sleep(60)
"""


@pytest.mark.parametrize("elsewhere", [False, True])
def test_the_next_start_takes_away_what_a_killed_launcher_left_and_no_more(tmp_path: Path, elsewhere: bool) -> None:
    """Also where it ran in another group than the next one does."""
    state, program = f"k{os.getpid()}", LAUNCHES.format(tests=str(Path(__file__).parents[1]))
    other, inner = Path(OWN, f"drainwise-other{os.getpid()}"), Path(OWN, f"outer-{os.getpid()}")
    other.mkdir()
    inner.mkdir()
    group = (inner if elsewhere else Path(OWN)) / f"drainwise-{state}"
    enter = f"echo 0 > {inner}/cgroup.procs;" if elsewhere else ""
    try:
        process = subprocess.Popen(
            ["sh", "-c", f'{enter} exec "$@"', "sh", sys.executable, "-c", program, str(tmp_path), state],
            env={**os.environ, "PYTHONPATH": PLUGINS},
        )
        wait_for((tmp_path / "up").exists)
        process.send_signal(signal.SIGKILL)
        process.wait()
        left = (group / f"{state}-a" / "cgroup.procs").read_text().split()
        assert len(left) == 2
        Machine(tmp_path, state).backend.close()
        assert not group.exists() and other.is_dir()
        assert not [pid for pid in left if is_there(pid)]
        wait_for(lambda: (inner / "cgroup.procs").read_text() == "")  # its supervisor
    finally:
        other.rmdir()
        inner.rmdir()


def test_a_supervisor_that_is_killed_leaves_no_group(machine: Machine) -> None:
    job = machine.start("a", "echo $PPID > parent; setsid env -i sleep 63 & sleep 62", 50)
    parent = machine.directory / "parent"
    wait_for(lambda: parent.exists() and parent.read_text())
    os.kill(int(parent.read_text()), signal.SIGKILL)
    assert "was killed" in machine.end_of(job).why
    wait_for(lambda: machine.backend.poll([]) or not (machine.group / job).exists())


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_where_nothing_is_delegated_each_process_is_limited_alone_and_that_is_said_once() -> None:
    with public_directory() as directory:
        os.chown(directory, USER, USER)

        def step() -> None:
            os.setresuid(USER, USER, USER)
            said: list[str] = []
            groups = memory_groups(directory, "u", said.append)
            assert groups.make("u-1", 100) is None and groups.make("u-2", 100) is None
            (line,) = said
            assert line.startswith("memory is limited for each process of a job, not for all of them together: ")
            assert f"{OWN}/drainwise-u: Permission denied" in line
            groups.close()
            assert os.listdir(directory) == []

        assert in_child(step) == 0
