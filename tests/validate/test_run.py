"""Driving a validation: killed at any moment it goes on where it was, and nothing runs twice or is left running."""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from drainwise.facts.errors import ActionRefused, PoolError, PoolFull, PoolUnreachable, UsageError
from drainwise_launch.backend import DONE, RUNNING, VANISHED, JobState, Start
from drainwise_launch.choice.resources import Resources
from drainwise_tasks.validate import machine
from drainwise_tasks.validate.jobs import RunJobs
from drainwise_tasks.validate.machine import Validation
from drainwise_tasks.validate.request import Request
from drainwise_tasks.validate.run import refuse_impossible, run_to_end
from drainwise_tasks.validate.start import REPORT
from drainwise_tasks.validate.state import StateFile, text_of, validation_in

REQUEST = Request("r", ("run",), 100, 1.0, 100.0, 2300, can_thread=True)


class Killed(BaseException):
    """What a kill -9 is to the code that it hits: nothing after it runs."""


class MadeUpBatch:
    """Jobs that end when they were asked for twice; `moment` counts every touch of the world, and can be the last."""

    name = "made-up"
    max_queued = None

    def __init__(self, times: tuple[float, ...] = (1.0,), die_at: int = -1) -> None:
        self.times, self.die_at, self.moment = list(times), die_at, 0
        self.started: list[Start] = []
        self.asked: dict[str, int] = {}
        self.killed: list[str] = []
        self.codes: dict[str, int] = {}
        self.vanishing: set[str] = set()
        self.most_at_once = 0
        self.refusing: Exception | None = None
        self.most_starts = 10**6
        self.silent = 0

    def touch(self) -> None:
        self.moment += 1
        if self.moment == self.die_at:
            raise Killed

    def fits(self, resources: Resources) -> str:
        return "the largest node has 8 cores" if resources.cpu > 8 else ""

    def free(self) -> Mapping[str, int] | None:
        return None

    def find(self, tags: Collection[str]) -> Mapping[str, str]:
        self.touch()
        return {job.tag: str(number) for number, job in enumerate(self.started) if job.tag in tags}

    def start(self, job: Start) -> str:
        self.touch()
        if self.refusing is not None:
            raise self.refusing
        if sum(self.asked.get(one.name, 0) < 2 for one in self.started) >= self.most_starts:
            raise PoolFull("2 jobs are allowed per user")
        self.started.append(job)
        self.touch()
        return str(len(self.started) - 1)

    def poll(self, ids: Collection[str]) -> Mapping[str, JobState]:
        self.touch()
        if self.silent:
            self.silent -= 1
            raise PoolUnreachable("the batch system does not answer")
        return {one: self.looked_at(self.started[int(one)]) for one in ids}

    def looked_at(self, job: Start) -> JobState:
        going = [one for one in self.started if self.asked.get(one.name, 0) < 2]
        self.most_at_once = max(self.most_at_once, len(going))
        self.asked[job.name] = self.asked.get(job.name, 0) + 1
        if job.name in self.vanishing:
            return JobState(VANISHED, why="its lease supervisor vanished")
        if self.asked[job.name] < 2:
            return JobState(RUNNING)
        code = self.codes.get(job.name, 0)
        attempt = int(job.name.split("c-")[1][0])
        time = self.times[min(attempt, len(self.times)) - 1] * 100
        report = {
            "measured": {
                "wall_seconds": time,
                "cpu_seconds": time * job.resources.cpu * 0.9,
                "peak_rss_bytes": 10**9,
            },
            "reported": {"written": 100, "output_bytes": 10**7},
        }
        (Path(job.cwd) / REPORT).write_text(json.dumps(report))
        (Path(job.cwd) / "err").write_text("it broke\n" if code else "")
        return JobState(DONE, code)

    def kill(self, ids: Collection[str]) -> None:
        self.touch()
        self.killed += [self.started[int(one)].name for one in ids]

    def reprioritise(self, priorities: Mapping[str, float]) -> None:
        """Nobody asks."""

    def wait(self, seconds: float) -> None:
        """Nobody asks."""

    def close(self) -> None:
        """Nothing is held."""


def jobs_of(batch: MadeUpBatch, path: Path) -> RunJobs:
    return RunJobs(lambda: batch, f"{path}.runs", {}, "r.toml")


def drive(path: Path, batch: MadeUpBatch, request: Request = REQUEST) -> Validation:
    """What the command does: load or begin, and run to the end. The state file touches the world, too."""
    with StateFile(str(path)) as state:

        def save(validation: Validation) -> None:
            batch.touch()
            state.save(validation)
            batch.touch()

        validation = state.load()
        if validation is None:
            validation = machine.begin(request, "id")
            save(validation)
        return run_to_end(validation, jobs_of(batch, path), save, lambda _: None, lambda _: None)


def test_the_whole_procedure(volatile: Path) -> None:
    """A wrong time per event is adjusted twice; then 2, 4 and 8 cores run at the same time; eight are chosen."""
    batch = MadeUpBatch(times=(4.0, 4.0))
    done = drive(volatile / "state", batch)
    assert done.state == machine.PASSED
    assert [step.label for step in done.steps] == ["1c-1", "1c-2", "2c-1", "4c-1", "8c-1"]
    assert batch.most_at_once == 3 and not batch.killed


@pytest.mark.daemons
@pytest.mark.parametrize("times", [(4.0, 4.0), (10.0, 100.0, 1000.0)])
def test_a_kill_at_any_moment_loses_nothing_and_runs_nothing_twice(volatile: Path, times: tuple[float, ...]) -> None:
    """At each moment around every start, question and save (HOSTILE 51): the next run comes to the same end."""
    plain = MadeUpBatch(times)
    expected = drive(volatile / "plain", plain)
    for moment in range(1, plain.moment + 1):
        path, batch = volatile / f"killed-{moment}", MadeUpBatch(times, die_at=moment)
        with pytest.raises(Killed):
            drive(path, batch)
        again = drive(path, batch)
        assert again == expected, moment
        names = [run.name for run in batch.started]
        assert len(names) == len(set(names)) == len(plain.started), moment


def test_killed_again_and_again(volatile: Path) -> None:
    """A kill at every fourth touch still leads to the end."""
    batch = MadeUpBatch((4.0, 4.0))
    for _ in range(200):
        batch.die_at = batch.moment + 4
        try:
            done = drive(volatile / "state", batch)
            break
        except Killed:
            continue
    else:
        pytest.fail("it does not come to an end")
    assert done.state == machine.PASSED
    assert len({run.name for run in batch.started}) == len(batch.started) == 5


def test_a_failure_kills_what_runs_beside_it(volatile: Path) -> None:
    """The run on two cores ends with 3: those on four and eight are ended, also when the killer is killed itself.

    So is what is left of the failed one: HTCondor keeps a job that it held.
    """
    plain = MadeUpBatch()
    plain.codes["id-2c-1"] = 3
    done = drive(volatile / "plain", plain)
    assert (done.state, done.reason) == (machine.REFUSED, "2 cores: it ended with 3: it broke")
    assert plain.killed == ["id-2c-1", "id-4c-1", "id-8c-1"]
    for moment in range(plain.moment - 8, plain.moment + 1):
        batch = MadeUpBatch(die_at=moment)
        batch.codes["id-2c-1"] = 3
        with pytest.raises(Killed):
            drive(volatile / f"killed-{moment}", batch)
        assert drive(volatile / f"killed-{moment}", batch).state == machine.REFUSED
        assert set(batch.killed) == {"id-2c-1", "id-4c-1", "id-8c-1"}, moment


def test_a_batch_system_that_is_silent_for_a_while_is_waited_for(volatile: Path) -> None:
    """One that answered before may be restarted: nothing is lost and nothing runs twice; in the end it is told."""
    batch = MadeUpBatch()
    expected = drive(volatile / "plain", MadeUpBatch())
    said: list[str] = []
    with StateFile(str(volatile / "state")) as state:

        def wait(_: float) -> None:
            # It falls silent right after the runs on more cores were started, and again for longer than is waited.
            if len(batch.started) == 4 and not said:
                batch.silent = 100

        begun = machine.begin(REQUEST, "id")
        state.save(begun)
        done = run_to_end(
            begun,
            jobs_of(batch, volatile / "state"),
            state.save,
            lambda text: said.append(text) if "answer" in text else None,
            wait,
        )
    assert done == expected and len(batch.started) == 4
    assert said == ["the batch system does not answer; it is waited for"]
    batch = MadeUpBatch()
    with StateFile(str(volatile / "long")) as state, pytest.raises(PoolUnreachable):
        run_to_end(
            begun,
            jobs_of(batch, volatile / "state"),
            state.save,
            lambda _: None,
            lambda _: setattr(batch, "silent", 10**6),
        )
    begun = machine.started(begun, "1c-1", "0")
    silent, waited = MadeUpBatch(), list[float]()
    jobs_of(silent, volatile / "state").start(machine.run_of(begun, begun.steps[0]))
    silent.silent = 10**6
    with StateFile(str(volatile / "from the beginning")) as state, pytest.raises(PoolUnreachable):
        run_to_end(begun, jobs_of(silent, volatile / "state"), state.save, lambda _: None, waited.append)
    assert not waited  # nobody waits for what has never answered


@pytest.mark.parametrize("most", [1, 2])
def test_a_batch_system_that_is_full_is_asked_again(volatile: Path, most: int) -> None:
    """A limit on jobs is no refusal: what is there goes on, the others are started when there is room."""
    batch, said = MadeUpBatch(), list[str]()
    batch.most_starts = most
    with StateFile(str(volatile / "state")) as state:
        begun = machine.begin(REQUEST, "id")
        state.save(begun)
        done = run_to_end(begun, jobs_of(batch, volatile / "state"), state.save, said.append, lambda _: None)
    assert done.state == machine.PASSED and batch.most_at_once == most
    assert [run.name for run in batch.started] == ["id-1c-1", "id-2c-1", "id-4c-1", "id-8c-1"]
    refused = [text for text in said if "allowed" in text]
    assert refused[0] == f"{(2, 4, 8)[most]}c-1: 2 jobs are allowed per user; it is started later"
    assert len(refused) == len(set(refused))


def test_a_vanished_run_is_run_once_more(volatile: Path) -> None:
    """The batch system lost it: once is forgiven, twice is not."""
    batch = MadeUpBatch()
    batch.vanishing = {"id-1c-1"}
    assert drive(volatile / "once", batch).state == machine.PASSED
    assert [run.name for run in batch.started][:2] == ["id-1c-1", "id-1c-1-again1"]
    batch = MadeUpBatch()
    batch.vanishing = {"id-1c-1", "id-1c-1-again1"}
    assert "lost by the batch system 2 times: its lease supervisor vanished" in drive(volatile / "twice", batch).reason


def test_a_refused_start_fails_and_an_unreachable_batch_system_does_not(volatile: Path) -> None:
    """Refused: it will be the next time, too. No answer: the command ends, and goes on where it was later."""
    refusing, silent = MadeUpBatch(), MadeUpBatch()

    refusing.refusing = ActionRefused("no such queue")
    assert "it cannot be started: no such queue" in drive(volatile / "refused", refusing).reason
    silent.refusing = PoolError("no answer")
    with pytest.raises(PoolError):
        drive(volatile / "silent", silent)
    assert drive(volatile / "silent", MadeUpBatch()).state == machine.PASSED


def test_a_run_that_can_never_start_is_refused_before_anything_runs(volatile: Path) -> None:
    """Sixteen cores on nodes of eight: better now than after the single-core run."""
    batch = jobs_of(MadeUpBatch(), volatile / "state")
    refuse_impossible(REQUEST, batch)
    with pytest.raises(UsageError, match="the run on 16 cores can never start: the largest node has 8 cores"):
        refuse_impossible(replace(REQUEST, cores=(2, 16)), batch)
    refuse_impossible(replace(REQUEST, cores=(2, 16), can_thread=False), batch)


def test_the_state_reads_back_as_it_was_written(volatile: Path) -> None:
    """Also with checks, measurements and adjusted estimates in it."""
    for times in ((1.0,), (4.0, 4.0), (10.0, 100.0, 1000.0)):
        done = drive(volatile / f"{times}", MadeUpBatch(times))
        assert validation_in(text_of(done), "f") == done


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b'{"format": 2}', b'{"format": 1}', b"[" * 100_000, b"\xff\x00", b"x" * (1 << 23)],
)
def test_a_state_file_that_is_none_is_refused_by_name(volatile: Path, content: bytes) -> None:
    """A foreign, half or huge file is never taken for a validation, nor overwritten."""
    path = volatile / "r.state"
    path.write_bytes(content)
    with StateFile(str(path)) as state, pytest.raises(UsageError, match=r"r\.state"):
        state.load()
    assert path.read_bytes() == content


@pytest.mark.parametrize("key", ["cores", "attempt", "memory", "estimates", "state", "checks", "measurement"])
def test_a_changed_state_file_is_refused(key: str) -> None:
    """A value of another type in a step is not taken over."""
    value = json.loads(text_of(machine.begin(REQUEST, "id")))
    value["steps"][0][key] = "x"
    with pytest.raises(UsageError, match="not the state of a validation"):
        validation_in(json.dumps(value).encode(), "f")


def test_one_process_at_a_time(volatile: Path) -> None:
    """A second one is refused while the first one lives, and not after it was killed."""
    path = str(volatile / "r.state")
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()

    def hold() -> None:
        with StateFile(path):
            there.send("held")
            there.recv()

    holder = context.Process(target=hold)
    holder.start()
    assert here.recv() == "held"
    with pytest.raises(PoolError, match="another process runs this validation"):
        StateFile(path)
    holder.kill()
    holder.join()
    with StateFile(path) as state:
        assert state.load() is None


def test_a_state_that_cannot_be_kept_is_refused_at_once(volatile: Path) -> None:
    """Before anything is started."""
    with pytest.raises(UsageError, match="no place for a validation's state"):
        StateFile(str(volatile / "none" / "r.state"))
    os.symlink("/dev/null", volatile / "r.state.lock")
    with pytest.raises(UsageError, match="cannot be written"):
        StateFile(str(volatile / "r.state"))
