"""Validations on the local batch system with a program that really uses CPU, memory and threads; also killed midway."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from drainwise.common.typed_table import toml_reader
from drainwise.local.job import ENDED
from drainwise.local.store import LocalStore
from interpreters import OLD, interpreter
from local_batch import ENVIRONMENT, Batch
from made_up_request import EVENT, made_up_request
from real_daemons.waiting import wait_for

PROGRAM = str(Path(__file__).parents[2] / "scripts" / "validation_program.py")
PAGE = Path(__file__).parents[2] / "docs" / "validation.md"
PATIENCE = 300.0  # seconds; for a machine under load


class Validations:
    """A request file and the command on it, as a user has them."""

    def __init__(self, batch: Batch, place: Path) -> None:
        self.batch, self.place, self.file = batch, place, place / "request.json"

    def write(self, *options: str, **values: object) -> None:
        """A request of 10 events of 0.2 s and 20 kB in 200 MB, when nothing else is said."""
        self.file.write_text(made_up_request([sys.executable, PROGRAM], options, **values))

    def command(self, *options: str) -> list[str]:
        words = [sys.executable, "-m", "drainwise", "validate", str(self.file), "--account", "alice", *options]
        return [*words, "--directory", self.batch.directory]

    def run(self, *options: str, code: int = 0) -> dict[str, object]:
        """Validate to the end; the report."""
        ran = subprocess.run(
            self.command("--json", *options),
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        assert ran.returncode == code, ran.stdout + ran.stderr
        return dict(json.loads(ran.stdout))

    def begin(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self.command(), env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def names(self) -> list[str]:
        """The runs that the batch system was ever given, by their own names."""
        with LocalStore(self.batch.directory) as store:
            jobs = store.jobs(ended=True)
        return [job.request.environment["DRAINWISE_VALIDATION_RUN"].split("-", 3)[-1] for job in jobs]


@pytest.fixture
def validations(batch: Batch, tmp_path: Path) -> Validations:
    batch.start(cores=16)
    return Validations(batch, tmp_path)


def steps(report: dict[str, object]) -> list[dict[str, object]]:
    found = report["steps"]
    assert isinstance(found, list)
    return found


def figures(step: dict[str, object]) -> dict[str, float]:
    found = step["measured"]
    assert isinstance(found, dict)
    return found


def test_the_whole_procedure(validations: Validations) -> None:
    """Claims that are wrong by a factor are adjusted; then 2, 4 and 8 cores; what is submitted is what was measured."""
    validations.write("--memory", "40", time_per_event=EVENT / 4, size_per_event=30)
    report = validations.run()
    labels = [str(step["step"]) for step in steps(report)]
    tries = [label for label in labels if label.startswith("1c")]
    assert 2 <= len(tries) <= 3 and labels[len(tries) :] == ["2c-1", "4c-1", "8c-1"]
    assert validations.names() == labels
    first, last = steps(report)[0], steps(report)[len(tries) - 1]
    measured = figures(first)["time_per_event"]
    assert measured >= EVENT and figures(first)["size_per_event"] == 20.0
    assert first["adjusted"] == {
        "time_per_event": pytest.approx((3 * measured + EVENT / 4) / 4),
        "size_per_event": pytest.approx((3 * 20 + 30) / 4),
    }
    assert last["adjusted"] is None
    by_cores = {step["cores"]: step for step in steps(report)}
    assert [by_cores[cores]["memory"] for cores in (1, 2, 4, 8)] == [200, 1000, 2000, 4000]
    assert all(figures(by_cores[cores])["peak_rss"] >= 40 * (1 + 0.1 * cores) for cores in (1, 2, 4, 8))
    efficiencies = {cores: figures(by_cores[cores])["cpu_efficiency"] for cores in (1, 2, 4, 8)}
    assert all(0 < part < 0.7 for part in efficiencies.values())  # it mostly waits
    chosen = report["submission"]
    assert isinstance(chosen, dict) and (chosen["cores"], chosen["memory"]) == (1, 1000)


def test_a_request_of_two_sequences(validations: Validations) -> None:
    """Both are measured in one job of each number of cores; a wrong claim of the second one is adjusted alone."""
    anew = ["sh", "-c", 'mv events.out first.out && exec "$0" "$@"']
    second = [
        *anew,
        sys.executable,
        PROGRAM,
        "--events",
        "{events}",
        "--cores",
        "{cores}",
        "--size",
        "7",
        "--wall",
        str(EVENT),
    ]
    further = {"command": second, "time_per_event": EVENT, "size_per_event": 10}
    validations.write(following=[further], cores=[2])
    report = validations.run()
    labels = [str(step["step"]) for step in steps(report)]
    assert labels[-1] == "2c-1" and validations.names() == labels and len(labels) >= 3
    first, last = steps(report)[0], steps(report)[-1]
    assert figures(first)["size_per_event"] == 20.0
    [told] = dict(first)["measured"]["following"]  # type: ignore[index] # a table
    assert told["size_per_event"] == 7.0
    assert "size per event of sequence 2 7 kB" in str(first["note"])
    [claimed] = dict(last)["claimed"]["following"]  # type: ignore[index] # a table
    assert claimed["size_per_event"] == (3 * 7 + 10) / 4
    chosen = report["submission"]
    assert isinstance(chosen, dict) and chosen["size_per_event"] == 27.0 and len(chosen["sequences"]) == 2


def test_more_cores_run_at_the_same_time(validations: Validations) -> None:
    """The three leases overlap: the last of them starts before the first ends."""
    validations.write()
    validations.run()
    with LocalStore(validations.batch.directory) as store:
        jobs = [job for job in store.jobs(ended=True) if job.cores > 1]
    assert sorted(job.cores for job in jobs) == [2, 4, 8]
    assert max(job.started for job in jobs) <= min(float(job.ended or 0) for job in jobs)


def test_threads_that_compute_make_more_cores_worth_it(validations: Validations) -> None:
    """A busy program: which count is submitted follows from the CPU efficiencies that were measured.

    How long it takes is the machine's load, so nearly every time is within the range.
    """
    wide = {"time_margin": 0.99}
    validations.write("--cpu", "0.05", "--wall", "0", cores=[2], time_per_event=1, thresholds=wide)
    report = validations.run()
    last = {int(str(step["cores"])): figures(step) for step in steps(report)}
    efficient = [cores for cores, run in last.items() if run["cpu_efficiency"] > 0.7]
    chosen = report["submission"]
    assert isinstance(chosen, dict) and chosen["cores"] == max(efficient, default=1)
    assert last[1]["cpu_seconds"] >= 10 * 0.05 and last[2]["cpu_seconds"] >= 10 * 0.05


@pytest.mark.parametrize("moment", ["1c-1", "2c-1"])
def test_killed_and_run_again_it_goes_on(validations: Validations, moment: str) -> None:
    """kill -9 while the first run, or those on more cores, go on: the second command ends it, no run is repeated."""
    validations.write()
    first = validations.begin()
    try:
        wait_for(lambda: moment in validations.names(), what=f"{moment} was started", seconds=PATIENCE)
    finally:
        first.kill()
        first.wait()
    report = validations.run()
    assert report["state"] == "passed"
    assert len(validations.names()) == len(set(validations.names())) == len(steps(report))
    assert validations.run() == report  # and a third one only shows it


def test_killed_at_many_moments(validations: Validations) -> None:
    """SIGKILL after ever longer times, until it has come through: every run was started once."""
    validations.write(events=5)
    patience = 0.15
    while True:
        going = validations.begin()
        try:
            code = going.wait(patience)
            break
        except subprocess.TimeoutExpired:
            going.kill()
            going.wait()
            patience *= 1.15
    assert code == 0
    assert sorted(validations.names())[-3:] == ["2c-1", "4c-1", "8c-1"]
    assert len(set(validations.names())) == len(validations.names())


def test_a_daemon_that_is_killed_meanwhile_loses_nothing(validations: Validations) -> None:
    """The runs go on without it, and the next daemon finds them."""
    validations.write()
    going = validations.begin()
    wait_for(validations.names, what="the first run was submitted", seconds=PATIENCE)
    validations.batch.kill_daemon()
    validations.batch.start(cores=16)
    assert going.wait(PATIENCE) == 0
    assert len(set(validations.names())) == len(validations.names())


@pytest.mark.parametrize(
    ("options", "values", "expected"),
    [
        (["--memory", "300"], {}, "peak RSS"),
        (["--filter", "0.4"], {}, "filter efficiency 0.4, expected 0.535242 to 1"),
        (["--code", "3"], {}, "it ended with 3: the made-up simulation ends with 3, as it was told"),
        (["--wall", "60"], {"wall_limit": 1}, "its wall limit is over"),
        ([], {"command": ["true"]}, "the program wrote no report"),
        ([], {"command": ["/no/such/program"]}, "it ended with 127: drainwise: /no/such/program: No such file"),
    ],
)
def test_ways_to_fail(validations: Validations, options: list[str], values: dict[str, object], expected: str) -> None:
    """Too much memory, another filter efficiency, an error, no time left, no report, no program: at once, in words."""
    validations.write(*options, **values)
    report = validations.run(code=1)
    assert report["state"] == "failed" and expected in str(report["reason"])
    assert validations.names() == ["1c-1"] and report["submission"] is None


def test_a_request_that_changes_meanwhile_is_refused(validations: Validations) -> None:
    """What was measured belongs to what was asked; --again begins anew and ends what ran."""
    validations.write("--wall", "1000")
    first = validations.begin()
    wait_for(validations.names, what="the first run was submitted", seconds=PATIENCE)
    assert validations.run("--show")["state"] == "running"
    refused = subprocess.run(validations.command(), env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert refused.returncode == 1 and "another process runs this validation" in refused.stderr
    first.kill()
    first.wait()
    validations.write()
    refused = subprocess.run(validations.command(), env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert refused.returncode == 2 and "has changed since its validation began" in refused.stderr
    assert validations.run("--again")["state"] == "passed"
    validations.batch.await_state(ENDED, 1)
    assert validations.batch.job(1).removed


def test_cancelled_it_leaves_nothing_running(validations: Validations) -> None:
    """--cancel ends what runs, and says so."""
    validations.write("--wall", "1000")
    first = validations.begin()
    wait_for(validations.names, what="the first run was submitted", seconds=PATIENCE)
    first.send_signal(signal.SIGINT)
    assert first.wait(PATIENCE) == 130
    assert validations.run("--show")["state"] == "running"
    report = validations.run("--cancel", code=1)
    assert (report["state"], report["reason"]) == ("failed", "cancelled")
    validations.batch.await_state(ENDED, 1)
    wait_for(validations.batch.empty, what="nothing of it runs")


def test_the_table(validations: Validations) -> None:
    """What a person sees: a row for each run, and what to submit with."""
    validations.write(can_thread=False)
    ran = subprocess.run(
        validations.command(), env={**ENVIRONMENT, "COLUMNS": ""}, capture_output=True, text=True, check=True
    )
    heading, row, verdict = ran.stdout.splitlines()
    assert heading.split()[:4] == ["step", "cores", "memory", "state"]
    assert row.startswith("1c-1") and row.endswith("in range")
    assert verdict.startswith("made-up: passed: submit with 1 core, 1000 MB")
    assert "1c-1: started as 1, 200 MB" in ran.stderr


def test_the_page_as_typed(tmp_path: Path) -> None:
    """docs/validation.md from top to bottom: its program, its request, its commands, and a table as it shows one."""
    if toml_reader() is None:
        pytest.skip("this Python reads no TOML")
    page = PAGE.read_text()
    [program], request = (re.findall(f"```{kind}\n(.*?)```", page, re.DOTALL) for kind in ("simulate", "toml"))
    commands = [
        line.partition("  #")[0].strip()
        for fence in re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
        for line in fence.splitlines()
    ]
    (tmp_path / "request.toml").write_text("".join(request))
    (tmp_path / "bin").mkdir()
    for path, text in (
        (tmp_path / "simulate", program),
        (tmp_path / "bin" / "drainwise", f'#!/bin/sh\nexec {sys.executable} -m drainwise "$@"\n'),
    ):
        path.write_text(text)
        path.chmod(0o755)
    environment = {
        "PATH": f"{tmp_path}/bin:/usr/bin:/bin",
        "PYTHONPATH": ENVIRONMENT["PYTHONPATH"],
        "PYTHONDONTWRITEBYTECODE": "1",
        "DRAINWISE_LOCAL": str(tmp_path / "state"),
    }

    def typed(command: str) -> str:
        ran = subprocess.run(
            ["sh", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, f"{command}\n{ran.stdout}{ran.stderr}"
        return ran.stdout

    try:
        said = {command: typed(command) for command in commands}
    finally:
        typed("drainwise local stop --kill")
    table = said["drainwise validate request.toml --account physics"].splitlines()
    [shown] = [fence for fence in page.split("```") if fence.startswith("\nstep")]
    assert table[0].split() == shown.splitlines()[1].split()
    assert [line.split()[0] for line in table[-4:]] == ["2c-1", "4c-1", "8c-1", "minimum-bias:"]
    assert "next try with" in table[1] and "passed: submit with 1 core, 1000 MB" in table[-1]
    assert json.loads(said["drainwise validate request.toml --json"])["state"] == "passed"


def test_on_an_older_python(validations: Validations) -> None:
    """The runner in the job and the command itself work on Python 3.9, where TOML is refused with the way out."""
    validations.write(can_thread=False)
    words = [interpreter(OLD), *validations.command()[1:]]
    ran = subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0 and "passed" in ran.stdout, ran.stderr
    (validations.place / "r.toml").write_text("name = 'r'\n")
    words[4] = str(validations.place / "r.toml")
    ran = subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert ran.returncode == 2 and "JSON in a file whose name ends in .json" in ran.stderr
