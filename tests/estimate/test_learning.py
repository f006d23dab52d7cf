"""A task is estimated at half of its scouts and at its first hundred jobs; later ones change run times alone."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from all_but_one import all_but_one
from drainwise.common.run_times import RunTimes
from drainwise_tasks.estimate import survey as survey_module
from drainwise_tasks.estimate.exhausted import RETRIED
from drainwise_tasks.estimate.learning import FIRST_JOBS, SCOUTS, Task, wall_time
from drainwise_tasks.estimate.parameters import Parameters
from drainwise_tasks.estimate.plot import scatter
from drainwise_tasks.estimate.records.record import NUMBERS, TOO_MANY_TASKS, Finished, finished_of
from drainwise_tasks.estimate.scouts import Sample
from drainwise_tasks.estimate.settings import Settings
from drainwise_tasks.estimate.survey import ALL_OTHERS, Survey, as_json

from .jobs import job, jobs


def task_of(*done: Finished, settings: Settings | None = None, parameters: Parameters | None = None) -> Task:
    task = Task("t", parameters or Parameters(), settings or Settings(), RunTimes())
    for one in done:
        task.add(one)
    return task


def test_both_triggers() -> None:
    """Nothing before the fifth of ten scouts, then the first estimate, at the hundredth job the second, no third."""
    task = task_of()
    expected = {4: [], 5: [SCOUTS], 99: [SCOUTS], 100: [SCOUTS, FIRST_JOBS], 300: [SCOUTS, FIRST_JOBS]}
    for number in range(1, 301):
        task.add(job(3000 + number, events=1000))
        if number in expected:
            assert [stage.name for stage in task.stages] == expected[number]
    assert [stage.jobs for stage in task.stages] == [5, 100]
    assert [figure.jobs for stage in task.stages for figure in stage.figures] == [5, 100]


def test_an_odd_number_of_scouts_is_rounded_up() -> None:
    """Half of three are two; how many are missing is known."""
    few = Settings(scouts=3)
    assert task_of(job(), settings=few).missing == 1
    assert task_of(job(), job(), settings=few).missing == 0
    assert [stage.jobs for stage in task_of(job(), job(), settings=few).stages] == [2]


def test_one_job_alone_is_no_estimate() -> None:
    """Neither figures nor an expected run time come from one job."""
    task = task_of(job(events=1000, memory_bytes=1e9))
    assert not task.stages and task.missing == 4 and task.expected(job()) is None


def test_failed_jobs_are_no_scouts() -> None:
    """They count as failed and their run times are known, but no figure comes from them."""
    retried = Parameters(attempts=3)
    task = task_of(*[job(good=False)] * 50, *[job(events=1000)] * 4, parameters=retried)
    assert not task.stages and (task.failed, task.good, task.ended) == (50, 4, 54)
    assert RETRIED in {verdict.rule for verdict in task.verdicts()}


@given(st.lists(jobs(), min_size=3, max_size=9))
def test_a_stage_is_what_its_jobs_say(done: list[Finished]) -> None:
    """The second estimate equals the figures of the first hundred good jobs calculated at once (here: four)."""
    task = task_of(*done, settings=Settings(first_jobs=4))
    good = [one for one in done if one.good][:4]
    sample = Sample(Parameters())
    for one in good:
        sample.add(one)
    stages = {stage.name: stage for stage in task.stages}
    assert (FIRST_JOBS in stages) == (len(good) == 4)
    if FIRST_JOBS in stages:
        assert stages[FIRST_JOBS].figures == sample.figures(Settings())


def test_events_say_more_than_the_task_s_run_times() -> None:
    """Twice the events are expected to take twice the time that scales, half the power too."""
    task = task_of(*[job(4600, events=1000, core_power=10)] * 5)
    assert task.expected(job(events=1000, core_power=10)) == 4600
    assert task.expected(job(events=2000, core_power=10)) == 8600
    assert task.expected(job(events=1000, core_power=5)) == 8600
    assert task.expected(job()) == pytest.approx(4600, rel=0.1)
    # All within baseTime: nothing scaled, and a wall time of 600 s at least would be wrong.
    assert task_of(*[job(5, events=1000)] * 5).expected(job(events=1000)) == pytest.approx(5, rel=0.1)


def test_an_estimate_is_made_before_its_job_counts() -> None:
    """What is held against the truth is what was expected before, never the job itself."""
    task = task_of(*[job(100)] * 5)
    assert task.add(job(900, requested=3600)) == pytest.approx(100, rel=0.1)
    assert (task.estimated.jobs, task.asked.jobs) == (1, 1)
    ratio = task.estimated.ratio(1)
    assert ratio is not None and abs(ratio - 9) < 0.9


def test_two_tasks_never_mix() -> None:
    """Each task's figures come from its own jobs, however they are interleaved."""
    skips: Counter[str] = Counter()
    survey = Survey(Settings(), {}, skips)
    survey.add_all(job(seconds, task=name) for _ in range(10) for name, seconds in (("a", 100), ("b", 5000)))
    expected = {name: task.run_times.expected(task.kind) for name, task in survey.tasks.items()}
    assert expected == pytest.approx({"a": 100, "b": 5000}, rel=0.1)
    assert all((task.estimated.ratio(1) or 9) < 1.1 for task in survey.tasks.values())


def test_parameters_go_to_their_task() -> None:
    """By name, and those under * to all others."""
    survey = Survey(Settings(), {"a": Parameters(cpu_time=1), ALL_OTHERS: Parameters(cpu_time=2)}, Counter())
    survey.add_all([job(task="a"), job(task="b")])
    assert [task.parameters.cpu_time for task in survey.tasks.values()] == [1, 2]


def test_tasks_and_points_are_bounded() -> None:
    """HOSTILE 22: a task per job, or very many jobs: counted skips and a sample, not memory."""
    skips: Counter[str] = Counter()
    survey = Survey(Settings(), {}, skips)
    survey.add_all(job(task=str(number)) for number in range(survey_module.MOST_TASKS + 5))
    assert skips == {TOO_MANY_TASKS: 5} and len(survey.tasks) == survey_module.MOST_TASKS
    many = Survey(Settings(), {}, Counter())
    many.add_all(job(number) for number in range(10_000))
    assert survey_module.MOST_POINTS / 2 <= len(many.points) <= survey_module.MOST_POINTS
    assert many.points[0][2] < 1000 and many.points[-1][2] > 9000


def test_json_says_all_of_it() -> None:
    """Figures with before, unit and jobs; verdicts; error ratios; what was skipped."""
    skips = Counter({"not JSON": 2})
    survey = Survey(Settings(), {ALL_OTHERS: Parameters(ram_count=1)}, skips)
    survey.add_all([job(100, memory_bytes=1e9, requested=1000)] * 10)
    found = as_json(survey)
    assert found["skipped"] == {"not JSON": 2}
    task = found["tasks"]["t"]  # type: ignore[index]
    assert task["jobs"] == {"ended": 10, "good": 10, "failed": 0} and task["missing"] == 0
    ram = task["stages"][0]["figures"]["ramCount"]
    assert (ram["before"], ram["unit"], ram["jobs"]) == (1, "MBPerCore", 5)
    assert task["error_ratio"]["estimate"] == {
        "jobs": 5,
        "median": pytest.approx(1, rel=0.1),
        "p90": pytest.approx(1, rel=0.1),
    }


extremes = st.sampled_from([None, 0, 1e-300, 1e-6, 1, 1e18])


@given(
    st.dictionaries(st.sampled_from(NUMBERS), extremes),
    st.sampled_from([1, 1.0000000001, 1e9, 1e18]),
    st.sampled_from([1, 10**18]),
)
def test_the_ends_of_the_ranges_make_finite_figures(numbers: dict[str, float], end: float, cores: int) -> None:
    """HOSTILE 36, 37: the smallest and largest that a record may say: no overflow, and JSON can hold the figures."""
    known = {name: value for name, value in numbers.items() if value is not None}
    one = finished_of({"task": "t", "start": 1, "end": end, "cores": cores, **known})
    assume(isinstance(one, Finished))
    assert isinstance(one, Finished)
    survey = Survey(Settings(), {ALL_OTHERS: Parameters(cpu_time=1e18, tgt_max_output_for_ng=1e18)}, Counter())
    survey.add_all([one] * 12)
    json.dumps(as_json(survey), allow_nan=False)
    scatter(survey.points)


@given(
    all_but_one(
        {name: st.floats(1, 100) for name in ("cpu_time", "events", "power", "efficiency")}
        | {"cores": st.integers(1, 9)},
        {name: st.floats() for name in ("cpu_time", "events", "power", "efficiency")} | {"cores": st.integers(-1, 0)},
    )
)
def test_wall_time_is_a_time_or_nothing(said: dict[str, Any]) -> None:
    """HOSTILE 36: NaN, negative, zero events or cores: None, never a wrong number."""
    cpu_time, events, power, efficiency, cores = said.values()
    found = wall_time(cpu_time, events, cores, power, efficiency)
    if found is not None:
        assert cpu_time >= 0 and events > 0 and cores >= 1 and power > 0 and 0 < efficiency <= 100
        assert 600 <= found < math.inf


def test_wall_time_by_hand() -> None:
    """288 HS06 s per event, 1000 events on 8 cores of 10 HS06 at 90 per cent: 4000 s, and 600 of base time."""
    assert wall_time(288, 1000, 8, 10) == 4600
    assert wall_time(288, 1000, 8, 10, cpu_efficiency=0) is None
