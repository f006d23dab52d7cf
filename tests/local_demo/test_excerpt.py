"""The excerpt is what its header says, and the reader refuses what is not sound."""

from __future__ import annotations

import os

import pytest

from local_demo.excerpt import EXCERPT, ExcerptError, parse, read_excerpt

LINE = "7 20 -1 969 1 -1 -1 -1 1200 -1 -1 3 3 -1 -1 3 -1 -1"


def test_the_excerpt_is_small_whole_and_acknowledged() -> None:
    with open(EXCERPT, encoding="ascii") as stream:
        text = stream.read()
    assert os.path.getsize(EXCERPT) < 40_000
    for words in (
        "Acknowledge: Hui Li",
        "Parallel Workloads Archive",
        "Feitelson",
        "MaxJobs: 188041",
        "288 of the 188,041",
    ):
        assert words in text
    jobs = read_excerpt()
    assert len(jobs) == len({job.number for job in jobs}) == 288


def test_a_line_gives_run_time_and_requested_time() -> None:
    [job] = parse(f"; a comment\n\n{LINE}\n", "x.swf")
    assert (job.number, job.run, job.requested) == (7, 969, 1200)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (LINE + " 1", "expected 18 fields, found 19"),
        (LINE.rpartition(" ")[0], "expected 18 fields, found 17"),
        (LINE.replace("969", "9.5"), "expected whole numbers"),
        (LINE.replace("969", "0x1"), "expected whole numbers"),
        (LINE.replace("969", "-1"), "found -1 and 1200"),
        (LINE.replace("969", "1201"), "found 1201 and 1200"),
    ],
)
def test_what_is_not_sound_is_refused_with_its_line(line: str, said: str) -> None:
    with pytest.raises(ExcerptError, match=said) as fault:
        parse(f"{LINE}\n{line}\n", "x.swf")
    assert str(fault.value).startswith("x.swf:2: ")


def test_a_log_without_a_job_is_refused() -> None:
    with pytest.raises(ExcerptError, match="no job"):
        parse("; nothing\n", "x.swf")
