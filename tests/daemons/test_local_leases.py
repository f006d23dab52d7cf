"""Leases as real processes: nothing of one is lost when its daemon dies, and nothing of one is left when it ends.

Each test has a word of its own on the command line of everything it starts, so that what is left of it is found
wherever it hid.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from drainwise.features.facts import HostFacts
from drainwise.local.lease.files import LeaseOutcome, abandon, find_lease, kill, outcome_of, terminate, work_directory
from drainwise.local.lease.start import LeaseRequest, start_lease
from drainwise.processes.process import Process, birth_of, is_alive, read_proc, send
from real_daemons.waiting import wait_for

HOST = HostFacts(total_cpu=64)
PLUGINS = str(Path(__file__).parents[2] / "plugins")
PATIENCE = 60.0  # seconds; for a machine under load
PYTHON = (sys.executable, "-I", "-S", "-c")

# Ways for a process to get out of sight. Each writes a line to `ready` when it is where it wanted to be.
HIDING = """
import os, signal, sys, time
WORD, KINDS, THEN = sys.argv[1], sys.argv[2].split(","), sys.argv[3]

def ready():
    fd = os.open("ready", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(fd, b"ready\\n")
    os.close(fd)

def stay():
    ready()
    while True:
        signal.pause()

def again(environment, *options):
    os.execve(sys.executable, [sys.executable, "-I", "-S", "-c", open("program").read(), WORD, *options], environment)

def plain():
    stay()

def group():
    os.setpgid(0, 0)
    stay()

def session():
    os.setsid()
    stay()

def daemon():
    os.setsid()
    if os.fork():
        os._exit(0)
    again({}, "session", "stay")

def deaf():
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
        signal.signal(number, signal.SIG_IGN)
    os.setsid()
    stay()

def stopped():
    os.setsid()
    ready()
    os.kill(os.getpid(), signal.SIGSTOP)

def roving(own_session=False):
    ready()
    while True:
        if own_session:
            os.setsid()
        if os.fork():
            os._exit(0)

def roaming():
    if os.fork():
        os._exit(0)
    roving(own_session=True)

def breeding():
    os.setsid()
    ready()
    children = 0
    while True:
        if children >= 20:
            os.wait()
            children -= 1
        if os.fork() == 0:
            time.sleep(0.05)
            os._exit(0)
        children += 1

def chain():
    for _ in range(100):
        if os.fork():
            while True:
                signal.pause()
        os.setsid()
    stay()

def reaper():
    import ctypes
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
    else:
        os.wait()
    stay()

for kind in KINDS:
    if THEN == "stay":
        globals()[kind]()
    if os.fork() == 0:
        globals()[kind]()
while True:
    time.sleep(0.01)
    if os.path.exists("ready") and len(open("ready").readlines()) >= len(KINDS):
        os.rename("ready", "all ready")
        break
if THEN == "end":
    os._exit(5)
while True:
    signal.pause()
"""
KINDS = (
    "plain",
    "group",
    "session",
    "daemon",
    "deaf",
    "stopped",
    "roving",
    "roaming",
    "breeding",
    "chain",
    "reaper",
)


def living(word: str) -> list[tuple[int, str]]:
    """Every living process with this word on its command line."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and birth_of(int(name)) is not None:
            try:
                arguments = read_proc(f"/proc/{name}/cmdline").split(b"\0")
            except OSError:
                continue
            if word.encode() in arguments:
                found.append((int(name), " ".join(os.fsdecode(argument)[:20] for argument in arguments)))
    return found


class Leases:
    """Leases below one directory, and the word of their processes."""

    def __init__(self, base: Path) -> None:
        self.base, self.word, self.count = base, f"word-{os.getpid()}-{time.monotonic_ns()}", 0

    def place(self) -> str:
        self.count += 1
        return str(self.base / f"lease-{self.count}")

    def start(self, *command: str, kill_wait: float = 3600.0, **environment: str) -> tuple[str, Process]:
        directory = self.place()
        request = LeaseRequest("7.0", 4, command, 3600, environment)
        return directory, start_lease(directory, request, HOST, None, int(time.time()), kill_wait)

    def shell(self, script: str, kill_wait: float = 3600.0) -> tuple[str, Process]:
        return self.start("/bin/sh", "-c", script, self.word, kill_wait=kill_wait)

    def python(self, program: str, *arguments: str, kill_wait: float = 3600.0) -> tuple[str, Process]:
        return self.start(*PYTHON, program, self.word, *arguments, kill_wait=kill_wait)

    def hiding(self, kinds: str, then: str) -> tuple[str, Process]:
        """A job with processes of these kinds in hiding; returns when all are where they wanted to be."""
        program = f"open('program', 'w').write({HIDING!r})\n{HIDING}"
        directory, supervisor = self.python(program, kinds, then)
        wait_for(lambda: has(directory, "all ready"), what="everything is in hiding")
        return directory, supervisor


def has(directory: str, name: str) -> bool:
    return os.path.exists(f"{work_directory(directory)}/{name}")


def text(directory: str, name: str) -> str:
    return Path(work_directory(directory), name).read_text()


def ended(directory: str, supervisor: Process | None = None) -> LeaseOutcome:
    wait_for(lambda: outcome_of(directory, supervisor) is not None, what="the lease has ended")
    found = outcome_of(directory, supervisor)
    assert found is not None
    return found


@pytest.fixture
def leases(tmp_path: Path) -> Iterator[Leases]:
    """Leases of one test, of which nothing is left at its end."""
    made = Leases(tmp_path)
    yield made
    for number in range(1, made.count + 1):
        kill(find_lease(str(tmp_path / f"lease-{number}")), str(tmp_path / f"lease-{number}"))
    for pid, _ in living(made.word):
        os.kill(pid, signal.SIGKILL)


@pytest.fixture
def bystander() -> Iterator[Process]:
    """A process of the same user that has nothing to do with any lease."""
    with subprocess.Popen(["sleep", "1000"]) as process:
        birth = birth_of(process.pid)
        assert birth is not None
        yield Process(process.pid, birth)
        assert process.poll() is None, "a stranger was killed"
        process.kill()


# Starting


@pytest.mark.parametrize(
    ("script", "code", "by_signal"),
    [
        ("exit 0", 0, None),
        ("exit 255", 255, None),
        ("kill -TERM $$", None, signal.SIGTERM),
        ("kill -SEGV $$", None, signal.SIGSEGV),
        ("kill -KILL $$", None, signal.SIGKILL),
    ],
)
def test_the_outcome_is_what_the_job_ended_with(
    leases: Leases, script: str, code: int | None, by_signal: int | None
) -> None:
    before = time.time()
    directory, supervisor = leases.shell(script)
    found = ended(directory, supervisor)
    assert (found.code, found.signal) == (code, by_signal)
    assert before - 1 < found.ended < time.time() + 1
    assert find_lease(directory) is None
    assert not is_alive(supervisor)


def test_a_command_that_is_not_there_ends_as_in_a_shell(leases: Leases) -> None:
    """127 and 126, and a line for the user; the lease itself is in order."""
    directory, _ = leases.start("no-such-program\n\x1b[2J")
    assert ended(directory).code == 127
    assert (
        text(directory, "err") == "drainwise: 'no-such-program\\n\\x1b[2J' cannot be run: No such file or directory\n"
    )
    directory, _ = leases.start("no-such-program", PATH="/etc/passwd:/proc/1/cwd:/nonexistent::")
    assert ended(directory).code == 127
    directory, _ = leases.start("./no/such")
    assert ended(directory).code == 127
    directory, _ = leases.start("/etc/passwd")
    assert ended(directory).code == 126
    assert "Permission denied" in text(directory, "err")
    directory, _ = leases.start("/bin/true", "x" * (1 << 20))
    assert ended(directory).code == 126
    assert "Argument list too long" in text(directory, "err")


def test_the_job_is_found_on_its_own_path(leases: Leases) -> None:
    directory, _ = leases.start("env", PATH="/nonexistent::/usr/bin:/bin")
    assert ended(directory).code == 0
    assert "PATH=/nonexistent::/usr/bin:/bin" in text(directory, "out").splitlines()


def test_the_jobs_environment_is_clean(leases: Leases, monkeypatch: pytest.MonkeyPatch) -> None:
    """Attack 46: what is set for one job reaches neither its supervisor nor another job; the site's values stand."""
    monkeypatch.setenv("SECRET", "of the daemon")
    monkeypatch.setenv("PYTHONPATH", "/nonexistent")
    directory, supervisor = leases.start(
        "sh", "-c", "env; exec sleep 1000", MACHINEFEATURES="mine", LD_PRELOAD="/nonexistent.so", EMPTY="", TWO="a\nb"
    )
    wait_for(lambda: "TWO" in text(directory, "out"), what="the job has shown its environment")
    said = text(directory, "out")
    names = {line.partition("=")[0] for line in said.splitlines()}
    ours = {
        f"{prefix}{name}FEATURES" for prefix in ("", "APPTAINERENV_", "SINGULARITYENV_") for name in ("MACHINE", "JOB")
    }
    ours |= {f"{prefix}JOBSTATUS" for prefix in ("", "APPTAINERENV_", "SINGULARITYENV_")}
    own = {"PATH", "HOME", "LANG", "USER", "LD_PRELOAD", "EMPTY", "TWO", "b", "PWD", "DRAINWISE_LEASE"}
    assert names - {"_", "SHLVL", "OLDPWD"} == ours | own
    assert f"MACHINEFEATURES={work_directory(directory)}/.machinefeatures\n" in said
    assert b"LD_PRELOAD" not in read_proc(f"/proc/{supervisor.pid}/environ")
    assert b"SECRET" not in read_proc(f"/proc/{supervisor.pid}/environ")


def test_a_job_starts_as_after_a_login(leases: Leases) -> None:
    """No signal of the daemon's ignored or blocked, no descriptor of its open, a session of its own."""
    starter = (
        "import os, signal, sys, time\n"
        "for name in ('HUP', 'CHLD', 'PIPE', 'TERM', 'USR1', 'INT', 'TSTP'):\n"
        "    signal.signal(signal.Signals['SIG' + name], signal.SIG_IGN)\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())\n"
        "os.dup2(os.open('/etc/passwd', os.O_RDONLY), 77)\n"
        "os.umask(0o077)\n"
    )
    job = (
        "import os\n"
        "print(sorted(os.listdir('/proc/self/fd')))\n"
        "print([line.split()[1] for line in open('/proc/self/status') if line[:6] in ('SigBlk', 'SigIgn')])\n"
        "print(os.getpid() == os.getsid(0) == os.getpgrp(), oct(os.umask(0)), os.readlink('/proc/self/fd/0'))\n"
        "print(os.getcwd())\n"
    )
    directory = start_elsewhere(leases, [*PYTHON, job], starter, "")
    assert ended(directory).code == 0
    descriptors, masks, session, where = text(directory, "out").splitlines()
    assert descriptors == "['0', '1', '2', '3']"  # the last is the one that lists them
    assert masks == "['0000000000000000', '0000000001001000']"  # what Python itself ignores: SIGPIPE, SIGXFSZ
    assert session == "True 0o22 /dev/null"
    assert where == work_directory(directory)


def start_elsewhere(leases: Leases, command: list[str], before: str, after: str, kill_wait: float = 3600.0) -> str:
    """Start a lease from a process of its own, that does something before and after; the lease's directory."""
    directory = leases.place()
    program = (
        f"import sys; sys.path.append({PLUGINS!r}); sys.dont_write_bytecode = True\n{before}\n"
        "import os, time\n"
        "from drainwise.features.facts import HostFacts\n"
        "from drainwise.local.lease.start import LeaseRequest, start_lease\n"
        f"request = LeaseRequest('7.0', 4, {tuple(command)!r}, 3600, {{}})\n"
        f"start_lease({directory!r}, request, HostFacts(total_cpu=64), None, int(time.time()), {kill_wait!r})\n"
    )
    program += after
    subprocess.run([sys.executable, "-I", "-c", program], start_new_session=True, timeout=PATIENCE, check=False)
    return directory


def test_the_supervisor_holds_nothing_of_who_started_it(leases: Leases) -> None:
    """It has its own records open, and nothing else: no lock of the daemon's can live on in it."""
    directory, supervisor = leases.shell("exec sleep 1000")
    held = {os.stat(f"/proc/{supervisor.pid}/fd/{name}").st_ino for name in os.listdir(f"/proc/{supervisor.pid}/fd")}
    known = ["", "/lease", "/lease/.outcome", "/lease/keeper", "/lease/log"]
    assert held - {os.stat("/dev/null").st_ino} == {os.stat(directory + name).st_ino for name in known}


def test_a_directory_may_have_any_name(leases: Leases) -> None:
    """Attack 15: blanks, newlines, what is no UTF-8."""
    leases.base = leases.base / os.fsdecode(b"a b\n\xe9 -c=")
    leases.base.mkdir()
    directory, supervisor = leases.shell("pwd; exec sleep 1000")
    wait_for(lambda: os.path.getsize(f"{work_directory(directory)}/out"), what="the job runs")
    assert find_lease(directory) == supervisor
    assert kill(supervisor, directory)
    assert ended(directory).signal == signal.SIGKILL


# Finding again


def test_a_lease_survives_the_death_of_who_started_it(leases: Leases) -> None:
    """kill -9 of the daemon and its whole session: the job goes on, is found by its directory, its end is known."""
    killed = "import signal; os.killpg(0, signal.SIGKILL)"
    job = "until [ -e go ]; do sleep 0.02; done; exit 7"
    directory = start_elsewhere(leases, ["/bin/sh", "-c", job, leases.word], "", killed)
    supervisor = find_lease(directory)
    assert supervisor is not None
    assert outcome_of(directory) is None
    Path(work_directory(directory), "go").touch()
    assert ended(directory, supervisor).code == 7


def test_a_starter_that_dies_before_it_hears_of_the_start_leaves_a_whole_lease(leases: Leases) -> None:
    """The supervisor does not need anybody to tell that it has started."""
    deaf = (
        "import subprocess, signal, os\n"
        "def die(self, order, timeout):\n"
        "    os.write(self.stdin.fileno(), order)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "subprocess.Popen.communicate = die\n"
    )
    directory = start_elsewhere(leases, ["/bin/sh", "-c", "sleep 0.1; exit 4"], deaf, "")
    assert ended(directory).code == 4


def test_half_an_order_starts_nothing(leases: Leases) -> None:
    """Attack 51: killed in the middle of telling the supervisor what to do."""
    halfway = (
        "import subprocess, signal, os\n"
        "def die(self, order, timeout):\n"
        "    os.write(self.stdin.fileno(), order[:-1])\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "subprocess.Popen.communicate = die\n"
    )
    directory = start_elsewhere(leases, ["/bin/sh", "-c", "touch ran"], halfway, "")
    log = Path(directory, "lease", "log")
    wait_for(lambda: "spec is incomplete" in log.read_text(), what="the lease supervisor has refused")
    assert not has(directory, "out")
    assert abandon(directory)


def test_a_start_is_abandoned_or_made_but_never_both(leases: Leases) -> None:
    """Attack 52: whoever comes first, the other finds the place taken."""
    directory, supervisor = leases.shell("exec sleep 1000")
    assert not abandon(directory)
    assert find_lease(directory) == supervisor
    late = (
        "import subprocess, os\n"
        "import drainwise.local.lease.start as lease\n"
        "answer = lease._answer\n"
        "def abandoned(*arguments):\n"
        "    assert lease.abandon(directory)\n"
        "    return answer(*arguments)\n"
        "lease._answer = abandoned\n"
    )
    place = f"{leases.base}/lease-{leases.count + 1}"
    directory = start_elsewhere(leases, ["/bin/sh", "-c", "touch ran"], f"directory = {place!r}\n{late}", "")
    assert directory == place
    assert "File exists" in Path(directory, "lease", "log").read_text()
    assert not has(directory, "out")
    assert find_lease(directory) is None
    assert not abandon(directory)


def test_an_abandoned_place_needs_no_directory_yet(tmp_path: Path) -> None:
    assert abandon(str(tmp_path / "lease"))
    assert not abandon(str(tmp_path / "lease"))
    assert find_lease(str(tmp_path / "lease")) is None


# Ending


def test_terminate_reaches_the_job(leases: Leases) -> None:
    directory, supervisor = leases.shell("trap 'exit 9' TERM; touch ready; while :; do sleep 0.02; done")
    wait_for(lambda: has(directory, "ready"), what="the job runs")
    assert terminate(supervisor, directory)
    assert ended(directory, supervisor).code == 9
    assert not terminate(supervisor, directory)


def test_terminate_reaches_a_job_that_is_stopped(leases: Leases) -> None:
    directory, supervisor = leases.shell("trap 'exit 9' TERM; echo $$ > pid; kill -STOP $$; sleep 0; exit 3")
    wait_for(lambda: has(directory, "pid") and text(directory, "pid"), what="the job runs")
    status = f"/proc/{int(text(directory, 'pid'))}/status"
    wait_for(lambda: b"\nState:\tT" in read_proc(status), what="the job is stopped")
    assert terminate(supervisor, directory)
    assert ended(directory, supervisor).code == 9


def test_terminate_is_not_for_the_payloads(leases: Leases) -> None:
    """A pilot ends its payloads itself, in order: only its own process is asked."""
    script = (
        "trap 'wait; exit 9' TERM; (trap 'touch asked; exit 1' TERM; touch ready; sleep 0.5; exit 0) & wait; exit 1"
    )
    directory, supervisor = leases.shell(script)
    wait_for(lambda: has(directory, "ready"), what="the payload runs")
    assert terminate(supervisor, directory)
    assert ended(directory, supervisor).code == 9
    assert not has(directory, "asked")


def test_a_job_that_takes_no_notice_is_killed_when_its_time_is_over(leases: Leases) -> None:
    """The supervisor does it by itself: the daemon may be dead."""
    directory, supervisor = leases.shell("trap '' TERM; touch ready; while :; do sleep 0.02; done", kill_wait=0.3)
    wait_for(lambda: has(directory, "ready"), what="the job runs")
    asked = time.monotonic()
    assert terminate(supervisor, directory)
    assert terminate(supervisor, directory)  # asking again does not give it more time
    assert ended(directory, supervisor).signal == signal.SIGKILL
    assert time.monotonic() - asked > 0.25
    assert living(leases.word) == []


@pytest.mark.parametrize("kinds", [*KINDS, ",".join(KINDS), ",".join(["roaming"] * 8)])
def test_a_kill_removes_everything_within_a_second(leases: Leases, kinds: str, bystander: Process) -> None:
    """Wherever it hid, whatever it ignores, however fast it forks."""
    directory, supervisor = leases.hiding(kinds, "wait")
    assert living(leases.word)
    assert kill(supervisor, directory)
    assert living(leases.word) == []
    outcome = ended(directory, supervisor)
    assert outcome == LeaseOutcome(None, signal.SIGKILL, outcome.ended, outcome.cpu_seconds)


@pytest.mark.parametrize("kinds", KINDS)
def test_the_end_of_the_job_is_the_end_of_all_of_it(leases: Leases, kinds: str) -> None:
    """What a job leaves behind is killed, and only then is its outcome known."""
    directory, supervisor = leases.hiding(kinds, "end")
    wait_for(lambda: not is_alive(supervisor), what="the lease supervisor has ended")
    found = outcome_of(directory)
    assert found is not None
    assert (found.code, found.signal) == (5, None)
    assert living(leases.word) == []


def test_only_asking_for_a_kill_does_not_wait(leases: Leases) -> None:
    """A round over many leases asks all of them first."""
    directory, supervisor = leases.hiding("session,deaf", "wait")
    os.kill(supervisor.pid, signal.SIGSTOP)  # else it may be done before it is looked at
    assert not kill(supervisor, directory, wait=0)
    os.kill(supervisor.pid, signal.SIGCONT)
    wait_for(lambda: outcome_of(directory, supervisor), what="the lease has ended")
    assert living(leases.word) == []
    assert kill(supervisor, directory, wait=0)  # gone, and known to be


# Touching nothing else


def test_other_leases_are_not_touched(leases: Leases, bystander: Process) -> None:
    first, first_supervisor = leases.hiding("daemon,session,group", "wait")
    second, second_supervisor = leases.hiding("daemon,session,group", "wait")
    both = len(living(leases.word))
    assert kill(first_supervisor, first)
    assert len(living(leases.word)) == both // 2
    assert find_lease(second) == second_supervisor
    assert kill(second_supervisor, second)


def test_a_forged_record_names_no_stranger(leases: Leases, bystander: Process) -> None:
    """Attacks 47 to 49: the job writes, removes or replaces what lies beside its directory."""
    record = json.dumps({"pid": bystander.pid, "birth": bystander.birth, "job": bystander.pid})
    directory, supervisor = leases.shell(
        f"echo '{record}' > ../lease/keeper; echo '{record}' > forged; touch ready; exec sleep 1000"
    )
    wait_for(lambda: has(directory, "ready"), what="the record is forged")
    assert find_lease(directory) == supervisor
    os.replace(f"{work_directory(directory)}/forged", f"{directory}/lease/keeper")
    assert find_lease(directory) is None
    assert not terminate(bystander, directory)
    kill(bystander, directory)
    assert is_alive(supervisor) is False or kill(supervisor, directory)
    assert living(leases.word) == []


USURPER = """
import fcntl, os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    record = open("../lease/mine", "w")
    fcntl.lockf(record, fcntl.LOCK_EX)
    os.rename("../lease/mine", "../lease/keeper")
    open("../lease/outcome.json", "w").write('{"code": 0, "signal": null, "ended": 1.0}')
    if len(sys.argv) < 4:
        os.set_inheritable(record.fileno(), True)
        name = os.path.dirname(os.getcwd())
        program = ["-I", "-S", "-c", "import time; open('ready', 'w'); time.sleep(1000)", sys.argv[1], name]
        os.execve(sys.executable, [sys.executable, *program], {})
    open("ready", "w")
time.sleep(1000)
"""


@pytest.mark.parametrize("openly", [["openly"], []], ids=["with its own name", "with the lease supervisor's arguments"])
def test_a_job_that_takes_the_supervisors_place_does_not_get_it(leases: Leases, openly: list[str]) -> None:
    """It puts a record in the place of the supervisor's and locks it: its supervisor is found above it all the same."""
    directory, supervisor = leases.python(USURPER, "usurper", *openly)
    wait_for(lambda: has(directory, "ready"), what="the record is replaced")
    assert find_lease(directory) == supervisor
    assert outcome_of(directory) is None
    assert kill(supervisor, directory)
    assert living(leases.word) == []


def test_a_job_that_takes_its_dead_supervisors_place_is_killed_in_it(leases: Leases) -> None:
    """Nothing that holds the place of a supervisor can hold out in it."""
    directory, supervisor = leases.python(USURPER, "usurper")
    wait_for(lambda: has(directory, "ready"), what="the record is replaced")
    assert send(supervisor, signal.SIGKILL)
    wait_for(lambda: not is_alive(supervisor), what="the lease supervisor is dead")
    usurper = find_lease(directory)
    assert usurper not in {None, supervisor}
    wait_for(lambda: kill(find_lease(directory), directory), what="everything is dead")
    assert living(leases.word) == []


def test_an_outcome_of_the_jobs_own_making_does_not_last(leases: Leases) -> None:
    """It is not believed while the supervisor lives, and the supervisor's own takes its place."""
    forged = '{"code": 0, "signal": null, "ended": 1.0}'
    script = f"echo '{forged}' > ../lease/outcome.json; cp ../lease/outcome.json ../lease/.outcome; touch ready"
    directory, supervisor = leases.shell(f"{script}; until [ -e go ]; do sleep 0.02; done; exit 3")
    wait_for(lambda: has(directory, "ready"), what="the outcome is forged")
    assert outcome_of(directory) is None
    assert outcome_of(directory, supervisor) is None
    Path(work_directory(directory), "go").touch()
    assert ended(directory, supervisor).code == 3


@pytest.mark.parametrize(
    "damage",
    [
        "rm -rf ../lease/* ../lease/.outcome",
        "rm ../lease/.outcome; mkdir -p ../lease/outcome.json/deep",
        "rm ../lease/.outcome; mkfifo ../lease/.outcome ../lease/outcome.json",
        "ln -sf /dev/full ../lease/.outcome; ln -s /dev/full ../lease/outcome.json",
        "mv ../lease ../elsewhere; mkdir ../lease",
        "rm -rf ../lease",
        "rm -rf ../lease; ln -s /nonexistent ../lease",
        "rm -rf ../lease; touch ../lease",
        "chmod 000 ../lease ..",
    ],
)
def test_damage_to_the_records_costs_no_outcome(leases: Leases, damage: str) -> None:
    """The job runs as the same user: what it breaks beside its directory is mended at its end."""
    directory, supervisor = leases.shell(f"{damage}; exit 3")
    wait_for(lambda: not is_alive(supervisor), what="the lease supervisor has ended")
    os.chmod(directory, 0o700)
    assert ended(directory, supervisor).code == 3
    assert living(leases.word) == []


def test_a_full_disk_costs_no_outcome(leases: Leases) -> None:
    """Attack 27: the job fills what there is; room for its outcome was taken before it began."""
    if os.geteuid() != 0:
        pytest.skip("needs root to mount a small file system")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(leases.base)], check=True)
    try:
        directory, _ = leases.shell("dd if=/dev/zero of=big bs=1k 2>/dev/null; exit 3")
        assert ended(directory).code == 3
        assert os.statvfs(leases.base).f_bfree == 0
    finally:
        subprocess.run(["umount", "-l", str(leases.base)], check=True)


# When the supervisor itself is harmed


def test_a_job_does_not_run_on_without_its_supervisor(leases: Leases) -> None:
    """Killed by its own job or by the kernel for want of memory: no outcome, no job, and the rest is hunted down."""
    directory, supervisor = leases.hiding("plain,session,group,deaf,stopped,roving,breeding", "wait")
    assert send(supervisor, signal.SIGKILL)
    wait_for(lambda: not is_alive(supervisor), what="the lease supervisor is dead")
    assert find_lease(directory) is None
    assert outcome_of(directory, supervisor) is None
    assert kill(supervisor, directory)
    assert living(leases.word) == []
    assert not terminate(supervisor, directory)


def test_a_stopped_supervisor_does_its_work_all_the_same(leases: Leases) -> None:
    """The job has stopped it, and goes on doing so."""
    job = (
        "import os, signal\n"
        "supervisor = os.getppid()\n"
        "if os.fork():\n"
        "    open('ready', 'w')\n"
        "    signal.pause()\n"
        "while True:\n"
        "    os.kill(supervisor, signal.SIGSTOP)\n"
    )
    directory, supervisor = leases.python(job)
    wait_for(lambda: has(directory, "ready"), what="the job runs")
    assert kill(supervisor, directory)
    assert living(leases.word) == []
    assert ended(directory, supervisor).signal == signal.SIGKILL


def test_a_lease_inside_a_lease_ends_with_it(leases: Leases) -> None:
    """A batch system in a batch system: supervisors below a keeper."""
    inner = (
        f"import sys, time; sys.path.append({PLUGINS!r}); sys.dont_write_bytecode = True\n"
        "from drainwise.features.facts import HostFacts\n"
        "from drainwise.local.lease.start import LeaseRequest, start_lease\n"
        f"command = ('/bin/sh', '-c', 'touch ready; while :; do sleep 0.02; done', {leases.word!r})\n"
        "request = LeaseRequest('8.0', 1, command, 3600, {})\n"
        "start_lease('inner', request, HostFacts(total_cpu=64), None, int(time.time()), 60.0)\n"
        "open('ready', 'w')\n"
        "time.sleep(1000)\n"
    )
    directory, supervisor = leases.start(sys.executable, "-I", "-c", inner, leases.word)
    wait_for(lambda: has(directory, "ready") and has(directory, "inner/work/ready"), what="both jobs run")
    assert kill(supervisor, directory)
    assert living(leases.word) == []
    assert find_lease(f"{work_directory(directory)}/inner") is None


# What a lease costs


def test_a_supervisor_sleeps_until_something_happens(leases: Leases) -> None:
    """It is not woken even once while another job runs its course."""
    _, supervisor = leases.shell("exec sleep 1000")

    def switches() -> list[bytes]:
        return [line for line in read_proc(f"/proc/{supervisor.pid}/status").splitlines() if b"ctxt_switches" in line]

    wait_for(lambda: b"\nState:\tS" in read_proc(f"/proc/{supervisor.pid}/status"), what="the lease supervisor sleeps")
    ended(leases.shell("sleep 0.2")[0])
    before = switches()
    ended(leases.shell("sleep 0.5")[0])
    assert switches() == before


def test_many_orphans_leave_no_zombies(leases: Leases) -> None:
    """The supervisor inherits them and buries each."""
    directory, supervisor = leases.shell(
        "for i in $(seq 100); do (sleep 0.01 &) ; done; sleep 0.2; touch ready; exec sleep 1000"
    )
    wait_for(lambda: has(directory, "ready"), what="all orphans are dead")
    wait_for(
        lambda: len(read_proc(f"/proc/{supervisor.pid}/task/{supervisor.pid}/children").split()) == 1,
        what="all but the job buried",
    )


def test_leases_start_and_end_side_by_side(leases: Leases) -> None:
    """Twenty of them, each with a code of its own."""
    started = [leases.shell(f"exit {number}") for number in range(20)]
    assert [ended(directory, supervisor).code for directory, supervisor in started] == list(range(20))
