"""scripts/panda_figures.py: panda-server's own figures on random tasks, by hand, and beside the document's.

`panda_figures.csv` holds what getScoutJobData_JEDI of PanDAWMS/panda-server (Apache-2.0) at 9cc3603 of 2026-08-06 gave
for the tasks of `random_tasks.py`, under its own names. Its code is not here; the figures were recorded once, with its
order of jobs not shuffled.
"""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.cli.main import main as estimate
from drainwise_tasks.estimate.parameters import Parameters
from drainwise_tasks.estimate.quantities import GB, KB, MB
from drainwise_tasks.estimate.records.record import Finished
from drainwise_tasks.estimate.scouts import KEPT_FIXED, MOST_GB_PER_JOB, Figure, Sample, figure_called
from drainwise_tasks.estimate.settings import Settings
from panda_figures import MOST_OUT_DISK, main, panda_figures

from .jobs import T0, job, jobs
from .random_tasks import COUNT, random_tasks

RECORDED = Path(__file__).with_name("panda_figures.csv")
NAMES = {
    "cpuTime": "cpuTime",
    "ramCount": "ramCount",
    "outDiskCount": "outDiskCount",
    "workDiskCount": "workDiskCount",
    "ioIntensity": "ioIntensity",
    "diskIO": "diskIO",
    "memoryLeakCore": "memory_leak_core",
    "nGBPerJob": "newNG",
    "cpuEfficiency": "minCpuEfficiency",
}
"""Our names of the figures → panda-server's."""
UNITS = {"cpuTime": "cpuTimeUnit", "ramCount": "ramUnit", "outDiskCount": "outDiskUnit"}
TODAY = Settings()


def today(name: str, *done: Finished, task: Parameters | None = None, settings: Settings = TODAY) -> Figure:
    """One figure from these jobs."""
    found = figure_called(name, panda_figures(done, task or Parameters(), settings))
    assert found is not None
    return found


def test_all_figures_equal_panda_server_s_on_a_thousand_random_tasks() -> None:
    """To the last digit, with their units; what panda-server gives no figure for has none here."""
    with RECORDED.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    tasks = random_tasks()
    assert len(rows) == len(tasks) == COUNT == 1000
    compared = dict.fromkeys(NAMES, 0)
    for row, task in zip(rows, tasks):
        found = {one.name: one for one in panda_figures(task.jobs, task.parameters, task.settings) if one.jobs}
        assert {name for name in NAMES if row[NAMES[name]]} == set(found), row["task"]
        for name, figure in found.items():
            assert figure.value == float(row[NAMES[name]]), (row["task"], name)
            assert name not in UNITS or figure.unit == row[UNITS[name]], (row["task"], name)
            compared[name] += 1
    assert min(compared.values()) > 300, compared


def test_six_hours_are_not_enough() -> None:
    """Strictly more than six hours make up for few events; a made-up input always counts."""
    few = job(6 * 3600, events=1, core_power=10)
    assert figure_called("cpuTime", panda_figures([few], Parameters(), TODAY)) is None
    assert today("cpuTime", few._replace(end=few.end + 1)).jobs == 1
    assert today("cpuTime", few._replace(pseudo_input=True)).jobs == 1


@pytest.mark.parametrize(
    ("unit", "value", "shown"),
    [
        ("kBPerEvent", 2000, "kBPerEvent"),
        ("MBPerEvent", 2000, "kBPerEvent"),
        ("kB", 1000, "kB"),
        ("GB", 1000, "kB"),
    ],
)
def test_output_by_event_or_by_megabyte_of_input(unit: str, value: float, shown: str) -> None:
    """The preset's unit says by what; the figure is in kB."""
    one = job(100, events=10, input_bytes=20 * MB, output_bytes=20_000 * KB)
    found = today("outDiskCount", one, task=Parameters(out_disk_unit=unit))
    assert (found.value, found.unit) == (value, shown)


def test_output_is_capped_and_fixed_stays() -> None:
    """10240 kB at most; a Fixed unit keeps its preset, in both."""
    big = job(100, events=10, output_bytes=GB)
    found = today("outDiskCount", big)
    assert (found.value, found.note) == (MOST_OUT_DISK, "capped at 10240") and MOST_OUT_DISK == 10240
    fixed = Parameters(out_disk_count=7, out_disk_unit="kBPerEventFixed")
    sample = Sample(fixed)
    sample.add(big)
    for figures in (panda_figures(sample.jobs, fixed, TODAY), sample.figures(TODAY)):
        [kept] = [one for one in figures if one.name == "outDiskCount"]
        assert (kept.value, kept.note, kept.jobs) == (7, KEPT_FIXED, 0)


def test_memory_of_the_whole_job() -> None:
    """Unit MB: neither by core nor less baseRamCount; whole MB are cut, not rounded up."""
    one = job(cores=8, memory_bytes=8000 * MB)
    whole = Parameters(ram_count_unit="MB", base_ram_count=800)
    assert (today("ramCount", one, task=whole).value, today("ramCount", one, task=whole).unit) == (8800, "MB")
    assert today("ramCount", one, task=Parameters(base_ram_count=800)).value == 990
    assert today("ramCount", job(memory_bytes=MB + KB)).value == 1


def test_io_intensity_is_by_core() -> None:
    """kB per second and core; files of no size count as 1 MB each."""
    assert today("ioIntensity", job(100, cores=8, input_bytes=800 * MB, output_bytes=0)).value == 1024
    assert today("ioIntensity", job(1, files=3, output_bytes=0)).value == 3072


def test_the_library_is_in_the_work_directory() -> None:
    """A library that is larger than the directory counts in its place."""
    one = job(work_bytes=100 * MB)
    found = today("workDiskCount", one, task=Parameters(lib_size=150.5))
    assert (found.value, found.note) == (150, "the library's size")
    assert today("workDiskCount", one, task=Parameters(lib_size=99)).value == 100


def test_n_gb_per_job_less_default_output() -> None:
    """40 GB of output, 100 + 300 MB of directory, less 1500 MB: 38.9 GB, cut; never 0 GB or less, at most 100."""
    one = job(events=1024, output_bytes=GB, input_bytes=GB, work_bytes=100 * MB)
    assert today("nGBPerJob", one, task=Parameters(tgt_max_output_for_ng=40)).value == 38
    assert today("nGBPerJob", one, task=Parameters(tgt_max_output_for_ng=1)).value == 1
    assert today("nGBPerJob", one, task=Parameters(tgt_max_output_for_ng=900)).value == MOST_GB_PER_JOB
    halves = one._replace(largest_output_bytes=GB / 2)
    assert today("nGBPerJob", halves, task=Parameters(tgt_max_output_for_ng=20)).value == 38
    by_input = Parameters(tgt_max_output_for_ng=2, out_disk_unit="kB")  # 2 GB, and the 2048 MB of input for it
    assert today("nGBPerJob", one, task=by_input).value == 2


def test_an_input_of_less_than_a_byte_is_none() -> None:
    """The output is then for each file, as where nothing is told of the input."""
    tiny, none = (job(events=1024, output_bytes=MB, input_bytes=size) for size in (5e-324, 0.0))
    by_input = Parameters(out_disk_unit="kB")
    assert panda_figures([tiny], by_input, TODAY) == panda_figures([none], by_input, TODAY)


@given(st.lists(jobs(), max_size=5), st.booleans())
def test_figures_are_whole_finite_and_within_their_caps(done: list[Finished], by_event: bool) -> None:
    """Whatever sound jobs there are: nothing negative or beyond a cap, never from more jobs than there are."""
    task = Parameters(tgt_max_output_for_ng=3, out_disk_unit="kBPerEvent" if by_event else "kB")
    found = panda_figures(done, task, TODAY)
    for one in found:
        assert one.value == int(one.value) and one.value >= 0 and 1 <= one.jobs <= len(done)
    caps = {"outDiskCount": MOST_OUT_DISK, "nGBPerJob": MOST_GB_PER_JOB}
    assert all(one.value <= caps.get(one.name, math.inf) for one in found)


@given(st.lists(st.tuples(st.integers(601, 20_000), st.integers(20, 100_000), st.integers(1, 1 << 34)), min_size=1))
def test_both_agree_where_they_say_the_same(given_jobs: list[tuple[int, int, int]]) -> None:
    """One core, whole seconds, enough events, main input alone: the same cpuTime and ioIntensity but for rounding."""
    sample = Sample(Parameters())
    for seconds, events, size in given_jobs:
        sample.add(job(seconds, events=events, core_power=10, input_bytes=size + MB, output_bytes=size))
    document, panda = sample.figures(TODAY), panda_figures(sample.jobs, sample.parameters, TODAY)
    for name in ("cpuTime", "ioIntensity"):
        one, other = figure_called(name, document), figure_called(name, panda)
        assert one is not None and other is not None and (one.unit, one.jobs) == (other.unit, other.jobs)
        assert abs(one.value - other.value) <= 1 + 1e-9 * one.value


def test_it_prints_a_figure_a_line_of_the_files_of_estimate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [tmp_path / name for name in ("records.jsonl", "tasks.json", "settings.json")]
    record = {"task": "sim", "start": T0, "end": T0 + 4600, "cores": 8, "events": 1000, "core_power": 10}
    for file, found in zip(files, (record, {"*": {"baseTime": 600}}, {"SCOUT_CPUTIME_RANK": 50})):
        file.write_text(json.dumps(found))
    assert main([str(file) for file in files]) == 0
    assert "sim  cpuTime  432  HS06sPerEvent  1 jobs" in capsys.readouterr().out
    assert estimate(["estimate", str(files[0]), "--profile", "panda"]) == 2
    assert "scripts/panda_figures.py" in capsys.readouterr().err
