"""A promise costs its tail, and who states a curve is taken at its expectations: bounded, and only within one user."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.cut_deadline import Claims
from drainwise.pilotad.report import PilotReport
from drainwise.pilotad.values import curve_text
from drainwise.reclaim.candidates import CUT, KILL, LEAVE, candidates_of
from drainwise.reclaim.columns import columns_of
from drainwise.reclaim.decide.decision import make_plan
from drainwise.reclaim.figures import cut_wastes
from drainwise.reclaim.history import History
from one_pilot import assess
from reached_asserts import judged

from .facts import NOW, SETTINGS, STARTED, believed, but, curves, pilot, report, reports, snapshot, sound_reports

FREE_CHOICE = dataclasses.replace(SETTINGS, grace=86400)


def within(horizon: int, said: PilotReport | None) -> int:
    """What ending it in the cheapest way within the horizon should waste."""
    return assess(pilot(1, said), NOW, dataclasses.replace(FREE_CHOICE, horizon=horizon)).best.waste


def test_who_broke_promises_is_dearer_and_nobody_else() -> None:
    """Within alice's pilots a promise costs more when hers were broken; what bob's broke does not matter."""
    said = report(6.0)

    def leaves(**broken: float) -> int:
        found = candidates_of([pilot(1, said)], NOW, SETTINGS, History(broken=broken))[0]
        return next(way.waste for way in found.options if way.kind == LEAVE)

    lost = 6 * (1000 + 2000 + SETTINGS.margin)
    assert leaves(alice=0.0) == 4000
    assert leaves(alice=0.5) == 4000 + 0.5 * lost
    assert leaves(bob=0.5) == leaves() == 4000 + 0.1 * lost


def test_the_tail_is_no_part_of_what_the_pilot_promised() -> None:
    """Else its user would be held to what the agent adds."""
    [order] = make_plan(snapshot(pilot(1, report(7.0))), NOW, SETTINGS).orders
    assert (order.kind, order.promised) == (LEAVE, 2000)
    assert order.waste == 2000 + 7 * 390


def test_who_is_cut_is_held_to_its_claims_at_that_deadline() -> None:
    """Where promises are broken it is cut at another moment than its claims alone would have it cut."""
    said = report(8.0, first_end=NOW + 100, last_end=NOW + 5100, start=NOW - 20_000, final=8 * 5000 - 5500.0)
    site, seen = dataclasses.replace(SETTINGS, horizon=3000), snapshot(pilot(1, said))
    claims = Claims(8, 8.0, NOW - 20_000, NOW + 100, NOW + 5100, 0.0, 8 * 5000 - 5500.0)
    deadlines = []
    for broken in (0.0, 0.4):
        [order] = make_plan(seen, NOW, site, History(broken={"alice": broken})).orders
        idle, lost = claims.cut_waste(NOW, order.deadline)
        assert (order.kind, order.promised) == (CUT, round(idle + lost))
        deadlines.append(order.deadline)
    assert deadlines[0] > deadlines[1] + 300


def test_a_curve_is_taken_at_its_best_point() -> None:
    """Half of the payloads should have ended in half an hour, more are not worth the wait."""
    curve = curve_text([(NOW - 60 + 1800, 1000, 5000), (NOW - 60 + 3600, 9000, 4000), (NOW - 60 + 7200, 30_000, 0)])
    site = dataclasses.replace(FREE_CHOICE, margin=0)
    said = report(8.0, first_end=NOW + 50_000, last_end=NOW + 50_000, start=NOW - 9000, curve=curve)
    one = assess(pilot(1, said), NOW, site)
    idle_so_far = 1000 * 60 / 1800
    assert (one.best.kind, one.best.cores_back) == (CUT, NOW + 1740)
    off = 0.1 * 0.2 * 1740 / 86_400 * (8 * (9000 + 1740) - 5000)
    assert one.best.waste == pytest.approx(6000 - idle_so_far + off, abs=1)
    assert next(way.waste for way in one.options if way.kind == KILL) == 8 * 9000


def test_a_curve_without_sound_text_counts_as_none() -> None:
    plain, odd = (assess(pilot(1, report(6.0, curve=text)), NOW, SETTINGS) for text in (None, "1:2"))
    assert plain.options == odd.options


@given(sound_reports(8), curves(), st.integers(60, 86_400), st.integers(60, 86_400))
def test_who_states_a_curve_never_wastes_more_with_a_longer_horizon(
    said: PilotReport, curve: str, one: int, other: int
) -> None:
    """The plan within the shorter one is still possible, to a few seconds of its cores."""
    said = but(said, exp_waste_curve=curve)
    assert within(max(one, other), said) <= within(min(one, other), said) * (1 + 1e-3) + 20


@given(st.integers(-1800, 4000), st.integers(60, 5000), st.integers(1, 59), st.integers(300, 20_000))
def test_a_saw_tooth_is_priced_right_after_its_drop(ahead: int, period: int, writing: int, horizon: int) -> None:
    """What is lost rises with the run and falls with each save: no other moment within the horizon wastes less."""
    saves = [NOW + ahead + period * number for number in range(2)]
    teeth = [(time + late, 0, 8 * (writing if late else period)) for time in saves for late in (0, writing)]
    said = report(8.0, first_end=NOW + 90_000, last_end=NOW + 90_000, curve=curve_text(teeth))
    site = dataclasses.replace(FREE_CHOICE, horizon=horizon, drain_only=True, margin=0)
    columns = columns_of([pilot(1, said)], NOW, site, kept := History(broken={"alice": 0.0}))
    found = candidates_of([pilot(1, said)], NOW, site, kept)[0].best
    looked_at = {NOW + site.min_grace, NOW + horizon, *range(NOW + site.min_grace, NOW + horizon, 97)}
    looked_at |= {time + late for time, _, _ in teeth for late in (-1, 0, 1)}
    possible = [end for end in looked_at if NOW + min(site.min_grace, horizon) <= end <= NOW + horizon]
    wastes = [cut_wastes(columns, NOW, np.array([float(end)]), 0)[0] for end in possible]
    assert found.waste <= min(wastes)
    assert found.waste == cut_wastes(columns, NOW, np.array([float(found.deadline)]), 0)[0]


@given(sound_reports(8), curves(), st.integers(0, 20_000))
def test_no_curve_reaches_beyond_what_the_batch_system_knows(said: PilotReport, curve: str, margin: int) -> None:
    stated = but(said, exp_waste_curve=curve)
    site = dataclasses.replace(FREE_CHOICE, margin=margin)
    for way in assess(pilot(1, stated), NOW, site).options:
        assert 0 <= way.waste <= 8 * (way.deadline - STARTED) + 8 * (way.deadline - NOW) + 1
        assert NOW <= way.deadline <= NOW + 86_400


@given(
    st.integers(2, 6).flatmap(lambda number: st.tuples(*map(reports, ((8, 4, 16) * 2)[:number]))),
    st.integers(1, 40),
    st.floats(0, 1),
    st.tuples(*[st.none() | st.integers(NOW - 30_000, NOW + 9000)] * 2),
)
def test_no_claim_and_no_broken_promise_changes_who_gives_how_much(
    said: tuple[PilotReport | None, ...], deficit: int, broken: float, edited: tuple[int | None, int | None]
) -> None:
    """How many cores each user gives back is the same whatever their pilots claim: also of checkpoints, past or to
    come, and whatever alice has edited into her jobs.
    """
    sizes, users = (8, 4, 16), ("alice", "carol")

    def given_back(these: Sequence[PilotReport | None], history: History) -> dict[str, int]:
        saved, following = edited if these is said else (None, None)
        pilots = [pilot(row, one, cores=sizes[row % 3], user=users[row % 2]) for row, one in enumerate(these)]
        pilots[::2] = [dataclasses.replace(one, saved=saved, next_save=following) for one in pilots[::2]]
        judged("a believed report", believed(*pilots) > 0, at_least=0.3)
        plan = make_plan(snapshot(*pilots, deficit=deficit), NOW, SETTINGS, history)
        return {part.user: part.cores_given for part in plan.users}

    nothing: list[PilotReport | None] = [None] * len(said)
    assert given_back(said, History(broken={"alice": broken})) == given_back(nothing, History())
