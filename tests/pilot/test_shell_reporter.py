"""The reporter in shell for any wrapper: its figures are the reference pilot's, what ends is seen, files are whole."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from drainwise.node import JOB_STATUS
from drainwise.pilot.decide.lease import Lease
from drainwise.pilot.decide.payload import Payload
from drainwise.pilot.decide.workload import Workload, report_of, running_since
from drainwise.pilotad.attributes import ATTRIBUTES, PILOT_AD
from drainwise.pilotad.node_reader import read_report
from drainwise.pilotad.pilot_ad import parse_pilot_ad
from drainwise.pilotad.report import FRESH, PilotReport, standing
from drainwise.pilotad.safe_open import open_dir
from real_daemons.waiting import wait_for

pytestmark = pytest.mark.daemons  # real processes that begin and end

SCRIPT = Path(__file__).parents[2] / "share" / "pilots" / "sh" / "drainwise_report.sh"
CORES, PATIENCE = 8, 20.0


class Wrapper:
    """A wrapper in a job's directory: its reporter, and payloads that sleep."""

    def __init__(self, place: Path) -> None:
        self.place, self.payloads = place, dict[str, subprocess.Popen[bytes]]()
        (place / JOB_STATUS).mkdir()
        self.environment = {"PATH": os.environ["PATH"], "JOBSTATUS": f"{place}/{JOB_STATUS}", "DRAINWISE_LOOK": "0.1"}
        # The wrapper is a process of its own, with which the reporter ends.
        self.shell = subprocess.Popen(
            ["sh", "-c", f"{SCRIPT} watch {CORES} $$ >/dev/null & echo $!; exec sleep 90"],
            cwd=place,
            env=self.environment,
            stdout=subprocess.PIPE,
        )
        assert self.shell.stdout is not None
        self.reporter = int(self.shell.stdout.readline())

    def call(self, *words: str, code: int = 0) -> str:
        ran = subprocess.run(
            [str(SCRIPT), *words], cwd=self.place, env=self.environment, capture_output=True, text=True, check=False
        )
        assert (ran.returncode, ran.stdout) == (code, ""), ran.stderr
        return ran.stderr

    def begin(self, name: str, cores: int, expected: int, maximum: int) -> None:
        self.payloads[name] = process = subprocess.Popen(["sleep", "90"])
        self.call("payload", str(cores), str(expected), str(maximum), str(process.pid))

    def end(self, name: str) -> None:
        process = self.payloads.pop(name)
        process.kill()
        process.wait()

    def close(self) -> None:
        for process in (*self.payloads.values(), self.shell):
            process.kill()
            process.communicate()
        wait_for(lambda: not is_there(self.reporter))

    def said(self) -> PilotReport:
        """What the node reads, when the reporter does not just write it."""

        def read() -> Iterator[tuple[PilotReport | None, tuple[str, ...]]]:
            fd = open_dir(str(self.place))
            try:
                found = read_report(fd, os.geteuid(), CORES, JOB_STATUS)
            finally:
                os.close(fd)
            if found[1] != ("$JOBSTATUS: locked",):
                yield found

        [(report, reasons)] = wait_for(lambda: list(read()))
        assert report is not None and reasons == ()
        assert standing(report, report.heartbeat, 3600, None, CORES) == FRESH
        return report

    def uses(self, cores: int) -> PilotReport:
        # $JOBSTATUS comes last; at the first report the node finds that a writer is there.
        wait_for(lambda: self.status().get("used_CPU") == str(cores))
        wait_for(lambda: self.said().used_cpu == cores)
        return self.said()

    def looks_again(self) -> None:
        """Wait until the reporter has looked at least twice: it sleeps by a new process after each look."""
        sleeps: set[str] = set()

        def slept() -> bool:
            for pid in Path(f"/proc/{self.reporter}/task/{self.reporter}/children").read_text().split():
                with suppress(OSError):
                    if Path(f"/proc/{pid}/comm").read_text() == "sleep\n":
                        sleeps.add(pid)
            return len(sleeps) > 3

        wait_for(slept)

    def status(self) -> dict[str, str]:
        """What stands in $JOBSTATUS."""
        return {path.name: path.read_text().strip() for path in (self.place / JOB_STATUS).iterdir()}


def is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def wrapper(tmp_path: Path) -> Iterator[Wrapper]:
    made = Wrapper(tmp_path)
    yield made
    made.close()


def started(place: Path) -> list[tuple[int, int, int, int]]:
    """Cores, start, seconds expected and at most, as the script noted them."""
    lines = [path.read_text().split()[:4] for path in (place / ".drainwise-payloads").iterdir()]
    return [(int(cores), int(start), int(expected), int(most)) for cores, start, expected, most in lines]


@pytest.mark.parametrize("wanted", [[(2, 600, 900), (4, 300, 3000), (1, 450, 450)], [(8, 60, 70), (8, 90, 100)]])
def test_its_figures_are_those_of_the_reference_pilot(wrapper: Wrapper, wanted: list[tuple[int, int, int]]) -> None:
    """In both channels; where payloads use more than the lease has, each core counts as one part of it."""
    assert wrapper.uses(0).add_final_exp_waste == 0
    for number, (cores, expected, maximum) in enumerate(wanted):
        wrapper.begin(str(number), cores, expected, maximum)
        if number == 0:  # the next one begins in another second
            begun = time.time()
            wait_for(lambda: time.time() > begun + 1.1)  # noqa: B023 - called at once
    wait_for(lambda: len(started(wrapper.place)) == len(wanted))
    last = max(start for _, start, _, _ in started(wrapper.place))
    wait_for(lambda: wrapper.uses(min(CORES, sum(cores for cores, _, _ in wanted))).last_job_start == last)
    workload = Workload(float(last))
    for number, (cores, start, expected, maximum) in enumerate(started(wrapper.place)):
        workload.add(running_since(Payload(str(number), cores, (), expected, maximum), float(start)))
    reference = report_of(workload, Lease(CORES, float(last), None), True, 0, float(last))
    wait_for(lambda: wrapper.status().get("used_CPU") and wrapper.status()["last_job_start"] == str(last))
    wait_for(lambda: wrapper.status()["used_CPU"])
    ad, refused = parse_pilot_ad((wrapper.place / PILOT_AD).read_bytes(), CORES, last)
    assert refused == ()
    status = wrapper.status()
    for row in ATTRIBUTES[:9]:
        value = getattr(reference, row.field)
        assert getattr(ad, row.field) == pytest.approx(value, abs=CORES / 1024)
        assert status[row.status_name] == str(value) or float(status[row.status_name]) == pytest.approx(value, abs=0.5)


def test_a_payload_ends_with_the_last_of_its_processes(wrapper: Wrapper) -> None:
    one, other = subprocess.Popen(["sleep", "90"]), subprocess.Popen(["sleep", "90"])
    wrapper.payloads |= {"one": one, "other": other}
    wrapper.call("payload", "3", "600", "600", str(one.pid), str(other.pid))
    wrapper.uses(3)
    wrapper.end("one")
    wrapper.looks_again()
    assert wrapper.said().used_cpu == 3
    wrapper.end("other")
    wrapper.uses(0)


def test_one_that_takes_longer_is_expected_later_and_never_after_its_maximum(wrapper: Wrapper) -> None:
    wrapper.begin("a", 2, 0, 5000)
    wrapper.begin("b", 2, 0, 30)
    report = wrapper.uses(4)
    wait_for(lambda: (wrapper.said().first_exp_job_end or 0) >= report.heartbeat + 20)
    begun = {cores: start for cores, start, _, _ in started(wrapper.place)}
    report = wrapper.said()
    assert report.first_exp_job_end is not None and report.last_exp_job_end is not None
    assert report.first_exp_job_end <= begun[2] + 31 and report.last_exp_job_end >= begun[2] + 60


def test_draining_is_said_and_taken_back(wrapper: Wrapper) -> None:
    assert wrapper.uses(0).can_postpone_last_job is True
    for word, can_postpone in (("yes", False), ("no", True)):
        wrapper.call("draining", word)
        wait_for(partial(says, wrapper, can_postpone))


def says(wrapper: Wrapper, can_postpone: bool) -> bool:
    return wrapper.said().can_postpone_last_job is can_postpone


def test_nothing_new_is_not_written_again(wrapper: Wrapper) -> None:
    """The heartbeat is each half hour; a site that asks for one an hour has its report."""
    wrapper.begin("a", 2, 600, 900)
    wrapper.uses(2)
    before = (wrapper.place / PILOT_AD).stat().st_mtime_ns
    wrapper.looks_again()
    assert (wrapper.place / PILOT_AD).stat().st_mtime_ns == before


def test_the_report_is_whole_whenever_it_is_read(wrapper: Wrapper) -> None:
    """`.pilot.ad` comes by rename; nobody finds half of it while payloads begin and end."""
    wrapper.uses(0)
    reports: set[bytes] = set()
    while len(reports) < 8:
        wrapper.begin("a", 2, 600, 900)
        for _ in range(50):
            reports.add(read := (wrapper.place / PILOT_AD).read_bytes())
            report, refused = parse_pilot_ad(read, CORES, 0)
            assert refused == () and None not in [getattr(report, row.field) for row in ATTRIBUTES[:9]]
        wrapper.end("a")


def test_it_ends_with_its_wrapper(wrapper: Wrapper) -> None:
    wrapper.uses(0)
    wrapper.shell.kill()
    wrapper.shell.wait()
    wait_for(lambda: not is_there(wrapper.reporter))


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("watch",),
        ("watch", "none"),
        ("watch", "0"),
        ("watch", "8", "none"),
        ("payload", "1", "2", "3"),
        ("payload", "1", "3", "2", "1"),
        ("payload", "x", "1", "1", "1"),
        ("draining", "maybe"),
    ],
)
def test_wrong_words_are_told(wrapper: Wrapper, words: tuple[str, ...]) -> None:
    assert wrapper.call(*words, code=2).startswith("drainwise_report.sh: ")


def test_a_payload_that_has_ended_already_is_none(wrapper: Wrapper) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    wrapper.call("payload", "2", "600", "600", str(gone.pid))
    wrapper.looks_again()
    assert wrapper.said().used_cpu == 0


def test_a_payload_that_saves_its_work_loses_what_it_did_since(wrapper: Wrapper) -> None:
    """Its figures are those of the reference pilot; where one has saved nothing, neither key is there any more."""
    wrapper.begin("saves", 4, 600, 900)
    wrapper.uses(4)
    begun = time.time()
    wait_for(lambda: time.time() > begun + 1.1)
    wrapper.call("checkpoint", str(wrapper.payloads["saves"].pid), "300")
    wait_for(lambda: wrapper.said().last_checkpoint)
    said = wrapper.said()
    assert said.last_checkpoint is not None
    assert said.last_checkpoint == said.last_job_start and said.add_uncom_time == 0
    assert said.next_checkpoint == said.last_checkpoint + 300
    wait_for(lambda: wrapper.status().get("last_checkpoint") == str(said.last_checkpoint))
    wrapper.call("checkpoint", str(wrapper.payloads["saves"].pid))
    wait_for(lambda: wrapper.said().next_checkpoint is None)
    wrapper.begin("saves nothing", 2, 600, 900)
    assert wrapper.uses(6).last_checkpoint is None
    wait_for(lambda: "last_checkpoint" not in wrapper.status())
    assert "no payload was told" in wrapper.call("checkpoint", "1", code=2)
