"""Attacks on the agent, with real users, files, locks and mounts; the numbers are those of the list of hostile cases.

After each the same holds: the round ends in time, no more than a line or two is said of the attacker's job, nothing of
root's or of another user's comes out, and the neighbours - alice's own and bob's - are published and told as before.
"""

from __future__ import annotations

import ctypes
import fcntl
import functools
import itertools
import os
import re
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from drainwise.pilot.channels import SiteNoticeReader
from drainwise.pilot.decide.lease import Lease
from drainwise.pilot.decide.settings import PilotSettings
from drainwise.pilotad.attributes import ATTRIBUTES
from made_up_node import public_directory

from .agent_host import ALICE, BOB, AgentHost, as_user

pytestmark = [
    pytest.mark.daemons,  # attacks take their time
    pytest.mark.skipif(os.geteuid() != 0, reason="needs other users, devices and mounts"),
]

TURNS = itertools.count(1)
SECRET = "USED_FRACTION1k = 777\nLAST_EXP_JOB_END = 1795249777\nPRIORITY_FACTOR = 7777\n"
libc = ctypes.CDLL(None, use_errno=True)


@pytest.fixture
def host() -> Iterator[AgentHost]:
    """Job 17 is the attacker's, 18 alice's other one, 19 bob's."""
    with public_directory() as base:
        made = AgentHost(base)
        os.makedirs(f"{base}/home")
        os.chown(f"{base}/home", ALICE, ALICE)
        made.start(17, work_dir=f"{base}/home".encode())
        made.start(18)
        made.start(19, BOB)
        secret = Path(base, "secret")
        secret.write_text(SECRET)
        secret.chmod(0o600)
        yield made
        assert secret.read_text() == SECRET
        for number in (17, 18, 19):
            told = set(re.findall("[0-9]+", str(made.published(number))))
            assert not told & set(re.findall("= ([0-9]+)", SECRET)), "nothing of the secret is published"


def survives(host: AgentHost, attackers: int = 1) -> list[str]:
    """A round in which the neighbours' reports and orders are new; what was said, two lines for an attacker at most."""
    turn = next(TURNS)
    used, end = round(6 - turn / 1000, 3), host.now + 601 + turn
    for number, uid in ((18, ALICE), (19, BOB)):
        host.report(number, uid, used=used)
        host.slurm.set(number, EndTime=end, TimeLimit="00:30:00")
    host.slurm.set(17, EndTime=end, TimeLimit="00:30:00")
    host.said.clear()
    host.round()
    for number in (18, 19):
        published = host.published(number)
        assert published is not None and published.report.used_cpu == used
        assert f"PAYLOAD_DEADLINE = {end}\n" in host.site_ad(number)
    assert host.features(17)["shutdowntime_job"] == str(end)
    assert all(line.isprintable() for line in host.said)
    assert len(host.said) <= 2 * attackers, host.said
    assert not any(line.startswith(("job 18: ", "job 19: ", f"user {BOB}: ")) for line in host.said)
    return host.said


def in_place_of(path: str, make: Callable[[str], object]) -> Callable[[], None]:
    """Have something else at `path`."""

    def step() -> None:
        if os.path.lexists(path):
            os.rename(path, f"{path}.away")
        make(path)

    return step


def write(text: str) -> Callable[[str], object]:
    return lambda path: Path(path).write_text(text)


def bound_socket(path: str) -> None:
    """A socket that stays when its process has gone."""
    with socket.socket(socket.AF_UNIX) as listener:
        os.chdir(os.path.dirname(path))
        listener.bind(os.path.basename(path))


def sparse(path: str) -> None:
    with open(path, "wb") as stream:
        stream.truncate(1 << 40)


def closed(path: str) -> None:
    write("1\n")(path)
    os.chmod(path, 0)


KINDS: dict[str, Callable[[AgentHost], Callable[[str], object]]] = {
    "1 a link to a file of root's": lambda host: lambda path: os.symlink(f"{host.base}/secret", path),
    "1 a link to /etc/shadow": lambda host: lambda path: os.symlink("/etc/shadow", path),
    "5 a FIFO": lambda host: os.mkfifo,
    "6 a socket": lambda host: bound_socket,
    "8 a directory": lambda host: os.mkdir,
    "9 a magic link": lambda host: lambda path: os.symlink("/proc/self/mem", path),
    "10 mode 000": lambda host: closed,
    "19 sparse": lambda host: sparse,
    "22 a million lines": lambda host: write("1\n" * 1_000_000),
    "23 empty": lambda host: write(""),
    "24 NULs": lambda host: write("\0" * 60),
    "30 to 36 content": lambda host: write("USED_FRACTION1k = 1e309\nupdate JobId=19 AdminComment=x\n- tag\n\x1b[2J"),
}
PLACES = {
    "used_CPU": ".jobstatus/used_CPU",
    "last_exp_job_end": ".jobstatus/last_exp_job_end",
    ".pilot.ad in $JOBSTATUS": ".jobstatus/.pilot.ad",
    ".site.ad": ".jobstatus/.site.ad",
    ".pilot.ad in WorkDir": "home/.pilot.ad",
}


@pytest.mark.parametrize("place", PLACES)
def test_whatever_lies_in_place_of_a_file(host: AgentHost, place: str) -> None:
    """A job for each kind: none is read, or only for what it says; the order is told to all, the neighbours notice
    nothing."""
    numbers = range(40, 40 + len(KINDS))
    for number, kind in zip(numbers, KINDS.values()):
        home = f"{host.base}/home{number}"
        os.mkdir(home)
        os.chown(home, ALICE, ALICE)
        host.start(number, work_dir=home.encode())
        host.slurm.set(number, EndTime=host.now + 601, TimeLimit="00:30:00")
        base, _, name = PLACES[place].partition("/")
        path = f"{home}/{name}" if base == "home" else f"{host.tree(number)}/{base}/{name}"
        if place == "last_exp_job_end":
            host.report(number)
        as_user(ALICE, in_place_of(path, kind(host)))
    said = survives(host, len(KINDS))
    for number in numbers:
        assert sum(line.startswith(f"job {number}: ") for line in said) <= 1
        assert f"PAYLOAD_DEADLINE = {host.now + 601}\n" in host.site_ad(number)
        published = host.published(number)
        if place == "last_exp_job_end":
            assert published is not None and published.report.last_exp_job_end is None
        elif published is not None:  # what is a sound file of the user's, with nothing sound in it
            assert {getattr(published.report, row.field) for row in ATTRIBUTES} == {None}
    assert survives(host, 0) == [], "nothing is said twice"


def test_a_device_and_files_of_others(host: AgentHost) -> None:
    """4, 7, 11: a hard link to a file of bob's, a device, a file that is root's."""
    status = host.status(17)
    Path(host.base, "bobs").write_text(SECRET)
    os.chown(f"{host.base}/bobs", BOB, BOB)
    for make in (
        lambda path: os.link(f"{host.base}/bobs", path),
        lambda path: os.mknod(path, 0o20666, os.makedev(1, 5)),
        write(SECRET),
    ):
        path = f"{status}/used_CPU"
        make(path)
        said = survives(host)
        assert host.published(17) is None
        assert said, "it says why"
        os.unlink(path)


@pytest.mark.parametrize("how", ["flock", "lockf"])
def test_a_lock_that_is_held_for_ever(host: AgentHost, how: str) -> None:
    """18: in both kinds."""
    host.report(17)
    ready, pid = os.pipe(), os.fork()
    if pid == 0:
        os.setresuid(ALICE, ALICE, ALICE)
        descriptor = os.open(f"{host.status(17)}/used_CPU", os.O_RDWR)
        (fcntl.flock if how == "flock" else fcntl.lockf)(descriptor, fcntl.LOCK_EX)
        os.write(ready[1], b"x")
        signal.pause()
    try:
        os.read(ready[0], 1)
        assert any("locked" in line for line in survives(host))
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(ready[0])
        os.close(ready[1])


def test_an_order_is_heard_whole_while_a_neighbour_holds_the_child_up(host: AgentHost) -> None:
    """HOSTILE 18: the order's `.site.ad` is there before the shutdown files and as long as they are, in every look.

    The user's own lock makes its child wait for a second between the `.site.ad` of one of its jobs and of the next.
    """
    end, jobs = host.now + 601, (18, 20)
    host.start(20)
    for number in (17, *jobs):
        host.report(number)
    host.round()
    descriptor = os.open(f"{host.status(17)}/used_CPU", os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    environments = {
        number: {
            "JOBSTATUS": host.status(number),
            "JOBFEATURES": str(host.tree(number) / ".jobfeatures"),
            "MACHINEFEATURES": str(host.tree(number) / ".machinefeatures"),
        }
        for number in jobs
    }
    watches = [SiteNoticeReader(host.base, environment, host.said.append) for environment in environments.values()]
    lease = Lease(8, host.now - 100, host.now + 3500)
    heard: set[tuple[bool, bool]] = set()
    done = threading.Event()

    def listen() -> None:
        while not done.is_set():
            for watch in watches:
                orders = watch.orders(None, lease, PilotSettings(), host.now)
                heard.add((orders.leave, orders.draining))

    listener = threading.Thread(target=listen)
    listener.start()
    try:
        for number in jobs:
            host.slurm.set(number, EndTime=end, TimeLimit="00:12:00")
        host.round()
        for number in jobs:
            host.slurm.set(number, EndTime=host.now + 3500, TimeLimit="01:00:00")
        host.round()
    finally:
        done.set()
        listener.join()
        os.close(descriptor)
    assert heard == {(False, False), (True, True)}


def test_files_and_directories_that_change_all_the_time(host: AgentHost) -> None:
    """2, 3, 16, 17, 25: rewritten, swapped for links to root's file, removed and made again."""
    path = f"{host.status(17)}/.pilot.ad"

    def spin() -> None:
        while True:
            for make in (write("USED_FRACTION1k = 512\n"), lambda name: os.symlink(f"{host.base}/secret", name)):
                make(f"{path}.new")
                os.rename(f"{path}.new", path)
            with open(f"{host.status(17)}/used_CPU", "w") as stream:
                stream.write("1\n")

    pid = os.fork()
    if pid == 0:
        os.setresuid(ALICE, ALICE, ALICE)
        spin()
    try:
        for _ in range(8):
            survives(host)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


@pytest.mark.parametrize("mode", [0o000, 0o300, 0o500, 0o1777, 0o2755])
def test_a_status_directory_with_any_mode(host: AgentHost, mode: int) -> None:
    """10, 14: what the user forbids himself is his loss; the other channels of the order stand."""
    os.chmod(host.status(17), mode)
    survives(host)


def test_a_directory_with_many_names(host: AgentHost) -> None:
    """15, 26: it is never listed."""
    status = host.status(17)

    def fill() -> None:
        for number in range(5_000):
            os.close(os.open(f"{status}/f{number}", os.O_CREAT | os.O_WRONLY))
        Path(status, "a\nb\x1b[2J").touch()
        os.close(os.open(f"{status}/".encode() + b"\xff" * 250, os.O_CREAT | os.O_WRONLY))

    as_user(ALICE, fill)
    assert survives(host) == []
    for name in os.listdir(os.fsencode(status)):
        os.unlink(os.fsencode(status) + b"/" + name)


def test_something_is_mounted_in_the_tree(host: AgentHost) -> None:
    """12: the job is left alone, said once, until it is gone again."""
    status = host.status(17).encode()
    if libc.mount(b"tmpfs", status, b"tmpfs", 0, None):
        pytest.skip("may not mount")
    try:
        host.report(19, BOB)
        host.round()
        host.round()
        assert host.said == ["job 17: something is mounted in its tree; left alone"]
        assert host.published(19) is not None
    finally:
        libc.umount2(status, 2)
    host.report(17)
    survives(host)
    assert host.published(17) is not None


def test_a_work_dir_that_leads_elsewhere(host: AgentHost) -> None:
    """1, 3, 9: a WorkDir of any name; with alice's rights it leads to nothing of root's."""
    os.makedirs(f"{host.base}/private", 0o700)
    Path(host.base, "private", ".pilot.ad").write_text(SECRET)
    os.symlink(f"{host.base}/private", f"{host.base}/link")
    names = (
        f"{host.base}/private",
        f"{host.base}/link",
        "/proc/self/fd",
        "/proc/1/root",
        "relative",
        "/" + "x" * 5000,
        "",
    )
    for number, name in enumerate(names):
        host.start(30 + number, work_dir=name.encode())
    host.round()
    for number in range(len(names)):
        assert host.slurm.comment(30 + number) == ""
    assert all(line.isprintable() for line in host.said)
    Path(host.base, "private", ".pilot.ad").unlink()


def test_a_file_server_that_never_answers(host: AgentHost, monkeypatch: pytest.MonkeyPatch) -> None:
    """12: alice's WorkDir hangs: one round waits 2 s, the next ones do not ask; nobody else waits for it."""
    home = f"{host.base}/home".encode()
    real = os.open
    asked = os.memfd_create("asked")

    def slow(path: object, *arguments: object, **more: object) -> int:
        if path == home:
            os.write(asked, b"x")  # in a child
            signal.pause()
        return real(path, *arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", slow)
    assert survives(host) == [f"user {ALICE}: a file of the user's does not answer in time"]
    before = os.fstat(asked).st_size
    survives(host)
    assert before and os.fstat(asked).st_size == before
    assert host.said == []


def test_no_space_is_left(host: AgentHost) -> None:
    """27: what cannot be written for one job is one line, and is written when there is room again."""
    with public_directory() as base:
        small = f"{base}/small"
        os.mkdir(small)
        if libc.mount(b"tmpfs", small.encode(), b"tmpfs", 0, b"size=256k,mode=755"):
            pytest.skip("may not mount")
        try:
            full = AgentHost(base)
            full.settings = type(full.settings)({**full.settings._values, "runtime_dir": f"{small}/run"})
            full.runtime = f"{small}/run"
            full.restart()
            full.start(17)
            full.round()
            as_user(ALICE, lambda: fill_up(f"{full.status(17)}/filler"))
            full.slurm.set(17, EndTime=full.now + 601, TimeLimit="00:30:00")
            full.round()
            full.round()
            assert len(full.said) == 2 and full.said[0].startswith("runtime_dir: it is full")
            assert "No space left" in full.said[1]
            os.unlink(f"{full.status(17)}/filler")
            full.round()
            assert f"PAYLOAD_DEADLINE = {full.now + 601}\n" in full.site_ad(17)
            assert full.features(17)["shutdowntime"] == str(full.now + 601)
        finally:
            libc.umount2(small.encode(), 2)


def fill_up(path: str) -> None:
    """Write until nothing more fits."""
    with open(path, "wb", buffering=0) as stream:
        try:
            while stream.write(b"x" * 4096):
                pass
        except OSError:
            return


def test_no_descriptors_are_left(host: AgentHost) -> None:
    """28: a round fails in parts or as a whole, and the next one does everything."""
    import resource

    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(os.listdir("/proc/self/fd"))
    for more in (1, 3, 5, 8):
        resource.setrlimit(resource.RLIMIT_NOFILE, (used + more, limits[1]))
        try:
            host.agent.round(host.now)
        except Exception:
            pass
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        assert len(os.listdir("/proc/self/fd")) <= used  # the garbage collector may close some of other tests
    survives_after_a_fault(host)


def survives_after_a_fault(host: AgentHost) -> None:
    """As `survives`; what was said meanwhile ends."""
    host.round()
    survives(host)


def test_values_that_flap_cost_one_update_a_round(host: AgentHost) -> None:
    """40: however often a pilot changes its mind."""
    calls = len(host.slurm.calls())
    for number in range(4):
        host.report(17, used=5 + number % 2)
        host.round()
    updates = [call for call in host.slurm.calls()[calls:] if "update" in call[0]]
    assert len(updates) == 4 and all(len(call) == 1 for call in updates)


def test_every_attribute_there_is_comes_out_typed(host: AgentHost) -> None:
    """29 to 39: garbage in each of the nine files costs that value and no other job's."""
    for row in ATTRIBUTES:
        host.report(17)
        path = Path(host.status(17), row.status_name)
        as_user(ALICE, functools.partial(path.write_text, '1"]; X = 1; [\n'))
        survives(host)
        comment = host.slurm.comment(17)
        assert "X" not in comment and comment.count("{") <= 1
