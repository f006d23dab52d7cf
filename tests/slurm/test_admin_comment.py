"""What a node publishes in a job's AdminComment, and what the pool side makes of any text there."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.pilotad.attributes import ATTRIBUTES, FLAG, PRIORITY, TIME
from drainwise.pilotad.report import CONTRADICTORY, FRESH, INCOMPLETE, STALE, PilotReport
from drainwise.slurm.jobs.admin_comment import (
    LONGEST,
    Published,
    comment_text,
    is_ours,
    lacks_directories,
    published_in,
    without_directories_text,
)
from worked_example import worked_example

START, NOW = 1795240000, 1795249000
REPORT = worked_example(NOW)
LINE = comment_text(Published(17, START, "n1", REPORT, FRESH))

moments = st.integers(946684800, 4102444800)
amounts = st.integers(0, 10**15 * 10**3).map(lambda thousandths: thousandths / 1000)
reports = st.builds(
    PilotReport,
    moments,
    used_cpu=st.none() | amounts,
    last_job_start=st.none() | moments,
    first_exp_job_end=st.none() | moments,
    last_exp_job_end=st.none() | moments,
    last_max_job_end=st.none() | moments,
    add_uncom_time=st.none() | amounts,
    add_final_exp_waste=st.none() | amounts,
    priority_factor=st.none() | st.integers(-(2**31), 2**31 - 1),
    can_postpone_last_job=st.none() | st.booleans(),
)
published = st.builds(
    Published,
    st.integers(1, 2**32 - 1),
    moments,
    st.from_regex(r"[A-Za-z0-9._-]{1,64}", fullmatch=True),
    reports,
    st.sampled_from(["", FRESH, STALE, INCOMPLETE]),
)


def with_keys(**keys: object) -> str:
    """The line with other keys, as JSON would say them."""
    return json.dumps({**json.loads(LINE), **keys}, separators=(",", ":"))


def test_the_line_that_the_documents_show() -> None:
    assert LINE == (
        '{"drainwise":1,"job":17,"start":1795240000,"node":"n1","heartbeat":1795249000,"standing":"fresh",'
        '"last_job_start":1795247961,"first_exp_job_end":1795256000,"last_exp_job_end":1795262000,'
        '"last_max_job_end":1795290000,"used_cpu":6,"add_uncom_time":28800,"add_final_exp_waste":60000,'
        '"priority_factor":3,"can_postpone_last_job":true}'
    )


@given(published)
def test_what_is_written_is_read_again(fact: Published) -> None:
    """One line of printable ASCII, half as long as a reader takes, that says the same again."""
    line = comment_text(fact)
    assert line.isascii()
    assert line.isprintable()
    assert len(line) <= LONGEST / 2
    assert is_ours(line)
    assert published_in(line) == fact


def test_a_contradictory_report_is_published_without_its_values() -> None:
    line = comment_text(Published(17, START, "n1", REPORT, CONTRADICTORY))
    assert set(json.loads(line)) == {"drainwise", "job", "start", "node", "heartbeat", "standing"}
    read = published_in(line)
    assert read is not None
    assert (read.standing, read.report) == (CONTRADICTORY, PilotReport(NOW))


def test_a_contradictory_report_that_has_values_has_none_for_the_reader() -> None:
    read = published_in(with_keys(standing=CONTRADICTORY))
    assert read is not None
    assert read.report == PilotReport(NOW)


@given(st.text() | st.text().map(lambda text: LINE[:-1] + text) | st.text().map(lambda text: '{"drainwise":' + text))
def test_garbage_is_nothing_and_never_raises(text: str) -> None:
    """HOSTILE 29 to 43: whatever stands in the field, a reader goes on."""
    read = published_in(text)
    assert read is None or read.job > 0


@given(st.integers(0, len(LINE) - 1), st.text(max_size=3))
def test_a_line_with_a_wound_is_nothing_or_sound(place: int, text: str) -> None:
    """What is read is within its types and ranges whatever was changed."""
    read = published_in(LINE[:place] + text + LINE[place + 1 :])
    if read is not None:
        assert published_in(comment_text(read)) == read


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from([*json.loads(LINE), "other"]), json_values, max_size=4))
def test_values_of_any_json_type_are_bounded(keys: dict[str, object]) -> None:
    read = published_in(with_keys(**keys))
    if read is None:
        return
    assert 946684800 <= read.report.heartbeat <= 4102444800
    for row in ATTRIBUTES:
        value = getattr(read.report, row.field)
        if value is None:
            continue
        if row.kind == FLAG:
            assert type(value) is bool
        elif row.kind == TIME:
            assert type(value) is int
            assert 946684800 <= value <= 4102444800
        elif row.kind == PRIORITY:
            assert -(2**31) <= value < 2**31
        else:
            assert 0 <= value <= 1e15


@pytest.mark.parametrize(
    "text",
    [
        '{"drainwise":' + "[" * 900 + "]" * 100,
        '{"drainwise":' + "[" * 100_000,
        '{"drainwise":1' + "0" * 900 + "}",
        LINE[:-1] + ',"job":18}',
        LINE + LINE,
        LINE + "\n",
        LINE[:-1],
        " " + LINE,
        with_keys(drainwise=True),
        with_keys(drainwise=1.0),
        with_keys(drainwise=2),
        with_keys(job="17"),
        with_keys(job=True),
        with_keys(job=0),
        with_keys(job=2**32),
        with_keys(start=START + 0.5),
        with_keys(start=0),
        with_keys(heartbeat=2**31 * 10**9),
        with_keys(heartbeat=None),
        with_keys(node=""),
        with_keys(node="n1; reboot"),
        with_keys(node="n" * 65),
        with_keys(node=["n1"]),
        "1795249000",
        "null",
        "",
    ],
)
def test_no_report(text: str) -> None:
    """HOSTILE 34 to 37: nesting, doubled keys, other types, numbers and times out of all range are no report."""
    if text == LINE + "\n":  # JSON allows blanks around it; Slurm keeps what it was given
        assert published_in(text) == published_in(LINE)
    else:
        assert published_in(text) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("used_cpu", -1),
        ("used_cpu", "6"),
        ("used_cpu", float("nan")),
        ("add_uncom_time", float("inf")),
        ("add_uncom_time", 10**300),
        ("add_final_exp_waste", True),
        ("last_job_start", 3.0),
        ("last_max_job_end", 2**31 * 2**31),
        ("can_postpone_last_job", 1),
        ("priority_factor", 2.5),
    ],
)
def test_a_value_out_of_type_or_range_is_not_known(key: str, value: object) -> None:
    read = published_in(with_keys(**{key: value}))
    assert read is not None
    assert getattr(read.report, key) is None


def test_extreme_priorities_are_held_within_32_bits() -> None:
    """HOSTILE 39."""
    read = published_in(with_keys(priority_factor=-(10**18)))
    assert read is not None
    assert read.report.priority_factor == -(2**31)


def test_unknown_keys_and_standings_are_passed_over() -> None:
    read = published_in(with_keys(standing="excellent", Start=False, site="x"))
    assert read is not None
    assert (read.standing, read.report) == ("", REPORT)


@pytest.mark.parametrize("text", ["called the user", '{"site":1}', " " + LINE, "null"])
def test_somebody_elses_comment_is_not_ours(text: str) -> None:
    assert not is_ours(text)


def test_no_comment_and_a_later_version_may_be_replaced() -> None:
    assert is_ours("")
    assert is_ours('{"drainwise":2,"x":1}')


@pytest.mark.parametrize(
    "fact",
    [
        Published(0, START, "n1", REPORT),
        Published(17, 5, "n1", REPORT),
        Published(17, START, 'n1","x":"', REPORT),
        Published(17, START, "", REPORT),
        Published(17, START, "n1", PilotReport(3)),
        Published(17, START, "n1", REPORT, "excellent"),
    ],
)
def test_what_names_no_run_is_never_published(fact: Published) -> None:
    with pytest.raises(ValueError, match="no report of a run"):
        comment_text(fact)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0, 1e300])
def test_a_number_that_is_none_is_left_out(value: float) -> None:
    """HOSTILE 36: the line stays JSON that every reader takes."""
    line = comment_text(Published(17, START, "n1", PilotReport(NOW, used_cpu=value)))
    assert "used_cpu" not in json.loads(line)


@pytest.mark.parametrize(
    ("job", "start", "node"),
    [(0, START, "n1"), (2**32, START, "n1"), (17, 5, "n1"), (17, START, ""), (17, START, "n 1"), (17, START, "n" * 65)],
)
def test_what_names_no_run_says_nothing_of_its_directories(job: int, start: int, node: str) -> None:
    with pytest.raises(ValueError, match="no run"):
        without_directories_text(job, start, node)


BARE = without_directories_text(17, START, "n1")


@pytest.mark.parametrize(
    ("comment", "lacks"),
    [
        (BARE, True),
        (BARE.replace("17", "18"), False),
        (BARE.replace(str(START), str(START + 1)), False),
        (BARE.replace(":1,", ":2,", 1), False),
        (BARE.replace("false", "true"), False),
        (BARE.replace('"directories":false', '"x":"\\"directories\\":false"'), False),
        (BARE[:-1], False),
        (BARE[:-1] + ',"x":"' + "y" * (1024 - len(BARE) - 7) + '"}', True),
        (BARE[:-1] + ',"x":"' + "y" * (1025 - len(BARE) - 7) + '"}', False),
        ("x" + BARE, False),
        (LINE, False),
        ("", False),
    ],
)
def test_a_job_without_directories_is_this_run_alone(comment: str, lacks: bool) -> None:
    """Who spells it in a name is no such job."""
    assert lacks_directories(comment, 17, START) is lacks
    assert not lacks_directories(comment, 17, None)


@pytest.mark.parametrize(
    ("others", "number"),
    [
        ({}, 0),
        ({"n2": {"heartbeat": NOW}}, 1),
        ({f"n{number}": {"heartbeat": NOW} for number in range(31)}, 31),
        ({f"n{number}": {"heartbeat": NOW} for number in range(32)}, None),
        ({"n 2": {"heartbeat": NOW}}, None),
        ({"n2": {"heartbeat": "now"}}, None),
        ({"n2": None}, None),
        (["n2"], 0),
        (None, 0),
    ],
)
def test_other_nodes_reports_are_whole_or_there_is_none(others: object, number: int | None) -> None:
    found = published_in(with_keys(others=others))
    assert (None if found is None else len(found.others)) == number


@pytest.mark.parametrize(
    ("version", "read"),
    [("1.2.3", "1.2.3"), ("1" * 32, "1" * 32), ("1" * 33, ""), ("1 2", ""), ("", ""), (1, "")],
)
def test_a_version_is_short_and_plain(version: object, read: str) -> None:
    found = published_in(with_keys(version=version))
    assert found is not None and found.version == read
