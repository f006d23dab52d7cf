"""`$JOBSTATUS`, read and written."""

from __future__ import annotations

import fcntl
import os
import posix
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.errors import DrainwiseError, FeatureError, RefusedFile
from drainwise.pilotad import jobstatus, safe_open
from drainwise.pilotad.attributes import ATTRIBUTES
from drainwise.pilotad.jobstatus import read_jobstatus, write_jobstatus
from drainwise.pilotad.report import PilotReport
from drainwise.pilotad.safe_open import Patience, open_dir
from worked_example import numbered as worked_example_numbered
from worked_example import worked_example

UID = os.geteuid()
FULL = worked_example(
    used_cpu=6.5,
    priority_factor=-3,
    can_postpone_last_job=False,
    exp_waste_curve="1795250800:5400:60000,1795252600:7200:41000",
    returned_cores=1,
    returned_memory=2048,
    returned_since=1_795_248_000,
    last_checkpoint=1_795_247_900,
    next_checkpoint=1_795_251_500,
    checkpoint_seconds=60,
    restart_cost=480,
    source="$JOBSTATUS",
)
numbered = partial(worked_example_numbered, source="$JOBSTATUS")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[int]:
    """A descriptor of an empty directory of ours."""
    fd = open_dir(str(tmp_path))
    yield fd
    os.close(fd)


def with_heartbeat(report: PilotReport, heartbeat: int) -> PilotReport:
    """The report as it would have been written then."""
    fields = {row.field: getattr(report, row.field) for row in ATTRIBUTES}
    return PilotReport.from_values(heartbeat, report.source, fields)


def test_what_is_written_is_read(place: int, tmp_path: Path) -> None:
    """All, absolute: no scaling by cores; nothing else is left in the directory."""
    write_jobstatus(place, FULL)
    assert sorted(os.listdir(tmp_path)) == sorted(row.status_name for row in ATTRIBUTES)
    assert (tmp_path / "used_CPU").read_bytes() == b"6.5\n"
    assert (tmp_path / "add_uncom_time").read_bytes() == b"28800\n"
    assert (tmp_path / "can_postpone_last_job").read_bytes() == b"False\n"
    report, rejected = read_jobstatus(place, UID)
    assert (with_heartbeat(report, 0), rejected) == (FULL, ())


def test_the_heartbeat_is_the_newest_of_the_nine(place: int, tmp_path: Path) -> None:
    """A pilot may update only what changed."""
    write_jobstatus(place, FULL)
    for row in ATTRIBUTES:
        os.utime(tmp_path / row.status_name, (1_795_000_000, 1_795_000_000))
    os.utime(tmp_path / "priority_factor", (1_795_249_000, 1_795_249_000))
    assert read_jobstatus(place, UID)[0].heartbeat == 1_795_249_000


def test_the_site_can_read_it_whatever_the_umask_of_the_pilot(place: int, tmp_path: Path) -> None:
    """The draft: all files must be readable by the user and by the resource provider."""
    before = os.umask(0o077)
    try:
        write_jobstatus(place, FULL)
    finally:
        os.umask(before)
    assert {(tmp_path / row.status_name).stat().st_mode & 0o777 for row in ATTRIBUTES} == {0o644}


def test_a_shorter_report_leaves_nothing_of_a_longer_one(place: int, tmp_path: Path) -> None:
    """Files are overwritten in place."""
    write_jobstatus(place, PilotReport(0, used_cpu=123.456789, priority_factor=-123456789, can_postpone_last_job=False))
    write_jobstatus(place, PilotReport(0, used_cpu=1.0, priority_factor=2, can_postpone_last_job=True))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "used_CPU": b"1\n",
        "priority_factor": b"2\n",
        "can_postpone_last_job": b"True\n",
    }


def test_unknown_values_have_no_file(tmp_path: Path) -> None:
    """What a second report does not know, the first one does not say for it."""
    write_jobstatus(str(tmp_path), FULL)
    write_jobstatus(str(tmp_path), PilotReport(0, used_cpu=0.0))
    assert os.listdir(tmp_path) == ["used_CPU"]
    assert (tmp_path / "used_CPU").read_bytes() == b"0\n"


def test_an_empty_directory_says_nothing(place: int) -> None:
    """The draft: it is initially empty."""
    with pytest.raises(RefusedFile, match=r"^absent$"):
        read_jobstatus(place, UID)


@pytest.mark.parametrize("content", [b"", b"\n", b"\n" * 64])
def test_an_empty_seal_means_an_unfinished_report(place: int, tmp_path: Path, content: bytes) -> None:
    """51: the writer died between old and new; nothing of either is taken."""
    write_jobstatus(place, FULL)
    (tmp_path / "used_CPU").write_bytes(content)
    with pytest.raises(RefusedFile, match=r"^unfinished$"):
        read_jobstatus(place, UID)


@pytest.mark.parametrize("content", [b"six\n", b"1e3\n", b" " * 64 + b"5", b"5\n5\n", b""])
def test_an_unsound_file_makes_its_value_unknown(place: int, tmp_path: Path, content: bytes) -> None:
    """Its name is told, the other eight stand."""
    write_jobstatus(place, FULL)
    (tmp_path / "add_uncom_time").write_bytes(content)
    report, rejected = read_jobstatus(place, UID)
    assert rejected == ("add_uncom_time",)
    assert (report.add_uncom_time, report.used_cpu, report.priority_factor) == (None, 6.5, -3)


def test_a_file_of_more_than_its_bytes_is_refused(place: int, tmp_path: Path) -> None:
    """64 for each; the curve has more."""
    write_jobstatus(place, FULL)
    (tmp_path / "used_CPU").write_bytes(b" " * 63 + b"5")
    assert read_jobstatus(place, UID)[0].used_cpu == 5
    (tmp_path / "used_CPU").write_bytes(b" " * 64 + b"5")
    with pytest.raises(RefusedFile, match="too large"):
        read_jobstatus(place, UID)


def test_a_report_without_cores_in_use_cannot_be_written(tmp_path: Path) -> None:
    """Without used_CPU a reader could compute nothing; the error says what to state."""
    with pytest.raises(FeatureError, match=r"used_CPU: not written .*state how many cores"):
        write_jobstatus(str(tmp_path), PilotReport(0))
    assert os.listdir(tmp_path) == []


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    """One line, naming it."""
    with pytest.raises(FeatureError, match="none': absent; expected the job's directory"):
        write_jobstatus(str(tmp_path / "none"), FULL)


def free_to_write(seal: Path) -> bool:
    """Whether another process could take the writer's fcntl lock now."""
    pid = os.fork()
    if pid == 0:
        try:
            fcntl.lockf(os.open(seal, os.O_RDWR), fcntl.LOCK_EX | fcntl.LOCK_NB)
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(pid, 0)[1] == 0


def test_the_lock_is_held_until_all_nine_are_read(place: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """18: an fcntl lock is lost when *any* descriptor of the file is closed; none is, before the last file was read."""
    write_jobstatus(place, FULL)
    free = []

    def observed(dir_fd: int, name: str, uid: int | None, limit: int, patience: Patience) -> tuple[bytes, int]:
        found = safe_open.read_file(dir_fd, name, uid, limit, patience)
        free.append(free_to_write(tmp_path / "used_CPU"))
        return found

    monkeypatch.setattr(jobstatus, "read_file", observed)
    read_jobstatus(place, UID)
    assert free == [False] * (len(ATTRIBUTES) - 1)
    assert free_to_write(tmp_path / "used_CPU")


@pytest.mark.parametrize("act", [lambda place: read_jobstatus(place, UID), lambda place: write_jobstatus(place, FULL)])
def test_a_lock_on_a_file_that_was_replaced_is_no_lock(
    place: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: Callable[[int], object]
) -> None:
    """17: who locked the old used_CPU must not go on when another one has taken its place."""
    write_jobstatus(place, FULL)
    locked = jobstatus.lock

    def late(fd: int, exclusive: bool, timeout: float, patience: Patience | None = None) -> None:
        os.rename(tmp_path / "used_CPU", tmp_path / "old")
        (tmp_path / "used_CPU").write_bytes(b"1\n")
        locked(fd, exclusive, timeout, patience)

    monkeypatch.setattr(jobstatus, "lock", late)
    with pytest.raises(DrainwiseError, match=r"torn|replaced while it was being locked"):
        act(place)
    assert (tmp_path / "used_CPU").read_bytes() == b"1\n"


def test_a_locked_reader_never_sees_a_mix(place: int, tmp_path: Path) -> None:
    """17: while another process writes on and on, all values are always of one report."""
    pid = os.fork()
    if pid == 0:
        try:
            number = 0
            while True:
                number = (number + 1) % 100
                write_jobstatus(str(tmp_path), numbered(number))
                time.sleep(0.0005)
        finally:
            os._exit(1)
    seen: list[int] = []
    refusals = {"locked", "absent", "torn", "unfinished"}
    try:
        deadline = time.monotonic() + 20
        while (len(seen) < 300 or len(set(seen)) < 20) and time.monotonic() < deadline:
            time.sleep(0.0005)  # or the shared locks of a reader that never rests keep the writer out
            try:
                report = read_jobstatus(place, UID)[0]
            except RefusedFile as refused:
                if refused.reason not in refusals:
                    raise
                continue
            assert report.priority_factor is not None
            assert with_heartbeat(report, 0) == numbered(report.priority_factor)
            seen.append(report.priority_factor)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert len(seen) >= 300
    assert len(set(seen)) >= 20


def test_what_is_no_plain_file_of_the_pilots_own_is_not_written(place: int, tmp_path: Path) -> None:
    """Nor does anything stay open; what it leads to is as it was."""
    write_jobstatus(place, FULL)
    other, name = tmp_path / "other", tmp_path / "priority_factor"
    name.rename(other)
    name.hardlink_to(other)
    opened = len(os.listdir("/proc/self/fd"))
    with pytest.raises(FeatureError, match=r"not written \(hard link\)"):
        write_jobstatus(place, PilotReport(0, used_cpu=1.0, priority_factor=7))
    assert len(os.listdir("/proc/self/fd")) <= opened
    assert other.read_bytes() == b"-3\n"


def test_a_value_that_is_cut_is_no_report(place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk was full after a part of it."""
    monkeypatch.setattr(posix, "pwrite", lambda fd, data, at: os.pwrite(fd, data, at) - 1)
    with pytest.raises(FeatureError, match="No space left"):
        write_jobstatus(place, FULL)
    with pytest.raises(RefusedFile, match="unfinished"):
        read_jobstatus(place, UID)


class Stopped(BaseException):
    """A writer's end at one of its steps."""


class Steps:
    """The system as a writer sees it, which ends at one of its steps that change something; `before` each of these."""

    def __init__(self, last: int, before: Callable[[str], None] = lambda _: None) -> None:
        self.left, self.before = last, before

    def __getattr__(self, name: str) -> object:
        real = getattr(posix, name)
        return partial(self.step, real) if name in {"write", "pwrite", "ftruncate", "unlink"} else real

    def step(self, real: Callable[..., object], *arguments: object, **named: object) -> object:
        self.before(real.__name__)
        self.left -= 1
        if self.left < 0:
            raise Stopped
        return real(*arguments, **named)


def test_a_writer_that_ends_at_any_step_leaves_the_old_report_or_the_new_one_or_none(
    place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """51: never a mix of both, whichever values are known."""
    old = PilotReport(0, used_cpu=6.5, priority_factor=-3, can_postpone_last_job=True, source="$JOBSTATUS")
    new = PilotReport(0, used_cpu=3.0, priority_factor=4, checkpoint_seconds=9, source="$JOBSTATUS")
    for first, second in ((old, new), (new, old)):
        found = []
        for last in range(60):
            monkeypatch.setattr(jobstatus, "posix", posix)
            write_jobstatus(place, first)
            monkeypatch.setattr(jobstatus, "posix", Steps(last))
            try:
                write_jobstatus(place, second)
            except Stopped:
                found.append(_read_or_why(place))
            else:
                break
        assert set(found) <= {first, second, "unfinished"} and found[0] == first and "unfinished" in found
        assert _read_or_why(place) == second


def _read_or_why(place: int) -> PilotReport | str:
    try:
        return with_heartbeat(read_jobstatus(place, UID)[0], 0)
    except RefusedFile as refused:
        return refused.reason


def test_all_files_have_their_space_before_anything_is_changed(
    place: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk costs nothing of the report before."""
    sizes: list[dict[str, int]] = []

    def before(step: str) -> None:
        if step == "pwrite":
            sizes.append({path.name: path.stat().st_size for path in tmp_path.iterdir() if path.name != "used_CPU"})

    monkeypatch.setattr(jobstatus, "posix", Steps(100, before))
    write_jobstatus(place, FULL)
    assert set(sizes[0].values()) == {1} and len(sizes[0]) == len(ATTRIBUTES) - 1


times = st.none() | st.integers(946684800, 4102444800)
sums = st.none() | st.integers(0, 10**15).map(float)


@given(
    used=st.integers(0, 512 * 1024).map(lambda scaled: scaled / 1024),
    dates=st.tuples(times, times, times, times),
    amounts=st.tuples(sums, sums),
    priority=st.none() | st.integers(-(2**31), 2**31 - 1),
    flag=st.none() | st.booleans(),
)
def test_there_and_back(
    tmp_path_factory: pytest.TempPathFactory,
    used: float,
    dates: tuple[int | None, int | None, int | None, int | None],
    amounts: tuple[float | None, float | None],
    priority: int | None,
    flag: bool | None,
) -> None:
    """Any report comes back: sums to the core-second, cores to a millionth, unknown as unknown."""
    directory = tmp_path_factory.getbasetemp() / "there-and-back"
    directory.mkdir(exist_ok=True)
    report = PilotReport(
        0,
        used_cpu=used,
        last_job_start=dates[0],
        first_exp_job_end=dates[1],
        last_exp_job_end=dates[2],
        last_max_job_end=dates[3],
        add_uncom_time=amounts[0],
        add_final_exp_waste=amounts[1],
        priority_factor=priority,
        can_postpone_last_job=flag,
        source="$JOBSTATUS",
    )
    write_jobstatus(str(directory), report)
    place = open_dir(str(directory))
    try:
        read, rejected = read_jobstatus(place, UID)
    finally:
        os.close(place)
    assert rejected == ()
    assert read.used_cpu == pytest.approx(used, abs=1e-6)
    for row in ATTRIBUTES:
        if row.field != "used_cpu":
            assert getattr(read, row.field) == getattr(report, row.field)
