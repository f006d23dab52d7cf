"""Some of a running pilot's cores: what is asked, stated and acknowledged, and the bounds of each."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.pilotad.jobstatus import read_jobstatus, write_jobstatus
from drainwise.pilotad.partial_return import (
    NOTHING_RETURNED,
    Acknowledgement,
    PartialReturn,
    ReturnedPart,
    acknowledgement,
    asked,
    returned_part,
    usable_cores,
)
from drainwise.pilotad.pilot_ad import parse_pilot_ad, pilot_ad_text
from drainwise.pilotad.report import PilotReport, bounded, standing_and_rule
from drainwise.pilotad.safe_open import open_dir
from drainwise.pilotad.site_ad import SiteAd, parse_site_ad, site_ad_text
from worked_example import worked_example

NOW = 1_795_249_000
moments = st.integers(946_684_800, 4_102_444_800)
counts = st.integers(0, 2**31 - 1)
parts = st.builds(PartialReturn, counts, st.none() | moments, st.integers(1, 2**31 - 1))
answers = st.builds(Acknowledgement, moments, st.integers(1, 2**31 - 1), st.none() | counts)


def stated(heartbeat: int = NOW, **changed: object) -> PilotReport:
    """A sound report of 8 cores, 5 of them in use, of a pilot that has returned two."""
    said = {"returned_cores": 2, "returned_memory": 4096, "returned_since": NOW - 50, "used_cpu": 5.0, **changed}
    return worked_example(heartbeat, **said)


def test_the_notice_as_it_is_documented() -> None:
    """What an implementer sees in docs/partial-return.md."""
    ad = SiteAd(False, None, "", PartialReturn(12, NOW + 7200, 4), Acknowledgement(NOW - 5, 24, 3))
    text = (
        "VACATE_DESIRED = False\nRETURN_CORES = 12\nRETURN_BY = 1795256200\nRETURN_CHUNK = 4\n"
        "RETURN_SEEN = 1795248995\nUSABLE_CORES = 24\nHELD_CORES = 3\n"
    )
    assert site_ad_text(ad).decode() == text
    assert parse_site_ad(text.encode()) == (ad, "")


@given(st.booleans(), st.none() | moments, st.none() | parts, st.none() | answers)
def test_each_notice_comes_back(
    vacate: bool, deadline: int | None, part: PartialReturn | None, answer: Acknowledgement | None
) -> None:
    """Beside an order to leave as well as alone."""
    ad = SiteAd(vacate, deadline, "", part, answer)
    assert parse_site_ad(site_ad_text(ad)) == (ad, "")


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("RETURN_CORES = -1", "RETURN_CORES"),
        ("RETURN_CORES = many", "RETURN_CORES"),
        ("RETURN_CORES = 2\nRETURN_CORES = 2", "RETURN_CORES"),
        ("RETURN_CORES = 2\nRETURN_BY = soon", "RETURN_BY"),
        ("RETURN_CORES = 2\nRETURN_BY = 5", "RETURN_BY"),
        ("RETURN_CORES = 2\nRETURN_CHUNK = 0", "RETURN_CHUNK"),
        ("RETURN_SEEN = 5\nUSABLE_CORES = 5", "RETURN_SEEN"),
        ("RETURN_SEEN = 1795249000", "USABLE_CORES"),
        ("RETURN_SEEN = 1795249000\nUSABLE_CORES = 0", "USABLE_CORES"),
    ],
)
def test_what_makes_no_sense_asks_and_acknowledges_nothing(line: str, fault: str) -> None:
    """The order to leave beside it holds, and the fault is named."""
    assert parse_site_ad(f"VACATE_DESIRED = True\n{line}\n".encode()) == (SiteAd(True), f"no sound {fault}")


def test_a_report_with_the_part_in_both_channels(tmp_path: Path) -> None:
    """Whole cores and MiB, never scaled by the lease; out of range they count as the nearer bound."""
    text = pilot_ad_text(stated(), 8)
    assert b"RETURNED_CORES = 2\nRETURNED_MEMORY = 4096\nRETURNED_SINCE = 1795248950\n" in text
    assert parse_pilot_ad(text, 8, NOW) == (stated(), ())
    write_jobstatus(str(tmp_path), stated())
    place = open_dir(str(tmp_path))
    report, rejected = read_jobstatus(place, tmp_path.stat().st_uid)
    os.close(place)
    assert (report.returned_cores, report.returned_memory, report.returned_since, rejected) == (2, 4096, NOW - 50, ())
    assert parse_pilot_ad(b"RETURNED_CORES = 99999999999", 8, NOW)[0].returned_cores == 2**31 - 1
    assert parse_pilot_ad(b"RETURNED_CORES = -1", 8, NOW) == (PilotReport(NOW), ("RETURNED_CORES",))


def test_a_pilot_that_says_nothing_of_it_writes_nothing_of_it() -> None:
    """The paper's nine lines are what they were."""
    assert b"RETURNED" not in pilot_ad_text(worked_example(NOW), 8)
    assert returned_part(worked_example(NOW), 8, 16384, NOW, 3600) == NOTHING_RETURNED


@given(st.integers(1, 512), counts, st.none() | counts, st.none() | counts, st.integers(NOW - 40_000, NOW + 90))
def test_what_is_believed_stays_within_the_lease(
    cores: int, returned: int, memory: int | None, lease_memory: int | None, since: int
) -> None:
    """0 to all cores but one, never more memory than their part of the lease's, and nothing from before the job."""
    report = PilotReport(NOW, 0.0, returned_cores=returned, returned_memory=memory, returned_since=since)
    part = returned_part(report, cores, lease_memory, NOW, 3600, NOW - 20_000)
    assert 0 <= part.cores <= cores - 1
    assert 0 <= part.memory * cores <= (lease_memory or 0) * part.cores
    if NOW - 20_000 <= since <= NOW:
        assert part == ReturnedPart(min(cores - 1, returned), part.memory, since)
    elif not NOW - 20_060 <= since <= NOW + 60:
        assert part == NOTHING_RETURNED
    assert 0 <= (bounded(report, cores, 0, None, NOW).returned_cores or 0) <= cores - 1


@pytest.mark.parametrize(
    ("report", "why"),
    [
        (stated(heartbeat=NOW - 3601), "heartbeat is older than the limit"),
        (stated(returned_cores=4), "more cores in use and returned than the lease has"),
        (stated(last_job_start=NOW + 100), "last job start lies in the future"),
    ],
)
def test_a_report_that_is_not_believed_returns_nothing(report: PilotReport, why: str) -> None:
    """Ageing, and against itself."""
    assert standing_and_rule(report, NOW, 3600, NOW - 9000, 8)[1] == why
    assert returned_part(report, 8, 16384, NOW, 3600, NOW - 9000) == NOTHING_RETURNED


def test_a_statement_without_its_time_returns_nothing() -> None:
    """Nobody could acknowledge it."""
    assert returned_part(stated(), 8, 16384, NOW, 3600) == ReturnedPart(2, 4096, NOW - 50)
    assert returned_part(stated(returned_since=None), 8, 16384, NOW, 3600) == NOTHING_RETURNED


def test_returned_cores_do_not_idle() -> None:
    """Two of 8 cores are returned and five work: from the first end to the last one core idles at least, not three."""
    first, last = NOW + 1000, NOW + 3000
    said = stated(first_exp_job_end=first, last_exp_job_end=last, add_final_exp_waste=2000.0)
    assert standing_and_rule(said, NOW, 3600, None, 8) == ("fresh", "")
    assert standing_and_rule(stated(add_final_exp_waste=5000.0, returned_cores=0), NOW, 3600, None, 8)[1] == (
        "less final waste than the cores that are not in use make"
    )


some_parts = st.builds(
    PartialReturn, st.integers(0, 600), st.none() | st.integers(NOW - 10, NOW + 10), st.integers(1, 64)
)


@given(
    st.none() | parts | some_parts | some_parts,
    st.integers(1, 512),
    st.integers(0, 511),
    st.integers(NOW - 10, NOW + 10),
)
def test_the_wish_within_the_lease(part: PartialReturn | None, cores: int, has: int, now: int) -> None:
    """0 to all cores but one; when it is over it asks for nothing more, and lets nothing be taken back."""
    returned = min(has, cores - 1)
    found = asked(part, cores, now, returned)
    assert 0 <= found.cores <= cores - 1
    assert 1 <= found.chunk <= max(1, found.cores)
    if part is None:
        assert found.cores == 0
    elif part.by is not None and now >= part.by:
        assert found.cores == min(returned, part.cores)
    else:
        assert found.cores == min(cores - 1, part.cores)


few = counts | st.integers(0, 40)


@pytest.mark.reached(0.05, "an answer to this very statement by which more may be used than before is one of six cases")
@given(st.integers(1, 64), few, few, st.integers(1, 64) | st.just(1), st.none() | answers, st.booleans())
def test_what_a_pilot_may_use(
    cores: int, returned: int, held: int, before: int, answer: Acknowledgement | None, is_for_it: bool
) -> None:
    """Never a core that it states as returned, never more than before without the answer to this very statement, and
    with it never one that others hold.
    """
    part, before = ReturnedPart(min(returned, cores - 1), 0, NOW), min(before, cores)
    if is_for_it:
        answer = acknowledgement(part, cores, held)
        assert answer.usable + max(part.cores, min(held, cores - 1)) == cores
    found = usable_cores(cores, part, before, answer)
    assert found <= cores - part.cores
    assert min(before, cores - part.cores) <= found
    if answer is None or answer.since != NOW:
        assert found <= before
    elif found > before:
        assert found <= answer.usable


@pytest.mark.parametrize(
    ("wish", "now", "returned", "found"),
    [
        (None, NOW, 3, PartialReturn(0)),
        (PartialReturn(4, None, 2), NOW, 0, PartialReturn(4, None, 2)),
        (PartialReturn(9, NOW, 1), NOW - 1, 0, PartialReturn(7, NOW, 1)),
        (PartialReturn(4, NOW, 8), NOW - 1, 0, PartialReturn(4, NOW, 4)),
        (PartialReturn(4, NOW, 2), NOW, 3, PartialReturn(3, NOW, 2)),
        (PartialReturn(2, NOW, 2), NOW, 3, PartialReturn(2, NOW, 2)),
        (PartialReturn(4, NOW, 2), NOW, 0, PartialReturn(0, NOW, 1)),
        (PartialReturn(0, None, 0), NOW, 0, PartialReturn(0, None, 1)),
    ],
)
def test_a_wish_is_for_all_cores_but_one_at_most_and_for_no_more_once_it_is_over(
    wish: PartialReturn | None, now: int, returned: int, found: PartialReturn
) -> None:
    assert asked(wish, 8, now, returned) == found


@pytest.mark.parametrize(
    ("lease", "stated_memory", "memory"), [(None, 4096, 0), (16384, 4096, 4096), (16384, 4097, 4096), (16384, None, 0)]
)
def test_of_the_memory_the_part_of_the_returned_cores_comes_back(
    lease: int | None, stated_memory: int | None, memory: int
) -> None:
    """None where the lease's is not known."""
    found = returned_part(stated(returned_memory=stated_memory), 8, lease, NOW, 3600)
    assert found == ReturnedPart(2, memory, NOW - 50)
