"""Promises of the site's word to a running job."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.errors import FeatureError
from drainwise.features.facts import HostFacts, JobFacts
from drainwise.node.job_features import make_features
from drainwise.node.site_notice import SiteNotice, give_notice
from drainwise.pilot.channels import SiteNoticeReader
from drainwise.pilot.decide.lease import Lease, SiteOrders, orders_from
from drainwise.pilot.decide.settings import PilotSettings
from drainwise.pilotad.partial_return import Acknowledgement, PartialReturn

pytestmark = pytest.mark.daemons  # it runs real processes

NOW = 1_795_249_000


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A job's directory with its features."""
    make_features(str(tmp_path), HostFacts(total_cpu=8), JobFacts(allocated_cpu=8), None, NOW)
    return tmp_path


def channels(job: Path) -> dict[str, str]:
    """What stands in the three channels."""
    paths = (".site.ad", ".machinefeatures/shutdowntime", ".jobfeatures/shutdowntime_job")
    return {path: (job / path).read_text() for path in paths if (job / path).exists()}


def test_an_order_stands_in_all_three_channels_and_goes_from_all(job: Path) -> None:
    """A deadline is told by `.site.ad` and both shutdown files, and withdrawn from all of them."""
    give_notice(str(job), SiteNotice(NOW + 600), NOW)
    assert channels(job) == {
        ".site.ad": f"VACATE_DESIRED = True\nPAYLOAD_DEADLINE = {NOW + 600}\n",
        ".machinefeatures/shutdowntime": f"{NOW + 600}\n",
        ".jobfeatures/shutdowntime_job": f"{NOW + 600}\n",
    }
    give_notice(str(job), SiteNotice(), NOW)
    assert channels(job) == {}


def test_a_part_is_asked_for_beside_an_order_and_without_one(job: Path) -> None:
    """It stands in `.site.ad` alone, which no longer asks to leave; an order comes and goes beside it."""
    part, answer = PartialReturn(4, NOW + 900, 2), Acknowledgement(NOW - 5, 6)
    asked = f"RETURN_CORES = 4\nRETURN_BY = {NOW + 900}\nRETURN_CHUNK = 2\n"
    acknowledged = f"RETURN_SEEN = {NOW - 5}\nUSABLE_CORES = 6\n"
    give_notice(str(job), SiteNotice(part=part, answer=answer), NOW)
    assert channels(job) == {".site.ad": f"VACATE_DESIRED = False\n{asked}{acknowledged}"}
    give_notice(str(job), SiteNotice(NOW + 600, part=part), NOW)
    assert channels(job)[".site.ad"] == f"VACATE_DESIRED = True\nPAYLOAD_DEADLINE = {NOW + 600}\n{asked}"
    assert len(channels(job)) == 3
    give_notice(str(job), SiteNotice(part=part), NOW)
    assert channels(job) == {".site.ad": f"VACATE_DESIRED = False\n{asked}"}
    give_notice(str(job), SiteNotice(), NOW)
    assert channels(job) == {}


def test_a_planned_shutdown_shortens_the_lease_without_a_wish_to_vacate(job: Path) -> None:
    """VACATE_DESIRED is False where only the machine's end is near."""
    give_notice(str(job), SiteNotice(None, NOW + 600), NOW)
    assert channels(job)[".site.ad"] == f"VACATE_DESIRED = False\nPAYLOAD_DEADLINE = {NOW + 600}\n"


def test_the_other_channels_are_told_when_one_cannot_be(job: Path) -> None:
    """A fault in one place is raised after all were tried."""
    (job / ".machinefeatures" / "shutdowntime").mkdir()
    (job / ".machinefeatures" / "shutdowntime" / "filled").touch()
    with pytest.raises(FeatureError, match="shutdowntime"):
        give_notice(str(job), SiteNotice(NOW + 600), NOW)
    assert (job / ".site.ad").exists()
    assert (job / ".jobfeatures" / "shutdowntime_job").exists()


# ---- a pilot that looks while it is told ----

LEASE = Lease(8, NOW - 100, NOW + 86400)
WORDS = {
    "nothing": (None, None),
    "an order": (NOW + 600, None),
    "a planned shutdown": (None, NOW + 900),
    "both": (NOW + 600, NOW + 900),
    "an order after the shutdown": (NOW + 1200, NOW + 900),
}
DEADLINES = {LEASE.end, NOW + 600, NOW + 900, NOW + 1200}


def heard(watch: SiteNoticeReader) -> SiteOrders:
    """What the pilot believes now."""
    return watch.orders(None, LEASE, PilotSettings(), NOW)


def watch_of(job: Path) -> SiteNoticeReader:
    """The ear of the job's pilot; it complains by raising."""
    features = {"JOBFEATURES": str(job / ".jobfeatures"), "MACHINEFEATURES": str(job / ".machinefeatures")}

    def complain(line: str) -> None:
        raise AssertionError(line)

    return SiteNoticeReader(str(job), features, complain)


@contextmanager
def site_of(job: Path) -> Iterator[tuple[int, int, int]]:
    """Another process that says, for each byte it gets, the word of that number, and gives the byte back."""
    asked, answered = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(asked[1])
            os.close(answered[0])
            while number := os.read(asked[0], 1):
                give_notice(str(job), SiteNotice(*list(WORDS.values())[number[0]]), NOW)
                os.write(answered[1], number)
        finally:
            os._exit(0)
    os.close(asked[0])
    os.close(answered[1])
    try:
        yield pid, asked[1], answered[0]
    finally:
        os.close(asked[1])
        os.close(answered[0])
        os.waitpid(pid, 0)


def test_no_look_finds_more_than_the_old_word_or_the_new_one(job: Path) -> None:
    """Whenever the pilot looks: no order seems a mere shorter lease, no planned shutdown an order."""
    watch, looks = watch_of(job), 0
    with site_of(job) as (_, ask, answer):
        for turn in range(300):
            os.write(ask, bytes([turn * turn % 7 % len(WORDS)]))
            told = False
            while not told:
                told = bool(select.select([answer], [], [], 0)[0])
                orders = heard(watch)
                assert orders.draining == orders.leave, orders
                assert orders.deadline in DEADLINES
                looks += 1
            assert os.read(answer, 1), "the site's process failed"
    assert looks > 300


def test_a_round_that_is_killed_leaves_no_wrong_word_and_the_next_one_mends_it(job: Path) -> None:
    """HOSTILE 51: at whatever moment the hook dies."""
    for turn in range(60):
        with site_of(job) as (pid, ask, _):
            os.write(ask, bytes([turn % len(WORDS)]))
            end = time.monotonic() + turn * 5e-6
            while time.monotonic() < end:
                pass
            os.kill(pid, signal.SIGKILL)
        orders = heard(watch_of(job))
        assert orders.draining == orders.leave, orders
        word = list(WORDS.values())[turn % len(WORDS)]
        give_notice(str(job), SiteNotice(*word), NOW)
        after = heard(watch_of(job))
        deadlines = [LEASE.end or 0, *(moment for moment in word if moment is not None)]
        assert (after.leave, after.deadline) == (word[0] is not None, min(deadlines))


TIMES = st.none() | st.integers(NOW - 1000, NOW + 5000)


@given(TIMES, TIMES, TIMES, TIMES)
def test_of_two_words_that_mix_the_pilot_makes_one_of_them_and_no_earlier_deadline(
    deadline: int | None, planned: int | None, next_deadline: int | None, next_planned: int | None
) -> None:
    """`.site.ad` new, shutdown files old; and the old `.site.ad` with files that went, where the new word is none."""

    def believed(ad_of: tuple[int | None, int | None], files_of: tuple[int | None, int | None]) -> SiteOrders:
        ahead = [moment for moment in files_of if moment is not None and moment > NOW]
        file = min(ahead, default=None)
        return orders_from(SiteNotice(*ad_of).site_ad(NOW), file, file, None, LEASE, PilotSettings(), NOW)

    old, new = (deadline, planned), (next_deadline, next_planned)
    between = believed(old, new) if SiteNotice(*new).site_ad(NOW) is None else believed(new, old)
    before, after = believed(old, old), believed(new, new)
    assert (between.leave, between.draining) in {(one.leave, one.draining) for one in (before, after)}
    assert before.deadline is not None and between.deadline is not None and after.deadline is not None
    assert min(before.deadline, after.deadline) <= between.deadline <= max(before.deadline, after.deadline)


@given(st.integers(0, 2**31), st.sampled_from([None, 600]))
def test_nobody_is_told_of_a_deadline_years_ahead(ahead: int, planned: int | None) -> None:
    """It is none: what HTCondor says of a startd that waits for its last job, Slurm of a lease without an end."""
    is_none, shutdown = ahead >= 365 * 86400, None if planned is None else NOW + planned
    without, told = SiteNotice(None, shutdown), SiteNotice(NOW + ahead, shutdown)
    is_same = (told.site_ad(NOW), told.shutdown_values(NOW)) == (without.site_ad(NOW), without.shutdown_values(NOW))
    assert is_same is is_none
