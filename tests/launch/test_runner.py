"""The loop against a batch system with a clock of its own: caps, order, loss, silence, and going on after a crash."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drainwise.facts.errors import PoolError
from drainwise_launch.backend import DONE as BACKEND_DONE
from drainwise_launch.backend import JobState, Start
from drainwise_launch.choice.engine import Engine
from drainwise_launch.choice.resources import Resources
from drainwise_launch.choice.work import DONE, FAILED, READY, SKIPPED, STARTED, Work
from drainwise_launch.run import job_runs
from drainwise_launch.run.earlier_runs import recall
from drainwise_launch.run.runner import Intervals, LaunchRunner
from drainwise_launch.run.starts import Starts
from drainwise_launch.run.store import Store

from .made_up import MadeUpSystem

FAST = Intervals(poll=0, priorities=0, least_move=0.5, expect=0, look=1.0)


@pytest.fixture
def tmp_path(volatile: Path) -> Path:
    """In memory: each launch commits some hundred times."""
    return volatile


def work(name: str, *after: str, seconds: float = 3, mem: int = 0, rule: str = "") -> Work:
    return Work(name, ("work", str(seconds)), after, Resources(1, mem), rule, "made-up", expected=seconds)


class Launch:
    """One run of a launch on a system, in a directory that the next run finds again."""

    def __init__(
        self,
        directory: Path,
        system: MadeUpSystem,
        works: Iterable[Work],
        take_up: bool = True,
        at_once: int | None = None,
        other: MadeUpSystem | None = None,
    ) -> None:
        (directory / "out").mkdir(exist_ok=True)
        self.said: list[str] = []
        self.going = False
        self.system = system
        self.store = Store(str(directory))
        self.engine = Engine(self.store.rules())
        self.engine.add(works)
        self.earlier = recall(self.engine, self.store)
        self.engine.request()
        starts = Starts({}, str(directory / "out"))
        self.runner = LaunchRunner(
            self.engine,
            {"made-up": system, **({} if other is None else {"other": other})},
            self.store,
            starts,
            "state",
            self.said.append,
            intervals=FAST,
            clock=lambda: system.now,
            take_up=take_up,
            at_once=at_once,
        )

    def rounds(self, count: int) -> None:
        """Some looks, then nothing more: as if killed."""
        if not self.going:
            self.going = True
            self.runner._runs.find_again(self.runner._states, True)
        for _ in range(count):
            self.runner.round(self.system.now)
            self.system.wait(1.0)

    def crash(self) -> None:
        """Lose what was not committed."""
        self.store._base.rollback()
        self.store._base.close()

    def run(self) -> dict[str, str]:
        """To the end: the states by name."""
        if self.going:
            while self.engine.unfinished and not self.runner._runs.stopped:
                self.rounds(1)
            if self.runner._runs.stopped:
                self.runner._end_all()
            self.runner._runs.keep()
        else:
            self.runner.run()
        self.store.close()
        return self.states()

    def states(self) -> dict[str, str]:
        return {job.name: job.state for job in self.engine.graph.jobs}


def open_starts(directory: Path) -> list[str]:
    store = Store(str(directory))
    found = [start.name for start in store.open_starts()]
    store.close()
    return found


def test_never_more_wait_in_a_bucket_than_allowed_and_the_urgent_ones_go_first(tmp_path: Path) -> None:
    """200 jobs in five buckets with dependencies; a cap of 3; within a bucket the longest chains start first."""
    system = MadeUpSystem(slots=7, max_queued=3)
    works = [
        work(f"j{n}", *([f"j{n - 100}"] if n >= 100 else []), seconds=1 + n % 9, mem=100 << n % 5) for n in range(200)
    ]
    launch = Launch(tmp_path, system, works)
    assert set(launch.run().values()) == {DONE}
    assert system.most_queued == 3 and len(system.submitted) == len(set(system.submitted)) == 200
    for bucket in range(5):
        first = [n for n in (int(name[1:]) for name in system.submitted) if n < 100 and n % 5 == bucket]
        chain = [1 + n % 9 + 1 + (n + 100) % 9 for n in first]
        assert chain == sorted(chain, reverse=True)


def test_never_more_are_there_than_one_says_those_that_wait_included(tmp_path: Path) -> None:
    system = MadeUpSystem(slots=1)
    launch = Launch(tmp_path, system, [work(f"j{n}", mem=1 << n) for n in range(12)], at_once=3)
    most = 0
    while launch.engine.unfinished:
        launch.rounds(1)
        most = max(most, len(system.jobs) - len(system.ended))
    assert most == 3 and set(launch.run().values()) == {DONE}


def test_one_that_fails_takes_what_comes_after_it_along_and_says_so(tmp_path: Path) -> None:
    system = MadeUpSystem()
    system.codes["a"] = 3
    launch = Launch(tmp_path, system, [work("a"), work("b", "a"), work("c")])
    assert launch.run() == {"a": FAILED, "b": SKIPPED, "c": DONE}
    assert launch.said == [f"job a: ended with 3; 1 after it are not run ({tmp_path}/out/a.out)"]


def test_what_vanishes_is_started_once_more_and_not_twice_more(tmp_path: Path) -> None:
    system = MadeUpSystem()
    system.lost.update({"once": 1, "twice": 2})
    launch = Launch(tmp_path, system, [work("once"), work("twice"), work("after", "twice")])
    assert launch.run() == {"once": DONE, "twice": FAILED, "after": SKIPPED}
    assert sorted(system.submitted) == ["once", "once", "twice", "twice"]
    assert "job once: vanished from made-up: no record of it; it is started once more" in launch.said
    assert any("job twice: vanished" in line and "the second time" in line for line in launch.said)


def test_what_is_refused_fails_with_the_reason(tmp_path: Path) -> None:
    system = MadeUpSystem()
    system.refused.add("a")
    launch = Launch(tmp_path, system, [work("a"), work("b")])
    assert launch.run() == {"a": FAILED, "b": DONE}
    assert "cannot be started: no such partition" in launch.said[0]


def test_a_daemon_that_goes_away_is_waited_for_and_nothing_is_lost_or_twice(tmp_path: Path) -> None:
    """Unreachable is not vanished: said once, asked ever more rarely, and all is done when it is back."""
    system = MadeUpSystem(slots=2)
    launch = Launch(tmp_path, system, [work(f"j{n}") for n in range(12)])
    launch.rounds(4)
    system.away = True
    launch.rounds(200)
    assert len(launch.said) == 1 and "made-up: the daemon does not answer" in launch.said[0]
    assert launch.runner._states["made-up"]._asking.seconds == 60.0
    system.away = False
    assert set(launch.run().values()) == {DONE}
    assert len(system.submitted) == 12 and "made-up: answers again" in launch.said


def test_a_start_whose_answer_is_lost_is_found_and_not_made_again(tmp_path: Path) -> None:
    system = MadeUpSystem()
    system.deaf = 2
    launch = Launch(tmp_path, system, [work(f"j{n}") for n in range(5)])
    assert set(launch.run().values()) == {DONE}
    assert sorted(system.submitted) == [f"j{n}" for n in range(5)]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 6), min_size=1, max_size=4), st.integers(0, 3), st.integers(1, 4))
def test_killed_at_any_moment_it_goes_on_and_starts_nothing_twice(
    tmp_path: Path, kills: list[int], deaf: int, cap: int
) -> None:
    """The launcher dies after so many looks, again and again, and answers get lost besides (HOSTILE 51)."""
    directory = Path(tempfile.mkdtemp(dir=tmp_path))
    system = MadeUpSystem(slots=3, max_queued=cap)
    system.deaf = deaf
    works = [work(f"j{n}", *([f"j{n - 4}"] if n >= 4 else []), seconds=1 + n % 3) for n in range(10)]
    for looks in kills:
        launch = Launch(directory, system, works)
        launch.rounds(looks)
        launch.crash()
        system.wait(2.0)
    assert set(Launch(directory, system, works).run().values()) == {DONE}
    assert sorted(system.submitted) == sorted(f"j{n}" for n in range(10))
    assert system.most_queued <= cap


class Killed(BaseException):
    """SIGKILL, in the midst of anything."""


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.integers(0, 40), st.booleans()), min_size=1, max_size=5),
    st.integers(0, 2),
    st.none() | st.integers(1, 4),
)
def test_killed_between_any_two_steps_nothing_is_lost_or_started_twice(
    tmp_path: Path, deaths: list[tuple[int, bool]], deaf: int, limit: int | None
) -> None:
    """Before or after any order or question to the batch system, and any commit; a limit on jobs besides."""
    directory = Path(tempfile.mkdtemp(dir=tmp_path))
    system = MadeUpSystem(slots=2, max_queued=2)
    system.deaf, system.limit = deaf, limit
    works = [work(f"j{n}", *([f"j{n - 3}"] if n >= 3 else []), seconds=1 + n % 3) for n in range(8)]
    for left, after in deaths:
        launch = Launch(directory, system, works)
        steps = iter(range(left, -1, -1))

        def deadly(
            act: Callable[..., object], steps: Iterator[int] = steps, after: bool = after
        ) -> Callable[..., object]:
            def acts(*arguments: object) -> object:
                is_last = next(steps, 1) == 0
                if is_last and not after:
                    raise Killed
                result = act(*arguments)
                if is_last:
                    raise Killed
                return result

            return acts

        with pytest.MonkeyPatch.context() as patch:
            for name in ("start", "find", "poll", "kill", "reprioritise"):
                patch.setattr(system, name, deadly(getattr(system, name)))
            patch.setattr(launch.store, "commit", deadly(launch.store.commit))
            with contextlib.suppress(Killed):
                launch.rounds(30)
        launch.crash()
        system.wait(1.0)
    assert set(Launch(directory, system, works).run().values()) == {DONE}
    assert sorted(system.submitted) == [f"j{n}" for n in range(8)]
    assert system.most_queued <= 2


def test_a_second_run_does_only_what_is_not_done(tmp_path: Path) -> None:
    """Nor what comes after a job that has changed: its result is another one."""
    system = MadeUpSystem()
    works = [work("a"), work("b", "a"), work("c")]
    Launch(tmp_path, system, works).run()
    again = Launch(tmp_path, system, works)
    assert again.earlier == 3 and again.run() == dict.fromkeys("abc", DONE) and len(system.submitted) == 3
    changed = Launch(tmp_path, system, [work("a", seconds=4), *works[1:]])
    assert changed.earlier == 1 and changed.run() == dict.fromkeys("abc", DONE)
    assert system.submitted[3:] == ["a", "b"]


def test_what_failed_is_run_again_by_the_next_run(tmp_path: Path) -> None:
    system = MadeUpSystem()
    system.codes["a"] = 1
    Launch(tmp_path, system, [work("a"), work("b")]).run()
    system.codes.clear()
    assert Launch(tmp_path, system, [work("a"), work("b")]).run() == {"a": DONE, "b": DONE}
    assert sorted(system.submitted) == ["a", "a", "b"]


def test_times_are_remembered_by_job_and_by_rule(tmp_path: Path) -> None:
    system = MadeUpSystem()
    Launch(tmp_path, system, [work("a", seconds=7, rule="r")]).run()
    launch = Launch(tmp_path, system, [work("a", seconds=7, rule="r"), work("new", seconds=1, rule="r")])
    assert launch.engine.graph.find("a").last_success == 7.0
    assert launch.engine.graph.find("new").ete == 7.0


def test_stopping_kills_what_was_started_and_the_next_run_goes_on(tmp_path: Path) -> None:
    """Also what waits there. What was killed by us has not failed."""
    system = MadeUpSystem(slots=2, max_queued=3)
    works = [work(f"j{n}") for n in range(8)]
    launch = Launch(tmp_path, system, works)
    launch.rounds(6)
    before = sum(state == DONE for state in launch.states().values())
    assert before >= 2 and STARTED in launch.states().values()
    launch.runner.stop()
    states = launch.run()
    assert set(states.values()) == {DONE, READY} and not open_starts(tmp_path)
    assert all(tag in system.ended for tag in system.jobs)
    assert set(Launch(tmp_path, system, works).run().values()) == {DONE}


def test_a_job_that_is_another_one_by_now_is_ended_and_run_anew(tmp_path: Path) -> None:
    """It still runs in the batch system as it was before the file was changed."""
    system = MadeUpSystem()
    launch = Launch(tmp_path, system, [work("a", seconds=100), work("gone", seconds=100)])
    launch.rounds(3)
    launch.crash()
    assert Launch(tmp_path, system, [work("a", seconds=2)]).run() == {"a": DONE}
    assert system.submitted == ["a", "gone", "a"]
    assert [state.why for state in system.ended.values()] == ["killed", "killed", ""]


def test_an_old_start_that_cannot_be_ended_yet_is_waited_for(tmp_path: Path) -> None:
    """The batch system does not answer when the changed job is to start: never both at once."""
    system = MadeUpSystem()
    launch = Launch(tmp_path, system, [work("a", seconds=100), work("gone", seconds=100)])
    launch.rounds(3)
    launch.crash()
    system.away = True
    launch = Launch(tmp_path, system, [work("a", seconds=2)])
    launch.rounds(5)
    assert system.submitted == ["a", "gone"] and not system.ended
    system.away = False
    assert launch.run() == {"a": DONE} and not open_starts(tmp_path)
    assert system.submitted == ["a", "gone", "a"]
    assert [state.why for state in system.ended.values()] == ["killed", "killed", ""]


def test_a_job_that_goes_elsewhere_now_is_ended_where_it_was(tmp_path: Path) -> None:
    """Another backend was chosen after the launcher was killed."""
    system, other = MadeUpSystem(), MadeUpSystem()
    launch = Launch(tmp_path, system, [work("a", seconds=50)])
    launch.rounds(3)
    launch.crash()
    launch = Launch(tmp_path, system, [work("a", seconds=50)._replace(backend="other")], other=other)
    for _ in range(60):
        launch.rounds(1)
        other.wait(1.0)
    assert launch.states() == {"a": DONE} and other.submitted == ["a"] == system.submitted
    assert [state.why for state in system.ended.values()] == ["killed"]


def test_anew_ends_what_still_runs(tmp_path: Path) -> None:
    system = MadeUpSystem()
    launch = Launch(tmp_path, system, [work("a", seconds=50)])
    launch.rounds(3)
    launch.crash()
    assert Launch(tmp_path, system, [work("a", seconds=50)], take_up=False).run() == {"a": DONE}
    assert system.submitted == ["a", "a"] and next(iter(system.ended.values())).why == "killed"


def test_new_indications_are_told_of_those_that_wait(tmp_path: Path) -> None:
    """The chain behind a waiting one is expected to take longer: its priority there becomes an earlier date."""
    system = MadeUpSystem(slots=0, max_queued=5)
    launch = Launch(tmp_path, system, [work("a", seconds=5), work("b", seconds=5), work("behind", "b", seconds=5)])
    launch.rounds(2)
    launch.engine.remember(launch.engine.graph.find("behind"), 500.0)
    launch.engine.reckon()
    launch.rounds(2)
    told = {system.jobs[tag].name: when for tag, when in system.priorities.items()}
    assert told["b"] < told["a"] - 400 and system.moves >= 1
    system.slots = 1
    launch.run()
    assert system.order[0] == "b"


def test_a_launch_that_cannot_go_on_says_so(tmp_path: Path) -> None:
    """Rather than wait for ever: a job of a backend that nobody serves."""
    launch = Launch(tmp_path, MadeUpSystem(), [Work("a", ("true",), backend="elsewhere")])
    with pytest.raises(PoolError, match="1 jobs wait, nothing runs"):
        launch.run()


def test_a_job_is_told_what_it_was_given(tmp_path: Path) -> None:
    system = MadeUpSystem()
    seen: list[Start] = []
    system.at_start = seen.append
    resources = Resources(2, 100, 5, (("gpu.a100", 1),))
    only = Work("a;b", ("work", "1"), resources=resources, backend="made-up", environment=(("X", "1"),))
    Launch(tmp_path, system, [only]).run()
    [start] = seen
    assert start.environment == {
        "X": "1",
        "DRAINWISE_CPU": "2",
        "DRAINWISE_MEM": "100",
        "DRAINWISE_TMP": "5",
        "DRAINWISE_RESOURCE_GPU_A100": "1",
        "DRAINWISE_LAUNCH_JOB": "a;b",
    }
    assert os.path.dirname(start.stdout) == f"{tmp_path}/out" and ";" not in start.stdout
    assert start.tag.startswith("state-") and len(start.tag) <= 64


def test_a_clock_that_is_turned_back_stops_nothing(tmp_path: Path) -> None:
    """HOSTILE 53: also while the batch system does not answer."""
    system = MadeUpSystem()
    launch = Launch(tmp_path, system, [work(f"j{n}") for n in range(4)])
    launch.rounds(1)
    system.away = True
    launch.rounds(30)
    system.away = False
    system.now -= 1e6
    system.began = dict.fromkeys(system.began, system.now)
    for _ in range(60):
        launch.rounds(1)
    assert set(launch.states().values()) == {DONE}


def test_told_to_stop_in_the_midst_of_starting_it_starts_no_more(tmp_path: Path) -> None:
    system = MadeUpSystem(max_queued=100)
    launch = Launch(tmp_path, system, [work(f"j{n}") for n in range(50)])
    begin = system.start

    def start(job: Start) -> str:
        if len(system.submitted) == 7:
            launch.runner.stop()
        return begin(job)

    system.start = start  # type: ignore[method-assign]
    states = launch.run()
    assert len(system.submitted) == 8 and set(states.values()) == {READY} and not open_starts(tmp_path)


def test_refusals_that_take_their_time_are_no_standstill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look ends after a while, with nothing running yet and jobs that may start."""
    monkeypatch.setattr(job_runs, "_LONGEST", 1e-9)
    system = MadeUpSystem()
    names = [f"j{n}" for n in range(30)]
    system.refused.update(names[:25])
    states = Launch(tmp_path, system, map(work, names)).run()
    assert list(states.values()) == [FAILED] * 25 + [DONE] * 5


def test_where_a_limit_is_reached_only_starts_pause(tmp_path: Path) -> None:
    """Said once; an end there lifts the pause at the next look; nothing is lost or started twice."""
    system = MadeUpSystem(slots=2, max_queued=9)
    system.limit = 3
    launch = Launch(tmp_path, system, [work(f"j{n}") for n in range(20)])
    assert set(launch.run().values()) == {DONE} and not open_starts(tmp_path)
    assert launch.said == ["made-up: at most 3 jobs of a user; the others are started there as it takes them"]
    assert sorted(system.submitted) == sorted(f"j{n}" for n in range(20))
    # Two end every three seconds: with pauses of up to a minute it would take many times as long.
    assert system.now - 1000 < 60


def test_while_a_limit_is_reached_polls_kills_and_priorities_go_on(tmp_path: Path) -> None:
    """The jobs of others fill it: ever fewer tries, and what is there is seen to run, moved, ended."""
    system = MadeUpSystem(slots=0, max_queued=9)
    launch = Launch(tmp_path, system, [work("old", seconds=500)])
    launch.rounds(2)
    launch.crash()
    system.limit = 3
    works = [work("old", seconds=400), *(work(f"j{n}", seconds=5) for n in range(6))]
    launch = Launch(tmp_path, system, works)
    launch.rounds(2)
    assert [state.why for state in system.ended.values()] == ["killed"]
    launch.rounds(10)
    waiting = [system.jobs[tag].name for tag in system._waiting()]
    tries = system.tries
    launch.engine.remember(launch.engine.graph.find(waiting[-1]), 900.0)
    launch.engine.reckon()
    launch.rounds(100)
    assert system.tries - tries <= 6 and len(system.jobs) - len(system.ended) == 3
    told = {system.jobs[tag].name: when for tag, when in system.priorities.items()}
    assert told[waiting[-1]] < told[waiting[0]] - 400
    assert sum("as it takes them" in line for line in launch.said) == 1
    system.slots = 3
    launch.rounds(8)
    assert STARTED in launch.states().values() and DONE in launch.states().values()
    launch.runner.stop()
    launch.run()
    assert all(tag in system.ended for tag in system.jobs) and not open_starts(tmp_path)


def test_a_limit_of_one_backend_is_none_of_another(tmp_path: Path) -> None:
    system, other = MadeUpSystem(), MadeUpSystem()
    system.limit = 0
    works = [work("a"), *(work(f"b{n}")._replace(backend="other") for n in range(8))]
    launch = Launch(tmp_path, system, works, other=other)
    for _ in range(25):
        launch.rounds(1)
        other.wait(1.0)
    assert launch.states() == {"a": READY, **{f"b{n}": DONE for n in range(8)}}


def test_a_submission_that_never_answers_does_not_hide_how_others_fare(tmp_path: Path) -> None:
    """They are seen to end, though their batch system is silent about one job; that is said once."""
    system = MadeUpSystem(slots=9, max_queued=9)
    system.hangs.add("poison")
    works = [*(work(f"j{n}", seconds=3) for n in range(4)), work("poison", "j0", seconds=100)]
    launch = Launch(tmp_path, system, works)
    launch.rounds(8)
    assert [state for state in launch.states().values() if state == DONE] == [DONE] * 4
    launch.rounds(100)
    assert system.tries < 20 and len(launch.said) == 1
    system.hangs.clear()
    assert set(launch.run().values()) == {DONE} and launch.said[1:] == ["made-up: answers again"]


def test_a_submission_that_was_lost_is_the_next_one(tmp_path: Path) -> None:
    """The order is kept when the batch system is silent for once."""
    system = MadeUpSystem(slots=1, max_queued=2)
    launch = Launch(tmp_path, system, [work(f"j{n}", seconds=9 - n) for n in range(5)])
    system.hangs.add("j0")
    launch.rounds(1)
    assert not system.submitted
    system.hangs.clear()
    assert set(launch.run().values()) == {DONE} and system.submitted == [f"j{n}" for n in range(5)]


def test_what_waits_in_a_batch_system_has_not_run_yet(tmp_path: Path) -> None:
    """However long it waits there, all of it lies ahead: else the ETA, and the priorities, would be now."""
    system = MadeUpSystem(slots=0)
    launch = Launch(tmp_path, system, [work("a", seconds=300)])
    launch.rounds(200)
    assert launch.runner.progress.eta == pytest.approx(system.now + 300, abs=2)
    system.slots = 1
    launch.rounds(103)
    assert launch.runner.progress.eta == pytest.approx(system.now + 200, abs=4)


def test_a_time_that_nobody_saw_is_not_learned(tmp_path: Path) -> None:
    """The batch system forgot how long it ran, and between two looks it waited and ran: the ETE stays."""
    system = MadeUpSystem()
    launch = Launch(tmp_path, system, [work("a", seconds=1, rule="r")])
    launch.rounds(1)
    [tag] = system.jobs
    system.ended[tag] = JobState(BACKEND_DONE, 0)
    launch.rounds(1)
    a = launch.engine.graph.find("a")
    assert (a.state, a.seconds, a.last_success) == (DONE, None, None) and not launch.engine.rules


def test_a_start_that_was_found_again_counts_as_one(tmp_path: Path) -> None:
    """Its answer was lost, and then it vanished twice: no third try."""
    system = MadeUpSystem()
    system.deaf, system.lost["a"] = 1, 5
    assert Launch(tmp_path, system, [work("a")]).run() == {"a": FAILED}
    assert system.submitted == ["a", "a"]


def test_what_no_job_names_any_more_is_ended_though_nothing_is_left_to_do(tmp_path: Path) -> None:
    system = MadeUpSystem()
    launch = Launch(tmp_path, system, [work("a", seconds=1), work("gone", seconds=500)])
    launch.rounds(6)
    launch.crash()
    assert Launch(tmp_path, system, [work("a", seconds=1)]).run() == {"a": DONE}
    assert [state.why for state in system.ended.values()] == ["", "killed"] and not open_starts(tmp_path)


def test_a_reason_of_any_bytes_is_kept(tmp_path: Path) -> None:
    """HOSTILE 15: the directory of the file has a name that is no UTF-8."""
    system = MadeUpSystem()
    system.refused.add("a")
    system.why = os.fsdecode(b"no \xff here")
    launch = Launch(tmp_path, system, [work("a")])
    assert launch.run() == {"a": FAILED} and launch.engine.graph.find("a").why.endswith("no \\udcff here")


def test_an_order_that_is_refused_hides_nothing_and_is_told_once(tmp_path: Path) -> None:
    """A job of an earlier run that cannot be killed: the others are seen to end."""
    system = MadeUpSystem()
    launch = Launch(tmp_path, system, [work("gone", seconds=500), work("changed", seconds=500)])
    launch.rounds(2)
    launch.crash()
    system.keeps = True
    launch = Launch(tmp_path, system, [work("changed", seconds=400), work("a"), work("b", "a")])
    launch.rounds(20)
    assert launch.states() == {"changed": STARTED, "a": DONE, "b": DONE}
    assert launch.said == ["made-up: you may not end jobs"]
    system.keeps = False
    assert set(launch.run().values()) == {DONE} and not open_starts(tmp_path)
