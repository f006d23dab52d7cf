"""Answers of qstat and qacct as 8.1.9 printed them, whole, in part and as garbage."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.errors import PoolUnreachable
from drainwise.sge.accounting import Record, last_by_number, records_in
from drainwise.sge.queue_state import jobs_in

RECORDED = Path(__file__).parent / "recorded"
QSTAT = (RECORDED / "8.1.9-qstat.xml").read_text()
QACCT = (RECORDED / "8.1.9-qacct.txt").read_text()


def test_the_queue() -> None:
    jobs = jobs_in(QSTAT)
    assert {number: (job.letters, job.waits) for number, job in jobs.items()} == {
        "7": ("dr", False),
        "8": ("r", False),
        "5": ("Eqw", True),
        "10": ("qw", True),
        "4": ("Rq", True),
        "9": ("hqw", True),
    }
    assert [job.number for job in jobs.values() if job.in_error] == ["5"]
    assert [job.number for job in jobs.values() if job.held] == ["9"]
    assert jobs["8"].name == "repo;runs.t-8"
    assert jobs["9"].name.endswith(".t-9")  # 8.1.9 prints `%lt;` for `<`


def test_an_empty_queue_is_an_answer_too() -> None:
    assert jobs_in((RECORDED / "8.1.9-qstat-none.xml").read_text()) == {}


@given(st.integers(0, len(QSTAT.rstrip()) - 1))
def test_half_an_answer_of_qstat_is_none(length: int) -> None:
    with pytest.raises(PoolUnreachable):
        jobs_in(QSTAT[:length])


@given(st.text(max_size=100))
def test_garbage_is_no_queue(text: str) -> None:
    with pytest.raises(PoolUnreachable):
        jobs_in(text)


def test_the_accounting() -> None:
    records = records_in(QACCT)
    assert records[0] == Record("1", "repo;ok.t-1", 0, "", 0, 0.0, 0.006)
    told = [(one.number, one.failed, one.reason, one.exit_status) for one in records[1:]]
    assert told == [
        ("2", 0, "", 3),
        ("3", 100, "assumedly after job", 137),
        ("4", 25, "rescheduling", 99),
        ("5", 30, "application error returned", 100),
        ("6", 37, "qmaster enforced h_rt, h_cpu, or h_vmem limit", 137),
        ("4", 25, "rescheduling", 99),
    ]
    assert (records[5].wall, records[5].cpu) == (3.0, 0.008)


def test_a_run_after_which_the_job_went_back_to_the_queue_is_no_end() -> None:
    assert set(last_by_number(records_in(QACCT))) == {"1", "2", "3", "5", "6"}
    later = QACCT + QACCT.split("=\n")[4].replace("failed       25  : rescheduling", "failed       0    ")
    assert last_by_number(records_in(later))["4"].failed == 0


def test_no_record_is_no_record() -> None:
    assert records_in("") == []


@pytest.mark.parametrize(
    "text",
    [
        "hello",
        "jobnumber 7\nfailed 0\n",
        "jobnumber x\nfailed 0\nexit_status 0\n",
        "jobnumber 7\nfailed no\nexit_status 0\n",
        "jobnumber 7\nfailed 0\nexit_status -1\n",
        f"jobnumber {'9' * 40}\nfailed 0\nexit_status 0\n",
    ],
)
def test_garbage_of_qacct_is_no_record(text: str) -> None:
    with pytest.raises(PoolUnreachable, match="qacct"):
        records_in(QACCT + "=====\n" + text)
