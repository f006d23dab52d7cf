"""The log of today's grid mix has its core-hours in the jobs where they should be; of none it says how long it runs."""

from __future__ import annotations

import csv
import subprocess
import sys
from collections import defaultdict
from io import BytesIO
from pathlib import Path

import pytest

from drainwise_simulate.trace import trace_in
from grid_mix import Mix, PandaRow, panda_rows, swf_lines, wide_jobs
from panda_record import HEADING, record

SCRIPT = Path(__file__).parents[2] / "scripts" / "grid_mix.py"
ROWS = [PandaRow(1, 600.0, "a"), PandaRow(1, 7200.0, "b"), PandaRow(8, 36_000.0, "c"), PandaRow(8, 7200.0, "d")]


def test_the_share_of_jobs_follows_from_the_share_of_core_hours() -> None:
    """Means 3900 and 8 × 21,600 core-s: of 45.3 jobs of 1 core and 1 of 8 each kind has half."""
    odds = wide_jobs(ROWS, Mix(0.5))
    assert (1 - odds) / odds == pytest.approx(8 * 21_600 / 3900)
    assert (wide_jobs(ROWS, Mix(0.0)), wide_jobs(ROWS, Mix(1.0))) == (0.0, 1.0)


@pytest.mark.in_turn("simulator", "mix")
@pytest.mark.daemons  # a whole log takes its time
@pytest.mark.parametrize("share", [0.2, 0.8])
def test_the_log_has_the_mix(share: float) -> None:
    """Core-hours by width, the load, one request for all, and users that are no sign of the run time."""
    mix = Mix(share, cores=500, days=20.0, load=1.2)
    trace = trace_in(BytesIO("\n".join(swf_lines(ROWS, mix, "made-up")).encode()), "mix")
    hours: dict[int, float] = defaultdict(float)
    runs: dict[str, list[float]] = defaultdict(list)
    for job in trace.jobs:
        hours[job.cores] += job.cores * job.run / 3600
        runs[job.user].append(job.run)
    assert hours[8] / sum(hours.values()) == pytest.approx(share, abs=0.05)
    assert sum(hours.values()) == pytest.approx(500 * 20 * 24 * 1.2, rel=0.1)
    assert {job.requested for job in trace.jobs} == {96 * 3600.0}
    assert {(job.cores, job.group) for job in trace.jobs} == {(1, "1"), (8, "8")}
    assert sum(runs["1"]) / len(runs["1"]) == pytest.approx(sum(runs["2"]) / len(runs["2"]), rel=0.1)


def test_records_are_read_strictly() -> None:
    """Jobs of other widths, or that failed, are left out; a broken line is named."""
    lines = [HEADING, record(1, 10), record(8, 90, "v"), record(4, 5), record(1, 7, status="failed")]
    assert panda_rows(lines, "p") == [PandaRow(1, 600.0, "u"), PandaRow(8, 5400.0, "v")]
    with pytest.raises(ValueError, match="p: no job of 8 cores finished"):
        panda_rows(lines[:2], "p")
    with pytest.raises(ValueError, match="p: line 3: "):
        panda_rows([*lines[:2], "x,soon,later,u,1,finished"], "p")
    with pytest.raises(ValueError, match="the columns corecount are not there"):
        panda_rows([HEADING.replace("corecount", "cores")], "p")


@pytest.mark.daemons
def test_the_command(tmp_path: Path) -> None:
    """The same seed makes the same log, another one does not."""
    records = tmp_path / "panda.csv"
    records.write_text("\n".join([HEADING, record(1, 50), record(8, 300)]))
    texts = []
    for seed in ("1", "1", "2"):
        words = [sys.executable, str(SCRIPT), str(records), "--cores", "64", "--days", "2", "--seed", seed]
        texts.append(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    assert texts[0] == texts[1] != texts[2]
    assert len(list(csv.reader(texts[0].splitlines(), delimiter=" "))) > 50
    ran = subprocess.run([sys.executable, str(SCRIPT), str(SCRIPT)], capture_output=True, text=True, check=False)
    assert ran.returncode == 2 and "are not there" in ran.stderr
