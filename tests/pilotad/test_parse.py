"""Bytes of a `.pilot.ad` → report."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts import waste
from drainwise.pilotad.attributes import ATTRIBUTES
from drainwise.pilotad.pilot_ad import parse_pilot_ad, pilot_ad_text
from drainwise.pilotad.report import PilotReport
from worked_example import PILOT_AD, worked_example

EXPECTED = worked_example(1795249000)


def one(line: str) -> PilotReport:
    """The report of a single line, for 8 cores."""
    return parse_pilot_ad(line.encode(), 8, 1)[0]


def test_the_worked_example() -> None:
    """The specification's ad, to the number."""
    assert parse_pilot_ad(PILOT_AD, 8, 1795249000) == (EXPECTED, ())


def test_the_worked_example_wastes_what_the_specification_says() -> None:
    """Remaining 13000 s (41000 at most), draining 74000 and kill 35034 core-seconds."""
    report, t = parse_pilot_ad(PILOT_AD, 8, 1795249000)[0], 1795249000
    assert waste.remaining(report.last_exp_job_end, t) == 13000
    assert waste.remaining(report.last_max_job_end, t) == 41000
    assert waste.draining_waste(8, report.used_cpu, report.first_exp_job_end, report.add_final_exp_waste, t) == 74000
    assert waste.kill_waste(report.add_uncom_time, report.used_cpu, report.last_job_start, t) == 35034


@pytest.mark.parametrize(
    "variant",
    [
        PILOT_AD.replace(b"\n", b"\r\n"),
        PILOT_AD.replace(b" = ", b"="),
        PILOT_AD.replace(b" = ", b"\t =  "),
        PILOT_AD.replace(b"\n", b"\n\n"),
        PILOT_AD.rstrip(),
        PILOT_AD.lower(),
        b"# made by a pilot\n" + PILOT_AD + b"SITE = \xc3\xa9\nno equals sign\n= 5\n",
        b"\n".join(sorted(PILOT_AD.split(b"\n"))),
    ],
)
def test_harmless_differences_do_not_matter(variant: bytes) -> None:
    """Blanks, CRLF, blank lines, order, case, unknown names and a missing last newline."""
    assert parse_pilot_ad(variant, 8, 1795249000) == (EXPECTED, ())


@pytest.mark.parametrize("again", [b"LAST_JOB_START = 1795247961\n", b"last_job_start=5\n", b"Last_Job_Start = \n"])
def test_a_name_that_stands_twice_says_nothing(again: bytes) -> None:
    """35: which of the two would be meant is not for us to choose; the rest stands."""
    report, rejected = parse_pilot_ad(PILOT_AD + again, 8, 1795249000)
    assert rejected == ("LAST_JOB_START",)
    assert report.last_job_start is None
    assert report.used_cpu == 6.0
    assert parse_pilot_ad(PILOT_AD + again + again, 8, 1795249000) == (report, rejected)


@pytest.mark.parametrize("text, cores", [("0", 0.0), ("1024", 8.0), ("1025", 8.0), ("-1", 0.0), ("9" * 19, 8.0)])
def test_a_fraction_outside_the_lease_counts_as_its_bound(text: str, cores: float) -> None:
    """37: used > 1024 and used < 0 are clamped, not unknown."""
    assert one(f"USED_FRACTION1k = {text}").used_cpu == cores


def test_rejected_names_come_in_the_order_of_the_table() -> None:
    """So that a log line reads the same each time."""
    rejected = parse_pilot_ad(b"PRIORITY_FACTOR = x\nLAST_JOB_START = y\nUSED_FRACTION1k = 5\n", 8, 1)[1]
    assert rejected == ("LAST_JOB_START", "PRIORITY_FACTOR")


def test_unknown_is_not_zero() -> None:
    """What is not said is None."""
    report, rejected = parse_pilot_ad(b"", 8, 7)
    assert report == PilotReport(7)
    assert rejected == ()
    assert all(getattr(report, row.field) is None for row in ATTRIBUTES)


def test_lines_beyond_the_limit_say_nothing() -> None:
    """22: a million lines cost no more than a few hundred."""
    filler = b"X = 1\n"
    assert parse_pilot_ad(filler * 255 + b"PRIORITY_FACTOR = 3\n", 8, 1)[0].priority_factor == 3
    assert parse_pilot_ad(filler * 256 + b"PRIORITY_FACTOR = 3\n", 8, 1)[0].priority_factor is None


names = st.sampled_from([row.ad_name.encode() for row in ATTRIBUTES])
lines = st.tuples(names, st.sampled_from([b"=", b" = ", b" "]), st.binary(max_size=30)).map(b"".join)


@given(st.one_of(st.binary(max_size=300), st.lists(lines, max_size=20).map(b"\n".join)), st.integers(1, 512))
def test_any_bytes_make_a_typed_report_and_raise_nothing(data: bytes, cores: int) -> None:
    """32, 33, 36: each value is of its type and range or unknown; only the nine names are ever reported."""
    report, rejected = parse_pilot_ad(data, cores, 1795249000)
    assert set(rejected) <= {row.ad_name for row in ATTRIBUTES}
    for field in ("last_job_start", "first_exp_job_end", "last_exp_job_end", "last_max_job_end"):
        value = getattr(report, field)
        assert value is None or (type(value) is int and 946684800 <= value <= 4102444800)
    for field in ("used_cpu", "add_uncom_time", "add_final_exp_waste"):
        value = getattr(report, field)
        assert value is None or (type(value) is float and abs(value) < 1e20)
    assert report.used_cpu is None or 0 <= report.used_cpu <= cores
    assert report.priority_factor is None or -(2**31) <= report.priority_factor < 2**31
    assert report.can_postpone_last_job in {None, True, False}
    assert (report.heartbeat, report.source) == (1795249000, ".pilot.ad")


times = st.none() | st.integers(946684800, 4102444800)


@given(
    cores=st.integers(1, 512),
    scaled=st.tuples(*[st.none() | st.integers(0, high) for high in (1024, 2**45, 2**45)]),
    dates=st.tuples(times, times, times, times),
    priority=st.none() | st.integers(-(2**31), 2**31 - 1),
    flag=st.none() | st.booleans(),
)
def test_what_a_pilot_writes_is_what_the_site_reads(
    cores: int,
    scaled: tuple[int | None, ...],
    dates: tuple[int | None, int | None, int | None, int | None],
    priority: int | None,
    flag: bool | None,
) -> None:
    """Write and parse: every representable report comes back, unknown as unknown."""
    used, uncommitted, final = (None if value is None else value * cores / 1024 for value in scaled)
    report = PilotReport(
        1795249000,
        used_cpu=used,
        add_uncom_time=uncommitted,
        add_final_exp_waste=final,
        last_job_start=dates[0],
        first_exp_job_end=dates[1],
        last_exp_job_end=dates[2],
        last_max_job_end=dates[3],
        priority_factor=priority,
        can_postpone_last_job=flag,
    )
    assert parse_pilot_ad(pilot_ad_text(report, cores), cores, 1795249000) == (report, ())
