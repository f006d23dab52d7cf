"""Each rule speaks where it should, with its figures, and is silent one step before and when it is switched off."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.common.run_times import RunTimes
from drainwise_tasks.estimate import exhausted
from drainwise_tasks.estimate.exhausted import RULES, Evidence, TaskVerdict, is_exhausted, verdicts
from drainwise_tasks.estimate.learning import Task
from drainwise_tasks.estimate.parameters import Parameters
from drainwise_tasks.estimate.quantities import KB, MB
from drainwise_tasks.estimate.records.record import Finished
from drainwise_tasks.estimate.scouts import Sample
from drainwise_tasks.estimate.settings import Settings

from .jobs import job, jobs

DEFAULTS = Settings()


def evidence(*done: Finished, task: Parameters, failed: int = 0, external: int = 0) -> Evidence:
    """What these good jobs say, and so many failed ones."""
    sample = Sample(task)
    for one in done:
        sample.add(one)
    return Evidence(done, sample.figures(DEFAULTS), len(done) + failed, failed, external)


def spoken(
    *done: Finished, task: Parameters | None = None, settings: Settings = DEFAULTS, failed: int = 0, external: int = 0
) -> dict[str, TaskVerdict]:
    """The rules that speak."""
    known = task or Parameters()
    found = verdicts(evidence(*done, task=known, failed=failed, external=external), known, settings)
    return {verdict.rule: verdict for verdict in found}


@pytest.mark.parametrize(
    ("rule", "state", "limit", "off"),
    [
        (exhausted.BROKERAGE, {"broker_failures": 10}, {"broker_failures": 11}, {"max_broker_failures": None}),
        (exhausted.EXTERNAL, {"external_failures": 5}, {"external_failures": 6}, {"max_external_failures": None}),
    ],
)
def test_rules_on_the_state_of_a_task(
    rule: str, state: dict[str, float], limit: dict[str, float], off: dict[str, None]
) -> None:
    """At the threshold they are silent, one more and they speak; None switches them off."""
    assert rule not in spoken(task=Parameters(**state))  # type: ignore[arg-type]
    loud = Parameters(**limit)  # type: ignore[arg-type]
    [value] = limit.values()
    assert f"{value:g}" in spoken(task=loud)[rule].figures
    assert rule not in spoken(task=loud, settings=Settings(**off))  # type: ignore[arg-type]


def test_too_many_queued() -> None:
    """More than twice CAP_RUNNING_USER_JOBS; without a cap the rule is off."""
    cap = Settings(cap_running_user_jobs=100)
    assert exhausted.QUEUED not in spoken(task=Parameters(queued_jobs=200), settings=cap)
    assert "201 queued" in spoken(task=Parameters(queued_jobs=201), settings=cap)[exhausted.QUEUED].figures
    assert exhausted.QUEUED not in spoken(task=Parameters(queued_jobs=1e9))


def test_failures_from_outside_are_counted_from_the_jobs() -> None:
    """Six failed jobs with a cause outside speak as six reported failures do."""
    assert exhausted.EXTERNAL in spoken(*[job()] * 10, failed=6, external=6)
    assert exhausted.EXTERNAL not in spoken(*[job()] * 10, failed=6, external=5)


RETRIED = Parameters(attempts=3)


def test_retried_and_failing_is_one_rule() -> None:
    """Tried three times alone, or failing alone, says nothing; both together do, with both figures."""
    assert exhausted.RETRIED not in spoken(*[job()] * 5, task=RETRIED)
    assert exhausted.RETRIED not in spoken(job(), job(), task=Parameters(attempts=2), failed=3)
    said = spoken(job(), job(), task=RETRIED, failed=3)[exhausted.RETRIED].figures
    assert "tried 3 times, at least 3" in said and "3 of 5 jobs failed, 60 %" in said
    off = Settings(task_max_attempt=None)
    assert exhausted.RETRIED not in spoken(job(), job(), task=RETRIED, failed=3, settings=off)


def test_a_failure_rate_needs_half_as_many_jobs_as_there_are_scouts() -> None:
    """The first jobs alone are no rate, and half of all is not more than half."""
    assert exhausted.RETRIED not in spoken(job(), job(), job(), task=RETRIED, failed=3)
    assert exhausted.RETRIED not in spoken(task=RETRIED, failed=4)
    assert not spoken()


def test_few_failures_that_cost_most_of_the_work() -> None:
    """A failed job weighs what it cost: its time on its cores, at their power."""

    def judged(seconds: float, cores: int, power: float) -> dict[str, TaskVerdict]:
        task = Task("a", RETRIED, DEFAULTS, RunTimes())
        for _ in range(9):
            task.add(job(seconds=1000, cores=1, core_power=10))
        task.add(job(seconds=seconds, cores=cores, core_power=power, good=False))
        return {verdict.rule: verdict for verdict in task.verdicts()}

    assert exhausted.RETRIED not in judged(9000, 1, 10)
    for seconds, cores, power in ((9001, 1, 10), (1200, 8, 10), (9000, 1, 11)):
        said = judged(seconds, cores, power)[exhausted.RETRIED].figures
        assert "% of the HS06 s of 10 jobs went into the 1 that failed, more than 50 %" in said


def test_retried_and_computing_little() -> None:
    """The document's other half: a low CPU efficiency across finished jobs."""
    idle = [job(1000, cpu_seconds=290)] * 3
    said = spoken(*idle, task=RETRIED)[exhausted.RETRIED].figures
    assert "CPU efficiency 29 % in the middle of 3 finished jobs, less than 30 %" in said
    assert exhausted.RETRIED not in spoken(*idle, task=RETRIED, settings=Settings(min_cpu_efficiency=29))
    assert exhausted.RETRIED not in spoken(*idle, task=RETRIED, settings=Settings(min_cpu_efficiency=None))
    assert exhausted.RETRIED not in spoken(*idle)


def test_a_task_with_few_new_jobs_is_left_alone_by_the_rules_on_its_scouts() -> None:
    """Twenty new jobs are not worth a user's time; what became of the task so far counts all the same."""
    leaking = [job(leak=1e9)] * 3
    few, more = Parameters(new_jobs=20, attempts=3), Parameters(new_jobs=21, attempts=3)
    assert set(spoken(*leaking, task=few, failed=9)) == {exhausted.RETRIED}
    assert set(spoken(*leaking, task=more, failed=9)) == {exhausted.RETRIED, exhausted.LEAK}
    assert exhausted.LEAK in spoken(*leaking, task=few, settings=Settings(new_jobs_cutoff=None))
    assert exhausted.LEAK in spoken(*leaking)


def test_memory_leak() -> None:
    """The mean per core above SCOUT_MEM_LEAK_PER_CORE kB/s."""
    assert exhausted.LEAK not in spoken(job(leak=10 * KB), job(leak=10 * KB))
    assert "15 kB/s per core over 2 jobs" in spoken(job(leak=20 * KB), job(leak=10 * KB))[exhausted.LEAK].figures
    assert exhausted.LEAK not in spoken(job(leak=80 * KB, cores=8))
    assert exhausted.LEAK not in spoken(job(leak=1e9), settings=Settings(scout_mem_leak_per_core=None))


SHORT = [job(1200)] * 5 + [job(1201)] * 5
MANY = Parameters(new_jobs=1001)


def test_too_many_short_jobs() -> None:
    """Half of the scouts within 20 minutes and more than 1000 new jobs expected; unknown, the rule is silent."""
    assert "5 of 10 jobs ran for at most 20 min" in spoken(*SHORT, task=MANY)[exhausted.SHORT].figures
    assert exhausted.SHORT not in spoken(*SHORT[1:], job(1300), task=MANY)
    assert exhausted.SHORT not in spoken(*SHORT, task=Parameters(new_jobs=1000))
    assert exhausted.SHORT not in spoken(*SHORT)


def test_short_jobs_that_had_to_copy_stay_in_the_denominator() -> None:
    """8 of 10 short, 4 of them since their site makes them copy: 4 of 10 are the task's own, so it goes on."""
    copied = [job(1200, scratch=True)] * 4
    assert exhausted.SHORT not in spoken(*copied, *[job(1200)] * 4, *[job(1201)] * 2, task=MANY)
    said = spoken(*copied, *[job(1200)] * 5, job(1201), task=MANY)[exhausted.SHORT].figures
    assert "5 of 10 jobs ran for at most 20 min, 4 more that were forced to copy to scratch" in said
    assert exhausted.SHORT not in spoken(*copied, task=MANY)


def test_split_rules_are_removed_where_that_is_allowed() -> None:
    """nGBPerJob and nFilesPerJob go, the task stays; without leave, or without either, it is exhausted."""
    stated = replace(MANY, n_gb_per_job=10, n_files_per_job=2)
    allowed = Settings(scout_change_sr=True)
    verdict = spoken(*SHORT, task=stated, settings=allowed)[exhausted.SHORT]
    assert verdict.remove == ("nFilesPerJob", "nGBPerJob") and not is_exhausted([verdict])
    for task, weighed in ((stated, DEFAULTS), (MANY, allowed)):
        verdict = spoken(*SHORT, task=task, settings=weighed)[exhausted.SHORT]
        assert verdict.remove == () and is_exhausted([verdict])


def test_new_jobs_with_more_input_run_longer() -> None:
    """Extrapolated beyond SCOUT_SHORT_EXECTIME, short scouts are no reason."""
    assert exhausted.SHORT not in spoken(*SHORT, task=replace(MANY, input_ratio=1.01))
    assert exhausted.SHORT in spoken(*[job(100)] * 10, task=replace(MANY, input_ratio=11))


def test_cpu_time_off() -> None:
    """Above twice the preset in a job of over a day, or over ten times off either way; Fixed units say nothing."""
    long = [job(25 * 3600, events=1000, core_power=10)] * 5  # 1.5 × 804.6 HS06 s per event
    assert "2 times the preset 600" in spoken(*long, task=Parameters(cpu_time=600))[exhausted.CPU_TIME].figures
    assert not spoken(*long, task=Parameters(cpu_time=700))
    brief = [job(4600, events=1000, core_power=10)] * 5  # 54 HS06 s per event
    assert not spoken(*brief, task=Parameters(cpu_time=6))
    assert exhausted.OFF in spoken(*brief, task=Parameters(cpu_time=5))
    assert exhausted.OFF in spoken(*brief, task=Parameters(cpu_time=541))
    assert not spoken(*brief, task=Parameters(cpu_time=541), settings=Settings(outsized_factor=0))
    assert not spoken(*brief, task=Parameters(cpu_time=5, cpu_time_unit="HS06sPerEventFixed"))


def test_ram_count_off() -> None:
    """The preset below RAM_THR_EXAUSTED, the measured value above it."""
    big = [job(memory_bytes=4000 * MB)] * 3
    assert "ramCount 4400 MB" in spoken(*big, task=Parameters(ram_count=2000))[exhausted.RAM].figures
    assert not spoken(*big, task=Parameters(ram_count=4000))
    assert not spoken(*big, task=Parameters(ram_count=2000), settings=Settings(ram_thr_exausted=5))


def test_low_cpu_efficiency() -> None:
    """The task's own threshold in the middle of the jobs; without one, half of them below 30 per cent and many new."""
    slow = [job(1000_0, cpu_seconds=1000)] * 5 + [job(1000_0, cpu_seconds=9000)] * 5
    assert "50 %" in spoken(*slow, task=Parameters(min_cpu_efficiency=51))[exhausted.EFFICIENCY].figures
    assert not spoken(*slow, task=Parameters(min_cpu_efficiency=50))
    assert "5 of 10 jobs below 30 %" in spoken(*slow, task=MANY)[exhausted.EFFICIENCY].figures
    assert not spoken(*slow)


def test_waiting_for_data_excuses_a_low_cpu_efficiency() -> None:
    """Above SCOUT_MAX_IO_INTENSITY_FOR_EXHAUSTED it is said and the task goes on; without it nothing excuses."""
    slow = [job(10_000, cpu_seconds=1000, input_bytes=5e6 * KB)] * 10  # 500 kB/s
    for task in (MANY, Parameters(min_cpu_efficiency=51)):
        verdict = spoken(*slow, task=task, settings=Settings(scout_max_io_intensity_for_exhausted=499))
        assert verdict[exhausted.EFFICIENCY].excuse == "its ioIntensity is 500 kBPerS, more than 499"
        assert not is_exhausted(list(verdict.values()))
        for most in (500, None):
            weighed = Settings(scout_max_io_intensity_for_exhausted=most)
            assert is_exhausted([spoken(*slow, task=task, settings=weighed)[exhausted.EFFICIENCY]])


def test_cpus_that_were_not_allocated() -> None:
    """CPU time above twice the time of the job's cores."""
    assert not spoken(job(100, cores=2, cpu_seconds=400))
    assert "401 CPU s in 100 s on 2 cores" in spoken(job(100, cores=2, cpu_seconds=401))[exhausted.ABUSE].figures
    assert not spoken(job(100, cores=2, cpu_seconds=401), settings=Settings(abuse_factor=3))


@given(st.lists(jobs(), max_size=8), st.integers(0, 9), st.booleans())
def test_every_verdict_names_its_rule_and_its_figures(done: list[Finished], failed: int, presets: bool) -> None:
    """Whatever the jobs: nothing raises, each rule speaks at most once, and its figures have a number in them."""
    task = Parameters(cpu_time=1, ram_count=1, new_jobs=1e6, min_cpu_efficiency=50) if presets else Parameters()
    found = verdicts(evidence(*done, task=task, failed=failed), task, DEFAULTS)
    assert len({verdict.rule for verdict in found}) == len(found) <= len(RULES)
    for verdict in found:
        assert any(letter.isdigit() for letter in verdict.figures) and verdict.figures.isprintable()
        assert "nan" not in verdict.figures and "inf" not in verdict.figures
