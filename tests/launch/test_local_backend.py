"""The local backend with real processes: never overshot, limits held, nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drainwise.errors import ActionRefused, ConfigurationError, PoolUnreachable, UsageError
from drainwise.launch import local_process
from drainwise.launch.backend import DONE, RUNNING, VANISHED, Place, Start, State
from drainwise.launch.local_backend import LocalBackend, open_backend
from drainwise.launch.local_pool import alone, enough, found_here, mapped, misfit
from drainwise.launch.resources import Resources
from drainwise.launch.stray import TAG, end_strays

POOL = {"cpu": 1, "mem": 4000, "tmp": 100, "gpu": 2}
PATIENCE = 20.0


class Machine:
    """A backend, and its jobs' output."""

    def __init__(self, directory: Path, pool: Mapping[str, int] = POOL) -> None:
        (directory / "scratch").mkdir()
        self.directory = directory
        self.backend = LocalBackend(pool, str(directory / "scratch"))
        self.count = 0

    def start(self, *argv: str, wall_limit: int = 0, **needs: int) -> str:
        self.count += 1
        others = tuple(sorted((name, amount) for name, amount in needs.items() if name not in {"cpu", "mem", "tmp"}))
        resources = Resources(needs.get("cpu", 1), needs.get("mem", 0), needs.get("tmp", 0), others)
        return self.backend.start(
            Start(
                f"job {self.count}",
                f"test-{os.getpid()}-{self.count}",
                argv,
                str(self.directory),
                resources,
                f"{self.directory}/{self.count}.out",
                {"PATH": "/usr/bin:/bin"},
                wall_limit=wall_limit,
            )
        )

    def end_of(self, job: str) -> State:
        deadline = time.monotonic() + PATIENCE
        while (state := self.backend.poll([job])[job]).state == RUNNING:
            assert time.monotonic() < deadline
            self.backend.wait(0.2)
        return state

    def said(self, job: str) -> str:
        return (self.directory / f"{job.rpartition('-')[2]}.out").read_text()


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path)
    yield made
    made.backend.close()


def test_a_job_runs_in_its_directory_with_its_environment_alone(machine: Machine) -> None:
    job = machine.start("sh", "-c", "pwd; env | cut -d= -f1 | sort | xargs; exit 7")
    state = machine.end_of(job)
    assert (state.state, state.code, state.why) == (DONE, 7, "") and (state.wall or 0) > 0
    assert machine.said(job).splitlines() == [str(machine.directory), f"{TAG} PATH PWD"]


def test_cpu_seconds_are_measured(machine: Machine) -> None:
    state = machine.end_of(machine.start("sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"))
    assert state.cpu is not None and state.cpu > 0.01


def test_it_is_never_overshot(machine: Machine) -> None:
    """What is not free is not started, whoever asks; it is free again when the job has ended."""
    job = machine.start("sleep", "60", gpu=2)
    assert machine.backend.free() == {"cpu": 0, "mem": 4000, "tmp": 100, "gpu": 0}
    with pytest.raises(PoolUnreachable, match="not free"):
        machine.start("true")
    machine.backend.kill([job])
    state = machine.end_of(job)
    assert (state.state, state.code, state.why) == (DONE, 143, "killed")
    assert machine.backend.free() == POOL


def test_what_it_can_never_run_is_said(machine: Machine) -> None:
    for resources, said in (
        (Resources(2), "cpu = 2, and there are 1 here"),
        (Resources(1, 4001), "mem = 4001"),
        (Resources(others=(("gpu", 3),)), "gpu = 3"),
        (Resources(others=(("fpga", 1),)), "there is no resource fpga here: there are cpu, mem, tmp, gpu"),
        (Resources(others=(("partition", "long"),)), "partition is not a resource that is counted here"),
    ):
        assert said in machine.backend.fits(resources)
    assert machine.backend.fits(Resources(1, 4000, 100, (("gpu", 2),))) == ""


def test_a_job_has_cpus_of_its_own_and_no_others(machine: Machine) -> None:
    """Also what it starts; and the launcher keeps all of its own."""
    before = os.sched_getaffinity(0)
    program = "import os; print(len(os.sched_getaffinity(0)))"
    job = machine.start("sh", "-c", f'{sys.executable} -c "{program}"')
    assert machine.end_of(job).code == 0
    assert machine.said(job) == "1\n" and os.sched_getaffinity(0) == before


def test_memory_beyond_what_was_asked_for_is_not_to_be_had(machine: Machine) -> None:
    """Not by what the job starts either; and its arguments are its own, whatever is in them (HOSTILE 44)."""
    program = "import sys\ntry: x = bytearray(300 << 20)\nexcept MemoryError: print('no', sys.argv[1])"
    job = machine.start(sys.executable, "-c", program, "$(id); `id` 'x\"", mem=200)
    assert machine.end_of(job).code == 0 and machine.said(job) == "no $(id); `id` 'x\"\n"
    assert machine.end_of(machine.start(sys.executable, "-c", program, mem=1000)).code == 0


def test_scratch_is_empty_its_own_and_gone_afterwards(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    job = machine.start("sh", "-c", 'echo "$TMPDIR"; ls -A "$TMPDIR"; echo x > "$TMPDIR/file"', tmp=1)
    assert machine.end_of(job).code == 0
    scratch = machine.said(job).strip()
    assert scratch.startswith(f"{machine.directory}/scratch/") and not os.path.exists(scratch)
    monkeypatch.setattr(local_process, "_SCRATCH_LOOK", 0.0)
    state = machine.end_of(machine.start("sh", "-c", 'head -c 5000000 /dev/zero > "$TMPDIR/x"; sync; sleep 60', tmp=1))
    assert state.code == 143 and "MB of scratch, and had asked for 1" in state.why


def test_a_wall_limit_ends_a_job_and_one_that_will_not_hear(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_process, "KILL_WAIT", 0.3)
    state = machine.end_of(machine.start("sh", "-c", "trap '' TERM; sleep 60 & while :; do wait; done", wall_limit=1))
    assert state.code == 137 and state.why == "ran for its wall limit of 1 s"
    assert 1.0 <= (state.wall or 0) < 10


def test_one_that_ends_well_after_it_was_told_to_end_has_not_succeeded(machine: Machine) -> None:
    job = machine.start("sh", "-c", "trap 'exit 0' TERM; echo up; sleep 60 & wait")
    until(lambda: machine.said(job))
    machine.backend.kill([job])
    assert machine.end_of(job).code == 143


def test_nothing_of_a_job_outlives_it(machine: Machine) -> None:
    """What it left in the background dies with it, and what fled into a session of its own with the launcher."""
    flight = "setsid sh -c 'touch fled; exec sleep 62' & until test -e fled; do sleep 0.05; done"
    job = machine.start("sh", "-c", f"sleep 61 & echo $!; {flight}")
    assert machine.end_of(job).code == 0
    until(lambda: not os.path.exists(f"/proc/{machine.said(job).split()[0]}/exe"))
    assert end_strays(f"test-{os.getpid()}-") == 1
    assert end_strays(f"test-{os.getpid()}-") == 0


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("no-such-program",), "no-such-program: there is no such program"),
        (("/etc/passwd",), "there is no such program"),
        (("true", "a\0b"), "embedded null byte"),
        (("true", "x" * (1 << 18)), "Argument list too long"),
    ],
)
def test_what_cannot_be_started_is_refused_and_holds_nothing(
    machine: Machine, argv: tuple[str, ...], said: str
) -> None:
    with pytest.raises(ActionRefused, match=said):
        machine.start(*argv)
    assert machine.backend.free() == POOL and machine.end_of(machine.start("true")).code == 0


def test_without_handles_on_processes_their_end_is_seen_by_looking(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on kernels before 5.3."""

    def none(_: int) -> int:
        raise OSError

    monkeypatch.setattr(os, "pidfd_open", none)
    assert machine.end_of(machine.start("sh", "-c", "exit 5")).code == 5


def test_an_unknown_id_has_vanished(machine: Machine) -> None:
    assert machine.backend.poll(["x"])["x"].state == VANISHED
    assert machine.backend.find(["x"]) == {}


def test_closing_ends_what_runs(machine: Machine) -> None:
    job = machine.start("sh", "-c", "echo $$; sleep 60")
    until(lambda: machine.said(job))
    machine.backend.close()
    assert not os.path.exists(f"/proc/{machine.said(job).strip()}") and machine.backend.free() == POOL


def test_what_a_killed_launcher_left_is_ended_by_the_next(tmp_path: Path) -> None:
    """By the tag in its environment, whoever its parent is; a process that only looks alike is left alone."""
    state = f"gone{os.getpid()}"
    orphan = subprocess.Popen(["sleep", "60"], env={TAG: f"{state}-a-b"}, start_new_session=True)
    other = subprocess.Popen(["sleep", "60"], env={"X": f"{TAG}={state}-a-b", TAG: "else"}, start_new_session=True)
    try:
        open_backend({}, "", Place("f", "k", str(tmp_path), state)).close()
        assert orphan.wait(PATIENCE) == -signal.SIGKILL and other.poll() is None
    finally:
        for process in (orphan, other):
            process.kill()
            process.wait()


def test_the_pool_is_what_is_here_and_what_the_user_says(tmp_path: Path) -> None:
    here = found_here(str(tmp_path))
    assert here["cpu"] == len(os.sched_getaffinity(0)) and here["mem"] > 100 and here["tmp"] > 0
    backend = open_backend({"cpu": 64, "licence": "2"}, "", Place("f", "k", str(tmp_path)))
    assert backend.free() == {**here, "cpu": 64, "licence": 2, "tmp": pytest.approx(here["tmp"], rel=0.1)}
    backend.close()
    for wrong, kind in (
        ({"cpu": 0}, UsageError),
        ({"x": "many"}, ConfigurationError),
        ({"mem": 0}, ConfigurationError),
    ):
        with pytest.raises(kind):
            open_backend(wrong, "", Place("f", "k", str(tmp_path)))
    with pytest.raises(UsageError, match="has none"):
        open_backend({}, "-p 3", Place("f", "k", str(tmp_path)))


amounts = st.builds(
    Resources,
    st.integers(1, 8),
    st.integers(0, 100),
    st.integers(0, 100),
    st.dictionaries(st.sampled_from(["gpu", "fpga", "queue"]), st.integers(1, 5) | st.just("long")).map(
        lambda found: tuple(sorted(found.items(), key=lambda one: one[0]))
    ),
)
pools = st.fixed_dictionaries(
    {"cpu": st.integers(1, 8), "mem": st.integers(1, 100), "tmp": st.integers(1, 100)},
    optional={"gpu": st.integers(1, 5)},
)


@given(amounts, pools)
def test_what_is_mapped_always_fits_an_empty_machine_and_else_needs_all_of_it(
    resources: Resources, pool: dict[str, int]
) -> None:
    """The same where that can be had, else everything: then it runs alone."""
    reserved = mapped(resources, pool)
    assert enough(reserved, pool) and misfit(reserved, pool) == ""
    if misfit(resources, pool):
        assert reserved == alone(pool) and not any(
            enough(reserved, {**pool, name: amount - 1}) for name, amount in pool.items()
        )
    else:
        assert reserved == resources


@settings(max_examples=15)
@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 3)), min_size=1, max_size=12))
def test_sums_never_overshoot_with_real_processes(
    tmp_path_factory: pytest.TempPathFactory, needs: list[tuple[int, int]]
) -> None:
    machine = Machine(tmp_path_factory.mktemp("machine"), {"cpu": 3, "mem": 10, "tmp": 10, "gpu": 3})
    left = [{"cpu": cpu, **({"gpu": gpu} if gpu else {})} for cpu, gpu in needs]
    running: dict[str, dict[str, int]] = {}
    while left or running:
        for one in list(left):
            try:
                running[machine.start("true", **one)] = one
            except PoolUnreachable:
                continue
            left.remove(one)
        for name, most in (("cpu", 3), ("gpu", 3)):
            assert sum(one.get(name, 0) for one in running.values()) <= most
        machine.backend.wait(1.0)
        for job, state in machine.backend.poll(list(running)).items():
            if state.state == DONE:
                del running[job]
    assert machine.backend.free() == {"cpu": 3, "mem": 10, "tmp": 10, "gpu": 3}
