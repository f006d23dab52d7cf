"""What goes wrong around the reference pilot costs a clear log line each, and no payload."""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pilot_process import PilotProcess, put, write
from real_daemons.waiting import wait_for

LONG = ["sleep", "50"]


def running(pilot: PilotProcess, cores: int) -> Callable[[], bool]:
    """That `.pilot.ad` says so many of four cores are in use."""
    return lambda: pilot.ad().get("USED_FRACTION1k") == str(cores * 256)


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        (["sh", "-c", "exit 3"], 3, "it ended with 3"),
        (["sh", "-c", "kill -SEGV $$"], -11, "it ended by signal 11"),
        (["/no/such/program"], 127, "it ended with 127"),
        (["/"], 126, "it ended with 126"),
    ],
)
def test_a_payload_that_dies(tmp_path: Path, command: list[str], code: int, words: str) -> None:
    """One line that says how it ended, its file in failed/, and the next payload runs."""
    with PilotProcess(str(tmp_path), cores=1) as pilot:
        put(pilot.queue, "a", command, 5)
        put(pilot.queue, "b", ["true"], 5)
        pilot.end()
        assert pilot.code == 0 and pilot.payloads("failed") == {"a"} and pilot.payloads("done") == {"b"}
        assert [each["code"] for each in pilot.records("failed")] == [code]
        assert len(pilot.said("payload a failed")) == len(pilot.said(words)) == len(pilot.lines) == 1
        if code > 3:
            assert command[0] in (tmp_path / "start/payloads/a/stderr").read_text()


def test_a_full_disk(tmp_path: Path) -> None:
    """HOSTILE 27: nothing can be written: one line per file, the payloads run on, and a line when it is over."""
    with PilotProcess(str(tmp_path)) as pilot:
        put(pilot.queue, "a", ["sleep", "0.8"], 5)
        put(pilot.queue, "b", ["sleep", "1.6"], 5)
        put(pilot.queue, "c", ["sleep", "2.4"], 5)
        put(pilot.queue, "d", ["sleep", "3.2"], 5)
        wait_for(running(pilot, 4), what="all run")
        # No file may grow: as on a full disk, and that needs no root. The payloads have theirs already.
        before = resource.prlimit(pilot.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        wait_for(lambda: pilot.payloads("done") == {"a", "b", "c"}, what="three ended nevertheless")
        resource.prlimit(pilot.pid, resource.RLIMIT_FSIZE, before)
        pilot.end()
        assert pilot.code == 0 and pilot.payloads("done") == {"a", "b", "c", "d"}
        faults = [line for line in pilot.lines if "File too large" in line or "EFBIG" in line]
        assert len([line for line in faults if ".pilot.ad" in line]) == 1
        assert len([line for line in faults if "records.jsonl" in line]) == 1
        assert len(pilot.lines) <= 6, pilot.lines
        assert running(pilot, 0)() and pilot.status()["used_CPU"] == "0"
        assert len(pilot.said("again")) >= 2


@pytest.mark.parametrize("place", ["unwritable", "gone"])
def test_an_unwritable_startup_directory(tmp_path: Path, place: str) -> None:
    """No report and no payload can be there: a line each, the payload goes back, and the pilot leaves in order."""
    directory = str(tmp_path / "gone") if place == "gone" else "/proc/sys"
    os.makedirs(tmp_path / "gone", exist_ok=True)
    with PilotProcess(str(tmp_path), directory=directory, idle_limit=1) as pilot:
        wait_for(lambda: pilot.status().get("used_CPU") == "0", what="the first report")
        if place == "gone":
            os.unlink(f"{directory}/.pilot.ad")
            os.rmdir(directory)
        put(pilot.queue, "a", ["true"], 5)
        line = pilot.end()
        assert pilot.code == 0 and "0 payloads done" in line
        assert pilot.payloads() == {"a"} and not pilot.claimed()
        assert len(pilot.said("payload a cannot be started now")) == 1
        assert len(pilot.said("report to .pilot.ad: not written")) == 1
        assert len(pilot.said("pilot-report.json")) == 1
        assert len(pilot.lines) == 3, pilot.lines


def garbage(path: str, kind: str) -> None:
    """Put something into the place of `.site.ad` that is none."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    if kind == "10 MB":
        write(path, "VACATE_DESIRED = True\n" + "#" * 10_000_000)
    elif kind == "FIFO":
        os.mkfifo(path)
    elif kind == "directory":
        os.mkdir(path)
    elif kind == "symbolic link":
        os.symlink("/etc/passwd", path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path)
    elif kind == "empty":
        write(path, "")
    elif kind == "mode 000":
        os.close(os.open(path, os.O_CREAT, 0))
    else:
        Path(path).write_bytes(bytes(range(256)) * 8)


@pytest.mark.parametrize(
    "kind", ["bytes", "10 MB", "FIFO", "directory", "symbolic link", "socket", "empty", "mode 000"]
)
def test_a_garbage_site_ad_is_no_order(tmp_path: Path, kind: str) -> None:
    """HOSTILE 1, 5, 6, 8, 10, 19, 23: one line, the pilot goes on, and obeys a sound one that comes later."""
    pilot = PilotProcess(str(tmp_path), poll=0.05)
    garbage(f"{pilot.start}/.site.ad", kind)
    put(pilot.queue, "a", ["sleep", "2.5"], 5)  # before it starts: it ends when it finds nothing
    with pilot:
        wait_for(lambda: pilot.said(".site.ad: not used"), what="the line")
        wait_for(running(pilot, 1), what="it runs")
        assert pilot.ad()["CAN_POSTPONE_LAST_JOB"] == "True"
        if kind == "directory":
            os.rmdir(f"{pilot.start}/.site.ad")
        write(f"{pilot.start}/.site.ad", f"VACATE_DESIRED = True\nPAYLOAD_DEADLINE = {time.time() + 10:.0f}\n")
        wait_for(lambda: pilot.ad()["CAN_POSTPONE_LAST_JOB"] == "False", what="draining")
        pilot.end()
        assert pilot.code == 0 and pilot.payloads("done") == {"a"}
        assert len(pilot.said(".site.ad: not used")) == 1 and len(pilot.said(".site.ad: all right again")) == 1
        assert max(map(len, pilot.lines)) <= 200


def test_garbage_does_not_take_an_order_back(tmp_path: Path) -> None:
    """HOSTILE 49: an order that was read stands until a sound word or no word at all takes it back."""
    with PilotProcess(str(tmp_path)) as pilot:
        put(pilot.queue, "a", ["sleep", "1"], 5)
        wait_for(running(pilot, 1), what="it runs")
        write(f"{pilot.start}/.site.ad", "VACATE_DESIRED = True\n")
        wait_for(lambda: pilot.ad()["CAN_POSTPONE_LAST_JOB"] == "False", what="draining")
        garbage(f"{pilot.start}/.site.ad", "bytes")
        put(pilot.queue, "b", ["true"], 5)
        pilot.end()
        assert pilot.payloads() == {"b"} and not pilot.said("no longer")


def test_garbage_in_the_shutdown_files(tmp_path: Path) -> None:
    """An empty, negative or foreign shutdowntime is one line and no order."""
    with PilotProcess(str(tmp_path)) as pilot:
        write(f"{pilot.job_features}/shutdowntime_job", "-5\n")
        write(f"{pilot.machine_features}/shutdowntime", "")
        put(pilot.queue, "a", ["sleep", "0.6"], 5)
        pilot.end()
        assert pilot.code == 0 and pilot.payloads("done") == {"a"}
        assert len(pilot.said("shutdowntime_job: not used")) == len(pilot.said("shutdowntime: not used")) == 1
        assert len(pilot.lines) == 2


def test_the_lock_held_for_ever(tmp_path: Path) -> None:
    """HOSTILE 18: somebody holds the lock on used_CPU: every event is in `.pilot.ad` within 2 s; one line says it."""
    with PilotProcess(str(tmp_path), idle_limit=1) as pilot:
        with open(f"{pilot.jobstatus}/used_CPU", "w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            fcntl.lockf(held, fcntl.LOCK_EX)
            for number in range(1, 5):
                put(pilot.queue, f"p{number}", LONG, 55)
                wait_for(running(pilot, number), what=f"payload {number} is told", seconds=2)
            write(f"{pilot.start}/.site.ad", f"VACATE_DESIRED = True\nPAYLOAD_DEADLINE = {time.time() + 4:.0f}\n")
            wait_for(lambda: pilot.ad()["CAN_POSTPONE_LAST_JOB"] == "False", what="the order is told", seconds=2)
            pilot.end()
            assert held.tell() == 0 and os.stat(held.fileno()).st_size == 0
        assert pilot.code == 0 and len(pilot.payloads()) == 4
        assert len(pilot.said("JOBSTATUS")) == 1


def test_files_that_are_no_payloads(tmp_path: Path) -> None:
    """Each is refused with a line, a record and its reason, in a folder of its own; the others run."""
    with PilotProcess(str(tmp_path), idle_limit=6) as pilot:
        write(f"{pilot.queue}/bad.json", "{}")
        os.mkfifo(f"{pilot.queue}/fifo.json")
        os.symlink("/etc/passwd", f"{pilot.queue}/link.json")
        put(pilot.queue, "big", ["true"], 1, cores=64)
        put(pilot.queue, "good", ["true"], 1)
        pilot.end()
        assert pilot.payloads("done") == {"good"} and pilot.payloads() == {"big"}
        assert pilot.payloads("refused") == {"bad", "fifo", "link"}
        assert len(pilot.records("refused")) == 3 and len(pilot.said("refused:")) == 3
        assert len(pilot.said("payload big is left to others: needs 64 cores")) == 1


def test_a_queue_that_vanishes(tmp_path: Path) -> None:
    """The queue's directory is renamed away under the pilot: a line, what runs ends, and the pilot leaves."""
    with PilotProcess(str(tmp_path), idle_limit=0.5) as pilot:
        put(pilot.queue, "a", ["sleep", "0.6"], 5)
        wait_for(running(pilot, 1), what="it runs")
        os.rename(pilot.queue, f"{pilot.queue}.away")
        pilot.end()
        assert pilot.code == 0 and len(pilot.said("queue:")) >= 1
        assert len(pilot.lines) <= 4, pilot.lines


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cores": 0}, "cores = 0"),
        ({"seconds": -1}, "seconds"),
        ({"poll": 0}, "poll"),
        ({"queue": "/no/such/queue"}, "/no/such/queue"),
        ({"directory": "/no/such/place"}, "/no/such/place"),
    ],
)
def test_wrong_usage_is_told_before_anything_runs(tmp_path: Path, options: dict[str, object], words: str) -> None:
    """Exit code 2 and one line that names what was wrong; for an option's value the usage stands before it."""
    with PilotProcess(str(tmp_path), **options) as pilot:  # type: ignore[arg-type]
        put(str(tmp_path / "queue"), "a", ["true"], 5)
        pilot.end()
        assert pilot.code == 2 and pilot.payloads() == {"a"}
        said = [line for line in pilot.lines if line.startswith("drainwise")]
        assert len(said) == 1 and said == pilot.lines[-1:] and words in said[0]
