"""What waits under the name of a pilot's file: kinds, owners, mounts, sizes, locks, and what changes while it is read.

Each number is that of the attack in the list of hostile cases. The reader has all rights here (root), so whatever it
would be tricked into, it could do.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import itertools
import os
import resource
import select
import shutil
import signal
import socket
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Optional

import pytest
from pytest_mock import MockerFixture

from as_user import answer_of, become
from drainwise.common.mounts import fuse_mounts_below
from drainwise.facts.errors import RefusedFile
from drainwise.pilotad.jobstatus import write_jobstatus
from drainwise.pilotad.node_reader import PILOT_AD_LIMIT, read_report
from drainwise.pilotad.pilot_ad import pilot_ad_text, write_pilot_ad
from drainwise.pilotad.report import PilotReport
from drainwise.pilotad.safe_open import Patience, open_dir, read_file

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs other users, devices and mounts")

MOST_READS = 200_000
"""While somebody changes what is read: by then each of two outcomes has come a hundred times on any machine."""
ALICE, BOB = 12345, 12346
SECRET = b"USED_FRACTION1k = 1\nPRIORITY_FACTOR = 666\n"
SOUND = b"USED_FRACTION1k = 768\nPRIORITY_FACTOR = 3\n"


class Job:
    """Alice's job directory, seen by the reader through a descriptor, and a secret of root's outside."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.path = root / "job"
        self.path.mkdir()
        self.path.chmod(0o755)
        os.chown(self.path, ALICE, ALICE)
        self.ad = self.path / ".pilot.ad"
        self.secret = root / "secret"
        self.secret.write_bytes(SECRET)
        self.secret.chmod(0o600)
        self.fd = self.opened()

    def opened(self) -> int:
        """A descriptor of the directory, in the caller's mounts."""
        parent = open_dir(str(self.root))
        fd = open_dir("job", parent, ALICE)
        os.close(parent)
        return fd

    def own(self, path: Path) -> None:
        """Make it alice's."""
        os.lchown(path, ALICE, ALICE)

    def write(self, content: bytes = SOUND) -> None:
        """Alice writes her ad."""
        self.ad.write_bytes(content)
        self.own(self.ad)

    def refused(self) -> str:
        """Why the ad is not read; the reader must say so long before a lease ends (45 s) and find nothing."""
        begun = time.monotonic()
        report, reasons = read_report(self.fd, ALICE, 8, "status")
        assert time.monotonic() - begun < 20
        assert report is None
        assert len(reasons) == 1
        return reasons[0].removeprefix(".pilot.ad: ")


MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None


@pytest.fixture
def job() -> Iterator[Job]:
    """A job in the usual place for temporary files."""
    yield from made_in(None)


@pytest.fixture
def fast_job() -> Iterator[Job]:
    """A job in memory, where an attacker is fastest."""
    yield from made_in(MEMORY)


def made_in(place: str | None) -> Iterator[Job]:
    """A job that is gone afterwards, as are all descriptors that the reader opened."""
    root = Path(tempfile.mkdtemp(prefix="pilotad-", dir=place))
    root.chmod(0o711)
    before = len(os.listdir("/proc/self/fd"))
    made = Job(root)
    yield made
    # Whatever was refused must have cost no descriptor.
    assert len(os.listdir("/proc/self/fd")) == before + 1
    os.close(made.fd)
    shutil.rmtree(root)


@contextmanager
def running(work: Callable[[], object], uid: int = 0) -> Iterator[int]:
    """A process of `uid` that does `work` and then waits; killed at the end."""
    pid = os.fork()
    if pid == 0:
        try:
            become(uid)
            work()
            signal.pause()
        finally:
            os._exit(1)
    try:
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def wait_until(happened: Callable[[], bool]) -> None:
    """Poll for 30 s."""
    deadline = time.monotonic() + 30
    while not happened():
        assert time.monotonic() < deadline, "it did not happen in 30 s"
        time.sleep(0.001)


def again_and_again(step: Callable[[int], object]) -> Callable[[], None]:
    """`step(0)`, `step(1)` and so on for ever."""

    def work() -> None:
        number = 0
        while True:
            step(number)
            number += 1

    return work


# --- kinds -----------------------------------------------------------------------------------------------------------


def test_01_symlink_to_a_root_only_file(job: Job) -> None:
    """1: a symlink is never followed."""
    job.ad.symlink_to(job.secret)
    assert job.refused() == "symlink"


def test_02_symlink_swapped_in_a_loop(fast_job: Job) -> None:
    """2: while alice swaps a sound ad and a symlink to the secret, the secret is never read, in hundreds of reads."""

    def swap(number: int) -> None:
        fresh = str(fast_job.path / "fresh")
        if number % 2:
            os.symlink(fast_job.secret, fresh)
        else:
            Path(fresh).write_bytes(SOUND)
        os.rename(fresh, fast_job.ad)

    seen = {"symlink": 0, "sound": 0}
    with running(again_and_again(swap), ALICE):
        wait_until(fast_job.ad.exists)
        for _ in range(MOST_READS):
            try:
                assert read_file(fast_job.fd, ".pilot.ad", ALICE, PILOT_AD_LIMIT)[0] == SOUND
                seen["sound"] += 1
            except RefusedFile as refused:
                assert refused.reason in {"symlink", "torn", "empty"}
                seen["symlink"] += refused.reason == "symlink"
            if min(seen.values()) >= 100:
                break
    assert min(seen.values()) >= 100


def test_03_parent_swapped_for_a_symlink_in_mid_walk(fast_job: Job) -> None:
    """3: a $JOBSTATUS directory that turns into a symlink to another one leads nowhere else."""
    outside = fast_job.root / "outside"
    for directory, cores in ((outside, 1.0), (fast_job.path / "real", 6.0)):
        directory.mkdir()
        write_jobstatus(str(directory), PilotReport(0, used_cpu=cores))
        for path in (directory, directory / "used_CPU"):
            fast_job.own(path)  # even if it is alice's own: what is outside the job is not this job's

    def swap(number: int) -> None:
        if number % 2:
            os.rename(fast_job.path / "status", fast_job.path / "real")
            os.symlink(outside, fast_job.path / "status")
        else:
            if number:
                os.unlink(fast_job.path / "status")
            os.rename(fast_job.path / "real", fast_job.path / "status")

    seen = {"refused": 0, "sound": 0}
    with running(again_and_again(swap), ALICE):
        for _ in range(MOST_READS):
            report, reasons = read_report(fast_job.fd, ALICE, 8, "status")
            assert report is None or report.used_cpu == 6.0
            seen["sound"] += report is not None
            seen["refused"] += reasons == ("$JOBSTATUS: not a directory",)
            if min(seen.values()) >= 30:
                break
    assert min(seen.values()) >= 30


def test_04_hard_links(job: Job) -> None:
    """4: neither root's file, nor another user's ad, nor one's own file of two names."""
    os.link(job.secret, job.ad)
    assert job.refused() == "not the job's user"
    os.chown(job.secret, BOB, BOB)
    assert job.refused() == "not the job's user"
    job.own(job.secret)
    assert job.refused() == "hard link"


def test_05_fifo(job: Job) -> None:
    """5: a FIFO, with a writer or without, is not waited for."""
    os.mkfifo(job.ad)
    job.own(job.ad)
    assert job.refused() == "not a regular file"
    writer = os.open(job.ad, os.O_RDWR)
    os.write(writer, SOUND)
    assert job.refused() == "not a regular file"
    os.close(writer)


def test_06_socket(job: Job) -> None:
    """6: a socket is not connected to."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(job.ad))
        listener.listen()
        job.own(job.ad)
        assert job.refused() == "not a regular file"
        assert not select.select([listener], [], [], 0)[0]


@pytest.mark.parametrize("kind, major, minor", [(stat.S_IFCHR, 1, 5), (stat.S_IFCHR, 1, 8), (stat.S_IFCHR, 4, 0)])
def test_07_device(job: Job, kind: int, major: int, minor: int) -> None:
    """7: endless zeros, random bytes, a terminal: none is read."""
    os.mknod(job.ad, kind | 0o666, os.makedev(major, minor))
    job.own(job.ad)
    assert job.refused() in {"not a regular file", "permission denied"}


def test_08_directory(job: Job) -> None:
    """8: a directory of that name."""
    job.ad.mkdir()
    job.own(job.ad)
    assert job.refused() == "not a regular file"


def test_09_magic_links(job: Job) -> None:
    """9: /proc's links lead nowhere, neither as the file nor as a directory on the way."""
    opened = os.open(job.secret, os.O_RDONLY)
    job.ad.symlink_to(f"/proc/{os.getpid()}/fd/{opened}")
    assert job.refused() == "symlink"
    process = open_dir(f"/proc/{os.getpid()}")
    for name in ("root", "cwd"):
        with pytest.raises(RefusedFile, match=r"^not a directory$"):
            open_dir(name, process)
    os.close(process)
    os.close(opened)


def test_10_mode_000(job: Job) -> None:
    """10: a reader without root's rights is told no, at once."""
    job.write()
    job.ad.chmod(0)
    assert answer_of(job.refused, BOB) == "permission denied"


def test_11_file_of_another_user(job: Job) -> None:
    """11: an ad that alice did not write is not hers, whoever put it there."""
    job.write()
    os.chown(job.ad, BOB, BOB)
    assert job.refused() == "not the job's user"


# --- mounts ----------------------------------------------------------------------------------------------------------

libc = ctypes.CDLL(None, use_errno=True)


def own_mounts(job: Job) -> None:
    """Leave the common mount namespace: what is mounted from here on ends with this process."""
    done(libc.unshare(0x00020000))
    done(libc.mount(b"none", b"/", None, 0x4000 | 0x40000, None))
    job.fd = job.opened()


def mount(source: str, target: Path, kind: str, flags: int = 0, options: str = "") -> None:
    """mount(2)."""
    done(libc.mount(source.encode(), bytes(target), kind.encode(), flags, options.encode()))


def done(result: int) -> None:
    """Raise what a C call left in errno."""
    if result:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def test_12_a_mount_over_the_ad(job: Job) -> None:
    """12: what was mounted over the file from another file system is not the job's."""
    job.write()

    def attack() -> str:
        own_mounts(job)
        elsewhere = job.root / "elsewhere"
        elsewhere.mkdir()
        mount("none", elsewhere, "tmpfs")
        (elsewhere / "ad").write_bytes(SOUND)
        job.own(elsewhere / "ad")
        mount(str(elsewhere / "ad"), job.ad, "", flags=0x1000)
        return job.refused()

    assert answer_of(attack) == "other file system"


def test_12_a_mount_over_the_directory_on_the_way(job: Job) -> None:
    """12: a tmpfs of somebody else over $JOBSTATUS is refused by its owner, root's ad in it is not read."""
    (job.path / "status").mkdir()
    job.own(job.path / "status")

    def attack() -> str:
        own_mounts(job)
        mount("none", job.path / "status", "tmpfs")
        write_jobstatus(str(job.path / "status"), PilotReport(0, used_cpu=1.0))
        return job.refused()

    assert answer_of(attack) == "$JOBSTATUS: not the job's user"


def hanging_fuse(target: Path, options: str) -> None:
    """A FUSE file system whose server never answers."""
    fd = os.open("/dev/fuse", os.O_RDWR)
    given = f"fd={fd},rootmode=40755,user_id={ALICE},group_id={ALICE}"
    mount("never", target, "fuse", flags=6, options=given + options)


needs_fuse = pytest.mark.skipif(not os.path.exists("/dev/fuse"), reason="no FUSE in this kernel")


@needs_fuse
def test_12_fuse_that_never_answers(job: Job) -> None:
    """12: one mounted for its user alone; the kernel would turn away others, root too."""
    (job.path / "status").mkdir()

    def attack() -> str:
        own_mounts(job)
        hanging_fuse(job.path / "status", "")
        return job.refused()

    assert answer_of(attack) == "$JOBSTATUS: other file system"


@needs_fuse
def test_12_fuse_that_never_answers_anyone(job: Job) -> None:
    """12: one mounted with allow_other is seen before it is touched, also by who has looked for mounts before."""
    (job.path / "status").mkdir()

    def attack() -> str:
        own_mounts(job)
        hanging_fuse(job.path / "status", ",allow_other")
        assert fuse_mounts_below(str(job.root)) == (str(job.path / "status"),)
        signal.setitimer(signal.ITIMER_REAL, 5)  # only death would end a wait
        return job.refused()

    assert fuse_mounts_below(str(job.root)) == ()
    assert answer_of(attack) == "$JOBSTATUS: other file system"


def test_13_a_directory_that_the_reader_may_not_search(job: Job) -> None:
    """13: as on a root-squashed network directory, the reader is told no."""
    job.write()
    job.path.chmod(0o700)
    assert answer_of(lambda: repr(read_report(job.fd, ALICE, 8)), BOB) == "(None, ('.pilot.ad: permission denied',))"


def test_14_sticky_setgid_and_odd_modes(job: Job) -> None:
    """14: they change nothing for a reader that asks only for kind, owner and size."""
    job.path.chmod(0o7777)
    job.write()
    job.ad.chmod(0o7644)
    report, reasons = read_report(job.fd, ALICE, 8)
    assert report is not None
    assert (report.used_cpu, reasons) == (6.0, ())


@pytest.mark.parametrize("name", ["..", ".", "", "../secret", "job/../secret", "/etc/passwd", "a\0b", "x" * 256])
def test_15_names_that_lead_elsewhere(job: Job, name: str) -> None:
    """15: only a single component is opened, as a file or as a directory."""
    for act in (lambda: read_file(job.fd, name, None, 64), lambda: open_dir(name, job.fd)):
        with pytest.raises(RefusedFile, match=r"^bad name$"):
            act()


@pytest.mark.parametrize("name", ["new\nline", "\x1b[2J", "x" * 255, os.fsdecode(b"\xff\xfe"), " ", "-rf"])
def test_15_odd_names_are_names(job: Job, name: str) -> None:
    """15: a directory called so is a directory."""
    (job.path / name).mkdir()
    os.close(open_dir(name, job.fd))


def test_16_directory_renamed_or_deleted_during_the_read(job: Job) -> None:
    """16: the descriptor stays with the job's directory; what takes its place is not read."""
    job.write()
    os.rename(job.path, job.root / "moved")
    job.path.mkdir()
    (job.path / ".pilot.ad").write_bytes(SECRET)
    job.own(job.path / ".pilot.ad")
    report, _ = read_report(job.fd, ALICE, 8)
    assert report is not None
    assert report.priority_factor == 3
    shutil.rmtree(job.root / "moved")
    assert read_report(job.fd, ALICE, 8, "status") == (None, ())


# --- changing while it is read ---------------------------------------------------------------------------------------


def numbered(number: int) -> PilotReport:
    """A report in which every value is made of one number below 1000, and which is always as long."""
    date = 1_795_000_000 + number
    return PilotReport(
        0,
        last_job_start=date,
        first_exp_job_end=date,
        last_exp_job_end=date,
        last_max_job_end=date,
        priority_factor=1000 + number,
    )


def read_while(job: Job, step: Callable[[int], object], wanted: int, different: int = 10) -> list[PilotReport]:
    """Reports read, made of so many different numbers, while alice does `step` again and again."""
    reports, dates = list[PilotReport](), set[Optional[int]]()
    with running(again_and_again(step), ALICE):
        for _ in range(MOST_READS):
            report, reasons = read_report(job.fd, ALICE, 8)
            assert set(reasons) <= {".pilot.ad: torn", ".pilot.ad: empty"}
            if report is not None:
                reports.append(report)
                dates.add(report.last_job_start)
            if len(reports) >= wanted and len(dates) >= different:
                break
    assert len(reports) >= wanted and len(dates) >= different
    return reports


def test_17_rewritten_by_rename(fast_job: Job) -> None:
    """17: a pilot that renames is always read whole."""
    reports = read_while(fast_job, lambda number: write_pilot_ad(str(fast_job.path), numbered(number % 1000), 8), 100)
    for report in reports:
        assert report.last_job_start is not None
        number = report.last_job_start - 1_795_000_000
        assert pilot_ad_text(report, 8) == pilot_ad_text(numbered(number), 8)


def test_17_overwritten_in_place(fast_job: Job) -> None:
    """17: one that overwrites the same bytes without a lock is read whole or not at all: never old mixed with new."""

    def overwrite(number: int) -> None:
        fd = os.open(fast_job.ad, os.O_WRONLY | os.O_CREAT, 0o644)
        os.write(fd, pilot_ad_text(numbered(number % 1000), 8))
        os.close(fd)

    for report in read_while(fast_job, overwrite, 50):
        dates = (report.last_job_start, report.first_exp_job_end, report.last_exp_job_end, report.last_max_job_end)
        assert len(set(dates)) == 1
        assert report.priority_factor == (report.last_job_start or 0) - 1_795_000_000 + 1000


def test_17_truncated_and_written_line_by_line(fast_job: Job) -> None:
    """17: of one that writes a line at a time, what is read is of one report, and what is not there yet is unknown."""

    def trickle(number: int) -> None:
        with open(fast_job.ad, "wb", buffering=0) as stream:
            for line in pilot_ad_text(numbered(number % 1000), 8).splitlines(keepends=True):
                stream.write(line)
                time.sleep(0.0002)  # one that wrote without a pause would hardly ever be read

    partly = 0
    for report in read_while(fast_job, trickle, 50):
        partly += report.last_max_job_end is None
        dates = {report.last_job_start, report.first_exp_job_end, report.last_exp_job_end, report.last_max_job_end}
        assert len(dates - {None}) == 1
        assert report.priority_factor in {None, (report.last_job_start or 0) - 1_795_000_000 + 1000}
    assert partly


@pytest.mark.parametrize("read", [1, 2])
def test_17_changed_between_two_steps_of_a_read(job: Job, mocker: MockerFixture, read: int) -> None:
    """17: after the first of the two reads, where no clock of files tells of it; or right after both."""
    job.write()
    pread, reads = os.pread, itertools.count()

    def changes(fd: int, size: int, at: int) -> bytes:
        data = pread(fd, size, at)
        if next(reads) % 2 == read - 1:
            before = job.ad.stat().st_mtime_ns
            job.ad.write_bytes(data[::-1])
            os.utime(job.ad, ns=(before, before + (read - 1) * 1_000_000))
        return data

    mocker.patch("drainwise.pilotad.safe_open.posix.pread", autospec=True, side_effect=changes)
    assert job.refused() == "torn"
    assert next(reads) == 6, "three tries of two reads"


def hold_flock(path: Path) -> None:
    """A lock of the BSD kind."""
    fcntl.flock(os.open(path, os.O_RDWR), fcntl.LOCK_EX)


def hold_lockf(path: Path) -> None:
    """A lock of the POSIX kind."""
    fcntl.lockf(os.open(path, os.O_RDWR), fcntl.LOCK_EX)


def hold_lease(path: Path) -> None:
    """A write lease: an open of the file waits until it is given back, unless it does not wait."""
    signal.signal(signal.SIGIO, signal.SIG_IGN)
    fd = os.open(path, os.O_RDWR)

    def taken() -> bool:
        try:
            fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        except OSError:
            return False  # the reader has it open just now
        return True

    wait_until(taken)


def status_of(job: Job) -> Path:
    """Alice's $JOBSTATUS with a sound report."""
    (job.path / "status").mkdir()
    write_jobstatus(str(job.path / "status"), PilotReport(0, used_cpu=6.0))
    for path in (job.path / "status", job.path / "status" / "used_CPU"):
        job.own(path)
    return job.path / "status" / "used_CPU"


@pytest.mark.parametrize("hold", [hold_flock, hold_lockf])
def test_18_lock_held_for_ever(job: Job, hold: Callable[[Path], None], mocker: MockerFixture) -> None:
    """18: in either kind: "locked", soon, and a round over 64 such jobs waits no longer than its patience."""
    seal = status_of(job)
    with running(lambda: hold(seal), ALICE):
        wait_until(lambda: read_report(job.fd, ALICE, 8, "status")[0] is None)
        slept = mocker.spy(time, "sleep")
        assert job.refused() == "$JOBSTATUS: locked"
        assert sum(call.args[0] for call in slept.call_args_list) < 0.5
        slept.reset_mock()
        patience = Patience(0.1)
        for _ in range(64):
            assert read_report(job.fd, ALICE, 8, "status", patience) == (None, ("$JOBSTATUS: locked",))
        assert sum(call.args[0] for call in slept.call_args_list) <= 0.1
        job.write()
        assert read_report(job.fd, ALICE, 8, "status")[0] is not None
    assert read_report(job.fd, ALICE, 8, "status")[1] == ()


def test_18_nobody_elses_file_is_locked(job: Job) -> None:
    """4, 18: a hard link to root's lock file under the name of ours is refused before anything is locked."""
    seal = status_of(job)
    seal.unlink()
    os.link(job.secret, seal)
    with open(job.secret) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert job.refused() == "$JOBSTATUS: not the job's user"


def test_18_lease_held_for_ever(job: Job) -> None:
    """18: a write lease would hold a plain open for 45 s; here it is refused at once."""
    job.write()
    with running(lambda: hold_lease(job.ad), ALICE):
        wait_until(lambda: read_report(job.fd, ALICE, 8)[0] is None)
        assert job.refused() == "lease held"


# --- sizes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [PILOT_AD_LIMIT + 1, 1 << 40])
def test_19_20_too_large(job: Job, size: int) -> None:
    """19, 20: a sparse 1 TiB and one byte too many are told by their size alone."""
    job.write()
    os.truncate(job.ad, size)
    assert job.refused() == "too large"


@pytest.mark.parametrize("content", [b"X = " + b"1" * (1 << 20), b"X = 1\n" * 1_000_000])
def test_21_22_long_lines_and_many_lines(job: Job, content: bytes) -> None:
    """21, 22: not read at all; what fits the limit is parsed in little time (test_pilotad_content)."""
    job.write(content)
    assert job.refused() == "too large"


def test_23_empty(job: Job) -> None:
    """23: after a few tries, since it may have been truncated to be written again."""
    job.write(b"")
    assert job.refused() == "empty"


def test_24_only_nuls(job: Job) -> None:
    """24: a file of NULs says nothing."""
    job.write(b"\0" * PILOT_AD_LIMIT)
    report, reasons = read_report(job.fd, ALICE, 8)
    assert report is not None
    assert (report.used_cpu, report.priority_factor, reasons) == (None, None, ())


def test_25_growing_while_read(fast_job: Job) -> None:
    """25: what grows is read up to what it was, or "torn", until it is too large; never more than the limit."""

    def grow(number: int) -> None:
        with open(fast_job.ad, "ab", buffering=0) as stream:
            stream.write(b"X = 1\n")

    fast_job.write()
    reasons: set[str] = set()
    with running(again_and_again(grow), ALICE):
        for _ in range(MOST_READS):
            try:
                data = read_file(fast_job.fd, ".pilot.ad", ALICE, PILOT_AD_LIMIT)[0]
                assert data.startswith(SOUND)
                assert len(data) <= PILOT_AD_LIMIT
            except RefusedFile as refused:
                reasons.add(refused.reason)
            if "too large" in reasons:
                break
    assert "too large" in reasons
    assert reasons <= {"too large", "torn"}


def test_26_a_directory_that_cannot_be_listed(job: Job) -> None:
    """26: it is never listed, so 100,000 files in it do not matter."""
    job.write()
    status_of(job)
    for directory in (job.path, job.path / "status"):
        directory.chmod(0o711)

    def read() -> str:
        with pytest.raises(PermissionError):
            os.listdir(job.path)
        report, reasons = read_report(job.opened(), ALICE, 8, "status")
        return f"{report is not None}; {reasons}"

    assert answer_of(read, BOB) == "True; ()"


def test_28_no_file_descriptors_left(job: Job) -> None:
    """28: refused for that reason, nothing lost, and read again when there are some."""
    job.write()
    seal = status_of(job)
    os.utime(seal, (1, 1))

    def attack() -> str:
        highest = max(map(int, os.listdir("/proc/self/fd")))
        spare = [os.dup(0)]
        while spare[-1] <= highest:
            spare.append(os.dup(0))
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (spare[-1] + 1, hard))
        without = read_report(job.fd, ALICE, 8, "status")
        os.close(spare[-1])
        report, reasons = read_report(job.fd, ALICE, 8)
        return f"{without}; {report is not None and report.used_cpu}; {reasons}"

    expected = "(None, ('.pilot.ad: no file descriptors', '$JOBSTATUS: no file descriptors')); 6.0; ()"
    assert answer_of(attack) == expected


def test_47_squatted_status_directory(job: Job) -> None:
    """47: a file, a symlink or another user's directory in the place of $JOBSTATUS is refused; the ad still counts."""
    place = job.path / "status"
    job.write()
    place.write_bytes(b"")
    assert read_report(job.fd, ALICE, 8, "status")[1] == ("$JOBSTATUS: not a directory",)
    place.unlink()
    place.mkdir()
    os.chown(place, BOB, BOB)
    assert read_report(job.fd, ALICE, 8, "status")[1] == ("$JOBSTATUS: not the job's user",)
    place.rmdir()
    place.symlink_to(job.root)
    report, reasons = read_report(job.fd, ALICE, 8, "status")
    assert reasons == ("$JOBSTATUS: not a directory",)
    assert report is not None


@pytest.mark.parametrize("name", ["used_CPU", "priority_factor"])
@pytest.mark.parametrize("attack", ["symlink", "fifo", "hard link", "other user", "directory"])
def test_every_status_file_is_opened_with_the_same_care(job: Job, name: str, attack: str) -> None:
    """1, 4, 5, 8, 11 again, for each of the nine files: the secret is never a value."""
    status_of(job)
    path = job.path / "status" / name
    path.unlink(missing_ok=True)
    job.secret.write_bytes(b"5\n")
    if attack == "symlink":
        path.symlink_to(job.secret)
    elif attack == "fifo":
        os.mkfifo(path)
        job.own(path)
    elif attack == "hard link":
        os.link(job.secret, path)
        job.own(path)
    elif attack == "directory":
        path.mkdir()
    else:
        path.write_bytes(b"5\n")
    report, reasons = read_report(job.fd, ALICE, 8, "status")
    if name == "used_CPU":
        assert report is None
        assert len(reasons) == 1
    else:
        assert report is not None
        assert (report.used_cpu, report.priority_factor) == (6.0, None)
        assert reasons == ("$JOBSTATUS: not sound: priority_factor",)


def test_the_kernel_agrees_on_what_a_lease_does(job: Job) -> None:
    """The lease of test 18 is real: without O_NONBLOCK the open would wait."""
    job.write()
    with running(lambda: hold_lease(job.ad), ALICE):
        wait_until(lambda: read_report(job.fd, ALICE, 8)[0] is None)
        with pytest.raises(OSError) as caught:
            os.open(job.ad, os.O_RDONLY | os.O_NONBLOCK)
        assert caught.value.errno == errno.EAGAIN
