"""What a user writes into a pilot's file: whatever it is, nine typed values at most come out, and nothing else.

Each number is that of the attack in the list of hostile cases.
"""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.pilotad.attributes import ATTRIBUTES
from drainwise.pilotad.node_reader import PILOT_AD_LIMIT, reasons_line
from drainwise.pilotad.pilot_ad import parse_pilot_ad
from drainwise.pilotad.report import CONTRADICTORY, FRESH, PilotReport, bounded, standing, standing_and_rule
from worked_example import PILOT_AD

NOW = 1_795_249_000
NOTHING = PilotReport(NOW)


def parsed(data: bytes) -> tuple[PilotReport, tuple[str, ...]]:
    """As read at NOW from a lease of 8 cores."""
    return parse_pilot_ad(data, 8, NOW)


@pytest.mark.parametrize(
    "line",
    [
        b"Start = False",
        b"State = Owner",
        b"RemoteOwner = root",
        b"Cpus = 512",
        b"AccountingGroup = vip",
        b"- tag update:true",
        b"-",
        b'SlotMergeConstraint = Name == "slot1_1@node"',
        b"SlotName = slot1_1",
        b"Name = slot1@other",
        b"SlotId = 1",
        b"PilotKillWaste = 1e9",
        b"PilotHeartbeat = 4102444800",
    ],
)
def test_29_30_31_other_attributes_do_not_exist(line: bytes) -> None:
    """29, 30, 31: nothing but the nine names is known, so nothing else can be set, opened or aimed."""
    assert parsed(line + b"\n") == (NOTHING, ())
    assert parsed(PILOT_AD + line + b"\n" + line) == parsed(PILOT_AD)


@pytest.mark.parametrize(
    "value",
    [
        b'"5"',
        b"5\\",
        b'5"]; X = 1; [',
        b"5; X = 1",
        b"5]",
        b"5 + 5",
        b"time()",
        b"PRIORITY_FACTOR",
        b"MY.Cpus",
        b"eval(5)",
        b"ifThenElse(true,5,5)",
        b"(" * 20_000,
        b"(" * 7_000 + b"5" + b")" * 7_000,
        b"undefined",
        b"error",
        b"5\x1b[2J",
        b"5\r5",
        b"5\0",
        b"5 # five",
    ],
)
def test_32_33_34_a_value_is_a_number_or_a_flag_and_never_code(value: bytes) -> None:
    """32, 33, 34: quotes, expressions, functions, self references and 20,000 parentheses make the value unknown."""
    for row in ATTRIBUTES:
        assert parsed(row.ad_name.encode() + b" = " + value) == (NOTHING, (row.ad_name,))


@pytest.mark.parametrize(
    "value",
    ["2147483648e1", "1e309", "nan", "NaN", "inf", "-inf", "0x10", "+5", "1_000", "٤٢", "５", "9" * 5000, "--1", "-"],
)
def test_36_numbers_that_are_none(value: str) -> None:
    """36: unknown, in every attribute that is a number."""
    for row in ATTRIBUTES:
        assert parsed(f"{row.ad_name} = {value}".encode()) == (NOTHING, (row.ad_name,))


@pytest.mark.parametrize("value", [-1, 2**31, 2**63, 10**19 - 1, -(10**19) + 1])
def test_36_extreme_numbers_end_up_within_the_lease(value: int) -> None:
    """36: −1, 2³¹, 2⁶³: clamped or unknown, and nothing overflows on the way."""
    data = "".join(f"{row.ad_name} = {value}\n" for row in ATTRIBUTES).encode()
    report = bounded(parsed(data)[0], 8, NOW - 1000, NOW + 5000, NOW)
    assert report.used_cpu in {0, 8}
    assert report.add_uncom_time is not None
    assert 0 <= report.add_uncom_time <= 8000
    assert report.add_final_exp_waste is not None
    assert 0 <= report.add_final_exp_waste <= 48000
    assert report.priority_factor is not None
    assert -(2**31) <= report.priority_factor < 2**31
    assert report.last_job_start in {None, NOW}


def test_37_impossible_times() -> None:
    """37: 1970 and 2106 are unknown; first > last, last > guaranteed and a future heartbeat cost the protection."""
    assert parsed(b"LAST_JOB_START = 0\nLAST_EXP_JOB_END = 4294967296\n")[0] == NOTHING
    assert standing(parsed(PILOT_AD)[0], NOW, 3600) == FRESH
    swapped = PILOT_AD.replace(b"FIRST_EXP_JOB_END = 1795256000", b"FIRST_EXP_JOB_END = 1795262001")
    assert standing(parsed(swapped)[0], NOW, 3600) == CONTRADICTORY
    beyond = PILOT_AD.replace(b"LAST_MAX_JOB_END = 1795290000", b"LAST_MAX_JOB_END = 1795261999")
    assert standing(parsed(beyond)[0], NOW, 3600) == CONTRADICTORY
    assert standing(parse_pilot_ad(PILOT_AD, 8, NOW + 86400)[0], NOW, 3600) == CONTRADICTORY


def test_37_38_a_heartbeat_kept_fresh_by_a_loop_gains_no_more_than_the_lease() -> None:
    """37, 38: values chosen never to be picked are clamped to what the lease allows."""
    greedy = PILOT_AD.replace(b"ADD_UNCOM_TIME1k = 3686400", b"ADD_UNCOM_TIME1k = 9000000000000000000")
    greedy = greedy.replace(b"LAST_EXP_JOB_END = 1795262000", b"LAST_EXP_JOB_END = 4102444800")
    greedy = greedy.replace(b"LAST_MAX_JOB_END = 1795290000", b"LAST_MAX_JOB_END = 4102444800")
    report = bounded(parsed(greedy)[0], 8, NOW - 20000, NOW + 5000, NOW)
    assert report.add_uncom_time == 8 * 20000
    assert (report.last_exp_job_end, report.last_max_job_end) == (NOW + 5000, NOW + 5000)


@pytest.mark.parametrize("value", [10**18, -(10**18)])
def test_39_extreme_priorities(value: int) -> None:
    """39: as far as 32 bits go."""
    assert parsed(f"PRIORITY_FACTOR = {value}".encode())[0].priority_factor in {2**31 - 1, -(2**31)}


def test_40_flapping_changes_nothing_but_the_flag() -> None:
    """40: nothing is remembered from one reading to the next."""
    false = PILOT_AD.replace(b"True", b"False")
    for _ in range(3):
        assert [parsed(data)[0].can_postpone_last_job for data in (PILOT_AD, false)] == [True, False]
    assert standing_and_rule(parsed(false)[0], NOW, 3600) == standing_and_rule(parsed(PILOT_AD)[0], NOW, 3600)


def seconds_to_parse(data: bytes) -> float:
    """The best of ten."""
    times = []
    for _ in range(10):
        begun = time.perf_counter()
        parsed(data)
        times.append(time.perf_counter() - begun)
    return min(times)


@pytest.mark.parametrize(
    ("before", "again", "after"),
    [
        (b"", b"\n", b""),
        (b"", b"=", b""),
        (b"", b"=\n", b""),
        (b"", b"\0", b""),
        (b"", b"PRIORITY_FACTOR=1\n", b""),
        (b"PRIORITY_FACTOR = ", b"9", b""),
        (b"PRIORITY_FACTOR = ", b" ", b"9"),
        (b"", b"\r", b""),
    ],
)
def test_21_22_what_is_longer_costs_no_more_than_its_length(before: bytes, again: bytes, after: bytes) -> None:
    """21, 22: neither lines nor digits nor blanks cost their square: ten times the limit is read in ten times as long.

    The factor leaves room for a busy machine; a square would be a hundred.
    """
    short = seconds_to_parse(before + again * (PILOT_AD_LIMIT // len(again)) + after)
    assert seconds_to_parse(before + again * (10 * PILOT_AD_LIMIT // len(again)) + after) < 40 * short


control = st.sampled_from(["\r", "\n", "\x1b[31m", "\0", "é", "x" * 300, "5"])


@given(st.lists(st.tuples(st.sampled_from([row.ad_name for row in ATTRIBUTES]), control), max_size=20))
def test_41_nothing_of_the_users_reaches_a_log_line(lines: list[tuple[str, str]]) -> None:
    """41: the line names attributes that we know, is printable ASCII and at most 200 characters long."""
    data = "\n".join(f"{name} = {value}" for name, value in lines).encode()
    rejected = parsed(data)[1]
    line = reasons_line((f".pilot.ad: not sound: {' '.join(rejected)}", "$JOBSTATUS: locked"))
    assert len(line) <= 200
    assert line.isprintable()
    assert line.isascii()
    known = {row.ad_name for row in ATTRIBUTES}
    assert set(rejected) <= known
