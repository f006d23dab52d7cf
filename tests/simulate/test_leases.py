"""A log of the batch system itself: what giving cores back would have wasted, each job a lease of its own."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.cli.main import main
from drainwise.facts.errors import UsageError
from drainwise_simulate.leases import YOUNGEST, LeaseLog, costs_of, read_log
from drainwise_simulate.policies.meanings import CLAIRVOYANT, SITE_LEAST_WASTE, SLURM
from drainwise_simulate.scenario import Checkpoints, site_settings, with_site_defaults
from drainwise_simulate.trace import Trace
from drainwise_tasks.estimate.records.record import Finished

T0 = 1_795_000_000
SITE = with_site_defaults(site_settings(), 300)
SACCT = """\
JobID|User|JobName|State|Start|End|AllocCPUS|AllocTRES|QOS|TimelimitRaw
1|alice|a|COMPLETED|2026-11-01T00:00:00|2026-11-01T10:00:00|8|billing=8,cpu=8,gres/gpu:a100=2,gres/gpu=2|spare|900
1.batch||batch|COMPLETED|2026-11-01T00:00:00|2026-11-01T10:00:00|8|||
2|bob|b|COMPLETED|2026-11-01T01:00:00|2026-11-01T09:00:00|4|cpu=4|normal|900
3|bob|c|RUNNING|2026-11-01T01:00:00|Unknown|4||normal|900
"""
HISTORY = """[
{"ClusterId": 1, "ProcId": 0, "Owner": "a", "JobStatus": 4, "JobStartDate": 1795000000, "CompletionDate": 1795003600}
]
"""


def log(*jobs: tuple[int, int, int]) -> LeaseLog:
    """Jobs by cores, start after T0 and run time, s."""
    made = (Finished("u/x", float(T0 + at), float(T0 + at + run), cores=cores) for cores, at, run in jobs)
    return LeaseLog("log", tuple(sorted(made, key=lambda one: one.start)), Counter())


@pytest.mark.parametrize(("text", "jobs", "skipped"), [(SACCT, 2, 1), (HISTORY, 1, 0)])
def test_each_accounting_is_known_by_its_first_lines(text: str, jobs: int, skipped: int, tmp_path: Path) -> None:
    """Also gzipped; who runs still is counted and left out."""
    (tmp_path / "log").write_text(text)
    (tmp_path / "log.gz").write_bytes(gzip.compress(text.encode()))
    for name in ("log", "log.gz"):
        found = read_log(str(tmp_path / name))
        assert isinstance(found, LeaseLog)
        assert (len(found.jobs), found.skipped.total()) == (jobs, skipped)


def test_a_standard_workload_is_played_as_before(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("; Note = x\n1 1000 -1 60 1 -1 -1 -1 600 -1 1 7 3 -1 -1 -1 -1 -1\n")
    assert isinstance(read_log(str(tmp_path / "log")), Trace)


def test_a_log_without_a_job_that_ran_is_refused(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("\n".join(SACCT.splitlines()[:1]))
    with pytest.raises(UsageError, match="no job in it that ran: it is empty"):
        read_log(str(tmp_path / "log"))


@given(
    jobs=st.lists(
        st.tuples(st.sampled_from([1, 4, 8]), st.integers(0, 50_000), st.integers(1, 90_000)), min_size=1, max_size=12
    ),
    share=st.sampled_from([0.1, 0.5, 1.0]),
    seed=st.integers(0, 9),
)
def test_nobody_wastes_less_than_who_knows_all_ends(jobs: list[tuple[int, int, int]], share: float, seed: int) -> None:
    """And all waste nothing below 0, and no more than all that was run."""
    found = costs_of(log(*jobs), share, 5, SITE, seed)
    most = 5 * sum(cores * run for cores, _, run in jobs)
    assert 0 <= found.wasted[CLAIRVOYANT] <= min(found.wasted[YOUNGEST], found.wasted[SITE_LEAST_WASTE]) <= most
    assert found == costs_of(log(*jobs), share, 5, SITE, seed)


@pytest.mark.parametrize(("share", "most"), [(1.0, 0.15), (0.5, 0.8)])
def test_who_saves_each_hour_loses_an_hour_at_most(share: float, most: float) -> None:
    """A day's jobs: the default ends them right after they have saved; who never saves costs what it did."""
    jobs = log(*((8, 1000 * number, 200_000) for number in range(20)))
    never = costs_of(jobs, 0.25, 20, SITE, 1)
    saves = costs_of(jobs, 0.25, 20, SITE, 1, Checkpoints(3600, 60, share))
    assert saves.wasted[SITE_LEAST_WASTE] <= most * never.wasted[SITE_LEAST_WASTE]
    assert saves.wasted[SITE_LEAST_WASTE] <= saves.cores * 3660 / share
    assert costs_of(jobs, 0.25, 20, SITE, 1, Checkpoints(3600, 60, 0.0)) == never


def test_slurm_preempts_whom_it_may_and_gpus_are_counted(tmp_path: Path) -> None:
    """The youngest is bob's, but of a quality of service that is not preempted; alice's holds two GPUs."""
    (tmp_path / "log").write_text(SACCT)
    found = read_log(str(tmp_path / "log"))
    assert isinstance(found, LeaseLog)
    assert [(one.gpus, one.qos) for one in found.jobs] == [(2.0, "spare"), (None, "normal")]
    costs = costs_of(found, 0.3, 20, SITE, 1, preemptible=frozenset({"spare"}))
    assert costs.gpus[SLURM] == costs.wasted[SLURM] / 4 > 0
    assert costs.wasted[SLURM] > costs.wasted[YOUNGEST]
    nobody = costs_of(found, 0.3, 20, SITE, 1, preemptible=frozenset({"other"}))
    assert (nobody.wasted[SLURM], nobody.given[SLURM]) == (0, 0)
    assert SLURM not in costs_of(found, 0.3, 20, SITE, 1).wasted


def test_the_page_says_what_the_screen_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "log").write_text(SACCT)
    assert main(["simulate", str(tmp_path / "log"), "--html", str(tmp_path / "page"), "--preemptible", "spare"]) == 0
    screen, page = capsys.readouterr().out, (tmp_path / "page").read_text()
    rows = [line.split() for line in screen.splitlines() if line.startswith((YOUNGEST, SLURM, CLAIRVOYANT))]
    assert all(f"<td>{cell}</td>" in page for row in rows if row[0][-1] != ":" for cell in row[1:])
    assert page.count("<svg") == 2 and "GPU-h wasted" in page
