"""A log of the batch system itself: what giving cores back would have wasted, each job a lease of its own."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.errors import UsageError
from drainwise_simulate.leases import YOUNGEST, LeaseLog, costs_of, read_log
from drainwise_simulate.policies.meanings import CLAIRVOYANT, SITE_LEAST_WASTE
from drainwise_simulate.scenario import Checkpoints, site_settings, with_site_defaults
from drainwise_simulate.trace import Trace
from drainwise_tasks.estimate.records.record import Finished

T0 = 1_795_000_000
SITE = with_site_defaults(site_settings(), 300)
SACCT = """\
JobID|User|JobName|State|Start|End|AllocCPUS|TimelimitRaw
1|alice|a|COMPLETED|2026-11-01T00:00:00|2026-11-01T10:00:00|8|900
1.batch||batch|COMPLETED|2026-11-01T00:00:00|2026-11-01T10:00:00|8|
2|bob|b|COMPLETED|2026-11-01T01:00:00|2026-11-01T09:00:00|4|900
3|bob|c|RUNNING|2026-11-01T01:00:00|Unknown|4|900
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
