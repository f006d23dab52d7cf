"""Reports of several nodes: one for all, or their sum, by which each node's cores come back with the last one's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from drainwise.pilotad.report import PilotReport, standing
from drainwise.slurm.jobs.admin_comment import LONGEST, NodeReport, Published, comment_text, published_in, whole_report
from drainwise.slurm.jobs.job import SlurmJob
from drainwise.slurm.jobs.publish import batch, is_news, wanted_comment

NOW = 1_795_249_000
LIMIT = 3600
JOB = SlurmJob(17, states=frozenset({"RUNNING"}), cores=12, node_count=2, node="n[1-2]", start=NOW - 5000)


def said(used: float, start: int, first: int, last: int, idle: float, spent: float = 0.0) -> PilotReport:
    """A node's report; its times from now, in s."""
    return PilotReport(
        NOW - 60,
        used_cpu=used,
        last_job_start=NOW + start,
        first_exp_job_end=NOW + first,
        last_exp_job_end=NOW + last,
        last_max_job_end=NOW + last + 900,
        add_uncom_time=spent,
        add_final_exp_waste=idle,
        can_postpone_last_job=True,
    )


ONE, TWO = said(8.0, -500, 100, 700, 2400.0, 70.0), said(3.0, -100, 300, 1000, 700.0, 30.0)
CORES = {"n1": 8, "n2": 4}


def of(*others: NodeReport, report: PilotReport = ONE, how: str = "fresh") -> Published:
    return Published(17, NOW - 5000, "n1", report, how, others=others)


def test_the_first_nodes_report_alone_stands_for_all() -> None:
    assert whole_report(of(), CORES) == ONE


def test_the_sum_is_what_both_nodes_lose_and_leave_idle() -> None:
    """Checked second by second: n1 uses 8 cores to 100, half on average to 700; n2 uses 3 of 4 to 300 and 3 to 1000."""
    both = whole_report(of(NodeReport("n2", TWO, "fresh")), CORES)
    assert (both.heartbeat, both.used_cpu, both.can_postpone_last_job) == (NOW - 60, 11.0, True)
    ends = (both.last_job_start, both.first_exp_job_end, both.last_exp_job_end, both.last_max_job_end)
    assert ends == (NOW - 100, NOW + 100, NOW + 1000, NOW + 1900)
    # What is lost now: of n1 70 and 8 cores for 500 s, of n2 30 and 3 cores for 100 s.
    assert (both.add_uncom_time or 0) + 11 * 100 == 70 + 8 * 500 + 30 + 3 * 100
    # What idles until all have left, from now on: n1 2400 and its 8 cores for the last 300 s, n2 one core to 300, 700.
    assert (both.add_final_exp_waste or 0) + (12 - 11) * 100 == 2400 + 8 * 300 + 1 * 300 + 700
    assert standing(both, NOW, LIMIT, NOW - 5000, 12) == "fresh"


@pytest.mark.parametrize(
    "other",
    [
        NodeReport("n2", TWO, "stale"),
        NodeReport("n2", TWO, "contradictory"),
        NodeReport("n2", TWO, ""),
        NodeReport("n9", TWO, "fresh"),
        NodeReport("n1", TWO, "fresh"),
        NodeReport("n2", PilotReport(NOW - 60, used_cpu=3.0), "fresh"),
    ],
)
def test_nothing_is_said_of_the_whole_while_one_node_says_too_little(other: NodeReport) -> None:
    assert whole_report(of(other), CORES) == PilotReport(NOW - 60)


def test_a_silent_node_of_three_makes_the_whole_silent() -> None:
    assert whole_report(of(NodeReport("n2", TWO, "fresh")), {**CORES, "n3": 4}) == PilotReport(NOW - 60)
    old = NodeReport("n2", PilotReport(NOW - 9000), "fresh")
    assert whole_report(of(old), CORES).heartbeat == NOW - 9000


def test_the_comment_of_two_nodes_comes_back_and_is_no_longer_than_is_read() -> None:
    published = of(NodeReport("n2", TWO, "fresh"))
    text = comment_text(published)
    assert published_in(text) == published and len(text) < LONGEST
    assert batch([("17", text)])
    assert published_in(text.replace('"n2":{', '"n2":{"n3":')) is None
    assert published_in(text.replace('"n2"', '"n 2"')) is None


def test_each_node_writes_its_own_part_and_keeps_the_others() -> None:
    """The second waits for the first; the first judges its report by its own cores once another one reports."""
    arguments = (NOW, LIMIT)
    assert wanted_comment(JOB, "n2", 4, TWO, *arguments, is_first=False, own_cores=4) is None
    alone = wanted_comment(JOB, "n1", 12, ONE, *arguments, own_cores=8)
    assert alone is not None
    first = published_in(alone)
    assert first is not None and first.others == ()
    second = wanted_comment(replace(JOB, comments=(alone,)), "n2", 4, TWO, *arguments, is_first=False, own_cores=4)
    assert second is not None
    both = published_in(second)
    assert both is not None and both.report == first.report
    assert [(one.node, one.standing, one.report) for one in both.others] == [("n2", "fresh", TWO)]
    again = wanted_comment(replace(JOB, comments=(second,)), "n1", 12, ONE, *arguments, own_cores=8)
    whole = published_in(again or "")
    assert whole is not None and (whole.standing, whole.report, whole.others) == ("fresh", ONE, both.others)


def test_a_heartbeat_alone_is_no_news_until_it_is_old() -> None:
    stands = comment_text(of(NodeReport("n2", TWO, "fresh")))
    job = replace(JOB, comments=(stands,))

    def later(seconds: int) -> bool:
        values = [getattr(TWO, name) for name in PilotReport.__match_args__[1:]]
        report = PilotReport(TWO.heartbeat + seconds, *values)
        comment = wanted_comment(job, "n2", 4, report, NOW + seconds, LIMIT, is_first=False, own_cores=4)
        return comment is not None and is_news(comment, [stands], LIMIT)

    assert [later(600), later(1900)] == [False, True]
