"""Records of the reference pilot, of HTCondor's history and of sacct become finished payloads, or counted skips."""

from __future__ import annotations

import io
import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.errors import UsageError
from drainwise.facts.units import parse_amount, parse_clock
from drainwise.pilot.decide.payload import Payload
from drainwise.pilot.queues.records import Records
from drainwise_tasks.estimate.parameters import Parameters
from drainwise_tasks.estimate.records import formats, pilot_records
from drainwise_tasks.estimate.records.formats import (
    HISTORY_JSON,
    HISTORY_LONG,
    JSON_LINES,
    PILOT,
    READERS,
    SACCT,
    read_as,
)
from drainwise_tasks.estimate.records.pilot_records import read_pilot_records
from drainwise_tasks.estimate.records.record import (
    NOT_A_ROW,
    NOT_JSON,
    TOO_MANY_OPEN,
    UNFINISHED,
    Finished,
    lines_in,
)
from drainwise_tasks.estimate.records.sacct import moment_of
from drainwise_tasks.estimate.scouts import Sample
from drainwise_tasks.estimate.settings import Settings

from .jobs import T0, as_lines, record

RECORDED = Path(__file__).parents[1] / "slurm" / "recorded"


def parsed(text: bytes, name: str = "auto") -> tuple[list[Finished], Counter[str]]:
    skips: Counter[str] = Counter()
    return list(read_as(name, lines_in(io.BytesIO(text), skips), skips)), skips


def test_what_the_pilot_writes_is_read(tmp_path: Path) -> None:
    """Its own writer, both ends of a payload: task, cores, events, limit and how long; requeued ones are left out."""
    path = tmp_path / "records.jsonl"
    records = Records(str(path), "pilot-1", print)
    for name, task in (("a", "fit"), ("b", "fit"), ("c", "fit"), ("d", "")):
        payload = Payload(name, 4, ("true",), 50, 500, task=task, events=1000.0 if name == "a" else 0.0)
        records.started(payload, T0)
    records.add("done", "a", T0 + 40, code=0, seconds=39.5)
    records.add("failed", "b", T0 + 9, code=1, seconds=9)
    records.add("requeued", "c", T0 + 9, reason="its pilot vanished: x")
    records.add("done", "d", T0 + 9, code=0, seconds=9)
    records.add("refused", "e.json", T0 + 9, reason="no payload")
    records.add("done", "never-started", T0 + 9, code=0, seconds=9)
    found, skips = parsed(path.read_bytes())
    assert found == [
        Finished("fit", T0, T0 + 39.5, True, 4, 1000.0, requested=500.0),
        Finished("fit", T0, T0 + 9, False, 4, requested=500.0),
    ]
    assert skips == {"no task": 1, "an end without its start": 1}


def test_starts_that_wait_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """HOSTILE 22: payloads that start and never end take no more memory than so many."""
    monkeypatch.setattr(pilot_records, "MOST_OPEN", 10)
    starts = [{"time": T0, "pilot": "p", "event": "started", "payload": str(number)} for number in range(25)]
    assert parsed(as_lines(*starts)) == ([], Counter({TOO_MANY_OPEN: 15}))


AD = {
    "ClusterId": 12,
    "ProcId": 0,
    "Owner": "alice",
    "JobStatus": 4,
    "JobCurrentStartDate": int(T0),
    "CompletionDate": int(T0) + 3600,
    "CpusProvisioned": 8,
    "RemoteUserCpu": 20000.0,
    "RemoteSysCpu": 500.0,
    "ResidentSetSize_RAW": 2048,
    "DiskUsage_RAW": 10,
    "BytesRecvd": 1e6,
    "BytesSent": 2e6,
    "BlockReadBytes": 5,
    "BlockWriteKbytes": 2,
    "ExitCode": 0,
    "ExitBySignal": False,
    "MaxWallTimeMins": 120,
}
JOB = Finished(
    "alice/12",
    int(T0),
    int(T0) + 3600,
    True,
    8,
    cpu_seconds=20500.0,
    memory_bytes=2048 * 1024,
    input_bytes=1e6,
    output_bytes=2e6,
    read_bytes=5,
    written_bytes=2048,
    work_bytes=10240,
    requested=7200,
)


def as_long(ad: dict[str, object]) -> bytes:
    lines = [f"{name} = {json.dumps(value)}" for name, value in ad.items()]
    return "\n".join([*lines, 'Odd = strcat("a","b")', 'Environment = "A = 1"']).encode() + b"\n\n"


def as_history_json(*ads: dict[str, object]) -> bytes:
    return b"[\n" + b",\n".join(json.dumps(ad, indent=2).encode() + b"\n" for ad in ads) + b"]\n"


@pytest.mark.parametrize(
    "text",
    [
        as_history_json(AD),
        b"[" + json.dumps(AD).encode() + b"]\n",
        json.dumps(AD).encode() + b"\n",
        as_long(AD),
        b'*** Offset = 0 ClusterId = 12 ProcId = 0 Owner = "alice"\n' + as_long(AD),
    ],
    ids=["array", "array of one line", "one per line", "long", "file"],
)
def test_every_form_of_history_is_the_same_job(text: bytes) -> None:
    """condor_history -json, -jsonl and -long, and a history file, told from their first lines."""
    assert parsed(text) == ([JOB], Counter())


def test_history_of_many() -> None:
    """Ads one after the other; running jobs are counted, a signal or a code is a failure, a batch name is the task."""
    changed: list[dict[str, object]] = [
        {**AD, "JobStatus": 2},
        {**AD, "ExitBySignal": True},
        {**AD, "ExitCode": 1, "JobBatchName": "sim"},
        {**AD, "JobStatus": 3},
        {**AD, "CompletionDate": 0, "EnteredCurrentStatus": int(T0) - 5},
    ]
    for text in (as_history_json(*changed), b"".join(as_long(ad) for ad in changed)):
        found, skips = parsed(text)
        assert [(job.task, job.good) for job in found] == [
            ("alice/12", False),
            ("alice/sim", False),
            ("alice/12", False),
        ]
        assert skips == {UNFINISHED: 1, "end before start": 1}


def test_a_long_history_without_blank_lines_is_told_by_its_ids() -> None:
    """Where a second ClusterId comes, another ad has begun."""
    one = as_long(AD).replace(b"\n\n", b"\n")
    assert parsed(one + one)[0] == [JOB, JOB]


def test_an_ad_of_the_long_form_ends_with_a_blank_line() -> None:
    """Attributes come in the order of the alphabet: those before ClusterId are of the next ad, never of the last."""
    first, second = {**AD, "AllowedExecuteDuration": 600}, {**AD, "BytesRecvd": 7, "ProcId": 1}
    text = b"".join(as_long(dict(sorted(ad.items()))) for ad in (first, second, AD))
    assert parsed(text)[0] == [JOB._replace(requested=600), JOB._replace(input_bytes=7), JOB]


def test_what_nobody_measured_is_unknown() -> None:
    """HTCondor and Slurm write 0 there: taken as numbers they would make a task look as if it needed nothing."""
    [job], _ = parsed(as_history_json({**AD, "RemoteUserCpu": 0.0, "RemoteSysCpu": 0.0, "ResidentSetSize_RAW": 0}))
    assert (job.cpu_seconds, job.memory_bytes) == (None, None)
    rows = b"1|COMPLETED|1795249000|1795249060|00:00:00||\n1.batch|COMPLETED|1795249000|1795249060||0|0.00M\n"
    [job], _ = parsed(b"JobID|State|Start|End|TotalCPU|MaxRSS|MaxDiskRead\n" + rows)
    assert (job.cpu_seconds, job.memory_bytes, job.read_bytes) == (None, None, None)


def test_a_broken_ad_costs_itself() -> None:
    """Half an ad in the middle of an array, or at its end."""
    text = as_history_json(AD, AD, AD)
    places = [place for place in range(len(text)) if text.startswith(b"\n{", place)]
    cut = text[: places[1] + 40] + text[places[2] :]
    assert parsed(cut) == ([JOB, JOB], Counter({NOT_JSON: 1}))
    assert parsed(text[: places[2] + 40]) == ([JOB, JOB], Counter({NOT_JSON: 1}))


def test_an_expression_is_unknown() -> None:
    """MemoryUsage is an expression in the long form: no number is made of it."""
    ad = {key: value for key, value in AD.items() if key != "ResidentSetSize_RAW"}
    text = b"MemoryUsage = ( ( ResidentSetSize + 1023 ) / 1024 )\n" + as_long(ad)
    [job] = parsed(text)[0]
    assert job.memory_bytes is None


SACCT_HEADER = "JobID|JobName|User|State|Start|End|Elapsed|Timelimit|AllocCPUS|TotalCPU|MaxRSS|MaxDiskRead|MaxDiskWrite"


def test_sacct_with_its_steps() -> None:
    """Memory and disk come from the steps, the largest; state, times and cores from the job; both separators' forms."""
    rows = [
        SACCT_HEADER,
        "7|sim|alice|COMPLETED|2026-11-21T15:00:00|2026-11-21T16:00:00|01:00:00|1-00:00:00|8|07:30:00|||",
        "7.batch|batch||COMPLETED|2026-11-21T15:00:00|2026-11-21T16:00:00|01:00:00||8|07:00:00|1000K|1M|2M",
        "7.0|step||COMPLETED|2026-11-21T15:00:00|2026-11-21T16:00:00|01:00:00||8|00:30:00|1.5G|0|3M",
        "8_1|arr|bob|TIMEOUT|2026-11-21T15:00:00|2026-11-21T15:01:00|00:01:00|00:01:00|1|00:00:01.5|||",
        "9|sim|alice|RUNNING|2026-11-21T15:00:00|Unknown|01:00:00|1-00:00:00|8|00:00:00|||",
        "10|sim|alice|CANCELLED by 0|None|Unknown|00:00:00|1-00:00:00|0|00:00:00|||",
        "11|evil|name|alice|COMPLETED|2026-11-21T15:00:00|2026-11-21T16:00:00|01:00:00|1-00:00:00|8|07:30:00|||",
        "12|sim|alice|NODE_FAIL|2026-11-21T15:00:00|2026-11-21T15:00:30|00:00:30|UNLIMITED|1|00:00:01|||",
    ]
    start = 1795273200.0
    expected = [
        Finished("alice/sim", start, start + 3600, True, 8, cpu_seconds=27000, memory_bytes=1.5 * 1024**3,
                 read_bytes=1024**2, written_bytes=3 * 1024**2, requested=86400),
        Finished("bob/8", start, start + 60, False, 1, cpu_seconds=1.5, requested=60),
        Finished("alice/sim", start, start + 30, False, 1, cpu_seconds=1, external=True),
    ]  # fmt: skip
    for end in ("\n", "|\n"):
        found, skips = parsed("".join(row + end for row in rows).encode())
        assert found == expected
        assert skips == {UNFINISHED: 1, "no start or no end": 1, NOT_A_ROW: 1}


@pytest.mark.parametrize("release", ["22.05", "24.11"])
def test_a_recorded_sacct(release: str) -> None:
    """What real clusters printed: every job that ended is read, every one that had not is counted."""
    header = (
        "JobID|JobIDRaw|User|Account|QOS|State|ExitCode|Start|End|Timelimit|NodeList|AllocCPUS|Comment|AdminComment\n"
    )
    text = (RECORDED / release / "sacct.txt").read_text()
    rows = [line.split("|") for line in text.splitlines()]
    over = [row for row in rows if row[5].split()[0] not in {"RUNNING", "PENDING", "SUSPENDED", "REQUEUED"}]
    found, skips = parsed((header + text).encode())
    assert over and len(found) == len(over) and skips == {UNFINISHED: len(rows) - len(over)}
    assert [job.cores for job in found] == [int(row[11]) for row in over]
    assert [job.good for job in found] == [row[5] == "COMPLETED" for row in over]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("17", 17), ("03:04.5", 184.5), ("02:03:04", 7384), ("1-02:03:04", 93784), ("UNLIMITED", None), ("", None),
     ("-5", None), ("1-5", None), ("nan", None), ("1e9", None), ("٣", None)],
)  # fmt: skip
def test_times_of_slurm(text: str, seconds: float | None) -> None:
    """Each form that sacct prints; anything else is unknown."""
    assert parse_clock(text) == seconds


def test_sizes_and_moments_of_slurm() -> None:
    """1024-based sizes; times as ISO in UTC or as a number; anything else is unknown."""
    texts, sizes = ("0", "1K", "1.5G", "-1", "1X", "", "nan"), [0, 1024, 1.5 * 2**30]
    assert [parse_amount(text) for text in texts] == [*sizes, *[None] * 4]
    assert moment_of("2026-11-21T15:00:00") == moment_of("1795273200") == 1795273200
    assert [moment_of(text) for text in ("Unknown", "None", "", "2026-13-01T00:00:00", "-1")] == [None] * 5


def test_the_format_is_told_or_named() -> None:
    """Each format's first line shows it; what shows none is an error that says which there are; nothing is nothing."""
    firsts = {
        JSON_LINES: as_lines(record()),
        PILOT: as_lines({"time": T0, "pilot": "p", "event": "started", "payload": "x"}),
        HISTORY_JSON: b"[",
        HISTORY_LONG: b"ClusterId = 1",
        SACCT: b"JobID|State|Start|End",
    }
    assert {name: formats.format_of(line) for name, line in firsts.items()} == {name: name for name in READERS}
    with pytest.raises(UsageError, match=r"--format .*sacct"):
        parsed(b"hello\nworld\n")
    assert parsed(b"") == ([], Counter())
    assert parsed(b"garbage\n" + as_lines(record()))[1] == {NOT_JSON: 1}


ODD_LINES = [
    b"{",
    b"}",
    b"[",
    b"]",
    b"JobID|State",
    b"JobID|State|Start|End",
    b"1|COMPLETED|5|9",
    b"1|COMPLETED",
    b"ClusterId = 1",
    b"JobStatus = 4",
    b"JobStatus = nan",
    b"CpusProvisioned = 1e999",
    b'{"event": []}',
    b'{"event": "done", "pilot": {}, "payload": []}',
    b'{"JobStatus": 4, "CpusProvisioned": NaN}',
    b'{"JobStatus": [], "ExitCode": 1e999}',
]


@given(
    st.sampled_from((SACCT, *sorted(READERS), SACCT, SACCT)),  # it alone needs a header
    st.lists(st.binary(max_size=60) | st.sampled_from(ODD_LINES), max_size=12),
)
def test_no_reader_falls_over(name: str, lines: list[bytes]) -> None:
    """HOSTILE 32 to 36: whatever lines there are, each reader ends, and what it yields is sound."""
    try:
        found = parsed(b"\n".join(lines), name)[0]
    except UsageError as fault:
        assert name == SACCT and "header" in str(fault)
        return
    assert all(job.seconds >= 0 and job.cores >= 1 for job in found)


def test_sacct_without_its_header_is_named() -> None:
    """No row is taken for a header: it is said which columns are missing."""
    with pytest.raises(UsageError, match="does not name JobID, State, Start, End: have sacct print its header"):
        parsed((RECORDED / "24.11" / "sacct.txt").read_bytes(), SACCT)
    with pytest.raises(UsageError, match="does not name Start, End"):
        parsed(b"JobID|State\n")


def test_which_figures_the_pilots_own_records_give() -> None:
    """The input does not stand there; docs/estimate.md says so."""
    start = {"event": "started", "pilot": "p", "payload": "a", "time": 1e9, "task": "sim", "cores": 4, "events": 1000}
    usage = {"code": 0, "seconds": 4000, "cpu_seconds": 15000, "memory_bytes": 4e9}
    usage |= {"read_bytes": 1e9, "written_bytes": 2e9, "work_bytes": 3e9, "output_bytes": 1e9}
    lines = [json.dumps(one).encode() for one in (start, {**start, "event": "done", "time": 1e9 + 4000, **usage})]
    sample = Sample(Parameters())
    for finished in read_pilot_records(lines, Counter()):
        sample.add(finished)
    *most, last = [figure.name for figure in sample.figures(Settings())]
    page = (Path(__file__).parents[2] / "docs" / "estimate.md").read_text()
    assert f"reference pilot come {', '.join(most)} and {last}." in page
