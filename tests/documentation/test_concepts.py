"""The worked example of docs/concepts.md, calculated by the agent's own code; its drawings say what they show."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from drainwise.pilotad.report import PilotReport
from drainwise.pool.facts import Account, Pilot, Snapshot
from drainwise.reclaim.candidates import CUT, LEAVE
from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.settings import ReclaimSettings
from drainwise.siteconfig import SiteConfig
from drainwise.systems.find import own
from one_pilot import assess

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "concepts.md").read_text()
HOUR = 3600
NOON = 1_795_262_400  # 12:00 of the example
SITE = SiteConfig()
TIMINGS = own("htcondor").timings(SITE)
SETTINGS = ReclaimSettings(
    policy=SITE.reclaim.policy,
    horizon=SITE.reclaim.horizon,
    grace=SITE.reclaim.grace,
    max_grace=SITE.reclaim.max_grace,
    heartbeat_limit=SITE.pilot.stale_after,
    max_cores=SITE.reclaim.max_cores_per_cycle,
    max_cores_per_user=SITE.reclaim.max_cores_per_user_per_cycle,
    max_cores_per_user_hour=SITE.reclaim.max_cores_per_user_per_hour,
    margin=SITE.reclaim.margin,
    min_grace=SITE.reclaim.min_grace,
    vacate=TIMINGS.vacate,
    order_latency=TIMINGS.order_latency,
    waiting_cost=float(SITE.reclaim.waiting_cost),
)
"""What a site has that sets nothing, on HTCondor."""
# Payload A: 4 cores from 10:00 to 13:00. Payload B: 2 cores from 11:00 to 12:30. Two cores are idle.
FIRST = PilotReport(
    heartbeat=NOON,
    used_cpu=6,
    last_job_start=NOON - HOUR,
    first_exp_job_end=NOON + HOUR // 2,
    last_exp_job_end=NOON + HOUR,
    last_max_job_end=NOON + 4 * HOUR,
    add_uncom_time=4 * HOUR,
    add_final_exp_waste=4 * HOUR // 2,
    priority_factor=0,
    can_postpone_last_job=True,
)
# One payload of 8 cores, started at 11:55, which takes ten hours.
SECOND = PilotReport(
    heartbeat=NOON,
    used_cpu=8,
    last_job_start=NOON - 300,
    first_exp_job_end=NOON + 10 * HOUR - 300,
    last_exp_job_end=NOON + 10 * HOUR - 300,
    last_max_job_end=NOON + 20 * HOUR,
    add_uncom_time=0,
    add_final_exp_waste=0,
    priority_factor=0,
    can_postpone_last_job=True,
)


def pilot(report: PilotReport) -> Pilot:
    """A pilot of 8 cores that has run since 08:00."""
    return Pilot(
        run="1.0@1",
        name="slot1_1@n",
        node="n",
        account="a",
        user="alice",
        cores=8,
        started=NOON - 4 * HOUR,
        report=report,
    )


def clock(seconds: int) -> str:
    """The time of the day on the page."""
    minutes = 12 * 60 + (seconds - NOON) // 60
    return f"{minutes // 60}:{minutes % 60:02}"


def test_the_three_numbers_of_the_page_are_those_of_the_code() -> None:
    """Remaining time, draining waste and kill waste of both pilots, as the page's table has them."""
    rows = re.findall(r"(?m)^\| (P[12]) \| (\d+) min \| ([\d.]+) core-h \| ([\d.]+) core-h \|$", PAGE)
    shown = {name: tuple(map(float, values)) for name, *values in rows}
    for name, report in (("P1", FIRST), ("P2", SECOND)):
        it = assess(pilot(report), NOON, SETTINGS)
        assert it.remaining is not None and it.draining_waste is not None
        found = it.remaining / 60, it.draining_waste / HOUR, it.kill_waste / HOUR
        assert shown[name] == pytest.approx(found, abs=0.005), name


def test_the_deadlines_of_the_page_are_those_of_the_code() -> None:
    """P1 leaves by itself and has its margin; P2 is cut, at the soonest that the site allows."""
    [first] = [one for one in assess(pilot(FIRST), NOON, SETTINGS).options if one.kind == LEAVE]
    assert clock(first.deadline) == "13:26"
    assert f"deadline is {clock(first.deadline)}" in PAGE
    assert f"SIGTERM at {clock(first.deadline - TIMINGS.vacate)}" in PAGE
    best, *_ = assess(pilot(SECOND), NOON, SETTINGS).options
    assert best.kind == CUT
    assert f"SIGTERM at {clock(best.deadline - TIMINGS.vacate)}" in PAGE
    assert f"deadline is {clock(best.deadline)}" in PAGE
    assert f"{best.waste / HOUR:.1f} core-h" in PAGE
    assert f"P1 would waste 3 core-h, and {first.waste / HOUR:.1f} core-h" in " ".join(PAGE.split())
    assert best.waste < first.waste, "so P2 goes"


def test_the_second_pilot_gets_its_order_in_the_first_cycle() -> None:
    """Waiting gains nothing: the first one would waste more at any time until the horizon is over."""
    pilots = (pilot(FIRST), replace(pilot(SECOND), run="2.0@1", name="slot1_2@n"))
    accounts = (Account("a", 16.0, 0.0, 0.0, 1.0), Account("b", 0.0, 8.0, 8.0, 1.0))
    plan = make_plan(Snapshot(taken=NOON, pilots=pilots, accounts=accounts), NOON, SETTINGS)
    [order] = plan.orders
    assert (order.pilot.run, order.kind) == ("2.0@1", CUT)
    believed = replace(SETTINGS, heartbeat_limit=2 * HOUR)
    later = [assess(pilot(FIRST), NOON + 60 * minute, believed).options for minute in range(120)]
    least = min(one.waste for options in later for one in options)
    assert least > order.waste and f"P1 would waste {least / HOUR:.1f} core-h or more" in " ".join(PAGE.split())


@pytest.mark.parametrize("name", sorted(path.name for path in (DOCS / "images").glob("*.svg")))
def test_a_drawing_says_in_words_what_it_shows_and_fetches_nothing(name: str) -> None:
    """For a reader who cannot see it, and for a page without a network."""
    text = (DOCS / "images" / name).read_text()
    root = ElementTree.fromstring(text)
    space = "{http://www.w3.org/2000/svg}"
    words = [root.findtext(f"{space}{tag}") or "" for tag in ("title", "desc")]
    assert all(words) and len(words[1].split()) > 40
    assert "href" not in text and "url(http" not in text and "<script" not in text
    [told] = re.findall(rf"!\[([^\]]+)\]\(images/{re.escape(name)}\)", PAGE)
    assert len(told.split()) > 5


def test_each_key_of_the_timeline_is_a_key_of_the_site_file() -> None:
    """With its default, as the page and the drawing have it."""
    defaults = {"grace": "2h", "horizon": "2h", "margin": "15m", "min_grace": "5m", "min_age": "1m", "max_grace": "1d"}
    for name, default in defaults.items():
        assert re.search(rf"(?m)^\| `\[reclaim\] {name}` \| {default} \|", PAGE), name
