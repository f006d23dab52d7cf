"""What goes wrong while we write into a job's directory: no space, a killed writer, a user who meddles, two at once.

Each number is that of the attack in the list of hostile cases.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import resource
import shutil
import signal
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from as_user import answer_of
from drainwise.facts.errors import FeatureError, RefusedFile
from drainwise.pilotad.attributes import ATTRIBUTES
from drainwise.pilotad.jobstatus import read_jobstatus, write_jobstatus
from drainwise.pilotad.pilot_ad import parse_pilot_ad, write_pilot_ad
from drainwise.pilotad.report import PilotReport
from drainwise.pilotad.safe_open import open_dir, read_file
from drainwise.pilotad.site_ad import SiteAd, read_site_ad, remove_site_ad, write_site_ad
from worked_example import numbered

pytestmark = pytest.mark.daemons  # attacks take their time

DEADLINE = 1_795_256_200
ALICE = 12345
UID = os.geteuid()
needs_root = pytest.mark.skipif(UID != 0, reason="needs another user and mounts")


def killed_while(work: Callable[[int], object], after: float) -> None:
    """Do `work` on and on in a process that is killed some seconds after its first round, wherever it is then."""
    ready, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            work(0)
            os.write(told, b"x")
            number = 0
            while True:
                number = (number + 1) % 100
                work(number)
        finally:
            os._exit(1)
    os.close(told)
    assert os.read(ready, 1) == b"x"
    os.close(ready)
    time.sleep(after)  # no condition to wait for: any moment will do
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


@pytest.fixture
def job() -> Iterator[Path]:
    """A directory of alice's (ours, when we are not root)."""
    yield from made_in(None)


@pytest.fixture
def fast_job() -> Iterator[Path]:
    """The same in memory, where writing is fastest and a death may come at any step."""
    yield from made_in("/dev/shm" if os.path.isdir("/dev/shm") else None)


def made_in(place: str | None) -> Iterator[Path]:
    """A directory that is gone afterwards."""
    path = Path(tempfile.mkdtemp(prefix="pilotad-", dir=place))
    if UID == 0:
        os.chown(path, ALICE, ALICE)
    yield path
    shutil.rmtree(path)


def numbers_in(report: PilotReport) -> set[float | None]:
    """The numbers that the values were made of; one when it is no mix."""
    dates = (report.last_job_start, report.first_exp_job_end, report.last_exp_job_end, report.last_max_job_end)
    others = (report.used_cpu, report.add_uncom_time, report.add_final_exp_waste, report.priority_factor)
    return {date and date - 1_795_000_000 for date in dates} | set(others)


WRITERS: dict[str, Callable[[str, int], object]] = {
    ".site.ad": lambda path, number: write_site_ad(path, True, DEADLINE + number),
    ".pilot.ad": lambda path, number: write_pilot_ad(path, numbered(number), 1024),
    "used_CPU": lambda path, number: write_jobstatus(path, numbered(number)),
}


def full_file_system(job: Path, options: str, fill: Callable[[], None]) -> str:
    """Errors of the three writers on a small file system that was filled after a first order and report."""
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.unshare(0x00020000) == 0
    assert libc.mount(b"none", b"/", None, 0x4000 | 0x40000, None) == 0
    assert libc.mount(b"none", bytes(job), b"tmpfs", 0, options.encode()) == 0
    for write in WRITERS.values():
        write(str(job), 1)
    old = PilotReport(0, used_cpu=1.0, priority_factor=1)
    write_jobstatus(str(job), old)
    errors = []
    fill()
    for write in WRITERS.values():
        try:
            write(str(job), 2)
            errors.append("written")
        except FeatureError as error:
            errors.append(str(error))
    assert read_site_ad(str(job)) == (SiteAd(True, DEADLINE + 1), "")
    place = open_dir(str(job))
    assert numbers_in(parse_pilot_ad(read_file(place, ".pilot.ad", 0, 4096)[0], 1024, 0)[0]) == {1}
    status = read_jobstatus(place, 0)[0]
    assert [getattr(status, row.field) for row in ATTRIBUTES] == [getattr(old, row.field) for row in ATTRIBUTES]
    write_jobstatus(str(job), PilotReport(0, used_cpu=2.0, priority_factor=2))
    assert read_jobstatus(place, 0)[0].used_cpu == 2.0
    assert set(os.listdir(job)) <= {".site.ad", ".pilot.ad", "filler"} | {row.status_name for row in ATTRIBUTES}
    return "\n".join(errors)


FULL = [
    f"{name}: not written (No space left on device); free space in the job's directory"
    for name in (".site.ad", ".pilot.ad", "used_CPU")
]


@needs_root
def test_27_no_space(job: Path) -> None:
    """27: one line that names file and cure; the old content stands, no temporary file is left, known keys go on."""

    def fill() -> None:
        with open(job / "filler", "wb", buffering=0) as stream:
            try:
                while True:
                    stream.write(b"x" * 4096)
            except OSError:
                return

    assert answer_of(lambda: full_file_system(job, "size=256k", fill)).split("\n") == FULL


@needs_root
def test_28_no_inodes(job: Path) -> None:
    """28: the same when only inodes have run out."""

    def fill() -> None:
        (job / "filler").mkdir()
        try:
            for number in range(100):
                (job / "filler" / str(number)).touch()
        except OSError:
            return

    assert answer_of(lambda: full_file_system(job, "size=1m,nr_inodes=40", fill)).split("\n") == FULL


def test_27_file_size_limit(job: Path) -> None:
    """27: a job's own limit is an error, not a death, and what stood before still stands."""
    write_site_ad(str(job), True, DEADLINE)

    def attack() -> str:
        resource.setrlimit(resource.RLIMIT_FSIZE, (3, 3))
        try:
            write_site_ad(str(job), True, DEADLINE + 1)
        except FeatureError as error:
            return str(error)
        return "written"

    assert answer_of(attack).startswith(".site.ad: not written (")
    assert read_site_ad(str(job)) == (SiteAd(True, DEADLINE), "")
    assert os.listdir(job) == [".site.ad"]


def test_27_a_limit_met_half_way_through_the_status(job: Path) -> None:
    """27: some files could be written, a later one not: nothing of either report is taken for whole."""
    write_jobstatus(str(job), numbered(1))

    def attack() -> str:
        resource.setrlimit(resource.RLIMIT_FSIZE, (3, 3))
        try:
            write_jobstatus(str(job), PilotReport(0, used_cpu=2.0, add_uncom_time=2.0, priority_factor=123456))
        except FeatureError as error:
            return str(error)
        return "written"

    assert answer_of(attack).startswith("used_CPU: not written (")
    place = open_dir(str(job))
    with pytest.raises(RefusedFile, match=r"^unfinished$"):
        read_jobstatus(place, UID)
    write_jobstatus(place, numbered(3))
    assert numbers_in(read_jobstatus(place, UID)[0]) == {3}
    os.close(place)


@needs_root
def test_14_immutable_order(job: Path) -> None:
    """14: a file that cannot be replaced or removed is one clear line, and nothing is left beside it."""
    write_site_ad(str(job), True, DEADLINE)
    fd = os.open(job / ".site.ad", os.O_RDONLY)
    try:
        flags = struct.unpack("i", fcntl.ioctl(fd, 0x80086601, b"\0" * 8)[:4])[0]
        fcntl.ioctl(fd, 0x40086602, struct.pack("l", flags | 0x10))
    except OSError:
        os.close(fd)
        pytest.skip("this file system knows no immutable files")
    try:
        with pytest.raises(FeatureError, match=r"^\.site\.ad: not written \(Operation not permitted\); check"):
            write_site_ad(str(job), False)
        with pytest.raises(FeatureError, match=r"^\.site\.ad: not written \(Operation not permitted\); check"):
            remove_site_ad(str(job))
        assert os.listdir(job) == [".site.ad"]
    finally:
        fcntl.ioctl(fd, 0x40086602, struct.pack("l", flags))
        os.close(fd)


def meddle(job: Path, how: str) -> None:
    """What alice may do to her order."""
    order = job / ".site.ad"
    order.unlink()
    if how == "changed":
        order.write_text("VACATE_DESIRED = False\n")
    elif how == "symlink":
        order.symlink_to(job / "elsewhere")
    elif how == "fifo":
        os.mkfifo(order)
    elif how == "huge":
        order.touch()
        os.truncate(order, 1 << 40)
    elif how == "hard link":
        (job / "twin").write_text(f"VACATE_DESIRED = True\nPAYLOAD_DEADLINE = {DEADLINE}\n")
        os.link(job / "twin", order)
    elif how == "mode 000":
        order.write_text(f"VACATE_DESIRED = True\nPAYLOAD_DEADLINE = {DEADLINE}\n")
        order.chmod(0)
    elif how == "empty directory":
        order.mkdir()


@pytest.mark.parametrize(
    "how", ["deleted", "changed", "symlink", "fifo", "huge", "hard link", "mode 000", "empty directory"]
)
def test_49_the_user_deletes_or_replaces_the_order(job: Path, how: str) -> None:
    """49: the next update puts it back, follows nothing and waits for nothing; then it is left alone again."""

    def as_alice() -> str:
        write_site_ad(str(job), True, DEADLINE)
        meddle(job, how)
        assert write_site_ad(str(job), True, DEADLINE)
        assert not write_site_ad(str(job), True, DEADLINE)
        return repr(read_site_ad(str(job), uid=os.getuid()))

    assert answer_of(as_alice, ALICE if UID == 0 else 0) == repr((SiteAd(True, DEADLINE), ""))
    assert not (job / "elsewhere").exists()


def test_49_a_squatted_order_is_one_line(job: Path) -> None:
    """49: where alice puts a full directory there is no order and one line; the batch system's deadline stands."""
    (job / ".site.ad" / "squat").mkdir(parents=True)
    with pytest.raises(FeatureError, match=r"^\.site\.ad: not written \(Directory not empty\); remove the directory"):
        write_site_ad(str(job), True, DEADLINE)
    assert read_site_ad(str(job)) == (None, "not a regular file")
    assert os.listdir(job) == [".site.ad"]


@needs_root
def test_49_a_directory_alice_closed(job: Path) -> None:
    """49: mode 0500 keeps the order out; as alice, the hook has no right to force it."""
    job.chmod(0o500)

    def as_alice() -> str:
        try:
            write_site_ad(str(job), True, DEADLINE)
        except FeatureError as error:
            return str(error)
        return "written"

    assert answer_of(as_alice, ALICE) == ".site.ad: not written (Permission denied); check its directory"


@pytest.mark.parametrize("name", [".site.ad", ".pilot.ad"])
def test_51_killed_while_replacing_a_file(fast_job: Path, name: str) -> None:
    """51: whenever the writer dies, the file is whole; each death leaves one temporary file at most."""
    kills = 25
    WRITERS[name](str(fast_job), 1)
    place = open_dir(str(fast_job))
    for turn in range(kills):
        killed_while(lambda number: WRITERS[name](str(fast_job), number), 0.0005 * turn)
        if name == ".site.ad":
            order, reason = read_site_ad(str(fast_job))
            assert (order is not None and order.payload_deadline is not None, reason) == (True, "")
        else:
            report, rejected = parse_pilot_ad(read_file(place, name, None, 4096)[0], 1024, 0)
            assert (len(numbers_in(report)), rejected) == (1, ())
    os.close(place)
    assert len(os.listdir(fast_job)) <= 1 + kills


def test_51_killed_while_writing_the_status(fast_job: Path) -> None:
    """51: a dead pilot's $JOBSTATUS is the old report, the new one, or "unfinished": never a mix, never locked."""
    write_jobstatus(str(fast_job), numbered(1))
    os.chown(fast_job / "used_CPU", UID, -1)
    place, verdicts = open_dir(str(fast_job)), []
    for turn in range(40):
        killed_while(lambda number: WRITERS["used_CPU"](str(fast_job), number), 0.0003 * turn)
        try:
            report, rejected = read_jobstatus(place, UID)
        except RefusedFile as refused:
            verdicts.append(refused.reason)
            continue
        assert (len(numbers_in(report)), rejected) == (1, ())
        verdicts.append("whole")
    os.close(place)
    assert set(verdicts) <= {"whole", "unfinished"}
    assert "whole" in verdicts
    write_jobstatus(str(fast_job), numbered(7))


def test_52_two_writers_at_once(fast_job: Path) -> None:
    """52: what is read is one of the two orders, whole, while two hooks write different ones."""
    orders = {SiteAd(True, DEADLINE), SiteAd(False)}
    pids = []
    for order in orders:
        pid = os.fork()
        if pid == 0:
            try:
                while True:
                    write_site_ad(str(fast_job), order.vacate_desired, order.payload_deadline)
            finally:
                os._exit(1)
        pids.append(pid)
    seen: set[SiteAd | None] = set()
    try:
        deadline = time.monotonic() + 20
        count = 0
        while (len(seen) < 2 or count < 300) and time.monotonic() < deadline:
            order_read, reason = read_site_ad(str(fast_job))
            if reason not in {"absent", "torn"}:
                assert order_read in orders
                seen.add(order_read)
                count += 1
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    assert seen == orders


@pytest.mark.parametrize(
    "how, reason",
    [("hard link", "hard link"), ("symlink", "Too many levels of symbolic links"), ("fifo", "not a regular file")],
)
def test_a_pilot_overwrites_nothing_but_its_status(job: Path, how: str, reason: str) -> None:
    """1, 4, 5, from the other side: a payload that links a key to another file gains no write into that one."""
    other = job / "precious"
    other.write_bytes(b"kept\n")
    if how == "hard link":
        os.link(other, job / "priority_factor")
    elif how == "symlink":
        (job / "priority_factor").symlink_to(other)
    else:
        os.mkfifo(job / "priority_factor")
    with pytest.raises(FeatureError, match=rf"^used_CPU: not written \({reason}\)"):
        write_jobstatus(str(job), numbered(1))
    assert other.read_bytes() == b"kept\n"


def test_a_status_lock_held_for_ever_does_not_hold_the_pilot(job: Path) -> None:
    """18, from the other side: a pilot whose lock somebody holds gets an error within its timeout."""
    write_jobstatus(str(job), numbered(1))
    row = next(row for row in ATTRIBUTES if row.field == "used_cpu")
    holder = os.open(job / row.status_name, os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_SH)
    with pytest.raises(FeatureError, match=r"^used_CPU: not written \(locked\)$"):
        write_jobstatus(str(job), numbered(2), timeout=0.05)
    os.close(holder)
    write_jobstatus(str(job), numbered(2))
