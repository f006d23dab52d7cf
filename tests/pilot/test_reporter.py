"""Three lines report for a pilot: the node reads it, and the pilot learns what the site asks."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import drainwise
from drainwise.facts.errors import UsageError
from drainwise.node import JOB_FEATURES, JOB_STATUS, MACHINE_FEATURES
from drainwise.node.site_notice import SiteNotice, give_notice
from drainwise.pilot import PilotReporter
from drainwise.pilotad.node_reader import read_report
from drainwise.pilotad.partial_return import Acknowledgement, PartialReturn
from drainwise.pilotad.report import FRESH, PilotReport, standing_and_rule
from drainwise.pilotad.safe_open import open_dir

from .work import T0

PACKAGES = Path(drainwise.__file__).parent.parent


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = float(T0)

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    """At T0."""
    return Clock()


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """What a job of 8 cores for a day finds; the three directories lie in the job's own."""
    for name in (MACHINE_FEATURES, JOB_FEATURES, JOB_STATUS):
        (tmp_path / name).mkdir()
    for key, value in (("allocated_cpu", 8), ("jobstart_secs", T0 - 60), ("wall_limit_secs", 86400)):
        (tmp_path / JOB_FEATURES / key).write_text(f"{value}\n")
    return {
        "MACHINEFEATURES": str(tmp_path / MACHINE_FEATURES),
        "JOBFEATURES": str(tmp_path / JOB_FEATURES),
        "JOBSTATUS": str(tmp_path / JOB_STATUS),
    }


@pytest.fixture
def reporter(tmp_path: Path, environment: dict[str, str], clock: Clock) -> PilotReporter:
    """Of a pilot in that job; a log line is a failure."""
    return PilotReporter.from_environment(
        directory=str(tmp_path), environment=environment, clock=clock, log=pytest.fail
    )


def said(place: Path) -> PilotReport:
    """What the node reads, which never is anything but sound."""
    fd = open_dir(str(place))
    try:
        report, reasons = read_report(fd, os.geteuid(), 8, JOB_STATUS)
    finally:
        os.close(fd)
    assert report is not None and reasons == ()
    assert standing_and_rule(report, report.heartbeat, 3600)[0] == FRESH
    return report


def test_every_event_is_said(reporter: PilotReporter, tmp_path: Path, clock: Clock) -> None:
    """From the first moment on: starts, a new estimate, ends."""
    assert said(tmp_path).used_cpu == 0
    reporter.started("a", cores=4, expected=3600, maximum=7200)
    clock.now += 600
    reporter.started("b", cores=2, expected=600)
    found = said(tmp_path)
    assert (found.used_cpu, found.last_job_start, found.add_uncom_time) == (6, T0 + 600, 4 * 600)
    assert (found.first_exp_job_end, found.last_exp_job_end) == (T0 + 1200, T0 + 3600)
    assert found.last_max_job_end == T0 - 60 + 86400  # b stated no maximum: as long as the lease
    reporter.estimate("a", T0 + 5000)
    assert said(tmp_path).last_exp_job_end == T0 + 5000
    reporter.ended("b")
    found = said(tmp_path)
    assert (found.used_cpu, found.last_max_job_end, found.can_postpone_last_job) == (4, T0 + 7200, True)


def test_an_estimate_never_stays_in_the_past(reporter: PilotReporter, tmp_path: Path, clock: Clock) -> None:
    """A heartbeat, or a wrong estimate, says a time that can still come."""
    reporter.started("a", cores=4, expected=60, maximum=7200)
    clock.now += 1000
    reporter.heartbeat()
    assert (said(tmp_path).first_exp_job_end or 0) > clock.now
    reporter.estimate("a", T0)
    assert (said(tmp_path).first_exp_job_end or 0) > clock.now


def test_an_order_is_received_and_answered(reporter: PilotReporter, tmp_path: Path, clock: Clock) -> None:
    """As the node tells it; the report says at once that the pilot drains, and that it does not any more."""
    assert not reporter.orders().draining
    give_notice(str(tmp_path), SiteNotice(T0 + 3000), int(clock.now))
    assert (reporter.orders().leave, reporter.orders().deadline) == (True, T0 + 3000)
    assert said(tmp_path).can_postpone_last_job is False
    give_notice(str(tmp_path), SiteNotice(), int(clock.now))
    assert not reporter.orders().leave
    assert said(tmp_path).can_postpone_last_job is True


def test_sigterm_is_an_order(reporter: PilotReporter, clock: Clock) -> None:
    """A pilot that catches the signal itself says when."""
    found = reporter.orders(terminated=clock.now)
    assert found.leave and found.deadline is not None and found.deadline < T0 + 60


def test_wrong_calls_say_so(reporter: PilotReporter) -> None:
    """A name twice, a name that is not there, numbers that cannot be: UsageError, and the reporter goes on."""
    reporter.started("a", cores=1, expected=5, maximum=9)
    calls: tuple[Callable[[], object], ...] = (
        lambda: reporter.started("a", cores=1, expected=5, maximum=9),
        lambda: reporter.started("b", cores=0, expected=5, maximum=9),
        lambda: reporter.started("b", cores=1, expected=float("nan"), maximum=9),
        lambda: reporter.ended("b"),
        lambda: reporter.estimate("b", T0),
        lambda: reporter.estimate("a", float("inf")),
    )
    for call in calls:
        with pytest.raises(UsageError):
            call()
    reporter.ended("a")


def test_without_features_it_needs_the_cores_alone(tmp_path: Path, clock: Clock) -> None:
    """A site that says nothing: the number of cores is asked for, an end is not."""
    with pytest.raises(UsageError, match="cores"):
        PilotReporter.from_environment(directory=str(tmp_path), environment={}, clock=clock)
    reporter = PilotReporter.from_environment(
        cores=8, directory=str(tmp_path), environment={}, clock=clock, log=pytest.fail
    )
    reporter.started("a", cores=8, expected=50)
    assert said(tmp_path).used_cpu == 8


def test_a_directory_that_cannot_be_written_costs_a_line(tmp_path: Path, clock: Clock) -> None:
    """The payloads matter more than what is said about them."""
    lines: list[str] = []
    reporter = PilotReporter.from_environment(
        cores=8, directory=str(tmp_path / "gone"), environment={}, clock=clock, log=lines.append
    )
    reporter.started("a", cores=8, expected=50)
    reporter.ended("a")
    assert len(lines) == 1


def test_three_lines_in_a_framework_of_its_own(tmp_path: Path, environment: dict[str, str]) -> None:
    """As another pilot imports it, with no site packages; the working directory at that moment is the job's."""
    program = (
        f"import os, sys; sys.path.append({str(PACKAGES)!r})\n"
        "from drainwise.pilot import PilotReporter\n"
        "reporter = PilotReporter.from_environment()\n"
        "os.chdir('/')\n"
        "reporter.started('p1', cores=4, expected=3600, maximum=7200)\n"
    )
    command = [sys.executable, "-B", "-I", "-S", "-c", program]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert ran.stderr == ""
    assert said(tmp_path).used_cpu == 4


def test_the_decisions_alone_load_no_input_and_output() -> None:
    """A simulator that imports the decision gets no channel, no signal, no subprocess with it."""
    program = (
        f"import sys; sys.path.append({str(PACKAGES)!r}); import drainwise.pilot.decide.decision; print(*sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-B", "-I", "-S", "-c", program], capture_output=True, text=True, check=True)
    loaded = set(ran.stdout.split())
    assert "drainwise.pilot.decide.decision" in loaded
    assert not loaded & {"subprocess", "selectors", "drainwise.pilot.channels", "drainwise.pilot.reporter"}


def test_a_pilot_of_ones_own_gives_cores_back(tmp_path: Path, environment: dict[str, str], clock: Clock) -> None:
    """It keeps to `fillable`; it states what is free of what is asked for, and waits for the answer."""
    reporter = PilotReporter.from_environment(
        directory=str(tmp_path), environment=environment, clock=clock, returns=True, return_memory=500
    )
    reporter.started("a", cores=6, expected=600)
    give_notice(str(tmp_path), SiteNotice(part=PartialReturn(4)), T0)
    assert (reporter.orders().leave, reporter.fillable) == (False, 4)

    def stated() -> tuple[int | None, int | None]:
        place = open_dir(str(tmp_path))
        report = read_report(place, os.getuid(), 8, JOB_STATUS)[0]
        os.close(place)
        assert report is not None
        return report.returned_cores, report.returned_memory

    assert stated() == (2, 1000)
    clock.now += 60
    reporter.ended("a")
    assert (stated(), reporter.fillable) == ((4, 2000), 4)
    clock.now += 60
    give_notice(str(tmp_path), SiteNotice(part=PartialReturn(0)), T0)
    reporter.orders()
    assert (stated(), reporter.fillable) == ((0, None), 4)
    give_notice(str(tmp_path), SiteNotice(answer=Acknowledgement(int(clock.now), 8)), T0)
    reporter.orders()
    assert reporter.fillable == 8


def test_a_payload_that_saved_its_work_says_so(tmp_path: Path, clock: Clock) -> None:
    """Its report has when, and the order asks for one more; what cannot be is refused."""
    reporter = PilotReporter.from_environment(8, 9000.0, str(tmp_path), environment={}, clock=clock, log=print)
    reporter.started("a", cores=8, expected=3600)
    clock.now += 1000
    reporter.checkpoint("a", following=clock.now + 600, seconds=30, restart=80)
    fd = open_dir(str(tmp_path))
    report = read_report(fd, os.geteuid(), 8, JOB_STATUS)[0]
    os.close(fd)
    assert report is not None
    assert (report.last_checkpoint, report.next_checkpoint) == (T0 + 1000, T0 + 1600)
    assert (report.checkpoint_seconds, report.restart_cost, report.add_uncom_time) == (30, 80, 0.0)
    give_notice(str(tmp_path), SiteNotice(T0 + 5000), T0 + 1000)
    assert reporter.orders().checkpoint_by == T0 + 5000
    for wrong in ({"following": 1.0}, {"seconds": -1.0}, {"restart": float("nan")}):
        with pytest.raises(UsageError, match="payload 'a': checkpoint: expected a UNIX time ahead"):
            reporter.checkpoint("a", **wrong)
