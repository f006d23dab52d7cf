"""Runs as jobs of a launcher's backend: started as its scripts are, found again by their tags, and nobody else's."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

import pytest
from pytest_mock import MockerFixture

from drainwise.facts.errors import PoolUnreachable, UsageError
from drainwise_launch.backend import DONE, RUNNING, VANISHED, WAITING, JobState, Start
from drainwise_launch.choice.resources import Resources
from drainwise_launch.job_script import job_script
from drainwise_tasks.validate import machine
from drainwise_tasks.validate.jobs import NAME_VARIABLE, TAGS, RunJobs, RunState, tag_of
from drainwise_tasks.validate.request import Request
from drainwise_tasks.validate.run import run_to_end
from drainwise_tasks.validate.start import REPORT, Run

SAY = 'echo \'{"written": 10, "output_bytes": 100000}\' >"$DRAINWISE_VALIDATION_REPORT"'


def run_of(script: str, name: str = "r-1c-1", cores: int = 2) -> Run:
    return Run(name, cores, 1000, 10, 600, ("sh", "-c", script), {"SEED": "a 'b' $(c)"})


class MadeUpSystem:
    """Runs the scripts of jobs here, as a batch system would on a node; `states` are what it says in their place."""

    name = "made-up"
    max_queued = 10

    def __init__(self) -> None:
        self.jobs: dict[str, Start] = {}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.states: dict[str, JobState | None] = {}
        self.killed: list[str] = []
        self.unheard: set[str] = set()

    def fits(self, resources: Resources) -> str:
        return "it has 64 CPUs" if resources.cpu > 64 else ""

    def free(self) -> Mapping[str, int] | None:
        return None

    def start(self, job: Start) -> str:
        number = str(len(self.jobs) + 1)
        self.jobs[number] = job
        words = ["/bin/sh", "-c", job_script(job)]
        self.processes[number] = subprocess.Popen(words, env=dict(job.environment), cwd="/", start_new_session=True)
        return number

    def find(self, tags: Collection[str]) -> Mapping[str, str]:
        return {job.tag: number for number, job in self.jobs.items() if job.tag in tags and number not in self.unheard}

    def poll(self, ids: Collection[str]) -> Mapping[str, JobState]:
        found = {one: self.states[one] if one in self.states else self._seen(one) for one in ids}
        return {one: state for one, state in found.items() if state is not None}

    def _seen(self, number: str) -> JobState:
        if number not in self.processes:
            return JobState(VANISHED, why="no record of it")
        code = self.processes[number].poll()
        return JobState(RUNNING) if code is None else JobState(DONE, code if code >= 0 else 128 - code)

    def kill(self, ids: Collection[str]) -> None:
        self.killed += ids

    def reprioritise(self, priorities: Mapping[str, float]) -> None:
        """Nobody asks."""

    def wait(self, seconds: float) -> None:
        """Nobody asks."""

    def close(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()


@pytest.fixture
def system() -> Iterator[MadeUpSystem]:
    made = MadeUpSystem()
    yield made
    made.close()


Adapted = Callable[..., RunJobs]


@pytest.fixture
def adapted(system: MadeUpSystem, tmp_path: Path) -> Adapted:
    """A new one each time, as each command has it."""

    def make(resources: Mapping[str, object] | None = None, late: float = 60.0) -> RunJobs:
        return RunJobs(lambda: system, f"{tmp_path}/runs", resources or {}, "r.toml", late=late)

    return make


def ended(backend: RunJobs, system: MadeUpSystem, handle: str, run: Run) -> RunState:
    system.processes[handle].wait()
    return backend.poll(handle, run.name)


def test_a_run_is_a_job_of_the_launchers(system: MadeUpSystem, adapted: Adapted) -> None:
    """The job has its cores, MiB and what the request's table says; a minute more than the program; no word of it."""
    table = {"partition": "long", "hard": "-pe smp {cores} -A {memory}", "licence": 3, "tmp": "2G"}
    backend, run = adapted(table), run_of(f'test "$SEED" = "a \'b\' \\$(c)" && test -n "$HOME$PATH" && {SAY}')
    assert backend.refusal(run) == ""
    handle = backend.start(run)
    job = system.jobs[handle]
    others = (("hard", "-pe smp 2 -A 1000"), ("licence", 3), ("partition", "long"))
    assert job.resources == Resources(2, 954, 2048, others)
    assert (job.name, job.tag, job.wall_limit) == (run.name, tag_of(run.name), 660)
    assert job.tag.startswith(TAGS) and set(job.environment) <= {"HOME", "USER", "LOGNAME", "PATH", NAME_VARIABLE}
    assert (job.outputs, job.environment[NAME_VARIABLE]) == ((REPORT, "err"), run.name)
    assert "SEED" not in job_script(job) and "written" not in job_script(job)
    state = ended(backend, system, handle, run)
    assert (state.state, state.code, state.note, state.said) == (DONE, 0, "", "")
    assert json.loads(state.report or b"")["reported"] == {"written": 10, "output_bytes": 100000}


def test_what_a_program_says_last_on_its_stderr_is_told(system: MadeUpSystem, adapted: Adapted, tmp_path: Path) -> None:
    """Not what it prints besides; where there is no Python on the node, what the shell says."""
    backend, run = adapted(), run_of("echo why >&2; echo printed; exit 3")
    state = ended(backend, system, backend.start(run), run)
    assert (state.state, state.code, state.said) == (DONE, 3, "why")
    work = tmp_path / "runs" / run.name
    assert (work / "out").read_text() == "printed\n"
    (work / "err").unlink()
    (work / "out").write_text("sh: no such interpreter\n")
    assert backend.poll("1", run.name).said == "sh: no such interpreter"


def test_where_the_nodes_do_not_have_its_directory_it_is_told(
    system: MadeUpSystem, adapted: Adapted, tmp_path: Path
) -> None:
    """The job writes nothing then, wherever one looks."""
    backend, run = adapted(), run_of(SAY)
    handle = backend.start(run)
    ended(backend, system, handle, run)
    work = tmp_path / "runs" / run.name
    shutil.rmtree(work)
    system.processes[handle] = subprocess.Popen(["/bin/sh", "-c", job_script(system.jobs[handle])])
    state = ended(backend, system, handle, run)
    assert (state.state, state.said) == (DONE, f"it has written nothing; do the nodes have {work}?")
    assert state.code not in {0, None}


def test_a_run_is_found_again_by_its_name_alone(system: MadeUpSystem, adapted: Adapted) -> None:
    """By another process, which knows no handle; a name that was never started is not found."""
    run = run_of(SAY)
    handle = adapted().start(run)
    assert (adapted().find(run.name), adapted().find("r-1c-2")) == (handle, None)
    assert ended(adapted(), system, handle, run).code == 0


def test_a_job_that_is_another_one_by_now_is_not_taken_for_the_run(system: MadeUpSystem, adapted: Adapted) -> None:
    """Numbers come again where a batch system was made anew: nothing is believed of that job, and it is not ended."""
    other = adapted().start(run_of("sleep 100", "other-1c-1"))
    backend = adapted()
    state = backend.poll(other, "r-1c-1")
    assert (state.state, state.note) == (VANISHED, "job 1 is another one by now")
    backend.kill(other, "r-1c-1")
    assert system.killed == []
    backend.kill("17", "other-1c-1")
    assert system.killed == [other]


def test_one_that_has_just_ended_is_waited_for(system: MadeUpSystem, adapted: Adapted) -> None:
    """In no queue any more and in no accounting yet, seen by a process that knows its handle from a file alone."""
    run = run_of(SAY)
    handle = adapted().start(run)
    system.processes[handle].wait()
    backend = adapted()
    system.states[handle] = None
    system.unheard.add(handle)
    assert backend.poll(handle, run.name) == RunState(RUNNING)
    system.states.clear()
    system.unheard.clear()
    assert backend.poll(handle, run.name).code == 0


def test_a_report_may_come_later_than_the_end(system: MadeUpSystem, adapted: Adapted, tmp_path: Path) -> None:
    """As on a shared file system; in the end it is missing. A run that failed is not waited for."""
    backend, run = adapted(), run_of(SAY)
    handle = backend.start(run)
    system.processes[handle].wait()
    report = tmp_path / "runs" / run.name / REPORT
    content = report.read_bytes()
    report.write_bytes(b"")
    waited = backend.poll(handle, run.name)
    assert (waited.state, waited.note) == (RUNNING, "it has ended, and its report is not to be seen yet")
    report.write_bytes(content)
    assert backend.poll(handle, run.name).report == content
    report.unlink()
    assert adapted(late=0.0).poll(handle, run.name) == RunState(DONE, 0)
    system.states[handle] = JobState(DONE, 143, why="CANCELLED")
    assert backend.poll(handle, run.name) == RunState(DONE, 143, "ended by made-up: CANCELLED")


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (JobState(WAITING, why="held back (qhold)"), RunState(WAITING, note="held back (qhold)")),
        (JobState(RUNNING), RunState(RUNNING)),
        (JobState(VANISHED, why="no record"), RunState(VANISHED, note="no record")),
    ],
)
def test_what_the_batch_system_says_is_passed_on(
    system: MadeUpSystem, adapted: Adapted, said: JobState, expected: RunState
) -> None:
    backend = adapted()
    handle = backend.start(run_of(SAY))
    system.states[handle] = said
    assert backend.poll(handle, "r-1c-1") == expected


def test_it_is_opened_when_it_is_needed_and_its_absence_is_told(tmp_path: Path, mocker: MockerFixture) -> None:
    """What is over can be shown without it."""
    absent = mocker.Mock(spec_set=(), side_effect=PoolUnreachable("no such batch system here"))
    backend = RunJobs(absent, str(tmp_path), {}, "r.toml")
    backend.close()
    absent.assert_not_called()
    with pytest.raises(PoolUnreachable, match="no such batch system here"):
        backend.refusal(run_of(SAY))
    absent.assert_called_once_with()


@pytest.mark.parametrize(
    ("table", "fault"),
    [
        ({"cpu": 4}, "r.toml: cpu = '4': expected nothing: it is what a run has"),
        ({"mem": "2G"}, "r.toml: mem = '2G': expected nothing: it is what a run has"),
        ({"licence": 0}, "r.toml: licence = '0': expected a whole number"),
        ({"a b": "c"}, "r.toml: resource 'a b': expected a name"),
        ({"gres": ["x"]}, "r.toml: gres = "),
    ],
)
def test_wrong_resources_are_refused_before_anything_runs(
    adapted: Adapted, table: dict[str, object], fault: str
) -> None:
    with pytest.raises(UsageError) as raised:
        adapted(table).refusal(run_of(SAY))
    assert str(raised.value).startswith(fault)


def test_what_can_never_run_is_said(adapted: Adapted) -> None:
    assert adapted().refusal(run_of(SAY, cores=65)) == "it has 64 CPUs"


def test_no_place_for_a_run_is_told(system: MadeUpSystem, adapted: Adapted, tmp_path: Path) -> None:
    """A file where its directory should be; what an earlier start left there harms nobody."""
    (tmp_path / "runs").write_text("")
    with pytest.raises(UsageError, match="no place for a run"):
        adapted().start(run_of(SAY))
    (tmp_path / "runs").unlink()
    kept = tmp_path / "kept"
    kept.write_text("kept")
    work = tmp_path / "runs" / "r-1c-1"
    os.makedirs(work / "run-x")
    os.symlink(kept, work / REPORT)
    run = run_of(f'test -z "$(ls)" && {SAY}')
    assert ended(adapted(), system, adapted().start(run), run).code == 0
    assert kept.read_text() == "kept"


def test_the_whole_procedure_as_jobs(system: MadeUpSystem, adapted: Adapted) -> None:
    """Driven as the command does it: each run is one job, and what they say is measured."""
    request = Request("r", ("sh", "-c", f"sleep 0.3; {SAY}"), 10, 0.03, 10.0, 500, can_thread=True, cores=(2, 3))

    def wait(_: float) -> None:
        for process in system.processes.values():
            process.wait()

    done = run_to_end(machine.begin(request, "r-1"), adapted(), lambda _: None, lambda _: None, wait)
    assert done.state == machine.PASSED, done.reason
    assert [job.resources.cpu for job in system.jobs.values()] == [1, 2, 3]
    assert [job.name for job in system.jobs.values()] == [done.name_of(step) for step in done.steps]
