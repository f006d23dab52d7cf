"""When a pilot that drains is cut: where the expected waste is least, never sooner than the site lets it drain."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.cut_deadline import Claims
from drainwise.pilotad.report import PilotReport
from drainwise.reclaim.candidates import CUT, LEAVE
from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.settings import ReclaimSettings
from one_pilot import assess

from .facts import NOW, SETTINGS, but, curves, pilot, report, reports, snapshot, sound_reports

FREE_CHOICE = dataclasses.replace(SETTINGS, grace=86_400, margin=60, min_grace=60)
SITE_DEFAULT = dataclasses.replace(SETTINGS, grace=86_400, drain_only=True)


@st.composite
def with_curves(draw: st.DrawFn, anything: bool = True, cores: int = 8) -> PilotReport | None:
    """Whatever a pilot may say, or what is sound alone; some with a curve."""
    said = draw(reports(cores)) if anything else draw(sound_reports(cores))
    if said is not None and draw(st.booleans()):
        said = but(said, exp_waste_curve=draw(curves()))
    return said


timings = st.fixed_dictionaries(
    {
        "vacate": st.sampled_from((0, 30, 600)),
        "order_latency": st.sampled_from((0, 30)),
        "notice": st.sampled_from((0, 120)),
        "grace": st.sampled_from((7200, 86_400)),
        "margin": st.sampled_from((0, 60, 900)),
    }
)


BOTH = st.sampled_from((FREE_CHOICE, SITE_DEFAULT))


@given(with_curves(), BOTH, timings, st.integers(1000, 86_400), st.integers(1000, 86_400), st.booleans())
def test_a_longer_horizon_never_makes_a_pilot_dearer(
    said: PilotReport | None, settings: ReclaimSettings, times: dict[str, int], one: int, other: int, is_open: bool
) -> None:
    """What ended it within the shorter horizon is still possible, also where it is what is left of a need that stays
    open; the deadlines are whole seconds.
    """

    def least(horizon: int) -> int:
        site = dataclasses.replace(settings, horizon=horizon, **times)  # type: ignore[arg-type]
        if is_open and settings.drain_only:
            site = dataclasses.replace(site, horizon=86_400, need_left=horizon)
        return assess(pilot(1, said), NOW, site).best.waste

    assert least(max(one, other)) <= least(min(one, other)) * (1 + 1e-3) + 20


@given(
    st.tuples(*(with_curves(anything=False, cores=cores) for cores in (8, 4, 16, 8))),
    BOTH,
    st.integers(1000, 86_400),
    st.integers(1000, 86_400),
)
def test_a_longer_horizon_never_makes_a_plan_dearer(
    said: tuple[PilotReport, ...], settings: ReclaimSettings, one: int, other: int
) -> None:
    pilots = (pilot(row, each, cores=cores) for row, (cores, each) in enumerate(zip((8, 4, 16, 8), said)))
    pool = snapshot(*pilots, deficit=16)

    def least(horizon: int) -> int:
        return make_plan(pool, NOW, dataclasses.replace(settings, horizon=horizon)).waste

    assert least(max(one, other)) <= least(min(one, other)) * (1 + 1e-3) + 20 * len(said)


@given(with_curves(), timings, st.integers(900, 20_000), st.integers(0, 9000), st.integers(0, 9000))
def test_where_nobody_is_killed_a_sooner_deadline_never_makes_a_pilot_dearer(
    said: PilotReport | None, times: dict[str, int], horizon: int, one: int, other: int
) -> None:
    """With a longer least grace it is cut later, in the end at the limit; to choose among more is no worse."""

    def least(min_grace: int, *ways: str) -> float:
        site = dataclasses.replace(SITE_DEFAULT, horizon=horizon, min_grace=min_grace, **times)  # type: ignore[arg-type]
        return min((way.waste for way in assess(pilot(1, said), NOW, site).options if way.kind in ways), default=1e12)

    # Whoever can leave in time is not cut where that is dearer, so its cuts are not all looked at.
    sooner, later = sorted((one, other))
    assert least(sooner, CUT, LEAVE) <= least(later, CUT) * (1 + 1e-3) + 20
    assert least(one, CUT, LEAVE) <= least(20_000, CUT)


@given(with_curves(), timings, st.integers(0, 20_000), st.integers(0, 9000), st.none() | st.integers(1, 9000))
def test_an_order_to_drain_leaves_the_least_grace_and_ends_within_the_horizon(
    said: PilotReport | None, times: dict[str, int], horizon: int, min_grace: int, lease: int | None
) -> None:
    site = dataclasses.replace(SITE_DEFAULT, horizon=horizon, min_grace=min_grace, **times)  # type: ignore[arg-type]
    one = assess(pilot(1, said, lease_end=None if lease is None else NOW + lease), NOW, site)
    latest = min(max(site.notice, site.grace), lease or 10**9)
    least = max(min_grace + site.vacate + site.order_latency, site.notice)
    most = min(max(site.notice, horizon), latest)
    for way in one.options:
        assert NOW + min(least, most) <= way.deadline <= NOW + (latest if way.kind == LEAVE else most)


def test_a_pilot_whose_payloads_outlast_the_horizon_is_cut_as_soon_as_the_site_lets_it() -> None:
    """It has just begun: to wait for the horizon would only lose more."""
    said = report(8.0, first_end=NOW + 50_000, last_end=NOW + 60_000, start=NOW - 600)
    site = dataclasses.replace(SITE_DEFAULT, horizon=7200, min_grace=900)
    way = assess(pilot(1, said), NOW, site).best
    assert (way.kind, way.deadline, way.waste) == (CUT, NOW + 900, 8 * (600 + 900))


def test_who_reports_nothing_gets_the_least_grace_as_it_only_grows_dearer() -> None:
    """As does who reports what cannot be."""
    site = dataclasses.replace(SITE_DEFAULT, horizon=7200, min_grace=900)
    assert [way.deadline for way in assess(pilot(1), NOW, site).options] == [NOW + 900]
    odd = dataclasses.replace(pilot(1), contradictory=True)
    assert [way.deadline for way in assess(odd, NOW, site).options] == [NOW + 900]


@pytest.mark.parametrize("notice", [0, 1200])
def test_who_says_that_it_leaves_at_once_gets_the_least_grace_all_the_same(notice: int) -> None:
    said = report(8.0, first_end=NOW, last_end=NOW)
    site = dataclasses.replace(SITE_DEFAULT, margin=60, min_grace=900, notice=notice)
    way = assess(pilot(1, said), NOW, site).best
    assert (way.kind, way.deadline) == (LEAVE, NOW + max(900, notice))


@given(
    st.integers(1, 64),
    st.floats(0, 1),
    st.integers(0, 9000),
    st.integers(1, 90_000),
    st.floats(0, 1),
    st.integers(0, 90_000),
    st.floats(0, 0.4),
)
def test_no_cut_is_better_than_the_best_one_or_one_at_the_first_end(
    cores: int, use: float, first: int, span: int, busy: float, age: int, broken: float
) -> None:
    """The best one is the only one with a dearer one before and after it; else the least lies at either end."""
    final = cores * span * (1 - use * busy / 2)
    claims = Claims(cores, use * cores, NOW - age, NOW + first, NOW + first + span, 0.0, final)

    def waste(moment: float) -> float:
        idle, lost = claims.cut_waste(NOW, moment)
        return float(idle + lost + broken * (use * cores * (moment - NOW + age) - lost))

    least = min(waste(claims.best_cut(NOW, broken)), waste(NOW + first), waste(NOW + first + span))
    for part in range(201):
        assert least <= waste(NOW + first + span * part / 200) * (1 + 1e-3) + 1e-4 * cores


def test_a_silent_run_that_is_requeued_gets_the_lead_of_its_warning_in_place_of_the_least_time() -> None:
    """One that reports keeps it, and so does one whose deadline is fixed."""
    site = dataclasses.replace(SITE_DEFAULT, order_latency=30)
    silent, says = dataclasses.replace(pilot(1, None), lead=60), dataclasses.replace(pilot(1, report()), lead=60)
    assert assess(silent, NOW, site).best.deadline == NOW + 90
    assert assess(dataclasses.replace(silent, lead=600), NOW, site).best.deadline == NOW + 330
    assert assess(dataclasses.replace(silent, lead=None), NOW, site).best.deadline == NOW + 330
    assert assess(says, NOW, site).best.deadline >= NOW + 330
    fixed = dataclasses.replace(site, min_grace=site.grace)
    ends = dataclasses.replace(silent, lead=None)
    assert assess(silent, NOW, fixed).best.deadline == assess(ends, NOW, fixed).best.deadline
