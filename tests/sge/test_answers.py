"""Answers of qstat and qacct as 8.1.9 printed them, whole, in part and as garbage."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.common.bounded_command import Answer
from drainwise.facts.errors import PoolUnreachable
from drainwise_launch.sge.answers import Record, details_in, is_none, jobs_in, last_by_number, records_in

RECORDED = Path(__file__).parent / "recorded"
QSTAT = (RECORDED / "8.1.9-qstat.xml").read_text()
QACCT = (RECORDED / "8.1.9-qacct.txt").read_text()


def test_the_queue() -> None:
    jobs = jobs_in(QSTAT)
    assert {number: (job.letters, job.waits, job.priority) for number, job in jobs.items()} == {
        "5": ("s", False, -7),
        "6": ("dr", False, 0),
        "7": ("r", False, 0),
        "4": ("Eqw", True, 0),
        "3": ("Rq", True, 0),
        "8": ("qw", True, -1023),
        "9": ("hqw", True, -3),
        "2": ("z", False, 0),
        "1": ("z", False, 0),
    }
    assert [job.number for job in jobs.values() if job.in_error] == ["4"]
    assert [job.number for job in jobs.values() if job.held] == ["9"]
    assert jobs["7"].name == "repo;runs.t-7"
    assert jobs["9"].name.endswith(".t-9")  # 8.1.9 prints `%lt;` for `<`


def test_all_about_a_job() -> None:
    found = details_in((RECORDED / "8.1.9-qstat-details.xml").read_text())
    assert {number: (job.owner, job.name) for number, job in found.items()} == {
        "4": ("alice", "repo;refused.t-4"),
        "8": ("alice", "repo;waits.t-8"),
    }
    assert found["4"].error.endswith("exit_status of job start = 100") and not found["8"].error
    assert details_in("<?xml version='1.0'?>\n<unknown_jobs >\n    <ST_name>*.t-99</ST_name>\n</unknown_jobs>\n") == {}


@pytest.mark.parametrize(
    "answer", ["", "<a/>", QSTAT, "<detailed_job_info><djob_info><element/></djob_info></detailed_job_info>"]
)
def test_garbage_is_nothing_about_a_job(answer: str) -> None:
    with pytest.raises(PoolUnreachable):
        details_in(answer)


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
    assert records[0] == Record("1", "repo;ok.t-1", "alice", 0, "", 0, 0.0, 0.006)
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
    refused = QACCT.split("=\n")[1].replace("failed       0    ", "failed       8   : in prolog")
    assert last_by_number(records_in(refused)) == {}


def test_no_record_is_no_record() -> None:
    assert records_in("") == []
    invalid = "".join(f"error: ignoring invalid entry in line {line}\n" for line in range(1000))
    for out, said in (
        ("", "error: job id 7 not found\n"),
        ("", f"{invalid}error: job name key;* not found\n"),
        ("no jobs running since startup\n", "/sge/default/common/accounting: No such file or directory\n"),
    ):
        assert is_none(Answer(1, out.encode(), said.encode()))


@pytest.mark.parametrize("out", ["", "no jobs running since startup\n"])
@pytest.mark.parametrize(
    "said",
    [
        "error: unable to open /sge/default/common/accounting",
        "/sge/default/common/accounting: Stale file handle",
        "sh: 1: qacct: not found",
        "",
    ],
)
def test_an_accounting_that_cannot_be_read_says_nothing_of_any_job(out: str, said: str) -> None:
    assert not is_none(Answer(1, out.encode(), said.encode()))


@pytest.mark.parametrize(
    "text",
    [
        "hello",
        "jobnumber 7\nfailed 0\n",
        "jobnumber 7\nfailed 0\nexit_status 1",  # perhaps of 137
        "jobnumber x\nfailed 0\nexit_status 0\nru_wallclock 0s\n",
        "jobnumber 7\nfailed no\nexit_status 0\nru_wallclock 0s\n",
        "jobnumber 7\nfailed 0\nexit_status -1\nru_wallclock 0s\n",
        f"jobnumber {'9' * 40}\nfailed 0\nexit_status 0\nru_wallclock 0s\n",
    ],
)
def test_garbage_of_qacct_is_no_record(text: str) -> None:
    with pytest.raises(PoolUnreachable, match="qacct"):
        records_in(QACCT + "=====\n" + text)
