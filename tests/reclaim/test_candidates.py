"""The figures of one pilot: the paper's metrics with SPEC §2's bounds, and what asking or killing it would waste."""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.clients import PROFILES
from drainwise.facts.cut_deadline import Claims
from drainwise.facts.waste import bounded_kill_waste
from drainwise.pilotad.report import SILENT, PilotReport, as_plain, from_plain
from drainwise.reclaim.candidates import COMMIT, CUT, KILL, LEAVE, Candidate, candidate_of, candidates_of, in_words
from drainwise.reclaim.columns import Saves, claimed_values, columns_of, columns_of_one, saves_of
from drainwise.reclaim.figures import cut_wastes, most_lost
from drainwise.reclaim.history import History, TrustFigures, why_closed
from drainwise.reclaim.settings import BROKEN_PROMISES
from more_examples import more_examples
from one_pilot import assess
from reached_asserts import judged

from .facts import NOW, SETTINGS, STARTED, believed, but, pilot, report, reports, sound_reports

GRACE = SETTINGS.grace

WORKED_EXAMPLE = PilotReport(
    NOW - 60,
    used_cpu=6.0,
    last_job_start=1795247961,
    first_exp_job_end=1795256000,
    last_exp_job_end=1795262000,
    last_max_job_end=1795290000,
    add_uncom_time=28800.0,
    add_final_exp_waste=60000.0,
)


def assessed(said: PilotReport | None, **facts: int) -> Candidate:
    return assess(pilot(1, said, **facts), NOW, SETTINGS)  # type: ignore[arg-type]


def test_the_worked_example_of_the_specification() -> None:
    one = assessed(WORKED_EXAMPLE)
    assert (one.standing, one.remaining, one.draining_waste, one.kill_waste) == ("fresh", 13000, 74000, 35034)


def test_without_a_good_faith_end_the_guaranteed_one_counts() -> None:
    said = PilotReport.from_values(
        NOW - 60, "x", {field: getattr(WORKED_EXAMPLE, field) for field in PilotReport.__match_args__[1:-1]}
    )
    maximal = PilotReport(
        NOW - 60,
        used_cpu=6.0,
        last_job_start=said.last_job_start,
        first_exp_job_end=said.first_exp_job_end,
        last_max_job_end=said.last_max_job_end,
        add_uncom_time=28800.0,
        add_final_exp_waste=60000.0,
    )
    assert assessed(maximal).remaining == 41000


@pytest.mark.parametrize(
    ("said", "contradictory", "standing"),
    [
        (None, False, SILENT),
        (report(heartbeat=NOW - 3601), False, "stale"),
        (report(heartbeat=STARTED - 3000), False, "stale"),
        (report(heartbeat=NOW + 3600), False, "contradictory"),
        (report(first_end=NOW + 2000, last_end=NOW + 1000), False, "contradictory"),
        (PilotReport(NOW - 60), False, "incomplete"),
        (PilotReport(NOW - 60), True, "contradictory"),
    ],
    ids=["silent", "stale", "left by an earlier job", "future", "first after last", "incomplete", "the node says so"],
)
def test_a_report_that_cannot_be_believed_protects_nothing(
    said: PilotReport | None, contradictory: bool, standing: str
) -> None:
    """Such a pilot is ranked by what the batch system itself knows: cores × run time at its end (HOSTILE 37, 38)."""
    one = assess(pilot(1, said, contradictory=contradictory), NOW, SETTINGS)
    elapsed = 8 * (NOW - STARTED)
    assert one.standing == standing
    assert (one.remaining, one.draining_waste, one.kill_waste) == (None, None, elapsed)
    assert (one.killed.waste, one.priority_factor, one.draining) == (elapsed, 0, False)
    assert (one.drained.kind, one.drained.waste) == (CUT, elapsed + 8 * SETTINGS.min_grace), "so is what it gets"
    assert one.rule


def test_a_pilot_that_is_gone_in_time_costs_its_draining_waste() -> None:
    """4500 core-seconds idle; one promise in ten is broken: then what runs since 1000 s is lost 900 s after it."""
    one = assessed(report(6.0, first_end=NOW + 1000, last_end=NOW + 2000, final=2500.0))
    tail = 6 * (1000 + 2000 + SETTINGS.margin) // 10
    assert one.drained == dataclasses.replace(one.drained, kind=LEAVE, waste=4500 + tail, cores_back=NOW + 2000)


def test_a_pilot_whose_payloads_all_outlast_the_grace_loses_them_at_its_end() -> None:
    """(8 − 6) cores idle for the grace, then f + 6 × (deadline − last start) is lost: to kill it now is cheaper."""
    said = report(6.0, first_end=NOW + 50_000, last_end=NOW + 60_000, start=NOW - 1000, uncommitted=700.0)
    one = assessed(said)
    assert (one.drained.kind, one.drained.cores_back) == (CUT, NOW + GRACE)
    assert one.drained.waste == 2 * GRACE + 700 + 6 * (GRACE + 1000)
    assert (one.best.kind, one.best.waste) == (KILL, 700 + 6 * 1000)


def test_a_pilot_is_cut_when_waiting_for_more_payloads_is_not_worth_it() -> None:
    """Long work on eight cores: most of it ends soon, one payload runs much longer than the others."""
    said = report(8.0, first_end=NOW + 100, last_end=NOW + 5100, start=NOW - 20_000, final=8 * 5000 - 5500.0)
    one = assess(pilot(1, said), NOW, dataclasses.replace(SETTINGS, margin=60, horizon=3000))
    assert [way.kind for way in one.options] == [CUT, KILL], "it cannot leave in time by itself"
    assert one.best.deadline == pytest.approx(NOW + 2341, abs=10)
    assert one.best.waste < one.killed.waste / 4, "a tenth of what should have ended runs still"


@given(sound_reports(8), st.integers(0, 6000), st.integers(1, 7000))
def test_no_deadline_is_better_than_the_options(said: PilotReport, limit: int, other: int) -> None:
    """Now, the best cut, and the last end: whatever deadline one takes, an option costs less (to one percent).

    Of what should have ended by then a tenth runs still, since nothing is known of who said it.
    """
    site = dataclasses.replace(SETTINGS, margin=0, min_grace=0, horizon=limit)
    one = assess(pilot(1, said), NOW, site)
    deadline = NOW + min(other, limit)
    used, start = said.used_cpu or 0.0, said.last_job_start or 0
    if one.remaining is not None and deadline < NOW + one.remaining:
        facts = (8, used, start, said.first_exp_job_end, said.last_exp_job_end, said.add_uncom_time)
        idle, lost = Claims(*facts, said.add_final_exp_waste).cut_waste(NOW, deadline)
        known = 8 * (deadline - STARTED)
        killed = bounded_kill_waste(8, said.add_uncom_time or 0.0, used, start, STARTED, deadline)
        lost = min(lost + BROKEN_PROMISES * max(0, killed - lost), known)
        assert one.best.waste <= 1.01 * (idle + lost) + 1


@given(reports(), st.integers(0, 9000), st.integers(0, 600), st.booleans())
def test_every_option_that_counts_is_back_within_the_horizon(
    said: PilotReport | None, horizon: int, notice: int, drain_only: bool
) -> None:
    site = dataclasses.replace(SETTINGS, horizon=horizon, notice=notice, drain_only=drain_only)
    one = assess(pilot(1, said), NOW, site)
    judged("a believed report", believed(pilot(1, said)) > 0, at_least=0.2)
    assert one.options, "whatever it says, there is a way to end it"
    for way in one.options:
        assert NOW + (notice if way.kind != LEAVE else 0) <= way.cores_back <= NOW + max(horizon, notice)
        assert NOW + notice <= way.deadline <= NOW + max(GRACE, notice)
        assert (way.kind == KILL) <= (not drain_only)


def test_an_overrun_end_counts_as_now() -> None:
    one = assessed(report(8.0, first_end=NOW - 500, last_end=NOW - 100))
    assert (one.remaining, one.draining_waste, one.drained.kind, one.drained.waste) == (
        0,
        0,
        LEAVE,
        8 * 190,
    )


def test_asking_a_pilot_that_drains_already_costs_what_its_deadline_cuts() -> None:
    """CAN_POSTPONE_LAST_JOB = False: what idles is lost anyway; payloads that the deadline may cut still count."""
    assert assessed(report(6.0, final=2500.0, can_postpone=False)).drained.waste == 6 * 390
    late = report(6.0, first_end=NOW + 50_000, last_end=NOW + 60_000, start=NOW, can_postpone=False)
    assert assessed(late).drained.waste == 6 * GRACE
    assert assessed(late).best.kind == KILL, "it has lost nothing yet"


def test_the_deadline_is_what_it_needs_with_the_margin_the_grace_or_the_leases_end_whichever_is_first() -> None:
    """Whatever LAST_MAX_JOB_END says, no pilot gets more."""
    said = report(max_end=NOW + 10**6)

    def deadline(lease_end: int | None = None, **changes: int) -> int:
        site = dataclasses.replace(SETTINGS, drain_only=True, **changes)  # type: ignore[arg-type]
        return assess(pilot(1, said, lease_end=lease_end), NOW, site).drained.deadline

    assert deadline() == NOW + 2000 + 900
    assert deadline(margin=10) == NOW + 2010
    assert deadline(margin=0, notice=3000) == NOW + 3000, "never sooner than the site has promised"
    assert deadline(grace=2500) == deadline(max_grace=2500) == NOW + 300, "too late to leave: cut, and soon"
    assert deadline(grace=2500, min_grace=9000) == NOW + 2500
    assert deadline(max_grace=200) == NOW + 200
    assert deadline(lease_end=NOW + 300) == NOW + 300
    assert deadline(lease_end=NOW - 300) == NOW + 900, "a lease that has run out bounds its claims and no deadline"


def test_who_leaves_gets_its_margin_although_it_hears_late_and_is_ended_early() -> None:
    """The deadline is needs + margin + vacate + told: between hearing of it and SIGTERM lie what it needs and the
    margin; the grace stays the bound."""

    def deadline(said: PilotReport, **changes: int) -> int:
        site = dataclasses.replace(SETTINGS, drain_only=True, margin=60, **changes)  # type: ignore[arg-type]
        way = assess(pilot(1, said), NOW, site).drained
        assert (way.kind, way.cores_back) == (LEAVE, NOW + 2000), "it leaves no later for that"
        return way.deadline

    said = report(last_end=NOW + 2000)
    assert deadline(said, vacate=600, order_latency=30) == NOW + 2000 + 60 + 600 + 30
    assert deadline(said, vacate=0, order_latency=30) == NOW + 2000 + 60 + 30
    assert deadline(said, vacate=40, order_latency=0) == NOW + 2000 + 60 + 40
    assert deadline(said, vacate=600, order_latency=30, grace=2650) == NOW + 2650
    assert deadline(said, vacate=600, order_latency=30, notice=3000) == NOW + 3000


def test_cores_that_come_back_after_the_horizon_are_no_help() -> None:
    slow = report(8.0, first_end=NOW + 3000, last_end=NOW + 3000, start=NOW - 5000)
    site = dataclasses.replace(SETTINGS, horizon=2999)
    assert [way.kind for way in assess(pilot(1, slow), NOW, site).options] == [KILL, CUT]
    assert assess(pilot(1, slow), NOW, dataclasses.replace(site, horizon=3000)).best.kind == LEAVE


def test_a_pilot_must_be_gone_before_the_batch_system_begins_to_end_it() -> None:
    """SIGTERM comes `vacate` seconds before the deadline: who still works then is cut."""
    said = report(8.0, first_end=NOW + 500, last_end=NOW + 500, start=NOW - 9000)
    ends = [
        assess(pilot(1, said), NOW, dataclasses.replace(SETTINGS, grace=600, margin=0, vacate=vacate)).drained.kind
        for vacate in (100, 101)
    ]
    assert ends == [LEAVE, CUT]


def test_a_claim_of_its_own_counts_more_than_what_is_usual() -> None:
    """A node's vacate time was lowered while the pilot ran: SIGTERM still comes as early as its claim says."""
    said = report(8.0, first_end=NOW + 500, last_end=NOW + 500, start=NOW - 9000)
    site = dataclasses.replace(SETTINGS, grace=600, margin=0, vacate=5, min_grace=0)
    ends = [assess(pilot(1, said, vacate=vacate), NOW, site).drained.kind for vacate in (None, 100, 101)]
    assert ends == [LEAVE, LEAVE, CUT]
    usual, own = (assess(pilot(1, said, vacate=vacate), NOW, site).drained.deadline for vacate in (None, 60))
    assert own - usual == 55


def test_a_pilot_whose_end_lies_within_the_margin_before_the_deadline_does_not_count_as_leaving() -> None:
    """Pilots stop their payloads some time before the deadline: of the margin it has a part, and may be lost by it."""
    said = report(6.0, first_end=NOW + 500, last_end=NOW + 500, start=NOW - 9000)
    site = dataclasses.replace(SETTINGS, grace=600, min_grace=600, drain_only=True)
    margins = 100, 101, 500, 10**6
    ends = [assess(pilot(1, said), NOW, dataclasses.replace(site, margin=margin)).best for margin in margins]
    sure, unsure, late, lost = ends
    assert (sure.kind, sure.waste, sure.deadline) == (LEAVE, 2 * 500 + 6 * 960, NOW + 600)
    assert (unsure.kind, unsure.waste, unsure.deadline) == (CUT, 2 * 500 + 6 * 950, NOW + 600)
    assert (late.kind, late.waste, late.deadline) == (CUT, 2 * 500 + 8 * 6 * 950, NOW + 600)
    assert (lost.kind, lost.waste, lost.deadline) == (CUT, 2 * 499 + 6 * (9000 + 499), NOW + 600)


@more_examples(2)
@given(
    sound_reports(8) | reports(),
    st.sampled_from((9000, 4000, 1000)) | st.integers(0, 9000),
    st.integers(0, 3000),
    st.integers(0, 3000),
    st.integers(0, 300),
)
def test_who_leaves_has_the_margin_before_its_deadline(
    said: PilotReport | None, grace: int, margin: int, vacate: int, order_latency: int
) -> None:
    """Whatever it says, and never more than the grace."""
    site = dataclasses.replace(SETTINGS, grace=grace, margin=margin, vacate=vacate, order_latency=order_latency)
    for way in assess(pilot(1, said), NOW, site).options:
        if way.kind == LEAVE:
            assert way.cores_back + max(margin, vacate) <= way.deadline <= NOW + grace
            least = max(way.cores_back + margin, NOW + site.min_grace)
            assert way.deadline == min(NOW + grace, least + vacate + order_latency)


def test_a_kill_comes_after_the_sites_shortest_notice() -> None:
    prompt = assess(pilot(1, WORKED_EXAMPLE), NOW, dataclasses.replace(SETTINGS, notice=0)).killed
    assert (prompt.kind, prompt.waste, prompt.deadline) == (KILL, 35034, NOW)
    late = assess(pilot(1, WORKED_EXAMPLE), NOW, dataclasses.replace(SETTINGS, notice=30)).killed
    assert (late.kind, late.waste, late.deadline) == (KILL, 35034 + 8 * 30, NOW + 30)
    assert assess(pilot(1), NOW, dataclasses.replace(SETTINGS, notice=30)).killed.deadline == NOW + 30


def test_where_nobody_is_killed_each_pilot_gets_the_least_grace() -> None:
    gentle = dataclasses.replace(SETTINGS, drain_only=True, min_grace=GRACE)
    for said in (None, WORKED_EXAMPLE):
        one = assess(pilot(1, said), NOW, gentle)
        assert [(way.kind, way.deadline) for way in one.options] == [(CUT, NOW + GRACE)]
        assert one.killed == one.drained


def test_doubt_moves_every_claim_towards_what_the_batch_system_knows_and_says_so() -> None:
    """Its user's pilots promised 100 and lost 1100 where 4100 could have been lost: a quarter of the way."""
    history = History(trust={"alice": TrustFigures(5, 100, 1100, 1000, 4000)})
    said = report(6.0, first_end=NOW + 1000, last_end=NOW + 2000)
    plain, doubted = assess(pilot(1, said), NOW, SETTINGS), assess(pilot(1, said), NOW, SETTINGS, history)
    by_kind = {way.kind: way for way in plain.options}
    for after in doubted.options:
        before = by_kind[after.kind]
        known = 8 * (after.deadline - STARTED)
        assert after.waste == round(before.waste + 0.25 * (known - before.waste))
    assert (doubted.kill_waste, doubted.draining_waste) == (plain.kill_waste, plain.draining_waste)
    assert "claims moved by 25% towards cores x run time" in in_words(doubted, doubted.best, NOW)
    others = assess(pilot(1, said, user="bea"), NOW, SETTINGS, history)
    assert others == dataclasses.replace(plain, pilot=others.pilot), "nobody else is doubted"


@given(
    st.integers(1, 128).flatmap(lambda cores: st.tuples(st.just(cores), reports(cores))),
    st.none() | st.integers(NOW - 100, NOW + 100_000),
)
def test_no_claim_reaches_beyond_what_the_batch_system_knows(
    claim: tuple[int, PilotReport | None], lease_end: int | None
) -> None:
    """SPEC §2's bounds, whatever is said (HOSTILE 36, 37, 38)."""
    cores, said = claim
    one = assess(pilot(1, said, cores=cores, lease_end=lease_end), NOW, SETTINGS)
    run = cores * (NOW - STARTED)
    assert 0 <= one.kill_waste <= run
    assert NOW < one.drained.deadline <= NOW + GRACE
    assert 0 <= one.best.waste <= one.drained.waste <= run + cores * GRACE
    if one.remaining is not None:
        assert one.remaining >= 0
        assert lease_end is None or one.remaining <= max(0, lease_end - NOW)
    if one.draining_waste is not None:
        assert one.draining_waste >= 0
        assert lease_end is None or one.draining_waste <= cores * max(0, lease_end - NOW)
    assert isinstance(one.drained.waste, int)
    assert isinstance(one.kill_waste, int)


HUGE = 2**63 - 1


@pytest.mark.parametrize(
    "said",
    [
        report(float("nan"), uncommitted=float("nan"), final=float("nan")),
        report(float("inf"), uncommitted=float("inf"), final=float("inf")),
        report(-1.0, uncommitted=-(10.0**300), final=-(10.0**300)),
        report(1e308, uncommitted=1e308, final=1e308),
        report(first_end=HUGE, last_end=HUGE, max_end=HUGE, priority=HUGE),
        report(first_end=-HUGE, last_end=-HUGE, start=-HUGE, priority=-HUGE),
        report(first_end=0, last_end=0, start=0),
    ],
    ids=["nan", "inf", "negative", "1e308", "2^63", "-2^63", "1970"],
)
def test_the_absurd_is_bounded_like_the_rest(said: PilotReport) -> None:
    """HOSTILE 36, 37, 39: whoever built such a report; the figures are whole numbers within what can be."""
    one = assess(pilot(1, said), NOW, SETTINGS)
    assert all(0 <= way.waste <= 8 * (NOW - STARTED + GRACE) for way in one.options)
    assert all(NOW <= way.deadline <= NOW + GRACE for way in one.options)
    assert 0 <= one.kill_waste <= 8 * (NOW - STARTED)


@given(sound_reports(8), st.integers(0, 3000))
def test_kill_waste_never_falls_while_nothing_changes(said: PilotReport, later: int) -> None:
    before, after = (assess(pilot(1, said), moment, SETTINGS).kill_waste for moment in (NOW, NOW + later))
    assert before <= after


@given(sound_reports(8), st.integers(NOW + 1, NOW + 49_999))
def test_cut_before_the_first_end_loses_exactly_the_kill_waste_there(said: PilotReport, deadline: int) -> None:
    """Until the first payload ends the formula is the paper's equations 4 and 5, not an estimate."""
    used, uncommitted = said.used_cpu or 0.0, said.add_uncom_time or 0.0
    start, last = said.last_job_start or 0, said.last_exp_job_end or 0
    claims = Claims(8, used, start, deadline + 1, max(last, deadline + 2), uncommitted, 0.0)
    idle, lost = claims.cut_waste(NOW, deadline)
    assert idle == pytest.approx((8 - used) * (deadline - NOW))
    assert lost == pytest.approx(uncommitted + used * (deadline - start))


@given(sound_reports(8), st.floats(0, 1), st.floats(0, 1))
def test_a_later_cut_idles_longer_and_loses_a_smaller_share(said: PilotReport, one: float, other: float) -> None:
    """And at the last end it is the draining waste, with nothing lost."""
    first, last, final = said.first_exp_job_end or 0, said.last_exp_job_end or 0, said.add_final_exp_waste or 0.0
    used, start, uncommitted = said.used_cpu or 0.0, said.last_job_start or 0, said.add_uncom_time or 0.0

    def at(deadline: float) -> tuple[float, float]:
        return Claims(8, used, start, first, last, uncommitted, final).cut_waste(NOW, deadline)

    early, late = (first + part * (last - first) for part in sorted((one, other)))
    whole = uncommitted + used * (late - start)
    assert at(early)[0] <= at(late)[0] + 1e-6
    assert at(late)[1] * (uncommitted + used * (early - start)) <= at(early)[1] * whole + 1e-6
    idle, lost = at(last)
    least = 8 * (last - first) - used * (last - first)  # whatever it says, it cannot use more than it uses now
    assert lost == 0
    assert idle == pytest.approx((8 - used) * (first - NOW) + max(min(final, 8 * (last - first)), least), abs=1e-3)


@given(st.integers(1, 9000), st.integers(100, 9000), st.integers(0, 9000), st.floats(0, 1))
def test_cut_among_ends_that_come_evenly_is_what_happens_to_the_payloads(
    first: int, span: int, age: int, part: float
) -> None:
    """101 payloads of a core, started at once, the last of which ends `span` seconds after the first."""
    ends = [first + span * number / 100 for number in range(101)]
    deadline = first + part * span
    final = sum(ends[-1] - end for end in ends)
    claims = Claims(101, 101, NOW - age, NOW + first, NOW + first + span, 0.0, final)
    idle, lost = claims.cut_waste(NOW, NOW + deadline)
    running = sum(end > deadline for end in ends)
    assert idle == pytest.approx(sum(max(0.0, deadline - end) for end in ends), abs=2 * span)
    assert lost == pytest.approx(running * (deadline + age), abs=2 * (deadline + age))


def test_every_option_says_what_it_does_in_words() -> None:
    """A plan explains itself with the figures that it stands on."""
    quick = assessed(report(6.0, first_end=NOW + 1000, last_end=NOW + 2000, final=2500.0))
    slow = assessed(report(8.0, first_end=NOW + 50_000, last_end=NOW + 60_000))
    draining, silent = assessed(report(can_postpone=False)), assessed(None)
    assert in_words(quick, quick.drained, NOW) == (
        "leaves by itself in 33m20s: 1.25 core-h idle until then, 0.650 core-h for the chance that it does not leave"
    )
    assert in_words(slow, slow.drained, NOW) == "cut in 2h: 18.2 core-h idle until then or lost there"
    assert in_words(draining, draining.drained, NOW) == (
        "drains already and leaves in 33m20s: 0.650 core-h lost if it does not"
    )
    sure = dataclasses.replace(quick.drained, waste=4500)
    assert (
        in_words(quick, sure, NOW) == "leaves by itself in 33m20s: 1.25 core-h idle until then or lost if it does not"
    )
    assert in_words(silent, silent.killed, NOW) == "it reports nothing; 8 cores x 5h33m run time = 44.4 core-h, killed"
    assert (
        in_words(silent, silent.drained, NOW)
        == "it reports nothing; 8 cores x 5h38m run time = 45.1 core-h, if it is cut then"
    )
    assert in_words(quick, quick.killed, NOW) == "killed: 1.67 core-h of running payloads lost"


def test_a_pilot_among_many_has_the_figures_that_it_has_alone() -> None:
    """The arrays are worked through in blocks; where one ends must not matter."""
    pilots = [
        pilot(n, None if n % 7 == 0 else report(float(n % 9), first_end=NOW + n, last_end=NOW + 3 * n, start=NOW - n))
        for n in range(1, 60)
    ]
    together = candidates_of(pilots, NOW, SETTINGS)
    for one in together:
        assert one == assess(one.pilot, NOW, SETTINGS)


def test_whom_the_batch_system_would_end_at_once_is_spared() -> None:
    """Where nobody is killed, the site's own time before a deadline counts as that of a claim does."""
    site = dataclasses.replace(SETTINGS, vacate=600, order_latency=30, horizon=630, drain_only=True)
    said = why_closed(pilot(1), NOW, site, History())
    assert said.startswith(
        "its claim lets it be ended 10m before a deadline, and no deadline lies further ahead than 10m30s"
    )
    assert why_closed(pilot(1), NOW, dataclasses.replace(site, horizon=631), History()) == ""
    assert why_closed(pilot(1), NOW, dataclasses.replace(site, drain_only=False), History()) == ""
    assert why_closed(pilot(1, vacate=10), NOW, site, History()) == ""


@given(
    claim=st.sampled_from([1, 8, 64]).flatmap(lambda cores: st.tuples(st.just(cores), reports(cores))),
    facts=st.fixed_dictionaries(
        {
            "lease_end": st.none() | st.integers(NOW - 100, NOW + 90_000),
            "contradictory": st.booleans(),
            "vacate": st.none() | st.integers(0, 3000),
        }
    ),
    client=st.sampled_from(sorted(PROFILES)),
    changed=st.fixed_dictionaries(
        {
            "drain_only": st.booleans(),
            "notice": st.sampled_from([0, 600]),
            "horizon": st.sampled_from([60, 7200, 90_000]),
            "waiting_cost": st.sampled_from([0.0, 0.02]),
        }
    ),
    trust=st.sampled_from([None, TrustFigures(9, 100, 900, 800, 1000, 8, 5)]),
)
def test_the_figures_of_one_pilot_are_those_that_it_has_among_many(
    claim: tuple[int, PilotReport | None],
    facts: dict[str, object],
    client: str,
    changed: dict[str, object],
    trust: TrustFigures | None,
) -> None:
    """`status` calculates with numbers, a decision with arrays: the same to a second, as powers are rounded."""
    settings = dataclasses.replace(SETTINGS, **changed)  # type: ignore[arg-type]
    one = dataclasses.replace(pilot(1, claim[1], cores=claim[0], **facts), client=client)  # type: ignore[arg-type]
    judged("a believed report", believed(one) > 0, at_least=0.2)
    history = History(trust={} if trust is None else {one.user: trust}, broken={one.user: 0.3})
    alone, among = candidate_of(one, NOW, settings, history), candidates_of([one], NOW, settings, history)[0]
    assert dataclasses.replace(alone, options=()) == dataclasses.replace(among, options=())
    wastes = [{way.kind: way.waste for way in it.options} for it in (alone, among)]
    deadlines = [{way.kind: way.deadline for way in it.options} for it in (alone, among)]
    assert wastes[0] == pytest.approx(wastes[1], abs=1, rel=1e-12)
    assert deadlines[0] == pytest.approx(deadlines[1], abs=1)


EVERY_HOUR = pilot(1, None, saved=NOW - 1800, next_save=NOW + 1800)


def test_a_silent_job_that_saves_its_work_costs_what_it_did_since() -> None:
    """Cores x the time since; its order ends it right after the next save, and what it does then is lost."""
    job = assess(EVERY_HOUR, NOW, SETTINGS)
    late = 3600 // 20
    lost, kept_back = 8 * late, 8 * (3600 + late)
    assert job.kill_waste == 8 * 1800
    assert job.best.kind == COMMIT
    assert job.best.deadline == NOW + 1800 + late
    assert job.best.waste == pytest.approx(lost + BROKEN_PROMISES * (kept_back - lost), abs=1)
    assert in_words(job, job.best, NOW).startswith("it reports nothing; cut in 33m, right after its next checkpoint:")
    assert in_words(job, job.killed, NOW) == (
        "it reports nothing; 8 cores x 30m since its last checkpoint = 4.00 core-h, killed"
    )


@pytest.mark.parametrize(
    ("saved", "following"),
    [
        pytest.param(NOW + 9000, NOW + 9001, id="saved in the future"),
        pytest.param(NOW - 10**8, NOW - 10, id="saved before it began, and late"),
        pytest.param(NOW - 100, 2**40, id="next in ages"),
    ],
)
def test_what_was_never_saved_costs_no_more_than_the_run(saved: int, following: int) -> None:
    """Neither above cores x run time, nor below 0; who states nonsense gets no way of its own beyond the horizon."""
    job = assess(pilot(1, None, saved=saved, next_save=following), NOW, SETTINGS)
    assert 0 <= job.kill_waste <= 8 * (NOW - STARTED)
    assert all(0 <= way.waste <= 8 * (way.deadline - STARTED) for way in job.options)
    assert all(NOW <= way.deadline <= NOW + SETTINGS.horizon for way in job.options)
    assert all(way.kind != COMMIT or following < NOW + SETTINGS.horizon for way in job.options)


@pytest.mark.parametrize(
    ("facts", "said", "found"),
    [
        ({"saved": NOW - 900, "next_save": NOW}, {}, (NOW - 900, 0, NOW, math.inf)),
        ({"saved": NOW - 900, "next_save": NOW - 1}, {}, (NOW - 900, 0, math.inf, math.inf)),
        ({}, {"last_checkpoint": NOW - 400}, (NOW - 400, 0, math.inf, math.inf)),
        ({}, {"last_checkpoint": NOW - 400, "restart_cost": 10**9}, (NOW - 400, 8 * 19_600, math.inf, math.inf)),
        ({"saved": NOW - 100, "next_save": NOW + 9}, {"last_checkpoint": NOW - 400}, (NOW - 100, 0, NOW + 9, math.inf)),
        ({"next_save": NOW + 9}, {"next_checkpoint": NOW + 70}, (STARTED, 0, NOW + 70, math.inf)),
        ({}, {"checkpoint_seconds": 20}, (STARTED, 0, math.inf, 20)),
    ],
)
def test_what_is_saved_is_the_latest_of_what_the_batch_system_and_the_pilot_tell(
    facts: dict[str, int], said: dict[str, int], found: tuple[float, ...]
) -> None:
    """To begin again costs what is stated, no more than the run until then; who is not believed states nothing."""
    assert saves_of(pilot(1, but(report(), **said), **facts), NOW, SETTINGS.heartbeat_limit) == Saves(*found)  # type: ignore[arg-type]
    stale = saves_of(pilot(1, but(report(heartbeat=NOW - 9000), **said)), NOW, SETTINGS.heartbeat_limit)
    assert stale is None


def test_what_lies_within_the_bounds_counts_as_it_is_stated() -> None:
    said = report(0.25, last_end=NOW + 1000, uncommitted=0.5, final=0.75)
    found = claimed_values(pilot(1, said, lease_end=NOW + 9000), NOW, SETTINGS.heartbeat_limit)
    assert found is not None
    assert all(value == getattr(said, name) for name, value in found._asdict().items())
    ended = claimed_values(pilot(1, said, lease_end=STARTED - 10), NOW, SETTINGS.heartbeat_limit)
    assert ended is not None and ended.add_final_exp_waste == 0
    stale = columns_of([pilot(1, but(said, heartbeat=NOW - 9000))], NOW, SETTINGS, History())
    assert stale.used_cpu == stale.first_exp_job_end == stale.last_exp_job_end == 0, "it is not believed"


def test_who_is_requeued_and_says_nothing_drains_for_as_long_as_it_is_warned() -> None:
    """But where the deadline is fixed, or a report is believed, it has the least grace of all."""
    fixed = dataclasses.replace(SETTINGS, min_grace=SETTINGS.grace)
    loose = dataclasses.replace(SETTINGS, min_grace=900)
    for said, settings, least in ((None, loose, 60), (report(), loose, 900), (None, fixed, SETTINGS.grace)):
        one = dataclasses.replace(pilot(1, said), lead=60)
        assert columns_of_one(one, NOW, settings, History()).least_grace == least
        assert columns_of([one], NOW, settings, History()).least_grace == least


def test_a_pilot_that_saves_on_demand_idles_while_it_writes_and_loses_nothing_else() -> None:
    """Its order asks for it, with no more time than that takes; a distrusted one is priced as if it had not saved."""
    slow = report(8.0, first_end=NOW + 50_000, last_end=NOW + 60_000, start=NOW - 15_000)
    saves = {"last_checkpoint": NOW - 1000, "checkpoint_seconds": 60, "restart_cost": 100}
    said = from_plain({**as_plain(slow), **saves})
    job = assess(pilot(1, said), NOW, SETTINGS)
    assert job.kill_waste == 8 * 1000 + 100
    assert (job.drained.kind, job.drained.deadline) == (COMMIT, NOW + SETTINGS.min_grace)
    killed = 8 * (1000 + SETTINGS.min_grace) + 100
    lost = 8 * (60 + 15) + 100
    assert job.drained.waste == pytest.approx(lost + BROKEN_PROMISES * (killed - lost), abs=1)
    liar = History(trust={"alice": TrustFigures(9, 100, 100_000, 99_900, 199_800)})
    doubted = candidate_of(pilot(1, said), NOW, SETTINGS, liar)
    assert doubted.best.waste > 8 * (NOW - STARTED) / 4


def test_a_standing_order_for_after_a_save_costs_what_it_cost_when_it_was_given() -> None:
    """Before the save nothing of its price is what would be lost without it: no order is replaced for that."""
    first = assess(EVERY_HOUR, NOW, SETTINGS).best
    columns = candidates_of([EVERY_HOUR], NOW + 900, SETTINGS).figures.columns
    deadline = columns.started * 0.0 + first.deadline
    assert float(cut_wastes(columns, NOW + 900, deadline, SETTINGS.margin)[0]) == first.waste


def test_a_long_lease_is_cut_at_one_tooth_of_the_saw() -> None:
    """Each save until the deadline counts, not only the next."""
    columns = candidates_of([EVERY_HOUR], NOW, SETTINGS).figures.columns
    end = columns.started * 0.0 + NOW + 1800 + 3600 * 5 + 300
    kept = columns.cores[0] * 300 + BROKEN_PROMISES * (most_lost(columns, end) - columns.cores * 300)
    assert cut_wastes(columns, NOW, end, SETTINGS.margin)[0] == pytest.approx(kept[0], abs=1)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_priority_counts_up_to_a_bound(sign: int) -> None:
    """Sums with it stay exact."""
    for said, counts in ((2**31 - 1, 2**24), (2**24 + 1, 2**24), (2**24 - 1, 2**24 - 1), (3, 3)):
        one = pilot(1, report(priority=sign * said))
        for columns in (columns_of([one], NOW, SETTINGS, History()), columns_of_one(one, NOW, SETTINGS, History())):
            assert columns.priority_factor == sign * counts


def test_an_order_that_cannot_end_before_the_next_save_ends_after_the_one_that_follows() -> None:
    """The shortest time to drain is longer than the time between two saves: one of the later teeth is the best."""
    often = pilot(1, None, saved=NOW - 20, next_save=NOW + 40)
    job = assess(often, NOW, dataclasses.replace(SETTINGS, min_grace=1000))
    assert (job.drained.kind, job.drained.deadline) == (COMMIT, NOW + 40 + 15 + 16 * 60)
    assert job.drained.waste == pytest.approx(8 * 15 + BROKEN_PROMISES * 8 * (1015 + 20 - 15), abs=1)
