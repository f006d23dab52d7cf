"""The local backend with real processes: never overshot, limits held, nothing left behind."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from as_user import become, in_child
from drainwise.facts.errors import ActionRefused, ConfigurationError, PoolFull, UsageError
from drainwise_launch.backend import DONE, RUNNING, VANISHED, JobState, LaunchPlace, Start
from drainwise_launch.choice.resources import Resources
from drainwise_launch.this_machine import backend as local_backend
from drainwise_launch.this_machine import process as local_process
from drainwise_launch.this_machine import scratch
from drainwise_launch.this_machine.backend import LocalBackend, open_backend
from drainwise_launch.this_machine.process import TAG, end_escaped
from drainwise_launch.this_machine.slots import enough, found_here, mapped, misfit
from made_up_node import public_directory
from more_examples import more_examples
from real_daemons.waiting import wait_for

pytestmark = pytest.mark.daemons  # it runs real processes

POOL = {"cpu": 1, "mem": 4000, "tmp": 100, "gpu": 2}
PATIENCE, USER = 20.0, 54321
MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None


class Machine:
    """A backend, and its jobs' output."""

    def __init__(self, directory: Path, pool: Mapping[str, int] = POOL, state: str = "") -> None:
        self.directory = directory
        self.backend = LocalBackend(pool, str(directory / "scratch"), state)
        self.count = 0

    def start(
        self,
        *argv: str,
        wall_limit: int = 0,
        path: str = "/usr/bin:/bin",
        environment: Mapping[str, str] | None = None,
        needs: Mapping[str, int] | None = None,
        **more: int,
    ) -> str:
        self.count += 1
        needs = {**(needs or {}), **more}
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
                {"PATH": path, **(environment or {})},
                wall_limit=wall_limit,
            )
        )

    def end_of(self, job: str) -> JobState:
        while (state := self.backend.poll([job])[job]).state == RUNNING:
            self.backend.wait(0.2)
        return state

    def said(self, job: str) -> str:
        return (self.directory / f"{job.rpartition('-')[2]}.out").read_text()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path)
    yield made
    made.backend.close()


@pytest.fixture
def in_memory() -> Iterator[Machine]:
    """Where a thousand directories are removed at once."""
    with public_directory(MEMORY) as directory:
        made = Machine(Path(directory))
        yield made
        made.backend.close()


def test_a_job_runs_in_its_directory_with_its_environment_alone(machine: Machine) -> None:
    job = machine.start("sh", "-c", "pwd; env | cut -d= -f1 | sort | xargs; exit 7")
    state = machine.end_of(job)
    assert (state.state, state.code, state.why) == (DONE, 7, "") and (state.wall or 0) > 0
    assert machine.said(job).splitlines() == [str(machine.directory), f"{TAG} PATH PWD TMPDIR"]


def test_cpu_seconds_are_measured(machine: Machine) -> None:
    state = machine.end_of(machine.start("sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"))
    assert state.cpu is not None and state.wall is not None and 0.01 < state.cpu <= state.wall + 0.02


def test_it_is_never_overshot(machine: Machine) -> None:
    """What is not free is not started, whoever asks; it is free again when the job has ended."""
    job = machine.start("sleep", "60", gpu=2)
    assert machine.backend.free() == {"cpu": 0, "mem": 4000, "tmp": 100, "gpu": 0}
    with pytest.raises(PoolFull, match="not free"):
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
    """Whoever did not ask for tmp has one, too, without limit."""
    program = 'echo "$TMPDIR"; ls -A "$TMPDIR"; head -c 5000000 /dev/zero > "$TMPDIR/x"; sync "$TMPDIR/x"'
    job = machine.start("sh", "-c", program)
    assert machine.end_of(job).code == 0
    place = machine.said(job).strip()
    assert place.startswith(f"{machine.directory}/scratch/") and not os.path.exists(place)
    monkeypatch.setattr(scratch, "_LOOK", 0.0)
    state = machine.end_of(machine.start("sh", "-c", f"{program}; sleep 60", tmp=1))
    assert state.code == 143 and "MB of scratch, and had asked for 1" in state.why
    assert os.listdir(machine.directory / "scratch") == []


def test_a_scratch_of_many_files_keeps_nobody_waiting(in_memory: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """HOSTILE 26: neither while it is looked at nor when it is taken away."""
    program = "import os\nfor n in range(30_000): os.mknod(os.environ['TMPDIR'] + f'/{n}')\nprint('made', flush=True)"
    job = in_memory.start(sys.executable, "-c", f"{program}\nimport time; time.sleep(60)", tmp=100)
    wait_for(lambda: in_memory.said(job))
    monkeypatch.setattr(scratch, "_LOOK", 0.0)
    monkeypatch.setattr(scratch, "_AT_ONCE", 0.005)
    turns = 0
    in_memory.backend.kill([job])
    while os.listdir(in_memory.directory / "scratch"):
        in_memory.backend.poll([job] if in_memory.backend.find([job]) else [])
        turns += not in_memory.backend.find([job])
    assert turns > 3


def test_no_scratch_however_deep_or_closed_keeps_the_launcher(in_memory: Machine) -> None:
    """A tree deeper than any path, a link to what is not the job's: the one is gone, the other is not followed."""
    precious = in_memory.directory / "precious"
    precious.mkdir()
    (precious / "file").touch()
    program = (
        "import os, sys; os.chdir(os.environ['TMPDIR']); os.symlink(sys.argv[1], 'link'); os.mkdir('a', 0)\n"
        "for _ in range(1500): os.mkdir('d'); os.chdir('d')"
    )
    assert in_memory.end_of(in_memory.start(sys.executable, "-c", program, str(precious), tmp=50)).code == 0
    in_memory.backend.close()
    assert os.listdir(in_memory.directory / "scratch") == [] and os.listdir(precious) == ["file"]


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_a_user_gets_rid_of_a_scratch_that_was_closed() -> None:
    """HOSTILE 10, not as root: mode 000 on every level."""
    with public_directory() as base:
        os.chown(base, USER, USER)

        def step() -> None:
            become(USER)
            machine = Machine(Path(base))
            job = machine.start("sh", "-c", 'cd "$TMPDIR" && mkdir -p a/b && touch a/b/c && chmod 0 a/b a .')
            assert machine.end_of(job).code == 0
            machine.backend.close()

        assert in_child(step) == 0
        assert os.listdir(f"{base}/scratch") == []


def test_a_wall_limit_ends_a_job_and_one_that_will_not_hear(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_process, "KILL_WAIT", 0.3)
    state = machine.end_of(machine.start("sh", "-c", "trap '' TERM; sleep 60 & while :; do wait; done", wall_limit=1))
    assert state.code == 137 and state.why == "ran for its wall limit of 1 s"
    assert 1.0 <= (state.wall or 0) < 10


def test_one_that_ends_well_after_it_was_told_to_end_has_not_succeeded(machine: Machine) -> None:
    job = machine.start("sh", "-c", "trap 'exit 0' TERM; echo up; sleep 60 & wait")
    wait_for(lambda: machine.said(job))
    machine.backend.kill([job])
    assert machine.end_of(job).code == 143


@pytest.mark.parametrize("flight", ["setsid", "double fork"])
def test_nothing_of_a_job_outlives_it(tmp_path: Path, flight: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it left in the background dies with it; what fled into a session of its own soon after, and not those of
    jobs that still run."""
    monkeypatch.setattr(local_backend, "_SWEEP", 0.0)
    monkeypatch.setattr(local_backend, "_SWEEP_SHARE", 0)
    machine = Machine(tmp_path, {**POOL, "cpu": 2}, f"test-{os.getpid()}")
    try:
        begin = {"setsid": "setsid sh -c", "double fork": "setsid sh -c 'setsid \"$@\" &' - sh -c"}[flight]
        fled = f"{begin} 'echo $$ > \"$0\"; exec sleep 62'"
        stays = machine.start("sh", "-c", f"{fled} {tmp_path}/stays & sleep 60")
        job = machine.start(
            "sh", "-c", f"sleep 61 & {fled} {tmp_path}/goes & until test -s {tmp_path}/goes; do :; done"
        )
        wait_for(lambda: (tmp_path / "stays").exists() and (tmp_path / "stays").read_text())
        assert machine.end_of(job).code == 0
        wait_for(lambda: machine.backend.poll([]) or not is_there((tmp_path / "goes").read_text()))
        assert is_there((tmp_path / "stays").read_text())
        machine.backend.kill([stays])
        machine.end_of(stays)
        machine.backend.close()
        wait_for(lambda: not is_there((tmp_path / "stays").read_text()))
        assert end_escaped(f"test-{os.getpid()}") == 0
    finally:
        machine.backend.close()


def is_there(pid: str) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid.strip()}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_what_fled_is_found_behind_a_megabyte_of_variables() -> None:
    begin = f"large{os.getpid()}"
    large = {f"X{number}": "x" * 100_000 for number in range(15)}
    process = subprocess.Popen(["sleep", "60"], env={**large, TAG: f"{begin}-a-b"})
    try:
        wait_for(lambda: b"sleep" in Path(f"/proc/{process.pid}/cmdline").read_bytes())
        assert end_escaped(begin, {f"{begin}-a-b"}) == end_escaped(begin[:-1]) == 0
        assert end_escaped(begin) == 1 and process.wait(PATIENCE) == -signal.SIGKILL
    finally:
        process.kill()
        process.wait()


def test_a_job_that_stopped_itself_still_hears_that_it_is_to_end(machine: Machine) -> None:
    job = machine.start("sh", "-c", "trap 'echo bye; exit 3' TERM; echo up; kill -STOP $$; sleep 60 & wait")
    wait_for(lambda: machine.said(job))
    machine.backend.kill([job])
    assert (machine.end_of(job).code, machine.said(job)) == (3, "up\nbye\n")


def test_one_that_has_ended_well_was_not_killed(machine: Machine) -> None:
    job = machine.start("true")
    running = machine.backend._running[job]
    wait_for(lambda: running.supervisor.end_of(running._pid))
    machine.backend.kill([job])
    state = machine.end_of(job)
    assert (state.code, state.why) == (0, "")


def test_exit_codes_are_told_where_the_parent_ignored_its_children(tmp_path: Path) -> None:
    """SIGCHLD is inherited; ignored, no child leaves a code."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        machine = Machine(tmp_path)
        assert machine.end_of(machine.start("sh", "-c", "exit 7")).code == 7
        machine.backend.close()
    finally:
        signal.signal(signal.SIGCHLD, before)


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("no-such-program",), "no-such-program: there is no such program"),
        (("/etc/passwd",), "there is no such program"),
        (("/tmp",), "there is no such program"),
        (("",), "there is no such program"),
        (("./a\0b",), "there is no such program"),
        (("./\ud800",), "there is no such program"),
        (("true", "a\0b"), "embedded null byte"),
        (("true", "\ud800"), "can't encode"),
        (("true", "x" * (1 << 18)), "Argument list too long"),
    ],
)
def test_what_cannot_be_started_is_refused_and_holds_nothing(
    machine: Machine, argv: tuple[str, ...], said: str
) -> None:
    with pytest.raises(ActionRefused, match=said):
        machine.start(*argv)
    assert machine.backend.free() == POOL and machine.end_of(machine.start("true")).code == 0


def test_an_unknown_id_has_vanished(machine: Machine) -> None:
    assert machine.backend.poll(["x"])["x"].state == VANISHED
    assert machine.backend.find(["x"]) == {}


@pytest.mark.parametrize("kind", ["FIFO", "FIFO with a reader", "link", "directory", "socket", "nowhere"])
def test_output_that_is_no_file_is_refused_at_once(machine: Machine, kind: str) -> None:
    """HOSTILE 1, 5, 6: nothing is waited for, nothing is written where a link leads."""
    path, reader, space = machine.directory / "1.out", -1, machine.directory / "scratch"
    if kind.startswith("FIFO"):
        os.mkfifo(path)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK) if kind != "FIFO" else -1
    elif kind == "link":
        path.symlink_to(machine.directory / "victim")
    elif kind == "directory":
        path.mkdir()
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(path))
    else:
        machine.directory = machine.directory / "nowhere"
    with pytest.raises(ActionRefused):
        machine.start("true")
    assert machine.backend.free() == POOL and not (machine.directory / "victim").exists()
    machine.backend.close()
    assert os.listdir(space) == []
    if reader >= 0:
        os.close(reader)


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_output_that_may_not_be_written_is_refused() -> None:
    """HOSTILE 10, 11: mode 000, and another uid's file."""
    with public_directory() as base:
        os.chown(base, USER, USER)
        for name, owner in (("1.out", USER), ("2.out", 0)):
            Path(base, name).touch(mode=0o000 if owner else 0o644)
            os.chown(f"{base}/{name}", owner, owner)

        def step() -> None:
            become(USER)
            machine = Machine(Path(base))
            for _ in range(2):
                with pytest.raises(ActionRefused, match=r"[12]\.out: Permission denied"):
                    machine.start("true")
            assert machine.backend.free() == POOL

        assert in_child(step) == 0


@pytest.mark.parametrize("mem", [0, 100])
@pytest.mark.parametrize("name", ["-c", "exit", "a b", "A=b", "-dir/x", "ümlaut"])
def test_a_program_is_found_whatever_it_is_called(machine: Machine, name: str, mem: int) -> None:
    """By a PATH that begins in the job's directory, limited in memory or not."""
    path = machine.directory / "bin" / name
    path.parent.mkdir(parents=True)
    path.write_text('#!/bin/sh\necho "$@"\n')
    path.chmod(0o755)
    job = machine.start(f"bin/{name}" if "/" in name else name, "--x", mem=mem, path="bin:/usr/bin:/bin")
    assert (machine.end_of(job).code, machine.said(job)) == (0, "--x\n")


def test_an_environment_of_odd_names_arrives(machine: Machine) -> None:
    odd = {"a.b": "1", "-x": "2", "BASH_FUNC_f%%": "() { :; }", "ü": "ß", "e": "", "n l": "a\nb"}
    job = machine.start(sys.executable, "-c", "import json, os; print(json.dumps(dict(os.environ)))", environment=odd)
    assert machine.end_of(job).code == 0
    assert odd.items() <= json.loads(machine.said(job)).items()
    with pytest.raises(ActionRefused, match="illegal environment variable name"):
        machine.start("true", environment={"a=b": ""})
    assert machine.backend.free() == POOL


def test_memory_is_limited_below_a_limit_that_holds_already(tmp_path: Path) -> None:
    """More than the hard limit cannot be set: that is what holds then."""

    def step() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30))
        machine = Machine(tmp_path, {"cpu": 1, "mem": 1 << 50, "tmp": 1})
        for mem in (100, 2000, 1 << 50):
            job = machine.start("sh", "-c", "ulimit -d", mem=mem)
            assert machine.end_of(job).code == 0
            assert machine.said(job) == f"{min(mem, 1024) << 10}\n"

    assert in_child(step) == 0


def test_a_machine_that_takes_no_more_for_now_says_so(machine: Machine) -> None:
    """No descriptors left (HOSTILE 28): what runs goes on, nothing is held, and later it takes jobs again."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    held = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        with suppress(OSError):
            while True:
                held.append(os.open("/dev/null", os.O_RDONLY))
        with pytest.raises(PoolFull, match="Too many open files"):
            machine.start("true")
    finally:
        for each in held:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert machine.backend.free() == POOL and machine.end_of(machine.start("true")).code == 0


def test_cpus_that_are_taken_from_the_machine_do_not_keep_a_job(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel refuses a CPU that is none any more."""
    monkeypatch.setattr(machine.backend, "_cpus", [100_000])
    assert machine.end_of(machine.start("true")).code == 0
    assert machine.backend.free() == POOL


def test_closing_ends_what_runs(machine: Machine) -> None:
    job = machine.start("sh", "-c", "echo $$; sleep 60")
    wait_for(lambda: machine.said(job))
    machine.backend.close()
    assert not os.path.exists(f"/proc/{machine.said(job).strip()}") and machine.backend.free() == POOL


def test_what_a_killed_launcher_left_is_ended_by_the_next(tmp_path: Path) -> None:
    """By the tag in its environment, whoever its parent is; a process that only looks alike is left alone."""
    state = f"gone{os.getpid()}"
    orphan = subprocess.Popen(["sleep", "60"], env={TAG: f"{state}-a-b"}, start_new_session=True)
    other = subprocess.Popen(["sleep", "60"], env={"X": f"{TAG}={state}-a-b", TAG: "else"}, start_new_session=True)
    try:
        open_backend({}, "", LaunchPlace("f", "k", str(tmp_path), state)).close()
        assert orphan.wait(PATIENCE) == -signal.SIGKILL and other.poll() is None
    finally:
        for process in (orphan, other):
            process.kill()
            process.wait()


def test_the_pool_is_what_is_here_and_what_the_user_says(tmp_path: Path) -> None:
    here = found_here(str(tmp_path))
    [total] = [line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal:")]
    assert abs(here["mem"] - int(total.split()[1]) // 1024) <= 1
    assert here["cpu"] == len(os.sched_getaffinity(0)) and here["tmp"] > 0
    backend = open_backend({"cpu": 64, "licence": "2"}, "", LaunchPlace("f", "k", str(tmp_path)))
    assert backend.free() == {**here, "cpu": 64, "licence": 2, "tmp": pytest.approx(here["tmp"], rel=0.1)}
    backend.close()
    for wrong, kind in (
        ({"cpu": 0}, UsageError),
        ({"x": "many"}, ConfigurationError),
        ({"mem": 0}, ConfigurationError),
    ):
        with pytest.raises(kind):
            open_backend(wrong, "", LaunchPlace("f", "k", str(tmp_path)))
    with pytest.raises(UsageError, match="has none"):
        open_backend({}, "-p 3", LaunchPlace("f", "k", str(tmp_path)))


amounts = st.builds(
    Resources,
    st.integers(1, 8),
    st.integers(0, 100),
    st.integers(0, 100),
    st.dictionaries(st.sampled_from(["gpu", "fpga", "queue"]), st.integers(1, 5) | st.just("long")).map(
        lambda found: tuple(sorted(found.items(), key=lambda one: one[0]))
    ),
)
small_pools = st.fixed_dictionaries(
    {"cpu": st.integers(1, 8), "mem": st.integers(1, 100), "tmp": st.integers(1, 100)},
    optional={"gpu": st.integers(1, 5)},
)
pools = small_pools | st.just({"cpu": 8, "mem": 100, "tmp": 100, "gpu": 5, "fpga": 5})


@given(amounts, pools)
def test_what_is_mapped_always_fits_an_empty_machine_and_else_needs_all_of_it(
    resources: Resources, pool: dict[str, int]
) -> None:
    """The same where that can be had, else everything: then it runs alone."""
    reserved = mapped(resources, pool)
    assert enough(reserved, pool) and misfit(reserved, pool) == ""
    if misfit(resources, pool):
        assert {name: reserved.amounts().get(name, 0) for name in pool} == pool and not any(
            enough(reserved, {**pool, name: amount - 1}) for name, amount in pool.items()
        )
    else:
        assert reserved == resources


acts = st.lists(
    st.tuples(st.sampled_from("sssskp"), st.integers(1, 3), st.integers(0, 3), st.integers(0, 8)),
    min_size=1,
    max_size=25,
)


@more_examples(0.5)
@given(acts)
def test_it_is_never_overshot_whatever_comes_in_between(
    tmp_path_factory: pytest.TempPathFactory, acts: list[tuple[str, int, int, int]]
) -> None:
    """Starts, kills and looks in any order, jobs that end by themselves, programs that are not there: what is free and
    what runs is all there is, a CPU has one job, and in the end all is as it was."""
    pool = {"cpu": min(2, len(os.sched_getaffinity(0))), "mem": 1 << 20, "tmp": 8, "gpu": 3}
    usable = os.sched_getaffinity(0)
    machine = Machine(tmp_path_factory.mktemp("machine"), pool)
    running: dict[str, dict[str, int]] = {}

    def all_have_ended() -> bool:
        for job, state in machine.backend.poll(list(running)).items():
            if state.state == DONE:
                del running[job]
        return not running

    for number, (act, cpu, gpu, tmp) in enumerate(acts):
        if act == "s":
            needs = {"cpu": cpu, "tmp": tmp, **({"gpu": gpu} if gpu else {})}
            argv = [("true",), ("sleep", "60"), ("no-such-program",)][number % 3]
            fits = all(needs[name] <= free for name, free in machine.backend.free().items() if name in needs)
            try:
                running[machine.start(*argv, needs=needs)] = needs
                assert fits
            except PoolFull:
                assert not fits and cpu <= pool["cpu"]
            except ActionRefused:
                assert argv == ("no-such-program",) or cpu > pool["cpu"]
        elif act == "k":
            machine.backend.kill(list(running)[:1])
        else:
            all_have_ended()
        for name, most in pool.items():
            used = sum(needs.get(name, 0) for needs in running.values())
            assert used + machine.backend.free()[name] == most and used <= most
        assert os.sched_getaffinity(0) == usable
    machine.backend.kill(list(running))
    wait_for(all_have_ended)
    machine.backend.close()
    assert machine.backend.free() == pool and os.listdir(machine.directory / "scratch") == []
