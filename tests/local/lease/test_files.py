"""What lies on disk of a lease is believed only as far as the kernel bears it out."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drainwise.local.lease.files import LeaseOutcome, find_lease, outcome_of, remove_lease
from drainwise.processes.process import Process, birth_of
from made_up_node import public_directory

LOCKS = """
import fcntl, sys
record = open(sys.argv[1], "w")
getattr(fcntl, sys.argv[2])(record, fcntl.LOCK_EX)
print("locked", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A lease of which only the records are left."""
    (tmp_path / "lease").mkdir()
    (tmp_path / "lease" / "keeper").write_text('{"pid": 1, "birth": 1, "job": 2}\n')
    return tmp_path


@pytest.fixture
def holder(directory: Path, request: pytest.FixtureRequest) -> Iterator[Process]:
    """A process that locks the lease supervisor's record in the way that the parameter names."""
    record = str(directory / "lease" / "keeper")
    program = [sys.executable, "-I", "-S", "-c", LOCKS, record, request.param, str(directory)]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"locked\n"
        birth = birth_of(process.pid)
        assert birth is not None
        yield Process(process.pid, birth)


def outcome(directory: Path, content: str | bytes) -> LeaseOutcome | None:
    data = content.encode() if isinstance(content, str) else content
    (directory / "lease" / "outcome.json").write_bytes(data)
    return outcome_of(str(directory))


@pytest.mark.parametrize("holder", ["lockf"], indirect=True)
def test_the_supervisor_is_who_holds_the_lock(directory: Path, holder: Process) -> None:
    """The kernel says it, whatever the record says and whichever process wrote it."""
    assert find_lease(str(directory)) == holder
    assert find_lease(f"{directory}/") == holder


@pytest.mark.parametrize("holder", ["lockf"], indirect=True)
def test_a_lock_in_one_place_makes_no_supervisor_of_another(directory: Path, holder: Process, tmp_path: Path) -> None:
    """Who holds a lock must have been started for this very directory."""
    other = tmp_path / "other"
    (other / "lease").mkdir(parents=True)
    os.link(directory / "lease" / "keeper", other / "lease" / "keeper")
    assert find_lease(str(other)) is None


@pytest.mark.parametrize("holder", ["flock"], indirect=True)
def test_a_lock_of_another_kind_makes_nobody_a_supervisor(directory: Path, holder: Process) -> None:
    assert find_lease(str(directory)) is None


def test_a_record_that_names_a_living_process_does_not_make_it_a_supervisor(directory: Path) -> None:
    """Attack 48: a forged or left-over record with the pid of a stranger, and even with its birth."""
    me = os.getpid()
    record = {"pid": me, "birth": birth_of(me), "job": me}
    (directory / "lease" / "keeper").write_text(json.dumps(record))
    assert find_lease(str(directory)) is None


def test_a_record_that_is_no_file_is_nobodys(directory: Path) -> None:
    """Attacks 1, 5 and 8: a link, a FIFO, a directory; nothing waits, nothing is followed."""
    record = directory / "lease" / "keeper"
    record.unlink()
    assert find_lease(str(directory)) is None
    other = directory / "other"
    other.touch()
    with other.open("w") as locked:
        fcntl.lockf(locked, fcntl.LOCK_EX)
        record.symlink_to(other)
        assert find_lease(str(directory)) is None
    record.unlink()
    os.mkfifo(record)
    assert find_lease(str(directory)) is None
    record.unlink()
    record.mkdir()
    assert find_lease(str(directory)) is None


@pytest.mark.parametrize("holder", ["lockf"], indirect=True)
def test_an_outcome_is_not_believed_while_the_supervisor_lives(directory: Path, holder: Process) -> None:
    """The job can write one for itself; its cores are not free for all that."""
    content = '{"code": 0, "signal": null, "ended": 1.0}'
    assert outcome(directory, content) is None
    (directory / "lease" / "keeper").unlink()
    assert (
        outcome_of(str(directory), holder) is None
    )  # nor when it removes the record, for whoever knows the supervisor
    assert outcome_of(str(directory), Process(holder.pid, holder.birth - 1)) == LeaseOutcome(0, None, 1.0)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('{"code": 3, "signal": null, "ended": 1795249000.5}', LeaseOutcome(3, None, 1795249000.5)),
        ('{"code": null, "signal": 9, "ended": 1795249000}\n', LeaseOutcome(None, 9, 1795249000.0)),
        ('{"code": 0, "signal": null, "ended": 7, "cpu": 12.25}', LeaseOutcome(0, None, 7.0, 12.25)),
        ('{"code": 0, "signal": null, "ended": 7, "cpu": -1}', LeaseOutcome(0, None, 7.0)),
        ('{"code": 0, "signal": null, "ended": 7, "cpu": 1e999}', LeaseOutcome(0, None, 7.0)),
        ('{"code": 0, "signal": null, "ended": 7, "cpu": NaN}', LeaseOutcome(0, None, 7.0)),
        ('{"code": 0, "signal": null, "ended": 7, "cpu": "much"}', LeaseOutcome(0, None, 7.0)),
    ],
)
def test_an_outcome_is_a_code_or_a_signal(directory: Path, content: str, expected: LeaseOutcome) -> None:
    assert outcome(directory, content) == expected


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{}",
        "[]",
        "null",
        "\0" * 100,
        '{"code": 0, "signal": null}',
        '{"code": 0, "signal": null, "ended": null}',
        '{"code": 0, "signal": null, "ended": NaN}',
        '{"code": 0, "signal": null, "ended": 1e999}',
        '{"code": 0, "signal": 9, "ended": 1}',
        '{"code": null, "signal": null, "ended": 1}',
        '{"code": "0", "signal": null, "ended": 1}',
        '{"code": true, "signal": null, "ended": 1}',
        '{"code": 256, "signal": null, "ended": 1}',
        '{"code": -1, "signal": null, "ended": 1}',
        '{"code": 0, "signal": null, "ended": ' + "9" * 5000 + "}",
        "[" * 3000,
        b"\xff\xfe",
    ],
)
def test_what_no_supervisor_writes_is_no_outcome(directory: Path, content: str | bytes) -> None:
    """Attacks 23, 24, 34 and 36; an outcome that is no outcome is as good as none."""
    assert outcome(directory, content) is None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=300))
def test_no_content_makes_the_reader_fail(directory: Path, content: bytes) -> None:
    assert outcome(directory, content) is None


def test_an_outcome_that_is_no_small_file_is_none(directory: Path) -> None:
    """Attacks 1, 5, 8 and 19."""
    place = directory / "lease" / "outcome.json"
    assert outcome_of(str(directory)) is None
    os.mkfifo(place)
    assert outcome_of(str(directory)) is None
    place.unlink()
    place.mkdir()
    assert outcome_of(str(directory)) is None
    place.rmdir()
    with place.open("wb") as huge:
        huge.truncate(1 << 40)
    assert outcome_of(str(directory)) is None
    assert outcome_of(str(directory / "nothing")) is None


def test_what_a_job_closed_is_removed_with_its_lease() -> None:
    """A directory of mode 000 does not stay behind, and nothing that a link leads to is touched."""
    with public_directory() as base:
        directory, outside = Path(base, "lease"), Path(base, "outside")
        outside.mkdir(mode=0o500)
        closed = directory / "work" / "closed" / "deep"
        closed.mkdir(parents=True)
        (closed / "file").touch()
        (directory / "work" / "link").symlink_to(outside)
        closed.chmod(0)
        closed.parent.chmod(0)
        pid = os.fork()
        if pid == 0:
            try:
                if os.geteuid() == 0:  # root may look into anything
                    subprocess.run(["chown", "-R", "--no-dereference", "54321:54321", base], check=True)
                    os.setresuid(54321, 54321, 54321)
                remove_lease(str(directory))
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        assert not directory.exists()
        assert outside.stat().st_mode & 0o777 == 0o500


def test_however_deep_a_job_nested_its_directories_they_are_removed(directory: Path) -> None:
    """Deeper than any path, and than Python calls itself: the daemon, which does this, would never run again."""
    place = os.open(directory, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=place)
        below = os.open("d", os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = below
    os.close(place)
    remove_lease(f"{directory}/")
    assert not directory.exists()
