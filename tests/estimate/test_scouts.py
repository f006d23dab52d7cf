"""Figures of a task: JEDI's formulas, selection, margins, floors, caps and units, each with its number of jobs."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise_tasks.estimate import quantities
from drainwise_tasks.estimate.learning import wall_time
from drainwise_tasks.estimate.parameters import Parameters, parameters_from
from drainwise_tasks.estimate.quantities import GB, KB, MB
from drainwise_tasks.estimate.records.record import Finished
from drainwise_tasks.estimate.scouts import KEPT_FIXED, KEPT_PRESET, Figure, Sample, figure_called
from drainwise_tasks.estimate.settings import Settings

from .jobs import job, jobs


def figure(name: str, *done: Finished, task: Parameters | None = None, settings: Settings | None = None) -> Figure:
    """One figure from these jobs."""
    sample = Sample(task or Parameters())
    for one in done:
        sample.add(one)
    found = figure_called(name, sample.figures(settings or Settings()))
    assert found is not None
    return found


def test_cpu_time_by_hand() -> None:
    """(4600 − 600)·10·8·0.9/1000 = 288 HS06 s per event; ×1.5 = 432, rounded up."""
    one = job(4600, cores=8, events=1000, core_power=10)
    assert quantities.cpu_time(one, Parameters()) == pytest.approx(288)
    found = figure("cpuTime", one)
    assert (found.value, found.unit, found.jobs) == (432, "HS06sPerEvent", 1)


def test_cpu_time_is_the_95th_percentile_unless_the_settings_say_otherwise() -> None:
    """Of 9, 18, … 189 HS06 s per event that is 180, the median 99; ×1.5."""
    done = [job(600 + 1000 * number, events=1000, core_power=10) for number in range(1, 22)]
    assert figure("cpuTime", *done).value == 270
    assert figure("cpuTime", *done, settings=Settings(scout_cputime_rank=50)).value == 149


def test_a_small_cpu_time_is_in_thousandths() -> None:
    """Below 10 it is mHS06sPerEvent, and the preset is shown in the same unit."""
    one = job(1600, events=10_000, core_power=10)
    found = figure("cpuTime", one, task=Parameters(cpu_time=2))
    assert (found.value, found.unit, found.before) == (1350, "mHS06sPerEvent", 2000)


def test_a_preset_in_thousandths_is_understood() -> None:
    """mHS06sPerEvent before, HS06sPerEvent after."""
    one = job(4600, cores=8, events=1000, core_power=10)
    found = figure("cpuTime", one, task=Parameters(cpu_time=5000, cpu_time_unit="mHS06sPerEvent"))
    assert (found.value, found.unit, found.before) == (432, "HS06sPerEvent", 5)


@pytest.mark.parametrize(
    ("seconds", "events", "cores", "counts"),
    [(100, 80, 8, True), (100, 79, 8, False), (6 * 3600, 1, 8, True), (6 * 3600 - 1, 79, 8, False)],
)
def test_which_jobs_count_for_cpu_time(seconds: float, events: float, cores: int, counts: bool) -> None:
    """Ten events a core, or six hours."""
    assert (quantities.cpu_time(job(seconds, cores=cores, events=events), Parameters()) is not None) == counts


def test_a_job_no_longer_than_base_time_is_0() -> None:
    """T ≤ baseTime, or an efficiency of 0: nothing scales with events."""
    assert quantities.cpu_time(job(600, events=100), Parameters()) == 0
    assert quantities.cpu_time(job(9000, events=100), Parameters(cpu_efficiency=0)) == 0
    assert quantities.cpu_time(job(600, events=100), Parameters(base_time=60)) > 0  # type: ignore[operator]


def test_without_event_information_each_file_is_one_event() -> None:
    """And a job without files is one event itself."""
    assert quantities.events_of(job(files=7)) == 7
    assert quantities.events_of(job()) == 1
    assert quantities.events_of(job(files=0)) == 1


def test_ram_count_by_hand() -> None:
    """P75 of (PSS − base)/cores with a margin of 10 per cent; a floor lifts it."""
    done = [job(cores=8, memory_bytes=(200 + 8 * size) * MB) for size in (1000, 2000, 3000, 4000)]
    task = Parameters(base_ram_count=200, ram_count=2000)
    found = figure("ramCount", *done, task=task)
    assert (found.value, found.unit, found.jobs, found.before) == (3575, "MBPerCore", 4, 2000)
    floor = figure("ramCount", *done, task=task, settings=Settings(scout_ramcount_min=5000))
    assert floor.value == 5000 and "SCOUT_RAMCOUNT_MIN" in floor.note
    other = figure("ramCount", *done, task=task, settings=Settings(scout_ramcount_rank=50, scout_ramcount_margin=0))
    assert other.value == 2500


def test_fixed_units_are_never_overwritten() -> None:
    """cpuTime and ramCount stay what they were, from no job, and it is said why."""
    one = job(90_000, cores=8, events=1000, memory_bytes=9 * GB)
    task = Parameters(cpu_time=3, cpu_time_unit="mHS06sPerEventFixed", ram_count=1500, ram_count_unit="MBPerCoreFixed")
    for name, value in (("cpuTime", 3), ("ramCount", 1500)):
        found = figure(name, one, task=task)
        assert (found.value, found.jobs, found.note) == (value, 0, KEPT_FIXED)


@pytest.mark.parametrize(
    ("figure_name", "unit_name", "unit"),
    [
        ("cpuTime", "cpuTimeUnit", "HS06sPerEventFixed"),
        ("cpuTime", "cpuTimeUnit", "mHS06sPerEventFixed"),
        ("ramCount", "ramCountUnit", "MBPerCoreFixed"),
        ("outDiskCount", "outDiskUnit", "kBFixed"),
        ("outDiskCount", "outDiskUnit", "MBPerEventFixed"),
    ],
)
def test_each_fixed_unit_of_a_file_keeps_its_preset(figure_name: str, unit_name: str, unit: str) -> None:
    """Its preset in its own unit, and where there is none no figure."""
    one = job(90_000, cores=8, events=1000, memory_bytes=9 * GB, output_bytes=GB)
    task, _ = parameters_from({figure_name: 7, unit_name: unit}, "tasks.json", "task")
    found = figure(figure_name, one, task=task)
    assert (found.value, found.unit, found.jobs, found.note) == (7, unit, 0, KEPT_FIXED)
    sample = Sample(parameters_from({unit_name: unit}, "tasks.json", "task")[0])
    sample.add(one)
    assert figure_called(figure_name, sample.figures(Settings())) is None


def test_out_disk_count_leaves_small_jobs_out() -> None:
    """KB per event at P75, of jobs with ten events or more."""
    done = [job(events=10, output_bytes=size * 10 * KB) for size in (1, 2, 3, 4)] + [job(events=9, output_bytes=1e12)]
    found = figure("outDiskCount", *done)
    assert (found.value, found.unit, found.jobs) == (3.25, "kBPerEvent", 4)


def test_a_figure_that_is_missing_for_want_of_events_says_so() -> None:
    """cpuTime, outDiskCount and what follows from it; nothing is missing where nobody measured, or a unit is Fixed."""

    def missing(*done: Finished, **task: float | str) -> dict[str, str]:
        sample = Sample(Parameters(**task))  # type: ignore[arg-type] # the names are the test's
        for one in done:
            sample.add(one)
        return {one.name: one.why for one in sample.missing()}

    few = job(100, cores=8, events=9, output_bytes=1e6)
    assert missing(few, few, tgt_max_output_for_ng=2) == {
        "cpuTime": "too few events: none of 2 jobs had 10 events per core or ran for 6 h",
        "outDiskCount": "too few events: none of 2 jobs had 10 events",
        "nGBPerJob": "it follows from outDiskCount, which is missing",
    }
    assert set(missing(few, cpu_time_unit="HS06sPerEventFixed")) == {"outDiskCount"}
    assert missing(few, job(100, cores=8, events=80, output_bytes=1e6)) == {} == missing(job(events=10)) == missing()


def test_a_larger_work_disk_preset_is_kept() -> None:
    """The maximum of the jobs, unless the preset is larger."""
    done = [job(work_bytes=size * MB) for size in (10, 700, 30)]
    assert figure("workDiskCount", *done).value == 700
    kept = figure("workDiskCount", *done, task=Parameters(work_disk_count=900))
    assert (kept.value, kept.jobs, kept.note) == (900, 3, KEPT_PRESET)
    assert figure("workDiskCount", *done, task=Parameters(work_disk_count=600)).value == 700


def test_io_by_hand() -> None:
    """ioIntensity is the largest, diskIO the capped mean, of jobs and not of cores; one of no length has neither."""
    done = [
        job(100, input_bytes=100 * KB, output_bytes=100 * KB, read_bytes=1000 * KB, written_bytes=0),
        job(100, cores=8, input_bytes=300 * KB, read_bytes=3000 * KB),
        job(0, input_bytes=1e9, read_bytes=1e9),
    ]
    assert (figure("ioIntensity", *done).value, figure("ioIntensity", *done).jobs) == (3, 2)
    assert (figure("diskIO", *done).value, figure("diskIO", *done).jobs) == (20, 2)
    capped = figure("diskIO", *done, settings=Settings(scout_disk_io_cap=15))
    assert capped.value == 15 and "SCOUT_DISK_IO_CAP" in capped.note


def test_n_gb_per_job_by_hand() -> None:
    """Output of 2 GB, the input of its 2048 events of 1 MB each, and 1 GB of work directory: 5 GB."""
    one = job(events=1024, output_bytes=1024 * MB, input_bytes=1024 * MB, work_bytes=GB)
    found = figure("nGBPerJob", one, task=Parameters(tgt_max_output_for_ng=2, n_gb_per_job=14))
    assert (found.value, found.unit, found.before) == (5, "GB", 14)
    assert figure("nGBPerJob", one, task=Parameters(tgt_max_output_for_ng=90)).value == 100


def test_without_a_target_n_gb_per_job_is_left_alone() -> None:
    """Only a task that names a target size of its output is adjusted."""
    sample = Sample(Parameters(n_gb_per_job=14))
    sample.add(job(events=1024, output_bytes=1024 * MB))
    assert figure_called("nGBPerJob", sample.figures(Settings())) is None


def test_what_was_assumed_is_said() -> None:
    """A record without a core power is taken at the task's, and the figure says so."""
    found = figure("cpuTime", job(4600, events=100), job(4600, events=100, core_power=10))
    assert found.note == "1 of 2 jobs taken as 10 HS06 per core"


@given(st.lists(jobs(), max_size=12))
def test_every_figure_is_finite_and_says_from_how_many(done: list[Finished]) -> None:
    """Whatever sound jobs there are: no NaN, nothing negative, and never from more jobs than there are."""
    sample = Sample(Parameters())
    for one in done:
        sample.add(one)
    for found in sample.figures(Settings()):
        assert math.isfinite(found.value) and found.value >= 0 and 1 <= found.jobs <= len(done)


@given(st.floats(601, 1e6), st.integers(1, 64), st.floats(1, 50), st.floats(1e3, 1e6))
def test_wall_time_is_the_inverse_of_cpu_time(seconds: float, cores: int, power: float, events: float) -> None:
    """What a job took comes back from its own cpuTime on its own node; on a node twice as strong what scales halves."""
    one = job(seconds, cores=cores, events=events, core_power=power)
    per_event = quantities.cpu_time(one, Parameters())
    assert per_event is not None
    back = wall_time(per_event, events, cores, power)
    assert back == pytest.approx(one.seconds, rel=1e-6)
    faster = wall_time(per_event, events, cores, 2 * power)
    assert faster == pytest.approx(600 + (one.seconds - 600) / 2, rel=1e-6)
