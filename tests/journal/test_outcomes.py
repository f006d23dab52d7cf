"""What the end of a pilot wasted: equal to the promise where it was kept, and never beyond what can have been."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drainwise.facts.cut_deadline import Claims
from drainwise.journal.file import journal_line
from drainwise.journal.memory import Memory
from drainwise.journal.outcomes import OpenOrder, realised_waste
from drainwise.pilot.decide.lease import Lease
from drainwise.pilot.decide.payload import Payload
from drainwise.pilot.decide.workload import RunningPayload, Workload, report_of
from drainwise.pilotad.report import PilotReport
from drainwise.pool.facts import Ending
from drainwise.reclaim.candidates import COMMIT, CUT, KILL, LEAVE, candidates_of
from drainwise.reclaim.columns import ClaimedValues, Saves, claimed_values
from drainwise.reclaim.history import OUTCOMES, History, PilotOutcome, doubt, trust_by_user

from .facts import NOW, RULES, STARTED, orders, pilot, remembering, report, snapshot

CORES = 8
BARE = dataclasses.replace(RULES, margin=0, vacate=0)


def order(claims: ClaimedValues | None, draining: bool = False, kind: str = LEAVE) -> OpenOrder:
    """An order to a pilot of 8 cores, given now, with an hour to go."""
    deadline = NOW + 3600
    return OpenOrder(
        "run",
        "slot",
        "node",
        "group_a",
        "alice",
        CORES,
        STARTED,
        NOW,
        deadline,
        kind,
        draining,
        0,
        claims,
        NOW,
        promised=claims,
    )


def claims_with(used: float, first: int, last: int, heartbeat: int = NOW - 60) -> ClaimedValues:
    """Busy on `used` cores until the first end, then on half of them until the last (seconds from now)."""
    final = (CORES - used / 2) * (last - first)
    return ClaimedValues(heartbeat, used, NOW - 500.0, NOW + first, NOW + last, 100.0, final)


def waste(one: OpenOrder, ended: int, vacated: bool = False, cpu: float | None = None) -> int:
    return realised_waste(one, Ending(one.run, ended, vacated, cpu))[0]


@st.composite
def kept_promises(draw: st.DrawFn) -> PilotReport:
    """Two groups of payloads that end when they should: what SPEC says of them is consistent by construction."""
    first, span = draw(st.integers(0, 5000)), draw(st.integers(1, 5000))
    short, long = draw(st.floats(0.5, 4)), draw(st.floats(0.5, 4))
    return PilotReport(
        NOW - 10,
        used_cpu=short + long,
        last_job_start=NOW - draw(st.integers(0, 10_000)),
        first_exp_job_end=NOW + first,
        last_exp_job_end=NOW + first + span,
        add_uncom_time=draw(st.floats(0, 10_000)),
        add_final_exp_waste=(CORES - long) * span,
        can_postpone_last_job=True,
    )


@given(kept_promises())
def test_a_promise_that_was_kept_is_what_was_lost(said: PilotReport) -> None:
    """Whichever way it was ended: promise and truth are calculated by the same formulas; the tail is no promise."""
    it = pilot(1, said)
    candidate = candidates_of([it], NOW, BARE, History(broken={"alice": 0.0}))[0]
    [opened] = remembering(*orders(snapshot(it, deficit=8))).open_orders().values()
    for option in candidate.options:
        ended = option.cores_back
        opened = dataclasses.replace(opened, kind=option.kind)
        assert waste(opened, ended, vacated=option.kind in {CUT, KILL}) == pytest.approx(option.waste, abs=1)


def test_who_leaves_later_than_promised_wastes_more() -> None:
    """By its own word nothing ran any more: all its cores idled."""
    said = claims_with(6.0, 1000, 1000)
    assert waste(order(said), NOW + 1000) == 2 * 1000
    assert waste(order(said), NOW + 1500) == 2 * 1000 + 8 * 500
    assert waste(order(said), NOW + 600) == 2 * 600


def test_who_is_ended_loses_what_its_last_report_says() -> None:
    said = claims_with(6.0, 2000, 4000)
    assert waste(order(said), NOW + 1000, vacated=True) == 2 * 1000 + 100 + 6 * 1500
    assert waste(order(said), NOW + 3000, vacated=True) == 2 * 2000 + (8 * 1000 - 4500) + (100 + 6 * 3500) / 2


def running(now: int, ends: dict[int, int], ended_by: int) -> Workload:
    """Payloads of one core each by seconds from the order on to their expected end; those are gone that end by then."""
    found = Workload(STARTED)
    for number, end in enumerate(length for length, cores in ends.items() for _ in range(cores)):
        if NOW + end > ended_by:
            start = float(NOW - 900 - number)
            found.add(
                RunningPayload(
                    Payload(str(number), 1, ("true",), 86400.0, 86400.0), start, float(NOW + end), start + 86400
                )
            )
    return found


@pytest.mark.parametrize(
    "vacate, limit, ended, vacated",
    [
        pytest.param(0, 3600, 3600, True, id="ended at its deadline, which bounds all ends that it states"),
        pytest.param(0, 3595, 3592, False, id="the reference pilot, which stops its payloads ten seconds before"),
        pytest.param(600, 3000, 3000, True, id="told to end ten minutes before its deadline, and gone"),
        pytest.param(600, 2995, 2992, False, id="the reference pilot there"),
        pytest.param(600, 3000, 3600, True, id="told to end ten minutes before its deadline, and there until then"),
    ],
)
@pytest.mark.parametrize("ends", [{9000: 8}, {9000: 4, 20_000: 4}, {1000: 2, 9000: 6}, {2990: 1, 9000: 7}])
def test_what_a_pilot_lost_that_states_no_end_after_its_deadline(
    ends: dict[int, int], vacate: int, limit: int, ended: int, vacated: bool
) -> None:
    """Cut after an hour: by its promise, and in truth, what has not ended by then is lost; each minute it reports."""
    lease, now = Lease(CORES, STARTED, STARTED + 500_000), NOW - 30
    before = pilot(1, report_of(running(now, ends, now), lease, True, 0, now))
    said = claimed_values(before, NOW, 3600)
    assert said is not None
    opened = dataclasses.replace(order(said, kind=CUT), vacate=vacate)
    for heard in range(NOW + 60, NOW + ended, 60):
        seen = report_of(running(heard, ends, heard), lease, False, 0, heard, NOW + limit)
        opened = opened.with_report_of(pilot(1, seen), heard)
    if not vacated:  # it has stopped them, and says so while its node clears up
        last = report_of(Workload(STARTED), lease, False, 0, NOW + ended, NOW + limit)
        opened = opened.with_report_of(pilot(1, last), NOW + ended)
    left = running(now, ends, NOW + ended)
    idle = sum(cores * max(0, ended - end) for end, cores in ends.items())
    truth = idle + left.run_until(NOW + ended)
    assert waste(opened, NOW + ended, vacated) == pytest.approx(truth, rel=0.03)
    if len(ends) == 1:
        assert sum(Claims(CORES, *said[1:]).cut_waste(NOW, NOW + ended)) == pytest.approx(truth, rel=0.01)


def heard(before: float, after: float, ended: int = 3600, vacated: bool = True) -> tuple[float, float]:
    """What a pilot promised and what was lost that claims so much uncommitted time at its order and then (0 to 1).

    From its order on all that it runs ends by its deadline, by its word.
    """
    most = 8.0 * (NOW - STARTED)
    said = ClaimedValues(NOW - 60, 8.0, float(NOW), NOW + 90_000.0, NOW + 90_000.0, before * most, 0.0)
    used, end = (0.0, NOW + 3500) if after == 0 else (8.0, NOW + 3600)
    later = PilotReport(NOW + 3500, used, NOW, end, end, end, after * most, 0.0, 0, can_postpone_last_job=False)
    opened = order(said, kind=CUT).with_report_of(pilot(1, later), NOW + 3500)
    return sum(Claims(CORES, *said[1:]).cut_waste(NOW, NOW + 3600)), waste(opened, NOW + ended, vacated)


@pytest.mark.parametrize("before, after", [(1.0, 0.0), (1.0, 0.1), (0.0, 1.0), (0.1, 1.0)])
def test_whose_claims_change_with_its_order_is_not_believed(before: float, after: float) -> None:
    """Much to be spared and then little, or little to look harmless and then much: each is an error of its promise."""
    promised, lost = heard(before, after)
    possible = 8 * (NOW + 3600 - STARTED)
    outcomes = [PilotOutcome(f"run{n}", "alice", NOW, int(promised), int(lost), possible) for n in range(OUTCOMES)]
    assert doubt(trust_by_user(outcomes, NOW)["alice"]) > 0.5


def test_who_claims_much_and_leaves_by_itself_long_before_its_deadline_lost_nothing() -> None:
    """Nobody stopped what it ran, so what it claimed was none of its loss."""
    opened = order(claims_with(8.0, 90_000, 90_000)._replace(add_uncom_time=1e5), kind=CUT)
    assert waste(opened, NOW + 1800) == 0
    assert waste(opened, NOW + 3590) > 1e5


def test_a_pilot_that_drained_anyway_idles_for_its_own_reasons() -> None:
    said = claims_with(6.0, 2000, 4000)
    assert waste(order(said, draining=True), NOW + 1000) == 0
    assert waste(order(said, draining=True), NOW + 1000, vacated=True) == 100 + 6 * 1500


@pytest.mark.parametrize("draining", [False, True])
def test_who_says_that_it_leaves_and_stays_is_charged_by_that_word(draining: bool) -> None:
    """All payloads should end within a thousand seconds; at its deadline it says that it has just begun another one."""
    said = claims_with(8.0, 1000, 1000)
    later = said._replace(heartbeat=NOW + 3500, last_job_start=NOW + 3599.0, add_uncom_time=0.0)
    one = dataclasses.replace(order(said, draining), claims=later, since=NOW + 3500)
    assert waste(one, NOW + 3600, vacated=True) >= 100 + 8 * (3600 + 500)
    assert waste(one, NOW + 3600) == (0 if draining else 8 * 100), "had it left, its reports would count"
    early = waste(one, NOW + 900, vacated=True)
    assert early < 100 + 8 * (900 + 500), "somebody had it ended before it should have left"


def test_work_that_was_not_counted_was_lost() -> None:
    """Cut after half an hour: by its word nearly all has ended soon, by the records all cores worked."""
    said = ClaimedValues(NOW - 60, 8.0, NOW - 500.0, NOW + 60.0, NOW + 7200.0, 0.0, 8 * 7140 - 2000.0)
    one, ended = order(said, kind=CUT), NOW + 1800
    all_busy = CORES * (ended - STARTED)
    assert waste(one, ended, vacated=True) > 8 * 1400, "by its word it idled"
    assert waste(one, ended, cpu=all_busy) == 0, "it did not"
    assert waste(one, ended, vacated=True, cpu=all_busy) > 8 * 1400, "so that was work, and it was lost"


def test_cores_that_were_returned_before_the_order_hide_no_waste(tmp_path: Path) -> None:
    """Eight cores busy until the order, when four had just been returned; then four of four idle for 1000 s."""
    went_on = dataclasses.replace(pilot(1, report(0.0, leaves=NOW + 1000), cores=4), returned=4)
    given = orders(snapshot(went_on, pilot(2, report(4.0), cores=4), deficit=8))
    [event] = [one for one in given if one["run"] == went_on.run]
    assert (event["cores"], event["returned"]) == (4, 4)
    path = tmp_path / "journal"
    path.write_text(journal_line(event))
    [known] = Memory.load([str(path)], NOW).open_orders().values()
    run = NOW - STARTED
    assert realised_waste(known, Ending(known.run, NOW + 1000, False, 8.0 * run)) == (4000, 4 * (run + 1000) + 4 * run)


def test_no_more_is_lost_than_was_worked() -> None:
    """All its cores were busy since its start, it says; the records know of ten minutes."""
    said = claims_with(8.0, 5000, 5000)._replace(add_uncom_time=8.0 * (NOW - STARTED), last_job_start=NOW)
    one = order(said, kind=KILL)
    assert waste(one, NOW, vacated=True) == CORES * (NOW - STARTED)
    assert waste(one, NOW, vacated=True, cpu=600.0) == 600


def test_a_silent_pilot_is_measured_by_what_the_batch_system_knows() -> None:
    run = NOW + 1000 - STARTED
    assert waste(order(None), NOW + 1000, vacated=True) == CORES * run
    assert waste(order(None), NOW + 1000) == 0
    assert waste(order(None), NOW + 1000, cpu=6.0 * run) == 2 * 1000


def test_each_new_report_takes_over_from_when_it_was_heard() -> None:
    """It had said that it is busy for 2000 s, and two of its cores fell idle after 500 s."""
    one = order(claims_with(8.0, 2000, 2000))
    later = NOW + 500
    heard = one.with_report_of(pilot(1, report(6.0, heartbeat=later - 1)), later)
    assert waste(heard, NOW + 2000) == 2 * 1500
    assert heard.with_report_of(pilot(1, report(1.0, heartbeat=later - 2)), later + 100) == heard, (
        "an older one does not"
    )
    assert heard.with_report_of(pilot(1, None), later + 100) == heard


CLAIMS = st.builds(
    ClaimedValues,
    st.integers(NOW - 4000, NOW),
    st.floats(0, CORES),
    st.floats(STARTED, NOW),
    st.floats(NOW - 10_000, NOW + 100_000),
    st.floats(NOW - 10_000, NOW + 100_000),
    st.floats(0, 1e6),
    st.floats(0, 1e6),
)
ENDED = st.integers(NOW - 100, NOW + 200_000)


@given(st.none() | CLAIMS, ENDED, st.booleans(), st.none() | st.floats(0, 1e7), st.booleans())
def test_no_waste_is_negative_or_beyond_all_that_was_there(
    said: ClaimedValues | None, ended: int, vacated: bool, cpu: float | None, draining: bool
) -> None:
    lost, possible = realised_waste(order(said, draining), Ending("run", ended, vacated, cpu))
    assert 0 <= lost <= possible == CORES * (max(NOW, ended) - STARTED)


@given(CLAIMS, st.integers(NOW, NOW + 50_000), st.floats(0, 1))
def test_the_records_of_the_batch_system_bound_what_a_pilot_says(said: ClaimedValues, ended: int, share: float) -> None:
    """CPU time cannot have been used twice: what was used since the order did not idle, and the other way round."""
    before, since = CORES * (NOW - STARTED), CORES * (ended - NOW)
    cpu = share * (before + since)
    lost = waste(order(said), ended, cpu=cpu)
    assert round(max(0.0, since - cpu)) <= lost + 1
    assert lost - 1 <= round(since - max(0.0, cpu - before))


@given(st.floats(0, CORES), st.integers(1, 5000), st.integers(0, 5000), st.floats(0, 1), st.integers(0, 12_000))
def test_saying_the_same_again_changes_nothing(used: float, first: int, more: int, share: float, after: int) -> None:
    """As long as no payload has ended, the way is the same in one step and in two."""
    said = claims_with(used, first, first + more)
    heard_at = NOW + int(share * first)
    again = PilotReport(
        heard_at,
        used_cpu=used,
        last_job_start=int(said.last_job_start),
        first_exp_job_end=int(said.first_exp_job_end),
        last_exp_job_end=int(said.last_exp_job_end),
        add_uncom_time=said.add_uncom_time,
        add_final_exp_waste=said.add_final_exp_waste,
    )
    heard = order(said).with_report_of(pilot(1, again), heard_at)
    ended = heard_at + after
    for vacated in (False, True):
        assert waste(heard, ended, vacated) == pytest.approx(waste(order(said), ended, vacated), abs=1)


@pytest.mark.parametrize(
    ("saves", "ended", "lost"),
    [
        pytest.param(None, 3600, NOW + 3600 - STARTED, id="who saves nothing"),
        pytest.param(Saves(NOW - 600, 0, math.inf, math.inf), 3600, 4200, id="saved before its order"),
        pytest.param(Saves(NOW - 600, 80, NOW + 3000, math.inf), 3600, 600 + 10, id="due before its end"),
        pytest.param(Saves(NOW - 600, 0, NOW + 3000, math.inf), 2000, 2600, id="ended before it was due"),
        pytest.param(Saves(NOW - 600, 0, math.inf, 60), 3600, 60, id="asked for by its order"),
    ],
)
def test_who_saves_its_work_loses_what_it_did_since(saves: Saves | None, ended: int, lost: int) -> None:
    """Of a job that says nothing and is ended."""
    one = dataclasses.replace(order(None, kind=COMMIT), saves=saves)
    assert waste(one, NOW + ended, vacated=True) == CORES * lost


def test_a_save_that_is_seen_counts_and_one_that_does_not_come_does_not() -> None:
    """The journal has what was known at the order; each look after that tells more."""
    saves = dataclasses.replace(pilot(1, None), saved=NOW - 600, next_save=NOW + 3000)
    memory = remembering(*orders(snapshot(saves, deficit=8)))
    [opened] = memory.open_orders().values()
    assert opened.saves == Saves(NOW - 600, 0, NOW + 3000, math.inf)
    late = opened.with_report_of(saves, NOW + 3200)
    assert waste(late, NOW + 3400, vacated=True) == CORES * 400
    never = opened.with_report_of(saves, NOW + 3301)
    assert waste(never, NOW + 3400, vacated=True) == CORES * 4000
    sooner = opened.with_report_of(dataclasses.replace(saves, saved=NOW + 1000, next_save=None), NOW + 1010)
    assert waste(sooner, NOW + 1500, vacated=True) == CORES * 500


@given(
    saves=st.builds(
        Saves,
        st.integers(STARTED, NOW + 10**6),
        st.integers(0, 10**9),
        st.integers(0, 2**40) | st.just(math.inf),
        st.integers(0, 10**6) | st.just(math.inf),
    ),
    kind=st.sampled_from([LEAVE, CUT, COMMIT, KILL]),
    said=st.none() | st.just(claims_with(6.0, 1000, 2000)),
    ended=st.integers(0, 8000),
)
def test_no_checkpoint_that_is_made_up_makes_a_waste_of_what_never_ran(
    saves: Saves, kind: str, said: ClaimedValues | None, ended: int
) -> None:
    """Stale, to come, or never written: between nothing and cores x run time, and never dearer than without, but for
    what it says that beginning again costs.
    """
    plain = order(said, kind=kind)
    found, most = realised_waste(lying := dataclasses.replace(plain, saves=saves), Ending("run", NOW + ended, True))
    assert lying.saves is saves
    assert 0 <= found <= min(most, waste(plain, NOW + ended, vacated=True) + saves.restart)
