"""Both channels say the same; what is wrong with one is said once and stops nothing."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from drainwise.pilot.channels import IMPATIENT, LOCK_TIMEOUT, Channels
from drainwise.pilot.decide.lease import Lease
from drainwise.pilot.decide.workload import report_of, running_since
from drainwise.pilotad.jobstatus import write_jobstatus
from drainwise.pilotad.node_reader import read_report
from drainwise.pilotad.report import PilotReport
from drainwise.pilotad.safe_open import open_dir

from .work import T0, payload, workload_of

CORES = 8
AT_SECONDS = (payload("p", 6, maximum=2000, expected=1000), T0)


def report() -> PilotReport:
    """Of a pilot that runs one payload."""
    return report_of(workload_of(running_since(*AT_SECONDS)), Lease(CORES, T0, T0 + 9000), True, 3, T0 + 10)


def found(place: Path, jobstatus: str | None) -> tuple[PilotReport | None, tuple[str, ...]]:
    """What the node reads there."""
    fd = open_dir(str(place))
    try:
        return read_report(fd, os.geteuid(), CORES, jobstatus)
    finally:
        os.close(fd)


def values(read: PilotReport | None) -> tuple[object, ...]:
    """All but heartbeat and source."""
    assert read is not None
    return tuple(getattr(read, name) for name in PilotReport.__match_args__ if name not in {"heartbeat", "source"})


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A job's directory with a $JOBSTATUS."""
    (tmp_path / "status").mkdir()
    return tmp_path


@pytest.fixture
def lines() -> list[str]:
    """The log."""
    return []


@pytest.fixture
def channels(place: Path, lines: list[str]) -> Channels:
    """Both."""
    return Channels(str(place), str(place / "status"), CORES, lines.append)


def test_both_say_the_same(channels: Channels, place: Path, lines: list[str]) -> None:
    """The node reads from either what the pilot stated, and nothing is logged."""
    assert channels.publish(report())
    read, reasons = found(place, None)
    assert values(read) == values(report()) and reasons == ()
    (place / ".pilot.ad").unlink()
    read, reasons = found(place, "status")
    assert values(read) == values(report()) and reasons == ()
    assert lines == []


@pytest.mark.parametrize("jobstatus", [None, ""])
def test_a_site_without_the_draft(place: Path, lines: list[str], jobstatus: str | None) -> None:
    """No $JOBSTATUS is no fault."""
    assert Channels(str(place), jobstatus, CORES, lines.append).publish(report())
    assert values(found(place, None)[0]) == values(report()) and lines == []


def test_a_fault_is_said_once_and_its_end_too(channels: Channels, place: Path, lines: list[str]) -> None:
    """A $JOBSTATUS that is no directory costs one line however often; `.pilot.ad` is written all the same."""
    (place / "status").rmdir()
    for _ in range(3):
        (place / ".pilot.ad").unlink(missing_ok=True)
        assert not channels.publish(report())
        assert (place / ".pilot.ad").exists()
    assert len(lines) == 1 and "$JOBSTATUS" in lines[0]
    (place / "status").mkdir()
    assert channels.publish(report()) and channels.publish(report())
    assert len(lines) == 2 and "again" in lines[1]


def test_the_other_way_round(channels: Channels, place: Path, lines: list[str]) -> None:
    """Where `.pilot.ad` cannot be put (8: a directory of its name) $JOBSTATUS still speaks."""
    (place / ".pilot.ad" / "full").mkdir(parents=True)
    assert not channels.publish(report()) and not channels.publish(report())
    assert values(found(place, "status")[0]) == values(report())
    assert len(lines) == 1 and ".pilot.ad" in lines[0]


@pytest.mark.parametrize("kind", ["symlink", "fifo", "gone"])
def test_whatever_the_directory_has_become(place: Path, lines: list[str], kind: str) -> None:
    """A startup directory swapped for a link or a FIFO, or removed (1, 5, 16): a line, no exception, no waiting."""
    startup = place / "startup"
    if kind == "symlink":
        startup.symlink_to("/")
    if kind == "fifo":
        os.mkfifo(startup)
    assert not Channels(str(startup), str(place / "status"), CORES, lines.append).publish(report())
    assert len(lines) == 1 and values(found(place, "status")[0]) == values(report())


def test_a_full_disk(channels: Channels, place: Path, lines: list[str]) -> None:
    """No space (27), here as a limit on the size of files: one line for each channel, and the pilot goes on."""
    pid = os.fork()
    if pid == 0:
        import resource
        import signal

        code = 1
        try:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
            written = channels.publish(report()) or channels.publish(report())
            code = 0 if not written and len(lines) == 2 and sorted(os.listdir(place)) == ["status"] else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_lock_that_is_held_for_ever(
    channels: Channels, place: Path, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A payload that never gives the lock back (18) delays one event by the limit and later ones by hardly anything."""
    assert IMPATIENT < LOCK_TIMEOUT <= 2
    monkeypatch.setattr("drainwise.pilot.channels.LOCK_TIMEOUT", 0.2)
    monkeypatch.setattr("drainwise.pilot.channels.IMPATIENT", 0.01)
    timeouts: list[float] = []

    def timed(directory: str, written: PilotReport, timeout: float) -> None:
        timeouts.append(timeout)
        write_jobstatus(directory, written, timeout)

    monkeypatch.setattr("drainwise.pilot.channels.write_jobstatus", timed)
    assert channels.publish(report())
    with open(place / "status" / "used_CPU", "rb") as holder:
        fcntl.flock(holder, fcntl.LOCK_SH)
        for _ in range(4):
            assert not channels.publish(report())
    assert len(lines) == 1 and "locked" in lines[0]
    assert channels.publish(report())
    assert timeouts[1:] == [0.2, 0.01, 0.01, 0.01, 0.01]


def test_faults_by_the_hundred_are_not_said_by_the_hundred(
    lines: list[str], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault that looks different each time cannot fill the log."""
    channels = Channels(str(place), None, CORES, lines.append)
    numbers = iter(range(100))

    def fail_differently(*_: object) -> None:
        raise OSError(str(next(numbers)))

    monkeypatch.setattr("drainwise.pilot.channels.write_pilot_ad", fail_differently)
    for _ in range(100):
        assert not channels.publish(report())
    assert 1 < len(lines) <= 20
