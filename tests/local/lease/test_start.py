"""A lease that cannot be is refused before anything is made; a job finds its features whole and right."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from drainwise.facts.errors import PoolError, UsageError
from drainwise.features.check import ERROR, WARNING, check
from drainwise.features.facts import HostFacts
from drainwise.features.read import open_features
from drainwise.local.lease.files import find_lease, kill, outcome_of, terminate, work_directory
from drainwise.local.lease.start import LeaseRequest, start_lease
from drainwise.local.pilot_files import report_of
from drainwise.pilotad.site_ad import read_site_ad
from drainwise.processes.process import Process, birth_of

HOST = HostFacts(total_cpu=64, jobslots=64, phys_cores=32, log_cores=64, hs06=640.5, grace_secs=60)
SHELL = ("/bin/sh", "-c")


def request(*command: str, **environment: str) -> LeaseRequest:
    return LeaseRequest("7.0", 8, command, 3600, environment)


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[str]:
    """Where a lease will be; whatever runs in it is ended afterwards."""
    place = str(tmp_path / "lease-1")
    yield place
    supervisor = find_lease(place)
    if supervisor is not None:
        assert kill(supervisor, place)


@pytest.mark.parametrize(
    ("command", "environment", "kill_wait", "named"),
    [
        ((), {}, 1.0, "command"),
        (("",), {}, 1.0, "command"),
        (("run", "a\0b"), {}, 1.0, "NUL"),
        (("run",), {"A\0": "b"}, 1.0, "NUL"),
        (("run",), {"": "b"}, 1.0, "without '='"),
        (("run",), {}, -1.0, "kill_wait"),
        (("run",), {}, float("nan"), "kill_wait"),
        (("run",), {}, float("inf"), "kill_wait"),
    ],
)
def test_a_request_that_cannot_be_leaves_nothing_behind(
    directory: str, command: tuple[str, ...], environment: dict[str, str], kill_wait: float, named: str
) -> None:
    with pytest.raises(UsageError, match=named):
        start_lease(directory, request(*command, **environment), HOST, None, int(time.time()), kill_wait)
    assert not os.path.exists(directory)


def test_a_directory_is_never_used_twice(directory: str) -> None:
    """Attacks 47 and 52: one that stands there already is somebody else's lease, or squatted."""
    os.mkdir(directory)
    with pytest.raises(PoolError, match="File exists"):
        start_lease(directory, request("true"), HOST, None, int(time.time()), 1.0)
    assert os.listdir(directory) == []
    with pytest.raises(PoolError, match="No such file"):
        start_lease(f"{directory}/no/such", request("true"), HOST, None, int(time.time()), 1.0)


def test_a_job_finds_its_features(directory: str) -> None:
    """The directories are complete and right by every rule of the specification, as the job itself sees them."""
    now = int(time.time())
    planned = now + 7200  # behind the lease's end, which is stated then
    start_lease(directory, request(*SHELL, "read word", MACHINEFEATURES="/tmp"), HOST, planned, now, 1.0)
    work = Path(work_directory(directory))
    machine, job = open_features(f"{work}/.machinefeatures"), open_features(f"{work}/.jobfeatures")
    verdicts = check(machine, job, now)
    assert [verdict for verdict in verdicts if verdict.level in {ERROR, WARNING}] == []
    expected = {
        "allocated_cpu": "8",
        "jobstart_secs": str(now),
        "job_id": "7.0",
        "wall_limit_secs": "3600",
        "cpu_limit_secs": str(8 * 3600),
    }
    assert {key: (work / ".jobfeatures" / key).read_text().strip() for key in expected} == expected
    assert (work / ".machinefeatures" / "shutdowntime").read_text() == f"{now + 3600}\n"
    assert (work / ".machinefeatures" / "total_cpu").read_text() == "64\n"
    assert list((work / ".jobstatus").iterdir()) == []


def test_memory_and_swap_are_the_jobs_part_of_the_machines(directory: str) -> None:
    """What all leases are told together is no more than there is; the kernel's own numbers are the measure."""
    asked = replace(request(*SHELL, "exec sleep 1000"), share=24)
    start_lease(directory, asked, HOST, None, int(time.time()), 1.0)
    job = Path(work_directory(directory), ".jobfeatures")
    words = dict(line.split()[:2] for line in Path("/proc/meminfo").read_text().splitlines())
    assert int((job / "max_rss_bytes").read_text()) == int(words["MemTotal:"]) * 1024 * 8 // 24
    assert int((job / "max_swap_bytes").read_text()) == int(words["SwapTotal:"]) * 1024 * 8 // 24


def test_the_directories_are_the_users_alone(directory: str) -> None:
    start_lease(directory, request(*SHELL, "exec sleep 1000"), HOST, None, int(time.time()), 1.0)
    for path in (directory, work_directory(directory), f"{directory}/lease"):
        assert os.stat(path).st_mode & 0o777 == 0o700


def test_a_lease_says_nothing_before_its_pilot_does(directory: str) -> None:
    """No report, no order, no outcome: nothing is made up. Without a work directory that is said."""
    supervisor = start_lease(directory, request(*SHELL, "exec sleep 1000"), HOST, None, int(time.time()), 1.0)
    assert report_of(directory, 8) == (None, ())
    assert read_site_ad(work_directory(directory)) == (None, "absent")
    assert outcome_of(directory, supervisor) is None
    os.rename(work_directory(directory), f"{directory}/elsewhere")
    assert report_of(directory, 8) == (None, ("work: absent",))
    os.symlink(f"{directory}/elsewhere", work_directory(directory))
    assert report_of(directory, 8) == (None, ("work: not a directory",))


def test_a_report_of_the_pilot_is_read(directory: str) -> None:
    start_lease(directory, request(*SHELL, "exec sleep 1000"), HOST, None, int(time.time()), 1.0)
    ad = (
        "LAST_JOB_START = 1795247961\nFIRST_EXP_JOB_END = 1795256000\nLAST_EXP_JOB_END = 1795262000\n"
        "LAST_MAX_JOB_END = 1795290000\nUSED_FRACTION1k = 768\nADD_UNCOM_TIME1k = 3686400\n"
        "ADD_FINAL_EXP_WASTE1k = 7680000\nPRIORITY_FACTOR = 0\nCAN_POSTPONE_LAST_JOB = True\n"
    )
    Path(work_directory(directory), ".pilot.ad").write_text(ad)
    report, reasons = report_of(directory, 8)
    assert reasons == ()
    assert report is not None
    assert (report.used_cpu, report.last_exp_job_end) == (6, 1795262000)


def test_a_stranger_is_not_asked_to_end(directory: str) -> None:
    """Attack 48: a process that is not the lease supervisor of this directory is left alone; so is one long dead."""
    start_lease(directory, request(*SHELL, "exec sleep 1000"), HOST, None, int(time.time()), 1.0)
    me = Process(os.getpid(), birth_of(os.getpid()) or 0)
    assert not terminate(me, directory)
    assert not terminate(Process(2**22 + 1, 1), directory)
    assert kill(me, f"{directory}/nothing")
    assert find_lease(directory) is not None
