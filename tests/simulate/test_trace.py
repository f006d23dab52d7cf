"""A log is read strictly: plain or gzipped, with its header, its errors named and its skipped rows counted."""

from __future__ import annotations

import gzip
import io
import os
from pathlib import Path

import pytest

from drainwise.facts.errors import UsageError
from drainwise_simulate import trace
from drainwise_simulate.trace import TraceJob, largest_owner, read_trace, trace_in
from drainwise_tasks.estimate.records.record import LONGEST_LINE, skipped_words

TRACES = Path(__file__).parents[2] / "traces"


def row(number: object = 1, submit: object = 1000, run: object = 60, cores: object = 1, requested: object = 600) -> str:
    return f"{number} {submit} -1 {run} {cores} -1 -1 -1 {requested} -1 1 7 3 -1 -1 -1 -1 -1\n"


def read(text: str | bytes) -> trace.Trace:
    return trace_in(io.BytesIO(text.encode() if isinstance(text, str) else text), "a.swf")


def test_jobs_by_their_arrival_with_the_header() -> None:
    """Times count from the first arrival; what a header says is found by its name."""
    found = read("; Computer: a grid\n;\tNote: x\n" + row(2, 1500) + "\n" + row(1, 1400, 0, 8) + "; UnixStartTime: 5\n")
    assert found.jobs == (TraceJob(1, 0, 0, 8, 600, "7", "3"), TraceJob(2, 100, 60, 1, 600, "7", "3"))
    assert (found.said("Computer"), found.said("Note"), found.said("UnixStartTime")) == ("a grid", "x", "5")
    assert found.said("Version") == "" and not found.skipped


def test_what_is_skipped_is_counted() -> None:
    """By its reason, in words for a line."""
    found = read(row() + row(2, run=-1) + row(3, run=-9) + row(4, requested=-1) + row(5, cores=0) + row(6, cores=-1))
    assert len(found.jobs) == 1
    assert skipped_words(found.skipped) == (
        ": 5 skipped: 2 cores below 1, 1 end before start, 1 no requested time, 1 no run time"
    )


def test_the_pieces_of_a_checkpointed_job_are_skipped() -> None:
    """The whole job has a row of its own; of its pieces only the first has a submit time."""
    pieces = "".join(row(1, submit).replace(" -1 1 7", f" -1 {status} 7") for submit, status in ((1000, 2), (-1, 3)))
    found = read(row() + pieces)
    assert len(found.jobs) == 1 and skipped_words(found.skipped) == ": 2 skipped: 2 part of a job"
    with pytest.raises(UsageError, match=r"line 1: column 4 .run time.: 'x'"):
        read(row(1, -1, run="x").replace(" -1 1 7", " -1 2 7"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (row() + row(2, "x"), "a.swf: line 2: column 2 (submit time): 'x': expected a number"),
        ("; c\n\n" + row(run="nan"), "a.swf: line 3: column 4 (run time): 'nan': expected a number"),
        (row(submit=-5), "a.swf: line 1: column 2 (submit time): '-5': expected 0 or more"),
        ("1 2 3\n", "a.swf: line 1: 3 columns: expected 18 or more"),
        (row() + "\n" + row(), "a.swf: line 3: column 1 (job number): 1: expected each number once (it is line 1's)"),
        (row(run=-1), "a.swf: no job in it that can be used: 1 skipped: 1 no run time"),
        ("", "a.swf: no job in it that can be used"),
        ("; only a header\n", "a.swf: no job in it that can be used"),
        (row() + "1" * (LONGEST_LINE + 5) + "\n", f"a.swf: line 2: expected at most {LONGEST_LINE} bytes"),
        (b"\x7fELF\x02\x01\x01\x00\x00", "a.swf: line 1: column 1 (job number): '"),
    ],
)
def test_what_is_wrong_is_named(text: str | bytes, said: str) -> None:
    """File, line and column; nothing is guessed at."""
    with pytest.raises(UsageError) as fault:
        read(text)
    assert str(fault.value).startswith(said) and str(fault.value).isprintable()


def test_a_gzipped_log_and_a_torn_one(tmp_path: Path) -> None:
    """Both are told from their first bytes; one that ends too early is no log that is merely shorter."""
    path, torn = tmp_path / "a.swf", tmp_path / "torn.swf.gz"
    rows = "".join(row(number, number) for number in range(500))
    path.write_bytes(gzip.compress(rows.encode()))
    assert len(read_trace(str(path)).jobs) == 500
    torn.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(UsageError, match=r"torn\.swf\.gz: cannot be read to its end"):
        read_trace(str(torn))
    torn.write_bytes(b"\x1f\x8b" + os.urandom(100))
    with pytest.raises(UsageError, match=r"torn.swf.gz: cannot be read"):
        read_trace(str(torn))
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_trace(str(tmp_path / "none"))


def test_a_log_that_would_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """HOSTILE: a small packed file may hold any number of rows; a header of any length is not kept whole."""
    monkeypatch.setattr(trace, "MOST_JOBS", 3)
    with pytest.raises(UsageError, match="line 4: expected at most 3 jobs"):
        read("".join(row(number) for number in range(9)))
    found = read("; x\n" * 20_000 + ";" + "y" * 9000 + "\n" + row())
    assert len(found.header) <= 5000 and max(map(len, found.header)) <= 500


def test_a_header_reaches_no_terminal_raw() -> None:
    """HOSTILE 41: control characters and bytes that are no text are left out."""
    found = read(b"; Computer: a\x1b[31mb\xff\xe2\x80\xae\n" + row().encode())
    assert found.said("Computer").startswith("a[31mb") and found.said("Computer").isprintable()


def test_who_has_most() -> None:
    """By core-seconds, not by jobs."""
    jobs = [
        TraceJob(1, 0, 10, 1, 60, "a", "g"),
        TraceJob(2, 0, 10, 1, 60, "a", "g"),
        TraceJob(3, 0, 10, 6, 60, "b", "g"),
    ]
    assert largest_owner(jobs, lambda job: job.user) == ("b", 0.75)
    assert largest_owner(jobs, lambda job: job.group) == ("g", 1.0)
    assert largest_owner([TraceJob(1, 0, 0, 1, 60, "a", "g")], lambda job: job.user) == ("a", 0.0)


@pytest.mark.parametrize(("name", "jobs", "skipped"), [("lcg-cnaf", 8241, 0), ("wagap", 5998, 2)])
def test_the_committed_excerpts(name: str, jobs: int, skipped: int) -> None:
    """Small enough to be committed, with a header that says what they are, whence, and how to cite them."""
    path = TRACES / f"{name}.swf.gz"
    found = read_trace(str(path))
    assert path.stat().st_size < 150_000
    assert (len(found.jobs), sum(found.skipped.values())) == (jobs, skipped)
    assert found.header[0].startswith("; Excerpt: ") and found.said("Source") and found.said("Cite")
    assert f"{jobs + skipped:,}" in found.header[0] and f"| {jobs + skipped:,} |" in (TRACES / "README.md").read_text()
